"""The convolutional decoder's equations, written out for a whole sequence."""

from typing import Any

import torch
from torch import Tensor, nn

from regard.models.decoders.convolutional import ConvolutionalDecoder
from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.outputs import EncoderOutput
from regard.models.settings import ConvolutionalDecoderSettings, ConvolutionalEncoderSettings, TextSource

E, D, M, B, Ts, Tt, KERNEL = 3, 4, 5, 2, 6, 4, 3
SQRT_HALF = 0.5**0.5
SETTINGS = {"width": D, "embedding": E, "layers": 2, "kernel": KERNEL, "dropout": 0.0, "max_positions": 9}


def random_weights(module: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double().eval()


def gated(convolution: Any, x: Tensor, position: int, left: int) -> Tensor:
    """v(W [x_{at - before} ... ]) at one position, zero outside the sequence."""
    positions = range(position - left, position - left + KERNEL)
    window = [x[index] if 0 <= index < len(x) else torch.zeros_like(x[0]) for index in positions]
    a, b = convolution.linear(torch.cat(window)).split(D)
    return a * torch.sigmoid(b)


def test_decoder_equals_the_papers_equations() -> None:
    """h = v(conv(x)); d = W h + b + g; α = softmax(d · z); c = sqrt(S) Σ α (z + e); x' = x + h + W c."""
    settings = ConvolutionalDecoderSettings.parse(SETTINGS)
    decoder = random_weights(ConvolutionalDecoder(settings, 8, M))
    assert isinstance(decoder, ConvolutionalDecoder)
    z, values = torch.randn(B, Ts, M, dtype=torch.float64), torch.randn(B, Ts, M, dtype=torch.float64)
    lengths = [Ts, 4]
    mask = torch.arange(Ts) < torch.tensor(lengths)[:, None]
    memory = EncoderOutput(states=z, mask=mask, pooled=z[:, 0], values=values)
    targets = torch.randint(8, (B, Tt))
    decoded = decoder(targets, memory, need_weights=True)
    for row, S in enumerate(lengths):
        e = decoder.embedding.weight[targets[row]] + decoder.embedding.position.table.weight[:Tt]
        g, x = decoder.embedding_projection(e), decoder.input_projection(e)
        for layer, block in enumerate(decoder.blocks):
            rows = []
            for t in range(Tt):
                h = gated(block.convolution, x, t, KERNEL - 1)
                d = (block.query(h) + g[t]) * SQRT_HALF
                alpha = torch.softmax(z[row, :S] @ d, -1)
                torch.testing.assert_close(decoded.cross_attention[layer][row, 0, t, :S], alpha)
                c = S**0.5 * alpha @ values[row, :S]
                rows.append((x[t] + (h + block.context(c)) * SQRT_HALF) * SQRT_HALF)
            x = torch.stack(rows)
        torch.testing.assert_close(decoded.features[row], decoder.output_projection(x))


def test_encoder_equals_the_papers_equations() -> None:
    """x' = x + v(conv(x)); states z, values z + e, each sum times sqrt(1/2); padding is zero before each block."""
    settings = ConvolutionalEncoderSettings.parse(SETTINGS)
    encoder = random_weights(ConvolutionalEncoder(settings, TextSource().build_stem(settings.stem_options(), 8)))
    lengths = [Ts, 4]
    tokens = torch.randint(8, (B, Ts))
    memory = encoder(tokens, torch.arange(Ts) < torch.tensor(lengths)[:, None])
    for row, S in enumerate(lengths):
        e = encoder.embedding.weight[tokens[row, :S]] + encoder.embedding.position.table.weight[:S]
        x = encoder.input_projection(e)
        for block in encoder.blocks:
            x = torch.stack([(x[t] + gated(block, x, t, KERNEL // 2)) * SQRT_HALF for t in range(S)])
        z = encoder.output_projection(x)
        torch.testing.assert_close(memory.states[row, :S], z)
        torch.testing.assert_close(memory.values[row, :S], (z + e) * SQRT_HALF)
        torch.testing.assert_close(memory.pooled[row], z.mean(0))
