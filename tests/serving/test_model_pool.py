"""Which model of a pool answers a request for languages."""

from pathlib import Path

import pytest

from regard.serving.limits import Limits
from regard.serving.model_pool import ModelNotFoundError, ModelPool


def pool(**models: tuple[str | None, str | None]) -> ModelPool:
    """A pool of models by name, each with its source and target language."""
    found = ModelPool([Path(name) for name in models], Limits())
    for model in found.models:
        model.source, model.target = models[model.name]
    return found


def test_a_model_without_languages_never_answers_for_a_language_that_others_lack() -> None:
    models = pool(mt=("en", "de"), classifier=(None, None), zh=("zh", "en"))
    assert models.find(target="de").name == "mt"
    assert models.find(source="zh", target="en").name == "zh"
    for languages in (
        {"target": "fr"},
        {"source": "fr"},
        {"source": "zh", "target": "de"},
        {"source": "en", "target": "fr"},
    ):
        with pytest.raises(ModelNotFoundError, match="no model goes from"):
            models.find(**languages)
    assert models.find(name="classifier").name == "classifier"


def test_a_single_model_without_languages_answers_any() -> None:
    assert pool(mt=(None, None)).find(source="en", target="de").name == "mt"
    assert pool(mt=(None, "de")).find(source="en", target="de-AT").name == "mt"
