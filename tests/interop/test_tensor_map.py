"""Tensor maps: names in both directions; missing, superfluous and different tensors are named in errors."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.interop.tensor_map import ModelMapping, TensorMapping, export_tensors, layer, load_tensors, tensor
from regard.interop.transforms import SplitFirstRows, Transpose
from regard.models.settings import ModelSettings

SETTINGS = ModelSettings()
THEIRS = {
    "table": torch.arange(12.0).view(4, 3),
    "attention.weight": torch.arange(18.0).view(3, 6),
    "attention.bias": torch.arange(6.0),
    "ids": torch.arange(4),
}
THEIRS["copy"] = THEIRS["table"].clone()


def mapping(**changes: Any) -> ModelMapping:
    tensors = [
        TensorMapping(("table",), ("table", "embedding"), SplitFirstRows(1)),
        *layer("attention", "query", "key", transposed=True),
    ]
    fields = {"tensors": tensors, "duplicates": {"copy": "table"}, "unused": ["ids", "table"]}
    return ModelMapping(SETTINGS, **{**fields, **changes})


def test_loaded_tensors_have_our_names_and_unused_ones_are_kept() -> None:
    ours, unused = load_tensors(mapping(), THEIRS, "model")
    assert ours.keys() == {"embedding", "query.weight", "query.bias", "key.weight", "key.bias"}
    assert torch.equal(ours["key.weight"], THEIRS["attention.weight"].t()[3:])
    assert torch.equal(ours["embedding"], THEIRS["table"][1:])
    assert unused.keys() == {"ids", "table"}
    assert torch.equal(unused["table"], THEIRS["table"][:1])


def test_an_export_has_every_tensor_once() -> None:
    theirs = export_tensors(mapping(), *load_tensors(mapping(), THEIRS, "model"), "run")
    assert theirs.keys() == THEIRS.keys() - {"copy"}
    for name, value in theirs.items():
        assert torch.equal(value, THEIRS[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attention.bias": None}, "model: tensor attention.bias is missing."),
        ({"more": torch.zeros(1)}, "model: tensor more does not belong to this model."),
        ({"copy": torch.zeros(4, 3)}, "model: tensor copy is not table"),
        ({"attention.weight": torch.zeros(6)}, r"model: tensor attention.weight is \(6,\); a matrix was expected."),
    ],
)
def test_load_errors_name_the_tensor(change: Mapping[str, Tensor | None], message: str) -> None:
    theirs = {name: value for name, value in {**THEIRS, **change}.items() if value is not None}
    with pytest.raises(RegardError, match=message):
        load_tensors(mapping(), theirs, "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query.bias": None}, "run: tensor query.bias is missing."),
        ({"more": torch.zeros(1)}, "run: tensor more does not belong to such a model."),
    ],
)
def test_export_errors_name_the_tensor(change: Mapping[str, Tensor | None], message: str) -> None:
    ours, unused = load_tensors(mapping(), THEIRS, "model")
    changed = {name: value for name, value in {**ours, **change}.items() if value is not None}
    with pytest.raises(RegardError, match=message):
        export_tensors(mapping(), changed, unused, "run")


def test_several_layers_of_ours_map_to_one_of_theirs() -> None:
    (weight, bias) = layer("layer", "a", "b")
    assert weight.ours == ("a.weight", "b.weight")
    assert bias.theirs == ("layer.bias",)
    assert tensor("x", "y", Transpose()) == TensorMapping(("x",), ("y",), Transpose())
