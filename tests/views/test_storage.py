"""Captured attention as files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import CapturedAttention
from regard.views.storage import from_record, load, save, to_record
from tests.views.samples import assert_close, random_capture

FORMAT_1 = Path(__file__).parent / "format-1"


def assert_same(first: CapturedAttention, second: CapturedAttention, tolerance: float) -> None:
    assert (first.source, first.target, first.decoder_input) == (second.source, second.target, second.decoder_input)
    assert (first.alignment_head, first.model, first.kinds) == (second.alignment_head, second.model, second.kinds)
    for kind in first.kinds:
        assert len(first.weights[kind]) == len(second.weights[kind])
        for a, b in zip(first.weights[kind], second.weights[kind], strict=True):
            assert b.dtype == np.float32
            assert_close(a, b, atol=tolerance, rtol=0)
    assert first.hidden_weights.keys() == second.hidden_weights.keys()
    for kind, layers in first.hidden_weights.items():
        for a, b in zip(layers, second.hidden_weights[kind], strict=True):
            assert_close(a, b, atol=tolerance, rtol=0)
    assert first.attribution.keys() == second.attribution.keys()
    for over, values in first.attribution.items():
        assert_close(values, second.attribution[over], atol=tolerance, rtol=0)
    if first.alignment_weights is None or second.alignment_weights is None:
        assert first.alignment_weights is second.alignment_weights
        return
    assert_close(first.alignment_weights, second.alignment_weights, atol=tolerance, rtol=0)


def test_tiny_attributions_keep_their_digits(tmp_path: Path) -> None:
    captured = random_capture(3)
    tiny = {over: values * np.float32(1e-9) for over, values in captured.attribution.items()}
    save(replace(captured, attribution=tiny), tmp_path / "x.json")
    assert_close(load(tmp_path / "x.json").attribution["source"], tiny["source"], atol=0, rtol=1e-6)


@pytest.mark.parametrize(("name", "tolerance"), [("x.json", 6e-7), ("x.safetensors", 0)])
@pytest.mark.parametrize("hide", [False, True])
def test_saved_files_are_read_back(name: str, tolerance: float, hide: bool, tmp_path: Path) -> None:
    captured = random_capture(3).without_special_tokens() if hide else random_capture(3, layers=11)
    save(captured, tmp_path / name)
    assert_same(captured, load(tmp_path / name), tolerance)


def test_top_keeps_only_the_largest_weights_of_each_row() -> None:
    captured = random_capture(7)
    record = json.loads(json.dumps(to_record(captured, top=2)))
    for kind in captured.kinds:
        for layer, given in zip(captured.weights[kind], record["weights"][kind], strict=True):
            for head, rows in zip(layer, given, strict=True):
                for row, kept in zip(head, rows, strict=True):
                    if len(row) <= 2:
                        assert kept == pytest.approx(row.tolist(), abs=1e-6)
                        continue
                    assert sorted(kept["weights"], reverse=True) == pytest.approx(
                        sorted(row.tolist())[-2:][::-1], abs=1e-6
                    )
                    assert [row[at] for at in kept["at"]] == pytest.approx(kept["weights"], abs=1e-6)
                    assert sum(kept["weights"]) + kept["rest"] == pytest.approx(1, abs=1e-5)
    loaded = from_record(record)
    assert all((layer > 0).sum(-1).max() <= 2 for layer in loaded.weights["encoder"])


def test_files_that_are_not_captured_attention_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    record = to_record(random_capture(1))
    for content in (
        "",
        "[]",
        "{",
        "5",
        "null",
        '{"format": "other"}',
        json.dumps({**record, "weights": []}),
        "[" * 100_000,
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"x\.json: "):
            load(path)
    path.write_text(json.dumps({**record, "source": record["target"]}))
    with pytest.raises(ValueError, match=r"x\.json: "):
        load(path)
    damaged = tmp_path / "x.safetensors"
    save(random_capture(1), damaged)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    for path, message in ((damaged, "safetensors: "), (tmp_path / "none.json", "it cannot be read")):
        with pytest.raises(ValueError, match=message):
            load(path)
    with pytest.raises(ValueError, match="top: at least one"):
        save(random_capture(1), tmp_path / "x.json", top=0)
    with pytest.raises(ValueError, match=r"as \.json or \.safetensors"):
        save(random_capture(1), tmp_path / "x.txt")


@pytest.mark.parametrize(
    "changes",
    [
        {"alignment_head": {"layer": 99, "head": None, "shifted": False}},
        {"alignment_head": {"layer": "x", "head": None, "shifted": False}},
        {"alignment_head": {"layer": 0}},
        {"hidden_weights": {"cross": [[[0.5]]]}},
        {"attribution": {"foo": []}},
        {"source": {"unit": "subwords", "labels": ["a"]}},
    ],
)
def test_inconsistent_records_are_an_error(changes: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({**to_record(random_capture(1)), **changes}))
    with pytest.raises(ValueError, match=r"x\.json: "):
        load(tmp_path / "x.json")


@pytest.mark.parametrize(
    "weight", ["NaN", "null", "-5", "1" + "0" * 400, "Infinity", '"a"', '{"at": [-1], "weights": [1]}']
)
def test_invalid_weights_are_an_error(weight: str, tmp_path: Path) -> None:
    record = to_record(random_capture(1))
    record["weights"]["cross"][0][0][0] = (
        "HERE" if weight.startswith("{") else ["HERE", *record["weights"]["cross"][0][0][0][1:]]
    )
    (tmp_path / "x.json").write_text(json.dumps(record).replace('"HERE"', weight))
    with pytest.raises(ValueError, match=r"x\.json: "):
        load(tmp_path / "x.json")


@pytest.mark.parametrize("wrong", ["about", "extra", "middle"])
def test_unexpected_tensors_are_an_error(wrong: str, tmp_path: Path) -> None:
    captured = random_capture(1, layers=3)
    tensors = {f"cross.{number}": layer for number, layer in enumerate(captured.weights["cross"])}
    if wrong == "middle":
        del tensors["cross.1"]
    if wrong == "extra":
        tensors["attribution.foo"] = captured.attribution["source"]
    record = {**to_record(captured), "weights": {}, "hidden_weights": {}, "attribution": {}, "alignment_weights": None}
    about = json.dumps([1] if wrong == "about" else record)
    (tmp_path / "x.safetensors").write_bytes(save_tensors(tensors, {"regard": about}))
    with pytest.raises(ValueError, match=r"x\.safetensors: this is no captured attention"):
        load(tmp_path / "x.safetensors")


def test_paths_may_be_strings_and_suffixes_upper_case(tmp_path: Path) -> None:
    for name in ("x.JSON", "x.SafeTensors"):
        save(random_capture(2), str(tmp_path / name))
        assert_same(random_capture(2), load(str(tmp_path / name)), 6e-7)


@pytest.mark.parametrize("name", ["attention.json", "attention.safetensors", "image.json"])
def test_files_of_format_1_are_read(name: str, tmp_path: Path) -> None:
    captured = load(FORMAT_1 / name)
    assert captured.source_media is not None
    if name == "image.json":
        assert captured.source_media.kind == "image"
    else:
        assert captured.source_media.kind == "spectrogram"
        assert captured.source_media.audio == b"RIFFsound"
        assert captured.hidden_weights["cross"][1] == pytest.approx(np.full((2, 3), 0.25))
        assert captured.alignment_head == AlignmentHead(1, None, True, False)
        assert captured.alignment_weights is not None
        assert captured.alignment_weights.sum(-1) == pytest.approx(np.ones(3), abs=1e-5)
    save(captured, tmp_path / name)
    assert_same(captured, load(tmp_path / name), 6e-7)
