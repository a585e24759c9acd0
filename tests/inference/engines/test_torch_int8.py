"""Linear layers in int8: close to float32 whatever their shape, and batch-invariant."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard import native
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference.engines.torch_int8 import Int8Linear, quantize_model, unsupported_reason
from regard.loading import load
from regard.runs.bundle import save_bundle
from tests.bundles import LINES, random_bundle

pytestmark = pytest.mark.skipif(native.library() is None, reason="there is no C compiler here")
CPU = torch.device("cpu")


@settings(max_examples=60, deadline=None)
@given(
    inputs=st.integers(1, 150),
    outputs=st.integers(1, 150),
    rows=st.integers(1, 40),
    bias=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 50.0]),
)
def test_a_product_is_close_to_float32_and_batch_invariant(
    inputs: int, outputs: int, rows: int, bias: bool, scale: float
) -> None:
    torch.manual_seed(inputs * 1000 + outputs)
    reference = nn.Linear(inputs, outputs, bias=bias)
    quantized = Int8Linear(reference)
    x = torch.randn(rows, inputs) * scale
    with torch.inference_mode():
        actual, expected = quantized(x), reference(x)
        # Each factor is off by half a step of its own 127 at most.
        step = x.abs().amax(1, keepdim=True) / 127
        bound = 0.51 * (
            step * reference.weight.abs().sum(1) + x.abs().sum(1, keepdim=True) * reference.weight.abs().amax(1) / 127
        )
        assert (
            (actual - expected).abs() <= bound + 0.3 * inputs * step * reference.weight.abs().amax(1) / 127 + 1e-5
        ).all()
        for row in range(0, rows, 7):
            assert torch.equal(quantized(x[row : row + 1])[0], actual[row])
        assert quantized(x.view(1, rows, inputs)).shape == (1, rows, outputs)
        assert quantized(x[:0]).shape == (0, outputs)


def test_zero_inputs_and_weights_give_zero_products() -> None:
    quantized = Int8Linear(nn.Linear(5, 3, bias=False))
    assert torch.equal(quantized(torch.zeros(2, 5)), torch.zeros(2, 3))
    zero_layer = nn.Linear(4, 2)
    nn.init.zeros_(zero_layer.weight)
    with torch.no_grad():
        assert torch.allclose(Int8Linear(zero_layer)(torch.randn(3, 4)), zero_layer.bias.expand(3, 2))


@pytest.mark.skipif(bool(unsupported_reason(CPU)), reason=unsupported_reason(CPU))
@pytest.mark.parametrize(
    "decoder",
    [
        *("bahdanau", "luong input feeding", "convolutional", "cho"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("transformer", "rotary")),
    ],
)
def test_every_model_runs_in_int8(subwords: SubwordTokenizer, tmp_path: Path, decoder: str) -> None:
    bundle = random_bundle(subwords, "recurrent", decoder)
    save_bundle(tmp_path, bundle)
    quantized, reference = (
        load(tmp_path, engine="torch", precision=kind, device="cpu") for kind in ("int8", "float32")
    )
    assert quantized.engine_reason == "PyTorch, int8"
    similar = 0
    for text in LINES[:4]:
        a, b = quantized.translate(text, beam=1, scores=True), reference.translate(text, beam=1, scores=True)
        similar += a.tokens[:1] == b.tokens[:1]
        alone = quantized.translate(text, beam=3).tokens
        assert quantized.translate([*LINES[:4], text], beam=3)[-1].tokens == alone
    assert similar >= 2, "a model with random weights is as sensitive as can be"
    assert not any(isinstance(each, Int8Linear) for each in reference.run.bundle.model.modules())


def test_quantizing_leaves_the_original_unchanged(subwords: SubwordTokenizer) -> None:
    bundle = random_bundle(subwords, "transformer", "transformer", tie="all")
    before = {name: value.clone() for name, value in bundle.model.named_parameters()}
    quantized = quantize_model(bundle.model)
    assert any(isinstance(each, Int8Linear) for each in quantized.modules())
    assert quantized.output.weight is quantized.decoder.embedding.weight, "tied weights stay tied"
    for name, value in bundle.model.named_parameters():
        assert torch.equal(value, before[name])
