"""Bahdanau's decoder at once is the decoder step by step, with all gradients."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard import native
from regard.models.decoders.recurrent import RecurrentDecoder
from regard.models.outputs import EncoderOutput
from regard.models.settings import RecurrentDecoder as RecurrentDecoderSettings
from regard.training.precision import matmul_precision

LANES = native.lanes()
pytestmark = pytest.mark.skipif(native.library() is None, reason="no compiler here")
WORDS = 20


def decoder(cell: str = "gru", width: int = 12, attention: int | None = LANES, memory: int = LANES, **more: Any) -> Any:
    torch.manual_seed(3)
    settings = {"cell": cell, "width": width, "embedding": 10, "attention_width": attention, "dropout": 0.0}
    made = RecurrentDecoder(RecurrentDecoderSettings.parse(settings | more), WORDS, memory)
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return made


def memory_of(batch: int, length: int, width: int, seed: int = 0) -> EncoderOutput:
    dice = torch.Generator().manual_seed(seed)
    states = torch.randn(batch, length, width, generator=dice)
    mask = torch.arange(length) < torch.randint(1, length + 1, (batch, 1), generator=dice)
    return EncoderOutput(states=states, mask=mask, pooled=torch.randn(batch, width, generator=dice), values=states)


def step_by_step(made: RecurrentDecoder, targets: Tensor, memory: EncoderOutput) -> Tensor:
    state, features = made.start(memory), []
    for words in targets.unbind(1):
        feature, state = made.step(words, state)
        features.append(feature)
    return torch.stack(features, 1)


def with_gradients(features: Tensor, leaves: list[Tensor], *more: Tensor) -> list[Tensor]:
    """Outputs, and the gradients of all of them along one direction."""
    dice = torch.Generator().manual_seed(1)
    total = sum((x * torch.randn(x.shape, generator=dice).to(x.dtype)).sum() for x in (features, *more))
    assert isinstance(total, Tensor)
    return [features.detach(), *(x.detach() for x in more), *torch.autograd.grad(total, leaves)]


def as_type(memory: EncoderOutput, dtype: torch.dtype = torch.float32) -> tuple[EncoderOutput, Tensor]:
    """The memory in this type, and its states as a leaf."""
    states = memory.states.detach().to(dtype).requires_grad_()
    return EncoderOutput(states=states, mask=memory.mask, pooled=memory.pooled.to(dtype), values=states), states


@given(
    cell=st.sampled_from(["gru", "lstm"]),
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 2 * LANES + 1), st.integers(1, 6)),
    widths=st.tuples(st.integers(1, 20), st.integers(1, 2), st.integers(1, 3)),
    seed=st.integers(0, 99),
)
def test_it_is_the_decoder_step_by_step(
    cell: str, sizes: tuple[int, int, int], widths: tuple[int, int, int], seed: int
) -> None:
    (B, Ts, T), (width, attention, depth) = sizes, widths
    made = decoder(cell, width, LANES * attention, LANES * depth)
    memory, states = as_type(memory_of(B, Ts, LANES * depth, seed))
    targets = torch.randint(0, WORDS, (B, T), generator=torch.Generator().manual_seed(seed))
    assert made._can_use_fused(made.start(memory))
    decoded = made(targets, memory, need_weights=True)
    found = with_gradients(decoded.features, [states, *made.parameters()], *decoded.cross_attention)
    exact, states = as_type(memory, torch.float64)
    made.double()
    assert not made._can_use_fused(made.start(exact))
    slow = made(targets, exact, need_weights=True)
    torch.testing.assert_close(slow.features, step_by_step(made, targets, exact))
    expected = with_gradients(slow.features, [states, *made.parameters()], *slow.cross_attention)
    assert len(slow.cross_attention) == 1
    for mine, theirs in zip(found, expected, strict=True):
        largest = max(1.0, float(theirs.abs().max()))
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-5 * largest)


def test_what_is_masked_does_no_harm() -> None:
    made, memory = decoder(), memory_of(4, 9, LANES)
    targets = torch.randint(0, WORDS, (4, 5))
    clean, states = as_type(memory)
    expected = with_gradients(made(targets, clean).features, [states, *made.parameters()])
    spoilt, states = as_type(memory)
    with torch.no_grad():
        states[~memory.mask] = 3.0
    found = with_gradients(made(targets, spoilt).features, [states, *made.parameters()])
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    assert (found[1][~memory.mask] == 0).all()


def test_threads_share_sentences() -> None:
    made, memory = decoder(attention=8 * LANES, memory=8 * LANES), memory_of(64, 40, 8 * LANES)
    targets = torch.randint(0, WORDS, (64, 3))
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        single, states = as_type(memory)
        found.append(with_gradients(made(targets, single).features, [states, *made.parameters()]))
    for mine, theirs in zip(*found, strict=True):
        # Threads add up in another order: rounding errors are of the size of the largest sums.
        atol = 1e-5 * max(1.0, float(theirs.abs().max()))
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_rounded_products_change_little(cell: str) -> None:
    made = decoder(cell, 128, 128, 128, initialization="glorot")
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    memory, states = as_type(memory_of(40, 7, 128))
    targets = torch.randint(0, WORDS, (40, 6))
    expected = with_gradients(made(targets, memory).features, [states, *made.parameters()])
    with matmul_precision("bfloat16"):
        features = made(targets, memory).features
    found = with_gradients(features, [states, *made.parameters()])
    assert any(not mine.equal(theirs) for mine, theirs in zip(found, expected, strict=True))
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine - theirs).norm() < 0.03 * theirs.norm()


def test_what_it_cannot_take_goes_step_by_step() -> None:
    others: list[dict[str, Any]] = [
        {"attention": LANES + 1},
        {"score": "dot", "attention": None},
        {"normalize": "sparsemax"},
        {"extent": "local-m"},
        {"layers": 2},
        {"attend": "after", "input_feeding": True},
    ]
    for other in others:
        made = decoder(**other)
        assert not made._can_use_fused(made.start(memory_of(2, 5, LANES))), other
    made, memory = decoder(), memory_of(2, 5, LANES)
    with torch.no_grad():
        made.attention.score.weight_query *= 1000  # queries whose exponentials would not be numbers
    assert not made._can_use_fused(made.start(memory))
    targets = torch.randint(0, WORDS, (2, 3))
    torch.testing.assert_close(made(targets, memory).features, step_by_step(made, targets, memory))
