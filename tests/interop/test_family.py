"""Families of models: found by listing their folder, documented, and extended by one file."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard import plugins
from regard.errors import RegardError
from regard.interop.family import FAMILIES, family_of
from regard.interop.folder_import import import_folder
from regard.interop.run_export import export_run
from tests.interop.huggingface_models import save_random_model

ROOT = Path(__file__).parent.parent.parent
PLUGIN = """
from regard.interop.families.bert import Bert
from regard.interop.family import FAMILIES


@FAMILIES.register("camel")
class Camel(Bert):
    exports = None
    prefix = "camel."
"""


def test_every_file_of_the_folder_is_a_family() -> None:
    files = {path.stem for path in (ROOT / "src/regard/interop/families").glob("[!_]*.py")}
    assert {name.replace("-", "_") for name in FAMILIES.builtin_names()} == files


def test_every_family_is_documented() -> None:
    text = (ROOT / "docs/interop.md").read_text()
    assert [name for name in FAMILIES.builtin_names() if f"`{name}`" not in text] == []


@pytest.mark.parametrize("kind", ["albert", None, ["bert"]])
def test_an_unknown_family_is_rejected_with_the_known_ones(kind: Any) -> None:
    with pytest.raises(RegardError, match=r"model_type .* is not known; known are bert, .*roberta"):
        family_of({"model_type": kind})


@pytest.fixture
def camel(tmp_path: Path) -> Any:
    (tmp_path / "camel.py").write_text(PLUGIN)
    plugins.load_file(tmp_path / "camel.py")
    yield FAMILIES.get("camel")
    del FAMILIES._entries["camel"]


def test_a_plugin_can_add_a_family(camel: Any, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    theirs = tmp_path / "theirs"
    save_random_model("bert BertForMaskedLM", theirs)
    config = json.loads((theirs / "config.json").read_text())
    (theirs / "config.json").write_text(json.dumps({**config, "model_type": "camel"}))
    tensors = load_file(theirs / "model.safetensors")
    renamed = {
        f"camel.{name.removeprefix('bert.')}" if name.startswith("bert.") else name: value
        for name, value in tensors.items()
    }
    save_file(renamed, theirs / "model.safetensors", {"format": "pt"})
    import_folder(theirs, tmp_path / "run")
    export_run(tmp_path / "run", "huggingface", tmp_path / "back")
    assert load_file(tmp_path / "back" / "model.safetensors").keys() == renamed.keys()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("hidden_size", 10**9), ("num_hidden_layers", 0), ("vocab_size", "300"), ("n_positions", True)],
)
def test_impossible_sizes_are_rejected(setting: str, value: Any) -> None:
    with pytest.raises(RegardError, match=f"{setting} = .* is not possible"):
        family_of({"model_type": "bert", setting: value})
