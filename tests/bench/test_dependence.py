"""Steps and paths of the four layers are what their definitions say."""

import math

import pytest
import torch
from bench.dependence import Chain, longest_path, sequential_steps
from bench.layers import LAYERS, Layer, Recurrent, Sizes, both, forward

from regard import native

NAMED = {layer.name: layer for layer in LAYERS}
D = 4


@pytest.mark.parametrize("n", [2, 9, 30])
def test_attention_joins_any_two_places_at_once(n: int) -> None:
    for name in ("self-attention", "self-attention, weights kept", "self-attention, whole layer"):
        assert longest_path(NAMED[name], Sizes(n, D)) == 1


@pytest.mark.parametrize("n", [2, 9, 30])
def test_a_recurrent_path_goes_through_every_place(n: int) -> None:
    assert longest_path(NAMED["recurrent"], Sizes(n, D)) == n


@pytest.mark.parametrize(("n", "k"), [(2, 3), (9, 3), (30, 3), (30, 5), (30, 9), (31, 9)])
def test_a_convolution_reaches_half_its_kernel(n: int, k: int) -> None:
    assert longest_path(NAMED["convolutional"], Sizes(n, D, k=k)) == math.ceil((n - 1) / ((k - 1) // 2))


@pytest.mark.parametrize(("n", "r"), [(2, 1), (30, 1), (30, 4), (30, 7), (29, 7), (30, 40)])
def test_a_window_reaches_its_radius(n: int, r: int) -> None:
    for name in ("restricted", "restricted, whole layer"):
        assert longest_path(NAMED[name], Sizes(n, D, r=r)) == math.ceil((n - 1) / r)


def test_ends_that_never_meet_are_said() -> None:
    with pytest.raises(ValueError, match="never hears"):
        longest_path(NAMED["restricted"], Sizes(5, D, r=0))


def test_as_many_hops_as_places_are_the_recurrent_layer() -> None:
    """So that a path counted in hops is a path of the layer itself."""
    n = 7
    run, x = Recurrent(Sizes(n, D)).double(), torch.randn(1, n, D, dtype=torch.float64)
    states = torch.zeros_like(x)
    for _ in range(n):
        states = run.hop(x, states)
    torch.testing.assert_close(states, run(x))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name.strip())
def test_only_the_recurrent_layer_has_steps_that_grow_with_the_length(layer: Layer) -> None:
    few, some, many = (sequential_steps(layer, Sizes(n, D)) for n in (64, 128, 256))
    if layer.steps == "n":
        assert many - some == 2 * (some - few) > 0
    else:
        assert few == some == many > 0


def test_a_chain_counts_what_waits_and_not_what_stands_beside() -> None:
    x = torch.ones(3, 3)
    with torch.no_grad(), Chain() as chain:
        a, b = x + 1, x * 2  # 1
        c = (a.t() @ b[:, :1]).view(-1)  # 2: views count nothing
        x.sin()  # beside
        c.add_(1)  # 3
        room = torch.empty(2, 3)
        room[0] = c  # 4, written into a part
        room[0].exp()  # 5
    assert chain.longest == 5


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name.strip())
def test_every_layer_runs_both_ways_and_keeps_the_shape(layer: Layer) -> None:
    sizes = Sizes(40, 8, k=5, r=3)
    forward(layer, sizes)()
    gradients = both(layer, sizes)()
    assert isinstance(gradients, tuple)
    assert all(gradient.isfinite().all() for gradient in gradients)
    with native.disabled():
        x = torch.randn(1, 40, 8)
        assert layer.make(sizes)(*[x] * layer.inputs).shape == x.shape
