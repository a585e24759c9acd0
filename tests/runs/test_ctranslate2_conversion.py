"""Conversion to CTranslate2's format: which models are supported, and when a run is converted."""

import os
from pathlib import Path

import pytest

from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.models.settings import ModelSettings
from regard.models.shapes import SHAPES
from regard.runs import ctranslate2_conversion
from regard.runs.bundle import save_bundle
from regard.runs.ctranslate2_conversion import convert_to_ctranslate2, unsupported_by_ctranslate2
from regard.runs.folder import open_run
from tests.bundles import random_bundle
from tests.inference.engines.test_ctranslate2 import SUPPORTED_KINDS
from tests.models.variants import DECODERS, ENCODERS, TRANSLATION_PRESETS


def save_transformer(subwords: SubwordTokenizer, folder: Path, tie: str = "none") -> None:
    save_bundle(folder, random_bundle(subwords, "transformer", "transformer", tie=tie, max_tokens=40))


@pytest.mark.parametrize("decoder", sorted(DECODERS))
@pytest.mark.parametrize("encoder", ["recurrent", "transformer"])
def test_models_that_ctranslate2_cannot_run_are_refused(encoder: str, decoder: str) -> None:
    settings = ModelSettings.parse({"encoder": ENCODERS[encoder], "decoder": DECODERS[decoder], "tie": "none"})
    assert bool(unsupported_by_ctranslate2(settings)) == (
        encoder != "transformer" or decoder not in SUPPORTED_KINDS or decoder == "rms"
    )


@pytest.mark.parametrize(
    "name", [name for name in TRANSLATION_PRESETS if "transformer" in name or name == "deep-shallow"]
)
def test_presets_of_transformers_are_supported(name: str) -> None:
    assert not unsupported_by_ctranslate2(ModelSettings.parse(SHAPES[name].model))


def test_a_run_is_converted_again_only_when_its_model_has_changed(
    subwords: SubwordTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_transformer(subwords, tmp_path)
    converted: list[Path] = []
    original = ctranslate2_conversion._write_converted

    def count_calls(run, folder, precision, fingerprint) -> None:
        converted.append(folder)
        original(run, folder, precision, fingerprint)

    monkeypatch.setattr(ctranslate2_conversion, "_write_converted", count_calls)
    first = convert_to_ctranslate2(open_run(tmp_path), "int8")
    assert first == tmp_path / "ctranslate2" / "int8"
    assert convert_to_ctranslate2(open_run(tmp_path), "int8") == first
    assert len(converted) == 1
    save_transformer(subwords, tmp_path, tie="target")
    assert convert_to_ctranslate2(open_run(tmp_path), "int8") == first
    assert len(converted) == 2
    convert_to_ctranslate2(open_run(tmp_path), "float32")
    assert sorted(path.name for path in first.parent.iterdir()) == ["float32", "int8"], "no temporary folder is left"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_run_is_converted_into_a_temporary_folder(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_transformer(subwords, tmp_path)
    tmp_path.chmod(0o500)
    try:
        assert not convert_to_ctranslate2(open_run(tmp_path), "int8").is_relative_to(tmp_path)
    finally:
        tmp_path.chmod(0o700)
