"""Models of Hugging Face's, saved and imported once for all tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from regard.interop.folder_import import import_folder
from regard.runs.bundle import Bundle
from tests.interop.huggingface_models import save_random_model


class Imported(NamedTuple):
    """A model of transformers, its import, and the folders of both."""

    model: Any
    bundle: Bundle
    theirs: Path
    run: Path


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Imported]:
    """By family and class, as in `bert BertForMaskedLM`."""
    models: dict[str, Imported] = {}

    def get(kind: str) -> Imported:
        if kind not in models:
            folder = tmp_path_factory.mktemp("imported")
            model = save_random_model(kind, folder / "theirs")
            bundle = import_folder(folder / "theirs", folder / "run")
            models[kind] = Imported(model, bundle, folder / "theirs", folder / "run")
        return models[kind]

    return get
