"""GRU and LSTM over whole sequences and step by step.

Cho et al. 2014 (arXiv:1406.1078), Hochreiter and Schmidhuber 1997. The equations are those of PyTorch's nn.GRU and
nn.LSTM, with PyTorch's order of gates. Over a sequence, gradients are written out: the weights' gradient is one matrix
product over all steps instead of one for each. The element-wise part runs in C on the processor.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard import native
from regard.attention import Additive, Bilinear
from regard.models.bfloat16_matmul import Projection, uses_bfloat16, weight_gradient
from regard.models.token_embedding import Embedding

LSTMState = tuple[Tensor, Tensor]


class Cell(nn.Module):
    """One recurrent layer: `sequence` for all steps at once, `step` for one.

    A state is a tensor [B, D] for a GRU, and a pair of output and cell for an LSTM, here always a tuple.
    """

    def __init__(self, kind: str, input_width: int, width: int) -> None:
        super().__init__()
        self.kind, self.width = kind, width
        gates = {"gru": 3, "lstm": 4}[kind]
        self.inputs = nn.Linear(input_width, gates * width)
        self.states = nn.Linear(width, gates * width)

    @property
    def state_tensors(self) -> int:
        """How many tensors a state has."""
        return 1 if self.kind == "gru" else 2

    def zero(self, like: Tensor) -> tuple[Tensor, ...]:
        """The initial state, for a batch as large as `like` [B, ...]."""
        return tuple(like.new_zeros(len(like), self.width) for _ in range(self.state_tensors))

    def sequence(self, gates: Tensor, state: tuple[Tensor, ...]) -> Tensor:
        """`self.inputs` of all inputs, [T, B, gates D] -> the outputs [T, B, D] from this first state on."""
        first = [x.contiguous() for x in state]
        bfloat16 = uses_bfloat16(first[0], self.states.weight)
        out: Tensor = _RecurrentSequence.apply(  # type: ignore[no-untyped-call]
            bfloat16, gates.contiguous(), self.states.weight, self.states.bias, *first
        )
        return out

    def step(self, gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """`self.inputs` of the input, [B, gates D], and the previous state -> the next state, its output first."""
        from_state = self.states(state[0])
        if self.kind == "gru":
            return (_GRUStep.apply(gates, from_state, state[0]),)  # type: ignore[no-untyped-call]
        after: LSTMState = _LSTMStep.apply(gates, from_state, state[1])  # type: ignore[no-untyped-call]
        return after


def _call_native(name: str, *tensors: Tensor, width: int) -> None:
    rows = tensors[0].numel() // tensors[0].shape[-1]
    native.call(name, tensors, [width], count=rows, work=rows * width * 16)


# --- the element-wise part ---------------------------------------------------------------------------------------


def _gru_forward(x: Tensor, s: Tensor, h: Tensor, out: Tensor, gates: Tensor) -> None:
    """Gates x, s [B, 3D] and state h [B, D] -> out [B, D]; gates [B, 4D] are saved for the backward pass."""
    if native.is_supported(x):
        _call_native("regard_gru_forward", x, s, h, out, gates, width=h.shape[-1])
        return
    (xr, xz, xn), (sr, sz, sn) = x.chunk(3, -1), s.chunk(3, -1)
    r, z = torch.sigmoid(xr + sr), torch.sigmoid(xz + sz)
    n = torch.tanh(xn + r * sn)
    torch.cat([r, z, n, sn], -1, out=gates)
    out.copy_(n + z * (h - n))


def _gru_backward(d: Tensor, h: Tensor, gates: Tensor, dx: Tensor, ds: Tensor, dh: Tensor) -> None:
    if native.is_supported(d):
        _call_native("regard_gru_backward", d, h, gates, dx, ds, dh, width=h.shape[-1])
        return
    r, z, n, sn = gates.chunk(4, -1)
    dn = d * (1 - z) * (1 - n * n)
    dz, dr = d * (h - n) * z * (1 - z), dn * sn * r * (1 - r)
    torch.cat([dr, dz, dn], -1, out=dx)
    torch.cat([dr, dz, dn * r], -1, out=ds)
    dh.copy_(d * z)


def _lstm_forward(x: Tensor, s: Tensor, c: Tensor, out: Tensor, cell: Tensor, gates: Tensor) -> None:
    if native.is_supported(x):
        _call_native("regard_lstm_forward", x, s, c, out, cell, gates, width=c.shape[-1])
        return
    i, f, g, o = (x + s).chunk(4, -1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
    cell.copy_(f * c + i * g)
    tanh_cell = torch.tanh(cell)
    torch.cat([i, f, g, o, tanh_cell], -1, out=gates)
    out.copy_(o * tanh_cell)


def _lstm_backward(dh: Tensor, dcell: Tensor, c: Tensor, gates: Tensor, dx: Tensor, dc: Tensor) -> None:
    if native.is_supported(dh):
        _call_native("regard_lstm_backward", dh, dcell, c, gates, dx, dc, width=c.shape[-1])
        return
    i, f, g, o, tanh_cell = gates.chunk(5, -1)
    dcell_total = dcell + dh * o * (1 - tanh_cell * tanh_cell)
    torch.cat(
        [
            dcell_total * g * i * (1 - i),
            dcell_total * c * f * (1 - f),
            dcell_total * i * (1 - g * g),
            dh * tanh_cell * o * (1 - o),
        ],
        -1,
        out=dx,
    )
    dc.copy_(dcell_total * f)


# --- with their gradients ----------------------------------------------------------------------------------------


class _GRUStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, s: Tensor, h: Tensor) -> Tensor:
        out, gates = torch.empty_like(h, memory_format=torch.contiguous_format), h.new_empty(len(h), 4 * h.shape[1])
        x, s, h = x.contiguous(), s.contiguous(), h.contiguous()
        _gru_forward(x, s, h, out, gates)
        ctx.save_for_backward(h, gates)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h, gates = ctx.saved_tensors
        dx, ds, dh = (h.new_empty(len(h), n * h.shape[1]) for n in (3, 3, 1))
        _gru_backward(d.contiguous(), h, gates, dx, ds, dh)
        return dx, ds, dh


class _LSTMStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, s: Tensor, c: Tensor) -> LSTMState:
        x, s, c = x.contiguous(), s.contiguous(), c.contiguous()
        out, cell, gates = torch.empty_like(c), torch.empty_like(c), c.new_empty(len(c), 5 * c.shape[1])
        _lstm_forward(x, s, c, out, cell, gates)
        ctx.save_for_backward(c, gates)
        return out, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor, dcell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        c, gates = ctx.saved_tensors
        dx, dc = c.new_empty(len(c), 4 * c.shape[1]), torch.empty_like(c)
        _lstm_backward(dh.contiguous(), dcell.contiguous(), c, gates, dx, dc)
        return dx, dx, dc


@dataclass
class Unrolled:
    """A cell over T steps: its states, and what the backward pass needs of each."""

    first: tuple[Tensor, ...]  # [B, D] each
    out: Tensor  # [T, B, D]
    cells: Tensor | None  # [T, B, D], an LSTM's
    gates: Tensor  # [T, B, 4 D or 5 D]

    @staticmethod
    def empty(steps: int, first: tuple[Tensor, ...]) -> "Unrolled":
        """Buffers for all steps, from this initial state: a pair is an LSTM's."""
        h = first[0]
        B, D = h.shape
        out, cells = (h.new_empty(steps, B, D) for _ in range(2))
        lstm = len(first) == 2
        return Unrolled(first, out, cells if lstm else None, h.new_empty(steps, B, (5 if lstm else 4) * D))

    def previous_output(self, t: int) -> Tensor:
        """The output before step t."""
        return self.out[t - 1] if t else self.first[0]

    def previous_outputs(self) -> Tensor:
        """The outputs before every step, [T, B, D]."""
        return torch.cat([self.first[0][None], self.out[:-1]])

    def forward(self, t: int, x: Tensor, s: Tensor) -> None:
        """Step t, from what the input and the previous state add to the gates, [B, 3 D or 4 D] each."""
        if self.cells is None:
            _gru_forward(x, s, self.previous_output(t), self.out[t], self.gates[t])
        else:
            _lstm_forward(x, s, self._previous_cell(t), self.out[t], self.cells[t], self.gates[t])

    def _previous_cell(self, t: int) -> Tensor:
        assert self.cells is not None
        return self.cells[t - 1] if t else self.first[1]

    def empty_gradients(self) -> "GateGradients":
        """Buffers for the backward pass."""
        T, B, D = self.out.shape
        if self.cells is None:
            dx, ds = (self.out.new_empty(T, B, 3 * D) for _ in range(2))
            return GateGradients(dx, ds, None)
        dx = self.out.new_empty(T, B, 4 * D)
        return GateGradients(dx, dx, torch.zeros_like(self.first[1]))

    def backward(self, t: int, dh: Tensor, gate_gradients: "GateGradients") -> Tensor:
        """From the gradient dh [B, D] of step t's output, compute those of its gates. Returns that of the previous
        output, without what comes through the gates."""
        dh_direct = torch.empty_like(dh)
        if self.cells is None:
            _gru_backward(
                dh, self.previous_output(t), self.gates[t], gate_gradients.dx[t], gate_gradients.ds[t], dh_direct
            )
            return dh_direct
        assert gate_gradients.dc is not None
        _lstm_backward(dh, gate_gradients.dc, self._previous_cell(t), self.gates[t], gate_gradients.dx[t], dh_direct)
        gate_gradients.dc = dh_direct
        return torch.zeros_like(dh)


@dataclass
class GateGradients:
    """Gradients of an unrolled cell's gates."""

    dx: Tensor  # [T, B, G] of the input's part
    ds: Tensor  # [T, B, G] of the state's part; an LSTM's are the same
    dc: Tensor | None  # [B, D] of the cell state before the step computed last


class _RecurrentSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bfloat16: bool, x: Tensor, weight: Tensor, bias: Tensor, *first: Tensor) -> Tensor:
        unrolled, projection = Unrolled.empty(len(x), first), Projection(weight, bfloat16)
        for t in range(len(x)):
            unrolled.forward(t, x[t], projection(unrolled.previous_output(t)).add_(bias))
        ctx.bfloat16 = bfloat16
        ctx.save_for_backward(weight, unrolled.out, unrolled.cells, unrolled.gates, *first)
        return unrolled.out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        weight, out, cells, gates, *first = ctx.saved_tensors
        unrolled, projection = Unrolled(tuple(first), out, cells, gates), Projection(weight, ctx.bfloat16)
        gate_gradients, dh = unrolled.empty_gradients(), torch.zeros_like(first[0])
        for t in reversed(range(len(out))):
            dh_direct = unrolled.backward(t, dh + g[t], gate_gradients)
            dh = dh_direct.add_(projection.input_gradient(gate_gradients.ds[t]))
        dw = weight_gradient(gate_gradients.ds.flatten(0, 1), unrolled.previous_outputs().flatten(0, 1), ctx.bfloat16)
        initial_state_gradients = (dh,) if gate_gradients.dc is None else (dh, gate_gradients.dc)
        return None, gate_gradients.dx, dw, gate_gradients.ds.sum((0, 1)), *initial_state_gradients


def reverse_sequences(x: Tensor, lengths: Tensor) -> Tensor:
    """x [T, B, ...] with each sequence reversed within its own length [B]; padding stays in place."""
    T, B = x.shape[:2]
    steps = torch.arange(T, device=x.device)[:, None]
    index = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return x[index, torch.arange(B, device=x.device)]


def initialize(module: nn.Module, scheme: str) -> None:
    """Initialize the weights of every embedding, linear layer, cell and score in `module` as a paper does.

    "bahdanau" (2014, appendix B.1): recurrent matrices orthogonal, the score's from N(0, 0.001²) with v zero, the rest
    from N(0, 0.01²), biases zero.
    "uniform" (Luong et al. 2015): everything from U(-0.1, 0.1).
    "glorot" (Glorot and Bengio 2010): matrices from U(±sqrt(6 / (rows + columns))), recurrent ones orthogonal, biases
    zero, embeddings from N(0, 1 / width): converges fastest with Adam.
    """
    for submodule in module.modules():
        parameters = dict(submodule.named_parameters(recurse=False))
        if isinstance(submodule, Additive | Bilinear):
            if scheme == "bahdanau":
                for name, weight in parameters.items():
                    nn.init.zeros_(weight) if name in ("v", "bias") else nn.init.normal_(weight, std=0.001)
            continue
        if not isinstance(submodule, nn.Linear | Embedding):
            continue
        for weight in parameters.values():
            if scheme == "uniform":
                nn.init.uniform_(weight, -0.1, 0.1)
            elif weight.ndim < 2:
                nn.init.zeros_(weight)
            elif scheme == "bahdanau":
                nn.init.normal_(weight, std=0.01)
            elif isinstance(submodule, Embedding):
                nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
            else:
                nn.init.xavier_uniform_(weight)
    for submodule in module.modules():
        if isinstance(submodule, Cell) and scheme != "uniform":
            for gate in submodule.states.weight.detach().view(-1, submodule.width, submodule.width):
                nn.init.orthogonal_(gate)
