"""The recurrent decoder's step, against the papers' equations written out."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.models.decoders.recurrent import RecurrentDecoder, RecurrentState
from regard.models.outputs import EncoderOutput
from regard.models.settings import RecurrentDecoderSettings

E, D, M, V, B, T = 3, 4, 5, 7, 2, 6


def build_decoder(**overrides: object) -> RecurrentDecoder:
    torch.manual_seed(0)
    settings = RecurrentDecoderSettings.parse({"width": D, "embedding": E, "dropout": 0.0, **overrides})
    decoder = RecurrentDecoder(settings, V, M).double().eval()
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.7)
    return decoder


def random_memory() -> EncoderOutput:
    torch.manual_seed(1)
    h = torch.randn(B, T, M, dtype=torch.float64)
    mask = torch.tensor([[True] * T, [True] * 4 + [False] * 2])
    return EncoderOutput(states=h, mask=mask, pooled=torch.randn(B, M, dtype=torch.float64), values=h)


def gru(cell: Any, extra: Tensor | None, y: Tensor, s: Tensor) -> Tensor:
    """Cho et al. 2014, the reset gate after the product as PyTorch has it; `extra` is V c, V C or nothing."""
    W, b, U, d = (parameter.detach() for parameter in cell.parameters())
    from_input = y @ W.t() + b + (0 if extra is None else extra)
    (x_r, x_z, x_n), (s_r, s_z, s_n) = from_input.split(D, -1), (s @ U.t() + d).split(D, -1)
    r, z = torch.sigmoid(x_r + s_r), torch.sigmoid(x_z + s_z)
    return (1 - z) * torch.tanh(x_n + r * s_n) + z * s


def lstm(cell: Any, extra: Tensor, y: Tensor, s: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    W, b, U, d = (parameter.detach() for parameter in cell.parameters())
    i, f, g, o = (y @ W.t() + b + extra + s @ U.t() + d).split(D, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def linear(layer: nn.Module | None, x: Tensor) -> Tensor:
    assert isinstance(layer, nn.Linear)
    return x @ layer.weight.t() + (0 if layer.bias is None else layer.bias)


def attend(scores: Tensor, memory: EncoderOutput) -> tuple[Tensor, Tensor]:
    """Scores [B, T] -> weights and context, over unpadded positions."""
    e = scores.exp() * memory.mask
    alpha = e / e.sum(-1, keepdim=True)
    return alpha, (alpha[..., None] * memory.values).sum(1)


def random_state(decoder: RecurrentDecoder, memory: EncoderOutput) -> RecurrentState:
    """A state in the middle of a sentence."""
    state = decoder.start(memory)
    layers = tuple(tuple(torch.randn_like(parameter) for parameter in layer) for layer in state.layers)
    attentional = None if state.attentional is None else torch.randn_like(state.attentional)
    return replace(state, layers=layers, attentional=attentional)


def test_initial_state_is_tanh_of_the_pooled_source() -> None:
    memory, decoder = random_memory(), build_decoder(layers=2, cell="lstm", attend="never")
    expected = torch.tanh(linear(decoder.initial_state, memory.pooled)).split(D, -1)
    for (s, c), expected_state in zip(decoder.start(memory).layers, expected, strict=True):
        torch.testing.assert_close(s, expected_state)
        assert not c.any()


def test_bahdanau() -> None:
    """e_tj = v' tanh(W s_{t-1} + U h_j + b); c = Σ α h; s_t = f(s_{t-1}, y_{t-1}, c); maxout of [s_t, y_{t-1}, c]."""
    memory, decoder = random_memory(), build_decoder(attend="before", score="additive", attention_width=6)
    state, tokens = random_state(decoder, memory), torch.tensor([5, 2])
    s, y, score = state.layers[0][0], decoder.embedding.weight[tokens], decoder.attention.score
    hidden = (s @ score.weight_query[0].t())[:, None] + memory.states @ score.weight_key[0].t() + score.bias[0]
    _, c = attend(torch.tanh(hidden) @ score.v[0], memory)
    next_s = gru(decoder.cells[0], c @ decoder.extra_input.weight.t(), y, s)
    t = linear(decoder.readout, torch.cat([next_s, y, c], -1))
    features, next_state = decoder.step(tokens, state)
    torch.testing.assert_close(next_state.layers[0][0], next_s)
    torch.testing.assert_close(features, torch.maximum(*t.chunk(2, 1)))


@pytest.mark.parametrize("feeding", [False, True])
@pytest.mark.parametrize("score", ["bilinear", "dot"])
def test_luong(feeding: bool, score: str) -> None:
    """s_t = f(s_{t-1}, [y_{t-1}; ŝ_{t-1}]); α = softmax(s_t' W h_j); ŝ_t = tanh(W_c [c_t; s_t])."""
    memory, decoder = random_memory(), build_decoder(attend="after", score=score, input_feeding=feeding, cell="lstm")
    state, tokens = random_state(decoder, memory), torch.tensor([5, 2])
    y, (s, cell) = decoder.embedding.weight[tokens], state.layers[0]
    fed_back = state.attentional @ decoder.extra_input.weight.t() if feeding else torch.zeros(1, dtype=torch.float64)
    s, cell = lstm(decoder.cells[0], fed_back, y, s, cell)
    if score == "bilinear":
        keys = memory.states @ decoder.attention.score.weight[0].t()
    else:
        keys = linear(decoder.attention.key, memory.states)  # of another width, so projected
    _, c = attend((s[:, None] * keys).sum(-1), memory)
    attentional = torch.tanh(linear(decoder.combine, torch.cat([c, s], -1)))
    features, next_state = decoder.step(tokens, state)
    torch.testing.assert_close(next_state.layers[0][0], s)
    torch.testing.assert_close(next_state.layers[0][1], cell)
    torch.testing.assert_close(features, linear(decoder.readout, attentional))
    if feeding:
        torch.testing.assert_close(next_state.attentional, attentional)
    else:
        assert next_state.attentional is None


@pytest.mark.parametrize("step", [0, 3])
def test_local_m_window_is_around_the_step(step: int) -> None:
    memory, decoder = random_memory(), build_decoder(attend="before", score="dot", extent="local-m", radius=1)
    state = decoder.start(memory)
    for _ in range(step):
        state = decoder.step(torch.tensor([4, 4]), state)[1]
    within_window = (torch.arange(T) - step).abs() <= 1
    keys = linear(decoder.attention.key, memory.states)
    e = (state.layers[0][0][:, None] * keys).sum(-1).exp() * memory.mask * within_window
    c = ((e / e.sum(-1, keepdim=True))[..., None] * memory.values).sum(1)
    y = decoder.embedding.weight[[5, 2]]
    next_s = gru(decoder.cells[0], c @ decoder.extra_input.weight.t(), y, state.layers[0][0])
    torch.testing.assert_close(decoder.step(torch.tensor([5, 2]), state)[1].layers[0][0], next_s)


def test_local_p_window_is_around_the_predicted_position() -> None:
    """p_t = S σ(v' tanh(W s_t)); α = softmax over [p - r, p + r] times exp(-(j - p)² / 2 (r / 2)²)."""
    memory, decoder = random_memory(), build_decoder(attend="after", score="bilinear", extent="local-p", radius=2)
    state, tokens = random_state(decoder, memory), torch.tensor([5, 2])
    y, extent = decoder.embedding.weight[tokens], decoder.attention.extent
    s = gru(decoder.cells[0], None, y, state.layers[0][0])
    length = memory.mask.sum(1, dtype=torch.float64)
    p = (length * torch.sigmoid(torch.tanh(s @ extent.weight[0].t()) @ extent.v[0]))[:, None]
    positions = torch.arange(T, dtype=torch.float64)
    within_window = (positions - p).abs() <= 2
    e = (
        (s[:, None] * (memory.states @ decoder.attention.score.weight[0].t())).sum(-1).exp()
        * memory.mask
        * within_window
    )
    alpha = e / e.sum(-1, keepdim=True) * torch.exp(-((positions - p) ** 2) / 2)
    c = (alpha[..., None] * memory.values).sum(1)
    expected = linear(decoder.readout, torch.tanh(linear(decoder.combine, torch.cat([c, s], -1))))
    torch.testing.assert_close(decoder.step(tokens, state)[0], expected)


def test_cho() -> None:
    """s_t = f(s_{t-1}, y_{t-1}, C), and the output sees s_t, y_{t-1} and C."""
    memory, decoder = random_memory(), build_decoder(attend="never", context="every")
    state, tokens = random_state(decoder, memory), torch.tensor([5, 2])
    y, C = decoder.embedding.weight[tokens], memory.pooled
    next_s = gru(decoder.cells[0], C @ decoder.extra_input.weight.t(), y, state.layers[0][0])
    t = linear(decoder.readout, torch.cat([next_s, y, C], -1))
    features, next_state = decoder.step(tokens, state)
    torch.testing.assert_close(next_state.layers[0][0], next_s)
    torch.testing.assert_close(features, torch.maximum(*t.chunk(2, 1)))


def test_sutskever() -> None:
    """s_t = f(s_{t-1}, y_{t-1}) in two layers, and nothing else of the source."""
    memory, decoder = random_memory(), build_decoder(attend="never", layers=2)
    state, tokens = random_state(decoder, memory), torch.tensor([5, 2])
    first_layer = gru(decoder.cells[0], None, decoder.embedding.weight[tokens], state.layers[0][0])
    second_layer = gru(decoder.cells[1], None, first_layer, state.layers[1][0])
    features, next_state = decoder.step(tokens, state)
    torch.testing.assert_close(next_state.layers[1][0], second_layer)
    torch.testing.assert_close(features, linear(decoder.readout, second_layer))
