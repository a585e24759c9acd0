"""GRU and LSTM equal PyTorch's, as sequences and step by step, with all gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.attention import Additive
from regard.models.recurrent_layers import Cell, initialize, reverse_sequences
from regard.models.token_embedding import Embedding

KINDS = ["gru", "lstm"]
PYTORCH_NAMES = ["weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0"]


def cell_and_pytorch_module(kind: str, inputs: int, width: int, dtype: torch.dtype) -> tuple[Cell, nn.RNNBase]:
    """A cell and PyTorch's module with the same weights."""
    torch.manual_seed(inputs * 100 + width)
    cell = Cell(kind, inputs, width).to(dtype)
    pytorch_module = (nn.GRU if kind == "gru" else nn.LSTM)(inputs, width).to(dtype)
    with torch.no_grad():
        for actual, name in zip(cell.parameters(), PYTORCH_NAMES, strict=True):
            getattr(pytorch_module, name).copy_(actual)
    return cell, pytorch_module


def random_state(cell: Cell, batch: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    return tuple(torch.randn(batch, cell.width, dtype=dtype).requires_grad_() for _ in range(cell.state_tensors))


def run_pytorch(pytorch_module: nn.RNNBase, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    packed = state[0][None] if len(state) == 1 else (state[0][None], state[1][None])
    out, last = pytorch_module(x, packed)
    return out, (last[0],) if len(state) == 1 else (last[0][0], last[1][0])


def gradients(total: Tensor, cell: nn.Module, x: Tensor, state: tuple[Tensor, ...]) -> list[Tensor]:
    by_name = dict(cell.named_parameters())
    order = ["inputs.weight", "inputs.bias", "states.weight", "states.bias"]
    weights = [by_name[a] if a in by_name else by_name[b] for a, b in zip(order, PYTORCH_NAMES, strict=True)]
    return list(torch.autograd.grad(total, [x, *state, *weights]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("batch", "time", "width"), [(1, 1, 1), (3, 5, 8), (2, 7, 19), (4, 2, 33)])
@pytest.mark.parametrize("kind", KINDS)
def test_sequence_equals_pytorch(
    implementation: str, kind: str, batch: int, time: int, width: int, dtype: torch.dtype
) -> None:
    tolerance = 1e-12 if dtype == torch.float64 else 3e-6
    cell, pytorch_module = cell_and_pytorch_module(kind, 6, width, dtype)
    x, state = torch.randn(time, batch, 6, dtype=dtype).requires_grad_(), random_state(cell, batch, dtype)
    out, expected = cell.sequence(cell.inputs(x), state), run_pytorch(pytorch_module, x, state)[0]
    torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance)
    direction = torch.randn_like(out)
    actual = gradients((out * direction).sum(), cell, x, state)
    for a, b in zip(actual, gradients((expected * direction).sum(), pytorch_module, x, state), strict=True):
        torch.testing.assert_close(a, b, rtol=20 * tolerance, atol=20 * tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("width", [1, 8, 19, 33])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_equal_pytorch(implementation: str, kind: str, width: int, dtype: torch.dtype) -> None:
    tolerance = 1e-12 if dtype == torch.float64 else 3e-6
    cell, pytorch_module = cell_and_pytorch_module(kind, 6, width, dtype)
    x, initial = torch.randn(4, 3, 6, dtype=dtype).requires_grad_(), random_state(cell, 3, dtype)
    state, outputs = initial, []
    for x_t in x:
        state = cell.step(cell.inputs(x_t), state)
        outputs.append(state[0])
    expected, last = run_pytorch(pytorch_module, x, initial)
    torch.testing.assert_close(torch.stack(outputs), expected, rtol=tolerance, atol=tolerance)
    directions = [torch.randn_like(state_tensor) for state_tensor in (expected, *last)]
    total = (torch.stack(outputs) * directions[0]).sum()
    expected_total = (expected * directions[0]).sum()
    for actual, expected_state, direction in zip(state, last, directions[1:], strict=True):
        torch.testing.assert_close(actual, expected_state.view_as(actual), rtol=tolerance, atol=tolerance)
        total, expected_total = (
            total + (actual * direction.view_as(actual)).sum(),
            expected_total + (expected_state * direction).sum(),
        )
    actual_gradients = gradients(total, cell, x, initial)
    for a, b in zip(actual_gradients, gradients(expected_total, pytorch_module, x, initial), strict=True):
        torch.testing.assert_close(a, b, rtol=20 * tolerance, atol=20 * tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck(kind: str) -> None:
    torch.manual_seed(0)
    cell = Cell(kind, 2, 3).double()
    state = random_state(cell, 2, torch.float64)
    gates = torch.randn(3, 2, cell.inputs.out_features, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda g, *s: cell.sequence(g, s), (gates, *state))
    assert torch.autograd.gradcheck(lambda g, *s: cell.step(g, s), (gates[0].detach().requires_grad_(), *state))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_the_last_output_or_cell_alone(implementation: str, kind: str) -> None:
    cell, pytorch_module = cell_and_pytorch_module(kind, 4, 5, torch.float32)
    x, state = torch.randn(3, 2, 4, requires_grad=True), random_state(cell, 2, torch.float32)
    actual = gradients(cell.sequence(cell.inputs(x), state)[-1].sum(), cell, x, state)
    for a, b in zip(
        actual, gradients(run_pytorch(pytorch_module, x, state)[0][-1].sum(), pytorch_module, x, state), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    x_t = cell.step(cell.inputs(x[0]), state)[-1]
    expected_state = run_pytorch(pytorch_module, x[:1], state)[1][-1]
    torch.testing.assert_close(
        torch.autograd.grad(x_t.square().sum(), x)[0], torch.autograd.grad(expected_state.square().sum(), x)[0]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_result_is_independent_of_the_memory_layout(implementation: str, kind: str) -> None:
    cell = Cell(kind, 4, 5)
    gates, state = torch.randn(2, 3, cell.inputs.out_features).transpose(0, 1), random_state(cell, 2, torch.float32)
    transposed = tuple(state_tensor.detach().t().contiguous().t() for state_tensor in state)
    torch.testing.assert_close(cell.sequence(gates, transposed), cell.sequence(gates.contiguous(), state))
    strided_gates = torch.randn(cell.inputs.out_features, 2).t()
    for actual, expected in zip(
        cell.step(strided_gates, transposed), cell.step(strided_gates.contiguous(), state), strict=True
    ):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_large_gates_saturate_and_nan_propagates(implementation: str, kind: str) -> None:
    cell = Cell(kind, 4, 5)
    state = cell.zero(torch.empty(2, 1))
    gates = torch.full((2, cell.inputs.out_features), 1e30)
    assert cell.step(gates, state)[0].abs().le(1).all()
    assert cell.step(-gates, state)[0].abs().le(1).all()
    assert cell.step(gates * torch.nan, state)[0].isnan().all()


@pytest.mark.parametrize("kind", KINDS)
def test_result_is_independent_of_the_number_of_threads(implementation: str, kind: str) -> None:
    cell = Cell(kind, 4, 64)
    x, state = torch.randn(2, 150, cell.inputs.out_features), cell.zero(torch.empty(150, 1))
    x_t = cell.step(x[0], state)
    torch.set_num_threads(2)
    try:
        two = cell.step(x[0], state)
    finally:
        torch.set_num_threads(1)
    for a, b in zip(x_t, two, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=5), padding=st.integers(0, 3))
def test_reverse_sequences_reverses_within_each_length(lengths: list[int], padding: int) -> None:
    time = max(1, max(lengths) + padding)
    x = torch.arange(time * len(lengths) * 2).view(time, len(lengths), 2)
    transposed = reverse_sequences(x, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        assert transposed[:length, row].tolist() == x[:length, row].tolist()[::-1]
        assert torch.equal(transposed[length:, row], x[length:, row])
    assert torch.equal(reverse_sequences(transposed, torch.tensor(lengths)), x)


class _Modules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.cell, self.linear = Embedding(50, 16), Cell("gru", 16, 20), nn.Linear(16, 24)
        self.score = Additive(20, 16, 24)


@pytest.mark.parametrize("scheme", ["bahdanau", "uniform", "glorot"])
def test_initialization_follows_the_papers(scheme: str) -> None:
    torch.manual_seed(0)
    modules = _Modules()
    initialize(modules, scheme)
    recurrent = modules.cell.states.weight.view(3, 20, 20)
    if scheme == "uniform":
        for weight in (recurrent, modules.table.weight, modules.linear.weight, modules.linear.bias):
            assert 0.08 < weight.abs().max() <= 0.1
        return
    for gate in recurrent:
        torch.testing.assert_close(gate @ gate.t(), torch.eye(20), rtol=0, atol=1e-5)
    for bias in (modules.linear.bias, modules.cell.inputs.bias, modules.cell.states.bias):
        assert not bias.any()
    if scheme == "bahdanau":
        assert modules.linear.weight.std().item() == pytest.approx(0.01, rel=0.2)
        assert modules.score.weight_key.std().item() == pytest.approx(0.001, rel=0.2)
        assert not modules.score.v.any()
    else:
        assert modules.table.weight.std().item() == pytest.approx(16**-0.5, rel=0.1)
        assert 0.3 < modules.linear.weight.abs().max() <= (6 / 40) ** 0.5
