"""The Transformer's layer: PyTorch's own, and the papers' formulas."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention import Attention, Cache
from regard.models.outputs import EncoderOutput
from regard.models.settings import TransformerDecoder, TransformerEncoder
from regard.models.transformer_layers import FeedForward, TransformerLayer, padding_mask


def settings(**given: Any) -> TransformerEncoder:
    return TransformerEncoder.parse({"width": 16, "heads": 2, "feedforward": 10, "dropout": 0.0, **given})


def drawn(module: nn.Module, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.double().eval()


def share_attention(mine: Attention, theirs: nn.MultiheadAttention) -> None:
    parts = [mine.query, mine.key, mine.value]
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(mine.output.state_dict())


def memory_of(states: Tensor, mask: Tensor) -> EncoderOutput:
    return EncoderOutput(states=states, mask=mask, pooled=states[:, 0], values=states)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_layer_is_pytorchs(norm_first: bool, activation: str) -> None:
    mine = drawn(TransformerLayer(settings(norm_first=norm_first, activation=activation), causal=False))
    theirs = nn.TransformerEncoderLayer(
        16, 2, 10, 0.0, activation, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    with torch.no_grad():
        share_attention(mine.itself, theirs.self_attn)
        for name, part in (("linear1", mine.feedforward.inner), ("linear2", mine.feedforward.outer)):
            getattr(theirs, name).load_state_dict(part.state_dict())
        for name, part in (("norm1", mine.itself_norm), ("norm2", mine.feedforward_norm)):
            getattr(theirs, name).load_state_dict(part.state_dict())
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    expected = theirs(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(mine(x, mask=padding_mask(mask))[0][mask], expected[mask])


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_layer_is_pytorchs(norm_first: bool) -> None:
    about = TransformerDecoder.parse(settings(norm_first=norm_first).model_dump())
    mine = drawn(TransformerLayer(about, causal=True, memory_width=16))
    theirs = nn.TransformerDecoderLayer(
        16, 2, 10, 0.0, "relu", batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    with torch.no_grad():
        share_attention(mine.itself, theirs.self_attn)
        share_attention(mine.memory, theirs.multihead_attn)
        for name, part in (("linear1", mine.feedforward.inner), ("linear2", mine.feedforward.outer)):
            getattr(theirs, name).load_state_dict(part.state_dict())
        norms = (mine.itself_norm, mine.memory_norm, mine.feedforward_norm)
        for name, part in zip(("norm1", "norm2", "norm3"), norms, strict=True):
            getattr(theirs, name).load_state_dict(part.state_dict())
    x, states = torch.randn(2, 4, 16, dtype=torch.float64), torch.randn(2, 6, 16, dtype=torch.float64)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = theirs(x, states, tgt_mask=later, memory_key_padding_mask=~mask)
    found, _, weights = mine(x, memory=memory_of(states, mask), memory_mask=padding_mask(mask), need_weights=True)
    torch.testing.assert_close(found, expected)
    assert weights.cross_attention.shape == (2, 2, 4, 6)
    assert not weights.self_attention.triu(1).any()
    torch.testing.assert_close(weights.self_attention.sum(-1), torch.ones(2, 2, 4, dtype=torch.float64))


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_layer_step_by_step_with_a_prepared_memory_is_the_same(norm_first: bool) -> None:
    about = TransformerDecoder.parse(settings(norm_first=norm_first, position="rotary").model_dump())
    layer = drawn(TransformerLayer(about, causal=True, memory_width=12))
    x, states = torch.randn(2, 4, 16, dtype=torch.float64), torch.randn(2, 6, 12, dtype=torch.float64)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    whole = layer(x, memory=memory_of(states, mask), memory_mask=padding_mask(mask))[0]
    past, prepared = Cache(), layer.memory.prepare(states)
    for at in range(4):
        one, past, _ = layer(x[:, at : at + 1], past=past, prepared=prepared, memory_mask=padding_mask(mask))
        torch.testing.assert_close(one[:, 0], whole[:, at])


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu", "geglu"])
def test_the_feed_forward_formulas(activation: str) -> None:
    part = drawn(FeedForward(settings(activation=activation)))
    x = torch.randn(3, 16, dtype=torch.float64)
    inner = x @ part.inner.weight.t() + part.inner.bias
    phi = 0.5 * (1 + torch.erf(inner / 2**0.5))  # the normal distribution's
    if activation == "relu":
        hidden = inner.clamp_min(0)
    elif activation == "gelu":
        hidden = inner * phi
    elif activation == "swiglu":
        hidden = inner[:, :10] * torch.sigmoid(inner[:, :10]) * inner[:, 10:]
    else:
        hidden = inner[:, :10] * phi[:, :10] * inner[:, 10:]
    torch.testing.assert_close(part(x), hidden @ part.outer.weight.t() + part.outer.bias)


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_activation_dropout_acts_inside_the_feed_forward(activation: str) -> None:
    part = FeedForward(settings(activation=activation, activation_dropout=0.999, feedforward=200))
    x = torch.randn(40, 16)
    dropped = (part.train()(x) == part.outer.bias).all(-1).float().mean()
    assert dropped > 0.4, "with next to nothing kept only the bias is left in most rows"
    assert not (part.eval()(x) == part.outer.bias).any()


def test_the_norms_are_the_papers() -> None:
    x = torch.randn(3, 16, dtype=torch.float64)
    layer, rms = drawn(settings().build_norm(16)), drawn(settings(norm="rms").build_norm(16))
    centred = x - x.mean(-1, keepdim=True)
    even = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(layer(x), even * layer.weight + layer.bias)
    torch.testing.assert_close(rms(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * rms.weight)


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_sees_no_further_than_its_radius(causal: bool) -> None:
    layer = drawn(TransformerLayer(settings(window=2, position="none"), causal=causal))
    x = torch.randn(1, 9, 16, dtype=torch.float64)
    whole = layer(x)[0]
    for place in range(9):
        other = x.clone()
        other[0, place] = torch.randn(16)
        moved = {at for at in range(9) if not torch.allclose(layer(other)[0][0, at], whole[0, at])}
        assert moved == {at for at in range(9) if (0 if causal else -2) <= at - place <= 2}


def test_no_mask_where_nothing_is_padded() -> None:
    assert padding_mask(torch.ones(2, 3, dtype=torch.bool)) is None
    mask = torch.tensor([[True, False]])
    found = padding_mask(mask)
    assert found is not None
    assert torch.equal(found, mask[:, None, None])


@pytest.mark.parametrize("normalize", ["softmax", "sparsemax", "entmax", "sigmoid", "hard"])
def test_every_normalizer_that_settings_offer_can_be_trained(normalize: str) -> None:
    layer = TransformerLayer(settings(normalize=normalize), causal=False).train()
    x = torch.randn(2, 5, 16, requires_grad=True)
    layer(x)[0].square().sum().backward()
    assert x.grad.isfinite().all()
    assert layer.itself.query.weight.grad.any()
