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
from regard.models.bfloat16_matmul import Product, uses_bfloat16, weight_gradient
from regard.models.embedding import Embedding

Pair = tuple[Tensor, Tensor]


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
        """The state before anything was read, for a batch as large as `like` [B, ...]."""
        return tuple(like.new_zeros(len(like), self.width) for _ in range(self.state_tensors))

    def sequence(self, gates: Tensor, state: tuple[Tensor, ...]) -> Tensor:
        """`self.inputs` of all inputs, [T, B, gates D] -> the outputs [T, B, D] from this first state on."""
        first = [part.contiguous() for part in state]
        rounded = uses_bfloat16(first[0], self.states.weight)
        out: Tensor = _Sequence.apply(  # type: ignore[no-untyped-call]
            rounded, gates.contiguous(), self.states.weight, self.states.bias, *first
        )
        return out

    def step(self, gates: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """`self.inputs` of the input, [B, gates D], and the state before -> the state after, its output first."""
        from_state = self.states(state[0])
        if self.kind == "gru":
            return (_GRUStep.apply(gates, from_state, state[0]),)  # type: ignore[no-untyped-call]
        after: Pair = _LSTMStep.apply(gates, from_state, state[1])  # type: ignore[no-untyped-call]
        return after


def _native(name: str, *tensors: Tensor, width: int) -> None:
    rows = tensors[0].numel() // tensors[0].shape[-1]
    native.call(name, tensors, [width], count=rows, work=rows * width * 16)


# --- the element-wise part ---------------------------------------------------------------------------------------


def _gru(x: Tensor, s: Tensor, h: Tensor, out: Tensor, gates: Tensor) -> None:
    """Gates x, s [B, 3D] and state h [B, D] -> out [B, D]; gates [B, 4D] keeps what the way back needs."""
    if native.serves(x):
        _native("regard_gru_forward", x, s, h, out, gates, width=h.shape[-1])
        return
    (xr, xz, xn), (sr, sz, sn) = x.chunk(3, -1), s.chunk(3, -1)
    r, z = torch.sigmoid(xr + sr), torch.sigmoid(xz + sz)
    n = torch.tanh(xn + r * sn)
    torch.cat([r, z, n, sn], -1, out=gates)
    out.copy_(n + z * (h - n))


def _gru_back(d: Tensor, h: Tensor, gates: Tensor, dx: Tensor, ds: Tensor, dh: Tensor) -> None:
    if native.serves(d):
        _native("regard_gru_backward", d, h, gates, dx, ds, dh, width=h.shape[-1])
        return
    r, z, n, sn = gates.chunk(4, -1)
    dn = d * (1 - z) * (1 - n * n)
    dz, dr = d * (h - n) * z * (1 - z), dn * sn * r * (1 - r)
    torch.cat([dr, dz, dn], -1, out=dx)
    torch.cat([dr, dz, dn * r], -1, out=ds)
    dh.copy_(d * z)


def _lstm(x: Tensor, s: Tensor, c: Tensor, out: Tensor, cell: Tensor, gates: Tensor) -> None:
    if native.serves(x):
        _native("regard_lstm_forward", x, s, c, out, cell, gates, width=c.shape[-1])
        return
    i, f, g, o = (x + s).chunk(4, -1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
    cell.copy_(f * c + i * g)
    shown = torch.tanh(cell)
    torch.cat([i, f, g, o, shown], -1, out=gates)
    out.copy_(o * shown)


def _lstm_back(dh: Tensor, dcell: Tensor, c: Tensor, gates: Tensor, dx: Tensor, dc: Tensor) -> None:
    if native.serves(dh):
        _native("regard_lstm_backward", dh, dcell, c, gates, dx, dc, width=c.shape[-1])
        return
    i, f, g, o, shown = gates.chunk(5, -1)
    now = dcell + dh * o * (1 - shown * shown)
    torch.cat(
        [now * g * i * (1 - i), now * c * f * (1 - f), now * i * (1 - g * g), dh * shown * o * (1 - o)], -1, out=dx
    )
    dc.copy_(now * f)


# --- with their gradients ----------------------------------------------------------------------------------------


class _GRUStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, s: Tensor, h: Tensor) -> Tensor:
        out, gates = torch.empty_like(h, memory_format=torch.contiguous_format), h.new_empty(len(h), 4 * h.shape[1])
        x, s, h = x.contiguous(), s.contiguous(), h.contiguous()
        _gru(x, s, h, out, gates)
        ctx.save_for_backward(h, gates)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h, gates = ctx.saved_tensors
        dx, ds, dh = (h.new_empty(len(h), n * h.shape[1]) for n in (3, 3, 1))
        _gru_back(d.contiguous(), h, gates, dx, ds, dh)
        return dx, ds, dh


class _LSTMStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, s: Tensor, c: Tensor) -> Pair:
        x, s, c = x.contiguous(), s.contiguous(), c.contiguous()
        out, cell, gates = torch.empty_like(c), torch.empty_like(c), c.new_empty(len(c), 5 * c.shape[1])
        _lstm(x, s, c, out, cell, gates)
        ctx.save_for_backward(c, gates)
        return out, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor, dcell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        c, gates = ctx.saved_tensors
        dx, dc = c.new_empty(len(c), 4 * c.shape[1]), torch.empty_like(c)
        _lstm_back(dh.contiguous(), dcell.contiguous(), c, gates, dx, dc)
        return dx, dx, dc


@dataclass
class Unrolled:
    """A cell over T steps: its states, and what the way back needs of each."""

    first: tuple[Tensor, ...]  # [B, D] each
    out: Tensor  # [T, B, D]
    cells: Tensor | None  # [T, B, D], an LSTM's
    kept: Tensor  # [T, B, 4 D or 5 D]

    @staticmethod
    def empty(steps: int, first: tuple[Tensor, ...]) -> "Unrolled":
        """Room for all steps from this first state on: a pair is an LSTM's."""
        h = first[0]
        B, D = h.shape
        out, cells = (h.new_empty(steps, B, D) for _ in range(2))
        lstm = len(first) == 2
        return Unrolled(first, out, cells if lstm else None, h.new_empty(steps, B, (5 if lstm else 4) * D))

    def before(self, t: int) -> Tensor:
        """The output before step t."""
        return self.out[t - 1] if t else self.first[0]

    def outputs_before(self) -> Tensor:
        """The outputs before every step, [T, B, D]."""
        return torch.cat([self.first[0][None], self.out[:-1]])

    def forward(self, t: int, x: Tensor, s: Tensor) -> None:
        """Step t, from the shares of the input and of the state before in the gates, [B, 3 D or 4 D] each."""
        if self.cells is None:
            _gru(x, s, self.before(t), self.out[t], self.kept[t])
        else:
            _lstm(x, s, self._cell_before(t), self.out[t], self.cells[t], self.kept[t])

    def _cell_before(self, t: int) -> Tensor:
        assert self.cells is not None
        return self.cells[t - 1] if t else self.first[1]

    def slopes(self) -> "GateGradients":
        """Room for the way back."""
        T, B, D = self.out.shape
        if self.cells is None:
            dx, ds = (self.out.new_empty(T, B, 3 * D) for _ in range(2))
            return GateGradients(dx, ds, None)
        dx = self.out.new_empty(T, B, 4 * D)
        return GateGradients(dx, dx, torch.zeros_like(self.first[1]))

    def back(self, t: int, dh: Tensor, slopes: "GateGradients") -> Tensor:
        """The slope dh [B, D] of step t's output -> those of its gates; and what goes straight to the one before."""
        straight = torch.empty_like(dh)
        if self.cells is None:
            _gru_back(dh, self.before(t), self.kept[t], slopes.dx[t], slopes.ds[t], straight)
            return straight
        assert slopes.dc is not None
        _lstm_back(dh, slopes.dc, self._cell_before(t), self.kept[t], slopes.dx[t], straight)
        slopes.dc = straight
        return torch.zeros_like(dh)


@dataclass
class GateGradients:
    """Gradients of an unrolled cell's gates."""

    dx: Tensor  # [T, B, G] of the input's share
    ds: Tensor  # [T, B, G] of the state's share; an LSTM's are the same
    dc: Tensor | None  # [B, D] of the cell that comes before the step last gone back


class _Sequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rounded: bool, x: Tensor, weight: Tensor, bias: Tensor, *first: Tensor) -> Tensor:
        run, product = Unrolled.empty(len(x), first), Product(weight, rounded)
        for t in range(len(x)):
            run.forward(t, x[t], product(run.before(t)).add_(bias))
        ctx.rounded = rounded
        ctx.save_for_backward(weight, run.out, run.cells, run.kept, *first)
        return run.out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        weight, out, cells, kept, *first = ctx.saved_tensors
        run, product = Unrolled(tuple(first), out, cells, kept), Product(weight, ctx.rounded)
        slopes, dh = run.slopes(), torch.zeros_like(first[0])
        for t in reversed(range(len(out))):
            straight = run.back(t, dh + g[t], slopes)
            dh = straight.add_(product.back(slopes.ds[t]))
        dw = weight_gradient(slopes.ds.flatten(0, 1), run.outputs_before().flatten(0, 1), ctx.rounded)
        ends = (dh,) if slopes.dc is None else (dh, slopes.dc)
        return None, slopes.dx, dw, slopes.ds.sum((0, 1)), *ends


def reverse_sequences(x: Tensor, lengths: Tensor) -> Tensor:
    """x [T, B, ...] with each sequence turned around within its own length [B]; what lies beyond it stays."""
    T, B = x.shape[:2]
    at = torch.arange(T, device=x.device)[:, None]
    turned = torch.where(at < lengths, lengths - 1 - at, at)
    return x[turned, torch.arange(B, device=x.device)]


def initialize(module: nn.Module, scheme: str) -> None:
    """Draw the weights of every table, linear layer, cell and score under `module` as a paper does.

    "bahdanau" (2014, appendix B.1): recurrent matrices orthogonal, the score's from N(0, 0.001²) with v zero, the rest
    from N(0, 0.01²), biases zero.
    "uniform" (Luong et al. 2015): everything from U(-0.1, 0.1).
    "glorot" (Glorot and Bengio 2010): matrices from U(±sqrt(6 / (rows + columns))), recurrent ones orthogonal, biases
    zero, tables from N(0, 1 / width): the quickest to leave the start with Adam.
    """
    for part in module.modules():
        own = dict(part.named_parameters(recurse=False))
        if isinstance(part, Additive | Bilinear):
            if scheme == "bahdanau":
                for name, weight in own.items():
                    nn.init.zeros_(weight) if name in ("v", "bias") else nn.init.normal_(weight, std=0.001)
            continue
        if not isinstance(part, nn.Linear | Embedding):
            continue
        for weight in own.values():
            if scheme == "uniform":
                nn.init.uniform_(weight, -0.1, 0.1)
            elif weight.ndim < 2:
                nn.init.zeros_(weight)
            elif scheme == "bahdanau":
                nn.init.normal_(weight, std=0.01)
            elif isinstance(part, Embedding):
                nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
            else:
                nn.init.xavier_uniform_(weight)
    for part in module.modules():
        if isinstance(part, Cell) and scheme != "uniform":
            for gate in part.states.weight.detach().view(-1, part.width, part.width):
                nn.init.orthogonal_(gate)
