"""Sequential steps and path lengths of the four layers follow from their definitions."""

import math

import pytest
import torch
from bench.dependency_depth import DepthCounter, longest_path, sequential_steps
from bench.layers import LAYERS, Layer, Recurrent, Sizes, forward, forward_and_backward

from regard import native

BY_NAME = {layer.name: layer for layer in LAYERS}
D = 4


@pytest.mark.parametrize("n", [2, 9, 30])
def test_self_attention_has_path_length_one(n: int) -> None:
    for name in ("self-attention", "self-attention, weights kept", "self-attention, whole layer"):
        assert longest_path(BY_NAME[name], Sizes(n, D)) == 1


@pytest.mark.parametrize("n", [2, 9, 30])
def test_recurrent_path_length_is_n(n: int) -> None:
    assert longest_path(BY_NAME["recurrent"], Sizes(n, D)) == n


@pytest.mark.parametrize(("n", "k"), [(2, 3), (9, 3), (30, 3), (30, 5), (30, 9), (31, 9)])
def test_convolutional_path_length(n: int, k: int) -> None:
    assert longest_path(BY_NAME["convolutional"], Sizes(n, D, k=k)) == math.ceil((n - 1) / ((k - 1) // 2))


@pytest.mark.parametrize(("n", "r"), [(2, 1), (30, 1), (30, 4), (30, 7), (29, 7), (30, 40)])
def test_window_path_length(n: int, r: int) -> None:
    for name in ("restricted", "restricted, whole layer"):
        assert longest_path(BY_NAME[name], Sizes(n, D, r=r)) == math.ceil((n - 1) / r)


def test_unconnected_positions_raise() -> None:
    with pytest.raises(ValueError, match="never hears"):
        longest_path(BY_NAME["restricted"], Sizes(5, D, r=0))


def test_n_simultaneous_steps_equal_the_recurrent_layer() -> None:
    """So the path length counted in simultaneous steps is that of the layer."""
    n = 7
    run, x = Recurrent(Sizes(n, D)).double(), torch.randn(1, n, D, dtype=torch.float64)
    states = torch.zeros_like(x)
    for _ in range(n):
        states = run.step_all(x, states)
    torch.testing.assert_close(states, run(x))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name.strip())
def test_only_the_recurrent_layer_has_sequential_steps_that_grow_with_the_length(layer: Layer) -> None:
    short, medium, long = (sequential_steps(layer, Sizes(n, D)) for n in (64, 128, 256))
    if layer.steps == "n":
        assert long - medium == 2 * (medium - short) > 0
    else:
        assert short == medium == long > 0


def test_depth_counts_dependent_operations_only() -> None:
    x = torch.ones(3, 3)
    with torch.no_grad(), DepthCounter() as counter:
        a, b = x + 1, x * 2  # 1
        c = (a.t() @ b[:, :1]).view(-1)  # 2: views count nothing
        x.sin()  # independent
        c.add_(1)  # 3
        buffer = torch.empty(2, 3)
        buffer[0] = c  # 4, written into a part
        buffer[0].exp()  # 5
    assert counter.max_depth == 5


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name.strip())
def test_every_layer_runs_forward_and_backward(layer: Layer) -> None:
    sizes = Sizes(40, 8, k=5, r=3)
    forward(layer, sizes)()
    gradients = forward_and_backward(layer, sizes)()
    assert isinstance(gradients, tuple)
    assert all(gradient.isfinite().all() for gradient in gradients)
    with native.disabled():
        x = torch.randn(1, 40, 8)
        assert layer.build(sizes)(*[x] * layer.inputs).shape == x.shape
