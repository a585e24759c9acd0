"""The Transformer's layer equals PyTorch's and the papers' formulas."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention import Attention, Cache
from regard.models.outputs import EncoderOutput
from regard.models.settings import TransformerDecoderSettings, TransformerEncoderSettings
from regard.models.transformer_layers import FeedForward, TransformerLayer, padding_mask


def settings(**overrides: Any) -> TransformerEncoderSettings:
    return TransformerEncoderSettings.parse({"width": 16, "heads": 2, "feedforward": 10, "dropout": 0.0, **overrides})


def random_weights(module: nn.Module, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.double().eval()


def copy_attention_weights(layer: Attention, pytorch_layer: nn.MultiheadAttention) -> None:
    projections = [layer.query, layer.key, layer.value]
    pytorch_layer.in_proj_weight.copy_(torch.cat([module.weight for module in projections]))
    pytorch_layer.in_proj_bias.copy_(torch.cat([module.bias for module in projections]))
    pytorch_layer.out_proj.load_state_dict(layer.output.state_dict())


def encoder_output(states: Tensor, mask: Tensor) -> EncoderOutput:
    return EncoderOutput(states=states, mask=mask, pooled=states[:, 0], values=states)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layer_equals_pytorch(norm_first: bool, activation: str) -> None:
    layer = random_weights(TransformerLayer(settings(norm_first=norm_first, activation=activation), causal=False))
    pytorch_layer = nn.TransformerEncoderLayer(
        16, 2, 10, 0.0, activation, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    with torch.no_grad():
        copy_attention_weights(layer.self_attention, pytorch_layer.self_attn)
        for name, module in (("linear1", layer.feedforward.inner), ("linear2", layer.feedforward.outer)):
            getattr(pytorch_layer, name).load_state_dict(module.state_dict())
        for name, module in (("norm1", layer.self_attention_norm), ("norm2", layer.feedforward_norm)):
            getattr(pytorch_layer, name).load_state_dict(module.state_dict())
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    expected = pytorch_layer(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(layer(x, mask=padding_mask(mask))[0][mask], expected[mask])


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_layer_equals_pytorch(norm_first: bool) -> None:
    decoder_settings = TransformerDecoderSettings.parse(settings(norm_first=norm_first).model_dump())
    layer = random_weights(TransformerLayer(decoder_settings, causal=True, memory_width=16))
    pytorch_layer = nn.TransformerDecoderLayer(
        16, 2, 10, 0.0, "relu", batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    with torch.no_grad():
        copy_attention_weights(layer.self_attention, pytorch_layer.self_attn)
        copy_attention_weights(layer.cross_attention, pytorch_layer.multihead_attn)
        for name, module in (("linear1", layer.feedforward.inner), ("linear2", layer.feedforward.outer)):
            getattr(pytorch_layer, name).load_state_dict(module.state_dict())
        norms = (layer.self_attention_norm, layer.cross_attention_norm, layer.feedforward_norm)
        for name, module in zip(("norm1", "norm2", "norm3"), norms, strict=True):
            getattr(pytorch_layer, name).load_state_dict(module.state_dict())
    x, states = torch.randn(2, 4, 16, dtype=torch.float64), torch.randn(2, 6, 16, dtype=torch.float64)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    causal_mask = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = pytorch_layer(x, states, tgt_mask=causal_mask, memory_key_padding_mask=~mask)
    actual, _, weights = layer(
        x, memory=encoder_output(states, mask), memory_mask=padding_mask(mask), need_weights=True
    )
    torch.testing.assert_close(actual, expected)
    assert weights.cross_attention.shape == (2, 2, 4, 6)
    assert not weights.self_attention.triu(1).any()
    torch.testing.assert_close(weights.self_attention.sum(-1), torch.ones(2, 2, 4, dtype=torch.float64))


@pytest.mark.parametrize("norm_first", [True, False])
def test_steps_with_prepared_memory_equal_the_whole_sequence(norm_first: bool) -> None:
    decoder_settings = TransformerDecoderSettings.parse(settings(norm_first=norm_first, position="rotary").model_dump())
    layer = random_weights(TransformerLayer(decoder_settings, causal=True, memory_width=12))
    x, states = torch.randn(2, 4, 16, dtype=torch.float64), torch.randn(2, 6, 12, dtype=torch.float64)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    full = layer(x, memory=encoder_output(states, mask), memory_mask=padding_mask(mask))[0]
    past, prepared = Cache(), layer.cross_attention.prepare(states)
    for step in range(4):
        x_t, past, _ = layer(x[:, step : step + 1], past=past, prepared=prepared, memory_mask=padding_mask(mask))
        torch.testing.assert_close(x_t[:, 0], full[:, step])


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu", "geglu"])
def test_feed_forward_equals_its_formula(activation: str) -> None:
    module = random_weights(FeedForward(settings(activation=activation)))
    x = torch.randn(3, 16, dtype=torch.float64)
    inner = x @ module.inner.weight.t() + module.inner.bias
    phi = 0.5 * (1 + torch.erf(inner / 2**0.5))  # the normal distribution's
    if activation == "relu":
        hidden = inner.clamp_min(0)
    elif activation == "gelu":
        hidden = inner * phi
    elif activation == "swiglu":
        hidden = inner[:, :10] * torch.sigmoid(inner[:, :10]) * inner[:, 10:]
    else:
        hidden = inner[:, :10] * phi[:, :10] * inner[:, 10:]
    torch.testing.assert_close(module(x), hidden @ module.outer.weight.t() + module.outer.bias)


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_activation_dropout_acts_inside_the_feed_forward(activation: str) -> None:
    module = FeedForward(settings(activation=activation, activation_dropout=0.999, feedforward=200))
    x = torch.randn(40, 16)
    dropped = (module.train()(x) == module.outer.bias).all(-1).float().mean()
    assert dropped > 0.4, "with nearly everything dropped, most rows are only the bias"
    assert not (module.eval()(x) == module.outer.bias).any()


def test_norms_equal_their_formulas() -> None:
    x = torch.randn(3, 16, dtype=torch.float64)
    layer, rms = random_weights(settings().build_norm(16)), random_weights(settings(norm="rms").build_norm(16))
    centered = x - x.mean(-1, keepdim=True)
    normalized = centered / (centered.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(layer(x), normalized * layer.weight + layer.bias)
    torch.testing.assert_close(rms(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * rms.weight)


@pytest.mark.parametrize("causal", [False, True])
def test_window_attends_within_its_radius(causal: bool) -> None:
    layer = random_weights(TransformerLayer(settings(window=2, position="none"), causal=causal))
    x = torch.randn(1, 9, 16, dtype=torch.float64)
    full = layer(x)[0]
    for position in range(9):
        changed = x.clone()
        changed[0, position] = torch.randn(16)
        affected = {step for step in range(9) if not torch.allclose(layer(changed)[0][0, step], full[0, step])}
        assert affected == {step for step in range(9) if (0 if causal else -2) <= step - position <= 2}


def test_padding_mask_is_none_without_padding() -> None:
    assert padding_mask(torch.ones(2, 3, dtype=torch.bool)) is None
    mask = torch.tensor([[True, False]])
    actual = padding_mask(mask)
    assert actual is not None
    assert torch.equal(actual, mask[:, None, None])


@pytest.mark.parametrize("normalize", ["softmax", "sparsemax", "entmax", "sigmoid", "hard"])
def test_every_normalizer_of_the_settings_can_be_trained(normalize: str) -> None:
    layer = TransformerLayer(settings(normalize=normalize), causal=False).train()
    x = torch.randn(2, 5, 16, requires_grad=True)
    layer(x)[0].square().sum().backward()
    assert x.grad.isfinite().all()
    assert layer.self_attention.query.weight.grad.any()
