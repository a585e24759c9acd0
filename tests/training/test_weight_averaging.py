"""Weight averaging."""

import pytest
import torch
from torch import nn

from regard.training.weight_averaging import MovingAverage, mean_weights, temporary_weights


def test_the_moving_average_follows_its_formula() -> None:
    layer = nn.Linear(1, 1, bias=False)
    layer.weight.data.fill_(1.0)
    average = MovingAverage(layer, 0.9)
    layer.weight.data.fill_(2.0)
    average.update(layer, 1)  # the decay is (1 + 1) / (10 + 1) at first
    assert average.tensors["weight"].item() == pytest.approx(1.0 + (1 - 2 / 11) * 1.0)
    before = average.tensors["weight"].item()
    average.update(layer, 10_000)
    assert average.tensors["weight"].item() == pytest.approx(0.9 * before + 0.1 * 2.0)


def test_the_mean_of_several_checkpoints() -> None:
    checkpoints = [{"w": torch.tensor([1.0, 4.0])}, {"w": torch.tensor([3.0, 0.0])}]
    assert torch.equal(mean_weights(checkpoints)["w"], torch.tensor([2.0, 2.0]))


def test_temporary_weights_are_restored_even_after_an_error() -> None:
    layer = nn.Linear(2, 2)
    original = layer.weight.clone()
    other = {name: torch.zeros_like(value) for name, value in layer.named_parameters()}

    def fail() -> None:
        with temporary_weights(layer, other):
            assert not layer.weight.any()
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert torch.equal(layer.weight, original)
