"""The location score, held to its reference: additive, and it sees where it looked before."""

import pytest
import torch
from torch import Tensor

from regard.attention import Attention, Location, attend, reference

B, TQ, TK, D, M = 2, 4, 7, 6, 5


def build_attention(*, coverage: bool = False, heads: int = 1, size: int = 3) -> Attention:
    torch.manual_seed(0)
    score = Location(D, M, 8, heads=heads, filters=3, size=size, coverage=coverage)
    attention = Attention(D, heads=heads, key_width=M, head_width=8, score=score, project="v" if heads > 1 else "")
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.normal_(0, 0.5)
    return attention.double()


def tensors() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(B, TQ, D, generator=generator, dtype=torch.float64)
    memory = torch.randn(B, TK, M, generator=generator, dtype=torch.float64)
    mask = torch.ones(B, 1, 1, TK, dtype=torch.bool)
    mask[1, ..., 5:] = False
    return query, memory, mask


def reference_weights(attention: Attention, query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """Weights [B, H, Tq, Tk], step by step as the paper has it."""
    score = attention.score
    assert isinstance(score, Location)
    assert score.bias is not None
    past_weights = torch.zeros(B, score.heads, TK, dtype=torch.float64)
    all_weights = []
    for step in range(TQ):
        e = reference.location(
            query[:, None, step : step + 1].expand(-1, score.heads, -1, -1),
            memory[:, None].expand(-1, score.heads, -1, -1),
            past_weights,
            score.weight_query,
            score.weight_key,
            score.bias,
            score.v,
            score.filters,
            score.weight_filter,
        )
        weights = e.masked_fill(~mask, -torch.inf).softmax(-1)
        past_weights = weights[:, :, 0] + (past_weights if score.coverage else 0)
        all_weights.append(weights)
    return torch.cat(all_weights, 2)


@pytest.mark.parametrize("coverage", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("size", [1, 5])
def test_weights_and_output_equal_the_reference(coverage: bool, heads: int, size: int) -> None:
    attention = build_attention(coverage=coverage, heads=heads, size=size)
    query, memory, mask = tensors()
    output, weights = attention(query, memory, mask=mask, need_weights=True)
    expected = reference_weights(attention, query, memory, mask)
    torch.testing.assert_close(weights, expected)
    if heads == 1:
        torch.testing.assert_close(output, (expected @ memory[:, None])[:, 0])


def test_gradients_equal_the_reference() -> None:
    attention = build_attention()
    query, memory, mask = tensors()
    query.requires_grad_()
    memory.requires_grad_()
    direction = torch.randn(B, 1, TQ, TK, dtype=torch.float64)
    leaves = [query, memory, *(p for p in attention.parameters())]
    weights = attention(query, memory, mask=mask, need_weights=True).weights
    actual_gradients = torch.autograd.grad((weights * direction).sum(), leaves)
    expected_gradients = torch.autograd.grad(
        (reference_weights(attention, query, memory, mask) * direction).sum(), leaves
    )
    for actual, expected_gradient in zip(actual_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(actual, expected_gradient)


def test_cached_steps_with_selection_equal_the_whole_sequence() -> None:
    attention = build_attention(coverage=True)
    query, memory, mask = tensors()
    full = attention(query, memory, mask=mask).output
    cache = attention.prepare(memory)
    outputs: list[Tensor] = []
    for step in range(TQ):
        if step == 2:
            index = torch.tensor([1, 0])
            query, mask, full = query[index], mask[index], full[index]
            outputs = [output[index] for output in outputs]
            cache = cache.select(index)
        attended = attention(query[:, step : step + 1], cache=cache, mask=mask)
        outputs.append(attended.output)
        cache = attended.cache
    torch.testing.assert_close(torch.cat(outputs, 1), full)


def test_weights_depend_on_past_weights() -> None:
    attention = build_attention()
    query, memory, mask = tensors()
    same_query = query[:, :1].expand(-1, 3, -1)
    weights = attention(same_query, memory, mask=mask, need_weights=True).weights
    assert not torch.allclose(weights[:, :, 0], weights[:, :, 1])


def test_location_score_requires_a_memory_and_the_module() -> None:
    attention = build_attention()
    query, memory, _ = tensors()
    with pytest.raises(ValueError, match="a location score attends to a memory"):
        attention(query)
    with pytest.raises(ValueError, match="needs the weights of the step before"):
        attend(query[:, None], memory[:, None], memory[:, None], score=Location(D, M).double())
    with pytest.raises(ValueError, match="must be odd"):
        Location(D, M, size=4)
    with pytest.raises(ValueError, match="filters: 0"):
        Location(D, M, filters=0)
