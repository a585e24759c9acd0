"""`Attention`, the module: shapes, sharing, caches, and equality with what people know."""

import copy
import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import (
    Additive,
    Attention,
    Bilinear,
    Cache,
    Entmax,
    Hard,
    LocalMonotonic,
    LocalPredictive,
    Window,
    reference,
)
from tests.attention.cells import distance_score

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one head": {"heads": 1},
    "grouped": {"key_heads": 2},
    "multi-query": {"key_heads": 1},
    "additive": {"score": "additive"},
    "additive grouped": {"score": "additive", "key_heads": 2},
    "bilinear": {"score": "bilinear"},
    "cosine": {"score": "cosine", "scale": 5.0},
    "function": {"score": distance_score},
    "rotary": {"position": "rotary"},
    "alibi": {"position": "alibi"},
    "shaw": {"position": "shaw"},
    "t5": {"position": "t5"},
    "sparsemax": {"normalize": "sparsemax"},
    "learned entmax": {"normalize": Entmax(1.3, learnable=True, heads=4)},
    "sigmoid": {"normalize": "sigmoid"},
    "no output projection": {"project": "qkv"},
    "narrow values": {"value_head_width": 3},
    "wide heads": {"head_width": 10},
}


def build_attention(name: str, **overrides: Any) -> Attention:
    torch.manual_seed(0)
    return Attention(**{"width": 16, "heads": 4, **VARIANTS[name], **overrides}).double()


@pytest.mark.parametrize("extent", ["causal", Window(2, causal=True), Window(1, causal=True, global_tokens=1)], ids=str)
@pytest.mark.parametrize("name", VARIANTS)
def test_cached_steps_equal_the_whole_sequence(name: str, extent: Any) -> None:
    attention = build_attention(name, extent=extent)
    x = torch.randn(3, 9, 16, dtype=torch.float64)
    full, weights = attention(x, need_weights=True)
    for sizes in ([1] * 9, [4, 1, 1, 3], [9]):
        for gradients_enabled in (False, True):
            cache, outputs, start = Cache(), [], 0
            with torch.set_grad_enabled(gradients_enabled):
                for size in sizes:
                    step = attention(x[:, start : start + size], cache=cache, need_weights=True)
                    start += size
                    cache = step.cache
                    outputs.append(step.output)
                    assert cache.length == cache.steps == start
                    assert step.weights.shape == (3, attention.heads, size, start)
            torch.testing.assert_close(torch.cat(outputs, 1), full, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(step.weights, weights[:, :, -sizes[-1] :], rtol=1e-9, atol=1e-9)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.sampled_from(sorted(VARIANTS)), st.integers(0, 1000))
def test_cached_chunks_of_any_size_equal_the_whole_sequence(sizes: list[int], name: str, seed: int) -> None:
    attention = build_attention(name, extent="causal")
    torch.manual_seed(seed)
    x = torch.randn(2, sum(sizes), 16, dtype=torch.float64)
    cache, outputs = Cache(), []
    with torch.no_grad():
        for chunk in x.split(sizes, 1):
            step = attention(chunk, cache=cache)
            cache = step.cache
            outputs.append(step.output)
        torch.testing.assert_close(torch.cat(outputs, 1), attention(x).output, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in VARIANTS if n not in ("alibi", "shaw", "t5")])
@pytest.mark.parametrize("extent", ["global", LocalMonotonic(2), "local-p"], ids=str)
def test_prepared_memory_equals_projecting_it_at_each_call(name: str, extent: Any) -> None:
    extent = LocalPredictive(16, radius=2.0, heads=VARIANTS[name].get("heads", 4)) if extent == "local-p" else extent
    attention = build_attention(name, extent=extent)
    x, memory = torch.randn(2, 5, 16, dtype=torch.float64), torch.randn(2, 7, 16, dtype=torch.float64)
    mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    mask[0, ..., 4:] = False
    full = attention(x, memory, mask=mask).output
    cache = attention.prepare(memory)
    torch.testing.assert_close(attention(x, cache=cache, mask=mask).output, full)
    steps = []
    for t in range(5):  # the cache counts the steps, so that local-m moves on
        step = attention(x[:, t : t + 1], cache=cache, mask=mask)
        cache = step.cache
        steps.append(step.output)
    assert cache.length == 7
    assert cache.steps == 5
    torch.testing.assert_close(torch.cat(steps, 1), full)


def test_caches_are_immutable_values() -> None:
    """Two continuations of one beginning do not disturb each other, whichever is written first."""
    attention = build_attention("plain", extent="causal")
    start, left, right = (torch.randn(2, n, 16, dtype=torch.float64) for n in (3, 2, 2))
    with torch.no_grad():
        for _ in range(2):
            prefix_cache = attention(start, cache=Cache()).cache
            a = attention(left, cache=prefix_cache)
            b = attention(right, cache=prefix_cache)
            left_next = attention(left[:, :1], cache=a.cache)
            right_next = attention(left[:, :1], cache=b.cache)
            for continued, middle in ((left_next, left), (right_next, right)):
                expected = attention(torch.cat([start, middle, left[:, :1]], 1)).output[:, -1:]
                torch.testing.assert_close(continued.output, expected)
            assert prefix_cache.length == 3


def test_appending_reuses_spare_capacity() -> None:
    attention = build_attention("plain", extent="causal")
    x = torch.randn(1, 1, 16, dtype=torch.float64)
    cache, storage_pointers = Cache(), set()
    with torch.no_grad():
        for _ in range(200):
            cache = attention(x, cache=cache).cache
            storage_pointers.add(cache.key_values[0].data_ptr())
    assert len(storage_pointers) <= 5  # 32, 66, 134, 270, ...: capacity doubles


def test_cache_can_be_reordered_for_beams() -> None:
    attention = build_attention("rotary", extent="causal")
    x, next_x = torch.randn(3, 4, 16, dtype=torch.float64), torch.randn(3, 1, 16, dtype=torch.float64)
    order = torch.tensor([2, 0, 0])
    with torch.no_grad():
        cache = attention(x, cache=Cache()).cache.select(order)
        actual = attention(next_x, cache=cache).output
        expected = attention(torch.cat([x[order], next_x], 1)).output[:, -1:]
    torch.testing.assert_close(actual, expected)
    assert Cache().select(order) == Cache()


def test_cache_from_inference_mode_can_be_continued_outside() -> None:
    attention = build_attention("plain", extent="causal")
    x = torch.randn(1, 4, 16, dtype=torch.float64)
    with torch.inference_mode():
        cache = attention(x[:, :3], cache=Cache()).cache
    with torch.no_grad():
        actual = attention(x[:, 3:], cache=cache).output
        torch.testing.assert_close(actual, attention(x).output[:, 3:])


def test_equals_torch_multihead_attention() -> None:
    torch.manual_seed(0)
    torch_attention = torch.nn.MultiheadAttention(16, 4, batch_first=True).double()
    attention = Attention(16, heads=4).double()
    with torch.no_grad():
        torch.nn.init.normal_(torch_attention.in_proj_bias)
        for chunk, weight, bias in zip(
            (attention.query, attention.key, attention.value),
            torch_attention.in_proj_weight.chunk(3),
            torch_attention.in_proj_bias.chunk(3),
            strict=True,
        ):
            assert chunk is not None
            chunk.weight.copy_(weight)
            chunk.bias.copy_(bias)
        assert attention.output is not None
        attention.output.load_state_dict(torch_attention.out_proj.state_dict())
    x, memory = torch.randn(2, 5, 16, dtype=torch.float64), torch.randn(2, 7, 16, dtype=torch.float64)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[0, 4:] = True
    expected, expected_weights = torch_attention(
        x, memory, memory, key_padding_mask=padding, average_attn_weights=False
    )
    output, weights = attention(x, memory, mask=~padding[:, None, None], need_weights=True)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)


def test_additive_score_is_bahdanaus_attention() -> None:
    """c = sum_j softmax_j(v' tanh(W s + U h_j)) h_j: no projection of values or output, widths that differ."""
    torch.manual_seed(0)
    attention = Attention(10, key_width=12, head_width=7, score="additive", project="").double()
    assert sum(p.numel() for p in attention.parameters()) == 7 * 10 + 7 * 12 + 7 + 7
    state, memory = torch.randn(2, 1, 10, dtype=torch.float64), torch.randn(2, 6, 12, dtype=torch.float64)
    score = attention.score
    assert isinstance(score, Additive)
    assert score.bias is not None
    energy = (
        torch.tanh(state @ score.weight_query[0].t() + score.bias[0] + memory @ score.weight_key[0].t()) @ score.v[0]
    )  # [B, Tk]
    context = torch.einsum("bj,bjd->bd", torch.softmax(energy, -1), memory)
    output, weights = attention(state, memory, need_weights=True)
    torch.testing.assert_close(output[:, 0], context)
    torch.testing.assert_close(weights[:, 0, 0], torch.softmax(energy, -1))
    assert attention.output_width == 12


def test_bilinear_score_is_luongs_general() -> None:
    attention = Attention(10, key_width=12, score="bilinear", project="")
    assert isinstance(attention.score, Bilinear)
    assert [tuple(p.shape) for p in attention.parameters()] == [(1, 10, 12)]
    W = attention.score.weight
    query, memory = torch.randn(2, 3, 10), torch.randn(2, 6, 12)
    expected, _ = reference.attend(
        query[:, None],
        memory[:, None],
        memory[:, None],
        score=lambda q, k: reference.bilinear(q, k, W),
    )
    torch.testing.assert_close(attention(query, memory).output, expected[:, 0])


def test_dot_score_has_no_weights() -> None:
    attention = Attention(8, score="dot", project="")
    assert list(attention.parameters()) == []
    query, memory = torch.randn(2, 3, 8), torch.randn(2, 6, 8)
    expected = torch.softmax(query @ memory.transpose(1, 2), -1) @ memory
    torch.testing.assert_close(attention(query, memory).output, expected)


def test_all_widths_may_differ() -> None:
    attention = Attention(10, heads=3, key_width=7, value_width=5, head_width=4, value_head_width=6, output_width=9)
    output, weights = attention(torch.randn(2, 4, 10), torch.randn(2, 8, 7), torch.randn(2, 8, 5), need_weights=True)
    assert output.shape == (2, 4, 9)
    assert weights.shape == (2, 3, 4, 8)
    assert attention.output_width == 9


def test_shared_key_heads_have_fewer_weights() -> None:
    sizes = [sum(p.numel() for p in Attention(16, heads=4, key_heads=g, bias=False).parameters()) for g in (4, 2, 1)]
    assert sizes == [4 * 256, 2 * 256 + 2 * 128, 2 * 256 + 2 * 64]


def test_dropout_acts_in_training_only() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 6, 16)
    attention = Attention(16, heads=4, dropout=0.5)
    first, second = attention(x).output, attention(x).output
    assert not torch.equal(first, second)
    attention.eval()
    assert torch.equal(attention(x).output, attention(x).output)
    deterministic = Attention(16, heads=4, dropout=0.0)
    for normalize, extent in itertools.product(["softmax", "sparsemax", "sigmoid"], ["global", "causal"]):
        deterministic = Attention(16, heads=4, normalize=normalize, extent=extent)
        assert torch.equal(deterministic.train()(x).output, deterministic.eval()(x).output)


def test_dropout_keeps_the_mean() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 6, 8)
    attention = Attention(8, dropout=0.3)
    mean = torch.stack([attention(x).output for _ in range(4000)]).mean(0)
    torch.testing.assert_close(mean, attention.eval()(x).output, rtol=0.1, atol=0.06)


def test_hard_attention_samples_in_training_only() -> None:
    torch.manual_seed(0)
    attention = Attention(8, normalize=Hard())
    x = torch.randn(1, 6, 8)
    draws = {tuple(attention(x, need_weights=True).draw.position.flatten().tolist()) for _ in range(20)}
    assert len(draws) > 1
    attention.eval()
    assert attention(x, need_weights=True).draw is None
    assert torch.equal(attention(x).output, attention(x).output)


def test_non_finite_padding_does_not_affect_gradients() -> None:
    for name in VARIANTS:
        if name in ("alibi", "shaw", "t5"):
            continue
        attention = build_attention(name)
        x, memory = torch.randn(2, 5, 16, dtype=torch.float64), torch.randn(2, 7, 16, dtype=torch.float64)
        mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
        mask[:, ..., 5:] = False
        clean = attention(x, memory, mask=mask).output
        memory[:, 5:] = torch.nan
        for arguments in ({"key": memory}, {"cache": attention.prepare(memory)}):
            output = attention(x, mask=mask, **arguments).output
            torch.testing.assert_close(output, clean)
            attention.zero_grad()
            output.sum().backward()
            assert all(p.grad is None or p.grad.isfinite().all() for p in attention.parameters()), name


def test_renamed_parameters_are_loaded() -> None:
    attention = Attention(16, heads=4, normalize=Entmax(1.3, learnable=True, heads=4))
    saved = {name.replace("normalizer.", "normalise."): value + 1 for name, value in attention.state_dict().items()}
    assert "normalise.raw" in saved
    attention.load_state_dict(saved)
    assert torch.equal(attention.state_dict()["normalizer.raw"], saved["normalise.raw"])


def test_learned_axes_are_submodules() -> None:
    attention = Attention(
        16,
        heads=4,
        score="additive",
        extent=LocalPredictive(16, radius=3, heads=4),
        normalize=Entmax(learnable=True, heads=4),
    )
    names = {name for name, _ in attention.named_parameters()}
    assert {"score.v", "extent.weight", "normalizer.raw"} <= names
    attention(torch.randn(2, 6, 16)).output.sum().backward()
    assert all(p.grad is not None for name, p in attention.named_parameters() if name != "normalizer.raw")
    network = torch.nn.Bilinear(4, 4, 1)
    wrapped = Attention(
        16,
        heads=4,
        score=lambda q, k: network(*torch.broadcast_tensors(q[..., :, None, :], k[..., None, :, :])).squeeze(-1),
    )
    assert wrapped(torch.randn(2, 6, 16)).output.shape == (2, 6, 16)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Attention(10, heads=3), "heads: 3 do not divide the width 10"),
        (lambda: Attention(8, heads=0), "heads: 0 is not a size"),
        (lambda: Attention(8, heads=4, key_heads=3), "key_heads: 3 do not divide the 4 heads"),
        (lambda: Attention(8, dropout=1.0), "dropout: 1.0"),
        (lambda: Attention(8, project="qx"), "project: there is no 'x'"),
        (lambda: Attention(8, score="additive", project="qkvo"), "project: the additive score has its own weights"),
        (lambda: Attention(8, heads=2, key_width=6, project="qvo"), "project: without 'k'"),
        (lambda: Attention(8, project="qkv", output_width=9), "output_width: without an output projection"),
        (lambda: Attention(8, score=Additive(8, 6)), "score: the additive score was made for"),
        (lambda: Attention(8, heads=2, score=Bilinear(8, 8)), "score: the bilinear score was made for"),
        (lambda: Attention(8, backend="nope"), "backend: there is no 'nope'"),
        (lambda: Attention(8, scale="x"), "scale: 'x' is not a finite number"),  # type: ignore[arg-type]
        (lambda: Attention(8, score="additive", position="rotary"), "position: rotary has no meaning"),
        (lambda: Attention(8)(torch.zeros(2, 3, 8, dtype=torch.long)), "query: expected floating-point numbers"),
        (lambda: Attention(8)(torch.zeros(2, 3, 8).double()), "query: torch.float64 does not fit this attention's"),
        (lambda: Attention(8, score="nope"), "score: there is no 'nope'"),
        (lambda: Attention(8, extent="windw"), "did you mean 'window'"),
        (lambda: Attention(8, extent="window"), r"extent: 'window' needs radius; pass Window\(radius=64\)"),
        (lambda: Attention(8)(torch.zeros(2, 3, 7)), "query: width 7 does not fit"),
        (lambda: Attention(8)(torch.zeros(3, 8)), r"query: expected \[batch, time, width\]"),
        (lambda: Attention(8)(torch.zeros(2, 3, 8), torch.zeros(1, 3, 8)), "key: a batch of 1"),
        (lambda: Attention(8)(torch.zeros(2, 3, 8), value=torch.zeros(2, 3, 8)), "value: it was given without a key"),
        (lambda: Attention(8)(torch.zeros(2, 3, 8), torch.zeros(2, 3, 8), cache=Cache()), "key: a growing cache"),
        (
            lambda: Attention(8)(torch.zeros(2, 3, 8), cache=Attention(8).prepare(torch.zeros(1, 3, 8))),
            "key: a batch of 1",
        ),
        (lambda: Attention(8)(torch.zeros(2, 3, 8), torch.zeros(2, 3, 8), torch.zeros(2, 4, 8)), "value: "),
    ],
)
def test_invalid_input_raises_one_sentence(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("name", VARIANTS)
def test_autocast(name: str) -> None:
    torch.manual_seed(0)
    attention = Attention(**{"width": 16, "heads": 4, **VARIANTS[name]}).float()
    x = torch.randn(2, 6, 16)
    expected = attention(x).output
    with torch.autocast("cpu", torch.bfloat16):
        output = attention(x).output
    torch.testing.assert_close(output.float(), expected, rtol=0.1, atol=0.1)
    output.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in attention.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", VARIANTS)
def test_module_can_be_copied_and_restored(name: str) -> None:
    first, second = build_attention(name), build_attention(name)
    with torch.no_grad():
        for p in second.parameters():
            p.add_(1.0)
    second.load_state_dict(first.state_dict())
    x = torch.randn(2, 6, 16, dtype=torch.float64)
    assert torch.equal(second(x).output, first(x).output)
    assert torch.equal(copy.deepcopy(first)(x).output, first(x).output)
    assert all(not key.endswith("frequency") for key in first.state_dict())


@pytest.mark.parametrize("name", VARIANTS)
def test_empty_inputs(name: str) -> None:
    attention = build_attention(name)
    assert attention(torch.randn(0, 5, 16).double()).output.shape == (0, 5, attention.output_width)
    assert attention(torch.randn(2, 0, 16).double()).output.shape == (2, 0, attention.output_width)
    output = attention(torch.randn(2, 3, 16).double(), torch.randn(2, 0, 16).double()).output
    bias = torch.zeros(()) if attention.output is None else attention.output.bias
    torch.testing.assert_close(output, bias.double().expand_as(output))


def test_hard_attention_over_an_empty_memory_is_zero() -> None:
    x, empty_memory = torch.randn(2, 3, 16), torch.randn(2, 0, 16)
    for hard in (Hard(), Hard("gumbel"), Hard().eval()):
        attention = Attention(16, project="", normalize=hard)
        attention.train(hard.training)
        assert (attention(x, empty_memory, need_weights=True).output == 0).all()


def test_gradients_through_a_cache_with_frozen_projections() -> None:
    attention = build_attention("plain", extent="causal")
    assert attention.key is not None
    assert attention.value is not None
    attention.key.requires_grad_(False)
    attention.value.requires_grad_(False)
    x = torch.randn(2, 6, 16, dtype=torch.float64)
    cache, total = Cache(), torch.zeros((), dtype=torch.float64)
    for t in range(6):
        step = attention(x[:, t : t + 1], cache=cache)
        cache, total = step.cache, total + step.output.square().sum()
    (gradient,) = torch.autograd.grad(total, [attention.query.weight])
    (expected,) = torch.autograd.grad(attention(x).output.square().sum(), [attention.query.weight])
    torch.testing.assert_close(gradient, expected)


def test_cache_of_another_layer_raises() -> None:
    x = torch.randn(2, 3, 16, dtype=torch.float64)
    with torch.no_grad():
        cache = build_attention("grouped")(x, cache=Cache()).cache
        with pytest.raises(ValueError, match="each layer needs a cache of its own"):
            build_attention("multi-query")(x, cache=cache)


def test_non_finite_padded_query_does_not_affect_gradients() -> None:
    attention = build_attention("plain")
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    x[:, 4] = torch.nan
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[..., 4] = False
    attention(x, mask=mask).output[:, :4].sum().backward()
    assert all(p.grad.isfinite().all() for p in attention.parameters())


def test_gradients_through_a_growing_cache_equal_those_of_the_whole_sequence() -> None:
    attention = build_attention("rotary", extent="causal")
    x = torch.randn(2, 6, 16, dtype=torch.float64)
    cache, outputs = Cache(), []
    for t in range(6):
        step = attention(x[:, t : t + 1], cache=cache)
        cache = step.cache
        outputs.append(step.output)
    parameters = list(attention.parameters())
    direction = torch.randn(2, 6, 16, dtype=torch.float64)
    actual = torch.autograd.grad(torch.cat(outputs, 1), parameters, direction)
    expected = torch.autograd.grad(attention(x).output, parameters, direction)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b)
