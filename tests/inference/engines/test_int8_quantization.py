"""Linear layers in int8: near what they were, whatever their shape, and the same in any company."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard import native
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference.engines.int8_quantization import Int8Linear, quantize_model, unsupported_reason
from regard.inference.loading import load
from regard.runs.bundle import save_bundle
from tests.bundles import LINES, bundle_of

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
def test_a_product_is_near_and_a_row_is_its_own(inputs: int, outputs: int, rows: int, bias: bool, scale: float) -> None:
    torch.manual_seed(inputs * 1000 + outputs)
    exact = nn.Linear(inputs, outputs, bias=bias)
    low = Int8Linear(exact)
    x = torch.randn(rows, inputs) * scale
    with torch.inference_mode():
        found, wanted = low(x), exact(x)
        # Each factor is off by half a step of its own 127 at most.
        step = x.abs().amax(1, keepdim=True) / 127
        bound = 0.51 * (
            step * exact.weight.abs().sum(1) + x.abs().sum(1, keepdim=True) * exact.weight.abs().amax(1) / 127
        )
        assert ((found - wanted).abs() <= bound + 0.3 * inputs * step * exact.weight.abs().amax(1) / 127 + 1e-5).all()
        for row in range(0, rows, 7):
            assert torch.equal(low(x[row : row + 1])[0], found[row])
        assert low(x.view(1, rows, inputs)).shape == (1, rows, outputs)
        assert low(x[:0]).shape == (0, outputs)


def test_what_is_all_zero_stays_zero() -> None:
    low = Int8Linear(nn.Linear(5, 3, bias=False))
    assert torch.equal(low(torch.zeros(2, 5)), torch.zeros(2, 3))
    nothing = nn.Linear(4, 2)
    nn.init.zeros_(nothing.weight)
    with torch.no_grad():
        assert torch.allclose(Int8Linear(nothing)(torch.randn(3, 4)), nothing.bias.expand(3, 2))


@pytest.mark.skipif(bool(unsupported_reason(CPU)), reason=unsupported_reason(CPU))
@pytest.mark.parametrize("decoder", ["bahdanau", "luong fed", "convolutional", "transformer", "cho", "rotary"])
def test_every_model_runs_in_int8(subwords: SubwordTokenizer, tmp_path: Path, decoder: str) -> None:
    bundle = bundle_of(subwords, "recurrent", decoder)
    save_bundle(tmp_path, bundle)
    low, exact = (load(tmp_path, engine="torch", precision=kind, device="cpu") for kind in ("int8", "float32"))
    assert low.why == "PyTorch, int8"
    near = 0
    for text in LINES[:4]:
        a, b = low.translate(text, beam=1, scores=True), exact.translate(text, beam=1, scores=True)
        near += a.tokens[:1] == b.tokens[:1]
        alone = low.translate(text, beam=3).tokens
        assert low.translate([*LINES[:4], text], beam=3)[-1].tokens == alone
    assert near >= 2, "a model with random weights is as sensitive as can be"
    assert not any(isinstance(each, Int8Linear) for each in exact.bundle.model.modules())


def test_a_lowered_model_leaves_the_other_as_it_was(subwords: SubwordTokenizer) -> None:
    bundle = bundle_of(subwords, "transformer", "transformer", tie="all")
    before = {name: value.clone() for name, value in bundle.model.named_parameters()}
    copied = quantize_model(bundle.model)
    assert any(isinstance(each, Int8Linear) for each in copied.modules())
    assert copied.output.weight is copied.decoder.embedding.weight, "what was shared is shared"
    for name, value in bundle.model.named_parameters():
        assert torch.equal(value, before[name])
