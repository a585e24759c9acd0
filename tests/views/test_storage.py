"""Captured attention as files."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

from regard.interpret.captured_attention import CapturedAttention
from regard.views.storage import from_record, load, save, to_record
from tests.views.samples import close, sample


def same(one: CapturedAttention, other: CapturedAttention, within: float) -> None:
    assert (one.source, one.target, one.before) == (other.source, other.target, other.before)
    assert (one.alignment_head, one.model, one.kinds) == (other.alignment_head, other.model, other.kinds)
    for kind in one.kinds:
        assert len(one.weights[kind]) == len(other.weights[kind])
        for a, b in zip(one.weights[kind], other.weights[kind], strict=True):
            assert b.dtype == np.float32
            close(a, b, atol=within, rtol=0)
    assert one.hidden_weights.keys() == other.hidden_weights.keys()
    for kind, layers in one.hidden_weights.items():
        for a, b in zip(layers, other.hidden_weights[kind], strict=True):
            close(a, b, atol=within, rtol=0)
    assert one.attribution.keys() == other.attribution.keys()
    for over, values in one.attribution.items():
        close(values, other.attribution[over], atol=within, rtol=0)
    close(one.alignment_weights, other.alignment_weights, atol=within, rtol=0)


def test_tiny_attributions_keep_their_digits(tmp_path: Path) -> None:
    seen = sample(3)
    tiny = {over: values * np.float32(1e-9) for over, values in seen.attribution.items()}
    save(replace(seen, attribution=tiny), tmp_path / "x.json")
    close(load(tmp_path / "x.json").attribution["source"], tiny["source"], atol=0, rtol=1e-6)


@pytest.mark.parametrize(("name", "within"), [("x.json", 6e-7), ("x.safetensors", 0)])
@pytest.mark.parametrize("hide", [False, True])
def test_files_come_back(name: str, within: float, hide: bool, tmp_path: Path) -> None:
    seen = sample(3).without_special() if hide else sample(3, layers=11)
    save(seen, tmp_path / name)
    same(seen, load(tmp_path / name), within)


def test_only_the_largest_weights_are_kept_if_asked_for() -> None:
    seen = sample(7)
    record = json.loads(json.dumps(to_record(seen, top=2)))
    for kind in seen.kinds:
        for layer, given in zip(seen.weights[kind], record["weights"][kind], strict=True):
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
    again = from_record(record)
    assert all((layer > 0).sum(-1).max() <= 2 for layer in again.weights["encoder"])


def test_what_is_no_attention_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    whole = to_record(sample(1))
    for wrong in (
        "",
        "[]",
        "{",
        "5",
        "null",
        '{"format": "other"}',
        json.dumps({**whole, "weights": []}),
        "[" * 100_000,
    ):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=r"x\.json: "):
            load(path)
    path.write_text(json.dumps({**whole, "source": whole["target"]}))
    with pytest.raises(ValueError, match=r"x\.json: "):
        load(path)
    damaged = tmp_path / "x.safetensors"
    save(sample(1), damaged)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    for path, message in ((damaged, "safetensors: "), (tmp_path / "none.json", "it cannot be read")):
        with pytest.raises(ValueError, match=message):
            load(path)
    with pytest.raises(ValueError, match="top: at least one"):
        save(sample(1), tmp_path / "x.json", top=0)
    with pytest.raises(ValueError, match=r"as \.json or \.safetensors"):
        save(sample(1), tmp_path / "x.txt")


@pytest.mark.parametrize(
    "changes",
    [
        {"choice": {"layer": 99, "head": None, "shifted": False}},
        {"choice": {"layer": "x", "head": None, "shifted": False}},
        {"choice": {"layer": 0}},
        {"hidden": {"cross": [[[0.5]]]}},
        {"attribution": {"foo": []}},
        {"source": {"unit": "subwords", "labels": ["a"]}},
    ],
)
def test_what_does_not_fit_together_is_a_sentence(changes: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({**to_record(sample(1)), **changes}))
    with pytest.raises(ValueError, match=r"x\.json: "):
        load(tmp_path / "x.json")


@pytest.mark.parametrize(
    "weight", ["NaN", "null", "-5", "1" + "0" * 400, "Infinity", '"a"', '{"at": [-1], "weights": [1]}']
)
def test_a_weight_that_is_none_is_a_sentence(weight: str, tmp_path: Path) -> None:
    record = to_record(sample(1))
    record["weights"]["cross"][0][0][0] = (
        "HERE" if weight.startswith("{") else ["HERE", *record["weights"]["cross"][0][0][0][1:]]
    )
    (tmp_path / "x.json").write_text(json.dumps(record).replace('"HERE"', weight))
    with pytest.raises(ValueError, match=r"x\.json: "):
        load(tmp_path / "x.json")


@pytest.mark.parametrize("wrong", ["about", "extra", "middle"])
def test_tensors_that_belong_to_nothing_are_a_sentence(wrong: str, tmp_path: Path) -> None:
    seen = sample(1, layers=3)
    tensors = {f"cross.{number}": layer for number, layer in enumerate(seen.weights["cross"])}
    if wrong == "middle":
        del tensors["cross.1"]
    if wrong == "extra":
        tensors["attribution.foo"] = seen.attribution["source"]
    record = {**to_record(seen), "weights": {}, "hidden": {}, "attribution": {}, "aligned": None}
    about = json.dumps([1] if wrong == "about" else record)
    (tmp_path / "x.safetensors").write_bytes(save_tensors(tensors, {"regard": about}))
    with pytest.raises(ValueError, match=r"x\.safetensors: this is no captured attention"):
        load(tmp_path / "x.safetensors")


def test_names_may_be_text_and_suffixes_large(tmp_path: Path) -> None:
    for name in ("x.JSON", "x.SafeTensors"):
        save(sample(2), str(tmp_path / name))
        same(sample(2), load(str(tmp_path / name)), 6e-7)
