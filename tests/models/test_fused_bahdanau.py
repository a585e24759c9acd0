"""The fused Bahdanau decoder equals the decoder step by step, with all gradients."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard import native
from regard.models.decoders.recurrent import RecurrentDecoder
from regard.models.outputs import EncoderOutput
from regard.models.settings import RecurrentDecoderSettings
from regard.training.precision import matmul_precision

LANES = native.lanes()
pytestmark = pytest.mark.skipif(native.library() is None, reason="no compiler here")
VOCABULARY = 20


def build_decoder(
    cell: str = "gru", width: int = 12, attention: int | None = LANES, memory: int = LANES, **overrides: Any
) -> Any:
    torch.manual_seed(3)
    settings = {"cell": cell, "width": width, "embedding": 10, "attention_width": attention, "dropout": 0.0}
    decoder = RecurrentDecoder(RecurrentDecoderSettings.parse(settings | overrides), VOCABULARY, memory)
    for weight in decoder.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return decoder


def random_memory(batch: int, length: int, width: int, seed: int = 0) -> EncoderOutput:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(batch, length, width, generator=generator)
    mask = torch.arange(length) < torch.randint(1, length + 1, (batch, 1), generator=generator)
    return EncoderOutput(states=states, mask=mask, pooled=torch.randn(batch, width, generator=generator), values=states)


def features_step_by_step(decoder: RecurrentDecoder, targets: Tensor, memory: EncoderOutput) -> Tensor:
    state, features = decoder.start(memory), []
    for tokens in targets.unbind(1):
        feature, state = decoder.step(tokens, state)
        features.append(feature)
    return torch.stack(features, 1)


def outputs_and_gradients(features: Tensor, leaves: list[Tensor], *others: Tensor) -> list[Tensor]:
    """Outputs, and the gradients of all of them along one direction."""
    generator = torch.Generator().manual_seed(1)
    total = sum((x * torch.randn(x.shape, generator=generator).to(x.dtype)).sum() for x in (features, *others))
    assert isinstance(total, Tensor)
    return [features.detach(), *(x.detach() for x in others), *torch.autograd.grad(total, leaves)]


def memory_as(memory: EncoderOutput, dtype: torch.dtype = torch.float32) -> tuple[EncoderOutput, Tensor]:
    """The memory in this type, and its states as a leaf."""
    states = memory.states.detach().to(dtype).requires_grad_()
    return EncoderOutput(states=states, mask=memory.mask, pooled=memory.pooled.to(dtype), values=states), states


@given(
    cell=st.sampled_from(["gru", "lstm"]),
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 2 * LANES + 1), st.integers(1, 6)),
    widths=st.tuples(st.integers(1, 20), st.integers(1, 2), st.integers(1, 3)),
    seed=st.integers(0, 99),
)
def test_fused_decoder_equals_step_by_step(
    cell: str, sizes: tuple[int, int, int], widths: tuple[int, int, int], seed: int
) -> None:
    (B, Ts, T), (width, attention, depth) = sizes, widths
    decoder = build_decoder(cell, width, LANES * attention, LANES * depth)
    memory, states = memory_as(random_memory(B, Ts, LANES * depth, seed))
    targets = torch.randint(0, VOCABULARY, (B, T), generator=torch.Generator().manual_seed(seed))
    assert decoder._can_use_fused(decoder.start(memory))
    decoded = decoder(targets, memory, need_weights=True)
    fused = outputs_and_gradients(decoded.features, [states, *decoder.parameters()], *decoded.cross_attention)
    exact, states = memory_as(memory, torch.float64)
    decoder.double()
    assert not decoder._can_use_fused(decoder.start(exact))
    stepwise = decoder(targets, exact, need_weights=True)
    torch.testing.assert_close(stepwise.features, features_step_by_step(decoder, targets, exact))
    expected = outputs_and_gradients(stepwise.features, [states, *decoder.parameters()], *stepwise.cross_attention)
    assert len(stepwise.cross_attention) == 1
    for actual, reference in zip(fused, expected, strict=True):
        scale = max(1.0, float(reference.abs().max()))
        torch.testing.assert_close(actual.double(), reference, rtol=1e-4, atol=1e-5 * scale)


def test_masked_positions_have_no_effect() -> None:
    decoder, memory = build_decoder(), random_memory(4, 9, LANES)
    targets = torch.randint(0, VOCABULARY, (4, 5))
    clean, states = memory_as(memory)
    expected = outputs_and_gradients(decoder(targets, clean).features, [states, *decoder.parameters()])
    corrupted, states = memory_as(memory)
    with torch.no_grad():
        states[~memory.mask] = 3.0
    fused = outputs_and_gradients(decoder(targets, corrupted).features, [states, *decoder.parameters()])
    for actual, reference in zip(fused, expected, strict=True):
        torch.testing.assert_close(actual, reference, rtol=0, atol=0)
    assert (fused[1][~memory.mask] == 0).all()


def test_result_is_independent_of_the_number_of_threads() -> None:
    decoder, memory = build_decoder(attention=8 * LANES, memory=8 * LANES), random_memory(64, 40, 8 * LANES)
    targets = torch.randint(0, VOCABULARY, (64, 3))
    fused = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        memory_copy, states = memory_as(memory)
        fused.append(outputs_and_gradients(decoder(targets, memory_copy).features, [states, *decoder.parameters()]))
    for actual, reference in zip(*fused, strict=True):
        # Threads add up in another order: rounding errors are of the size of the largest sums.
        atol = 1e-5 * max(1.0, float(reference.abs().max()))
        torch.testing.assert_close(actual, reference, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_bfloat16_products_change_little(cell: str) -> None:
    decoder = build_decoder(cell, 128, 128, 128, initialization="glorot")
    for weight in decoder.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    memory, states = memory_as(random_memory(40, 7, 128))
    targets = torch.randint(0, VOCABULARY, (40, 6))
    expected = outputs_and_gradients(decoder(targets, memory).features, [states, *decoder.parameters()])
    with matmul_precision("bfloat16"):
        features = decoder(targets, memory).features
    fused = outputs_and_gradients(features, [states, *decoder.parameters()])
    assert any(not actual.equal(reference) for actual, reference in zip(fused, expected, strict=True))
    for actual, reference in zip(fused, expected, strict=True):
        assert (actual - reference).norm() < 0.03 * reference.norm()


def test_unsupported_decoders_run_step_by_step() -> None:
    unsupported: list[dict[str, Any]] = [
        {"attention": LANES + 1},
        {"score": "dot", "attention": None},
        {"normalize": "sparsemax"},
        {"extent": "local-m"},
        {"layers": 2},
        {"attend": "after", "input_feeding": True},
    ]
    for options in unsupported:
        decoder = build_decoder(**options)
        assert not decoder._can_use_fused(decoder.start(random_memory(2, 5, LANES))), options
    decoder, memory = build_decoder(), random_memory(2, 5, LANES)
    with torch.no_grad():
        decoder.attention.score.weight_query *= 1000  # queries whose exponentials would not be numbers
    assert not decoder._can_use_fused(decoder.start(memory))
    targets = torch.randint(0, VOCABULARY, (2, 3))
    torch.testing.assert_close(decoder(targets, memory).features, features_step_by_step(decoder, targets, memory))
