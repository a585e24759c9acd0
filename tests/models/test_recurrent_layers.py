"""GRU and LSTM: PyTorch's own, whole and step by step, with all gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.attention import Additive
from regard.models.embedding import Embedding
from regard.models.recurrent_layers import Cell, initialize, reverse_sequences

KINDS = ["gru", "lstm"]
THEIRS = ["weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0"]


def twins(kind: str, inputs: int, width: int, dtype: torch.dtype) -> tuple[Cell, nn.RNNBase]:
    """A cell and PyTorch's module with the same weights."""
    torch.manual_seed(inputs * 100 + width)
    cell = Cell(kind, inputs, width).to(dtype)
    theirs = (nn.GRU if kind == "gru" else nn.LSTM)(inputs, width).to(dtype)
    with torch.no_grad():
        for mine, name in zip(cell.parameters(), THEIRS, strict=True):
            getattr(theirs, name).copy_(mine)
    return cell, theirs


def first(cell: Cell, batch: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    return tuple(torch.randn(batch, cell.width, dtype=dtype).requires_grad_() for _ in range(cell.state_tensors))


def their_run(theirs: nn.RNNBase, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    packed = state[0][None] if len(state) == 1 else (state[0][None], state[1][None])
    out, last = theirs(x, packed)
    return out, (last[0],) if len(state) == 1 else (last[0][0], last[1][0])


def gradients(total: Tensor, cell: nn.Module, x: Tensor, state: tuple[Tensor, ...]) -> list[Tensor]:
    by_name = dict(cell.named_parameters())
    order = ["inputs.weight", "inputs.bias", "states.weight", "states.bias"]
    weights = [by_name[a] if a in by_name else by_name[b] for a, b in zip(order, THEIRS, strict=True)]
    return list(torch.autograd.grad(total, [x, *state, *weights]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("batch", "time", "width"), [(1, 1, 1), (3, 5, 8), (2, 7, 19), (4, 2, 33)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_is_pytorchs(form: str, kind: str, batch: int, time: int, width: int, dtype: torch.dtype) -> None:
    within = 1e-12 if dtype == torch.float64 else 3e-6
    cell, theirs = twins(kind, 6, width, dtype)
    x, state = torch.randn(time, batch, 6, dtype=dtype).requires_grad_(), first(cell, batch, dtype)
    out, expected = cell.sequence(cell.inputs(x), state), their_run(theirs, x, state)[0]
    torch.testing.assert_close(out, expected, rtol=within, atol=within)
    direction = torch.randn_like(out)
    mine = gradients((out * direction).sum(), cell, x, state)
    for a, b in zip(mine, gradients((expected * direction).sum(), theirs, x, state), strict=True):
        torch.testing.assert_close(a, b, rtol=20 * within, atol=20 * within)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("width", [1, 8, 19, 33])
@pytest.mark.parametrize("kind", KINDS)
def test_step_by_step_is_pytorchs(form: str, kind: str, width: int, dtype: torch.dtype) -> None:
    within = 1e-12 if dtype == torch.float64 else 3e-6
    cell, theirs = twins(kind, 6, width, dtype)
    x, begin = torch.randn(4, 3, 6, dtype=dtype).requires_grad_(), first(cell, 3, dtype)
    state, outputs = begin, []
    for one in x:
        state = cell.step(cell.inputs(one), state)
        outputs.append(state[0])
    expected, last = their_run(theirs, x, begin)
    torch.testing.assert_close(torch.stack(outputs), expected, rtol=within, atol=within)
    directions = [torch.randn_like(part) for part in (expected, *last)]
    total = (torch.stack(outputs) * directions[0]).sum()
    their_total = (expected * directions[0]).sum()
    for mine, other, direction in zip(state, last, directions[1:], strict=True):
        torch.testing.assert_close(mine, other.view_as(mine), rtol=within, atol=within)
        total, their_total = total + (mine * direction.view_as(mine)).sum(), their_total + (other * direction).sum()
    found = gradients(total, cell, x, begin)
    for a, b in zip(found, gradients(their_total, theirs, x, begin), strict=True):
        torch.testing.assert_close(a, b, rtol=20 * within, atol=20 * within)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_slopes(kind: str) -> None:
    torch.manual_seed(0)
    cell = Cell(kind, 2, 3).double()
    state = first(cell, 2, torch.float64)
    gates = torch.randn(3, 2, cell.inputs.out_features, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda g, *s: cell.sequence(g, s), (gates, *state))
    assert torch.autograd.gradcheck(lambda g, *s: cell.step(g, s), (gates[0].detach().requires_grad_(), *state))


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_last_output_or_cell_may_be_used(form: str, kind: str) -> None:
    cell, theirs = twins(kind, 4, 5, torch.float32)
    x, state = torch.randn(3, 2, 4, requires_grad=True), first(cell, 2, torch.float32)
    mine = gradients(cell.sequence(cell.inputs(x), state)[-1].sum(), cell, x, state)
    for a, b in zip(mine, gradients(their_run(theirs, x, state)[0][-1].sum(), theirs, x, state), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    one = cell.step(cell.inputs(x[0]), state)[-1]
    other = their_run(theirs, x[:1], state)[1][-1]
    torch.testing.assert_close(
        torch.autograd.grad(one.square().sum(), x)[0], torch.autograd.grad(other.square().sum(), x)[0]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_layout_in_memory_changes_nothing(form: str, kind: str) -> None:
    cell = Cell(kind, 4, 5)
    gates, state = torch.randn(2, 3, cell.inputs.out_features).transpose(0, 1), first(cell, 2, torch.float32)
    turned = tuple(part.detach().t().contiguous().t() for part in state)
    torch.testing.assert_close(cell.sequence(gates, turned), cell.sequence(gates.contiguous(), state))
    wide = torch.randn(cell.inputs.out_features, 2).t()
    for mine, plain in zip(cell.step(wide, turned), cell.step(wide.contiguous(), state), strict=True):
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("kind", KINDS)
def test_what_overflows_saturates_and_nan_stays(form: str, kind: str) -> None:
    cell = Cell(kind, 4, 5)
    state = cell.zero(torch.empty(2, 1))
    gates = torch.full((2, cell.inputs.out_features), 1e30)
    assert cell.step(gates, state)[0].abs().le(1).all()
    assert cell.step(-gates, state)[0].abs().le(1).all()
    assert cell.step(gates * torch.nan, state)[0].isnan().all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_changes_nothing(form: str, kind: str) -> None:
    cell = Cell(kind, 4, 64)
    x, state = torch.randn(2, 150, cell.inputs.out_features), cell.zero(torch.empty(150, 1))
    one = cell.step(x[0], state)
    torch.set_num_threads(2)
    try:
        two = cell.step(x[0], state)
    finally:
        torch.set_num_threads(1)
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=5), more=st.integers(0, 3))
def test_backwards_turns_each_sequence_within_its_length(lengths: list[int], more: int) -> None:
    time = max(1, max(lengths) + more)
    x = torch.arange(time * len(lengths) * 2).view(time, len(lengths), 2)
    turned = reverse_sequences(x, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        assert turned[:length, row].tolist() == x[:length, row].tolist()[::-1]
        assert torch.equal(turned[length:, row], x[length:, row])
    assert torch.equal(reverse_sequences(turned, torch.tensor(lengths)), x)


class _Everything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.cell, self.linear = Embedding(50, 16), Cell("gru", 16, 20), nn.Linear(16, 24)
        self.score = Additive(20, 16, 24)


@pytest.mark.parametrize("scheme", ["bahdanau", "uniform", "glorot"])
def test_weights_are_drawn_as_the_papers_say(scheme: str) -> None:
    torch.manual_seed(0)
    parts = _Everything()
    initialize(parts, scheme)
    recurrent = parts.cell.states.weight.view(3, 20, 20)
    if scheme == "uniform":
        for weight in (recurrent, parts.table.weight, parts.linear.weight, parts.linear.bias):
            assert 0.08 < weight.abs().max() <= 0.1
        return
    for gate in recurrent:
        torch.testing.assert_close(gate @ gate.t(), torch.eye(20), rtol=0, atol=1e-5)
    for bias in (parts.linear.bias, parts.cell.inputs.bias, parts.cell.states.bias):
        assert not bias.any()
    if scheme == "bahdanau":
        assert parts.linear.weight.std().item() == pytest.approx(0.01, rel=0.2)
        assert parts.score.weight_key.std().item() == pytest.approx(0.001, rel=0.2)
        assert not parts.score.v.any()
    else:
        assert parts.table.weight.std().item() == pytest.approx(16**-0.5, rel=0.1)
        assert 0.3 < parts.linear.weight.abs().max() <= (6 / 40) ** 0.5
