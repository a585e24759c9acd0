"""Which model of a pool answers a request for languages."""

from pathlib import Path
from typing import cast

import pytest

from regard.inference.predictor import Predictor
from regard.models.settings import ModelSettings
from regard.runs.folder import RunDescription
from regard.serving.libretranslate import _languages
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
        with pytest.raises(ModelNotFoundError, match="no model translates from"):
            models.find(**languages)
    assert models.find(name="classifier").name == "classifier"


def test_a_single_model_without_languages_answers_any() -> None:
    assert pool(mt=(None, None)).find(source="en", target="de").name == "mt"
    assert pool(mt=(None, "de")).find(source="en", target="de-AT").name == "mt"


def test_every_target_language_is_found_and_passed_on() -> None:
    models = pool(many=("en", None), back=("de", "en"))
    models.models[0].predictor = cast(Predictor, Multilingual())
    assert models.models[0].targets == ["de", "fr"]
    many = models.find(source="en", target="fr")
    assert (many.name, many.target_language("fr"), many.target_language(None)) == ("many", "fr", "")
    assert models.find(source="de", target="en").target_language("en") == ""
    with pytest.raises(ModelNotFoundError):
        models.find(source="en", target="es")
    languages = {each["code"]: each["targets"] for each in _languages(models)}
    assert languages == {"de": ["en"], "en": ["de", "fr"], "fr": []}


class Multilingual:
    """A predictor of a run with several target languages."""

    description = RunDescription.model_construct(target_languages=("de", "fr"), model=ModelSettings())
