"""Model settings: validated when they are parsed, with one sentence per error."""

import subprocess
import sys
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings, RecurrentDecoderSettings, TransformerEncoderSettings
from tests.models.variants import ALL_MODELS, Pair, pair_id, random_model


@pytest.mark.parametrize("pair", ALL_MODELS, ids=pair_id)
def test_settings_round_trip_through_toml(pair: Pair) -> None:
    settings = random_model(pair).settings
    assert ModelSettings.parse(tomllib.loads(settings.as_toml())) == settings


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"encoder": {"kind": "transformer", "width": 10, "heads": 4}}, "encoder: 4 heads do not divide the width 10."),
        ({"encoder": {"kind": "magic"}}, "encoder: there is no encoder 'magic'; there are convolutional, "),
        ({"encoder": {"width": 8}}, "encoder: kind is missing; choose "),
        (
            {"encoder": {"kind": "recurrent", "layer": 2}},
            "encoder.layer: there is no such setting; did you mean layers?",
        ),
        (
            {"decoder": {"kind": "recurrent", "score": "dots"}},
            "decoder.score: there is no 'dots'; did you mean 'dot'? the choices are additive, bilinear, cosine, dot, ",
        ),
        (
            {"decoder": {"kind": "recurrent", "extent": "window"}},
            "there is no 'window'; the choices are global, local-m",
        ),
        ({"decoder": {"kind": "pooling", "score": "location"}}, "decoder.score: there is no 'location'; "),
        ({"encoder": {"kind": "transformer", "normalize": "none"}}, "encoder.normalize: there is no 'none'; "),
        ({"encoder": {"kind": "transformer", "normalize": "softmx"}}, "did you mean 'softmax'?"),
        ({"decoder": {"kind": "recurrent", "dropout": 1.0}}, "decoder.dropout: 1.0 is not possible: "),
        ({"decoder": {"kind": "recurrent", "layers": 0}}, "decoder.layers: 0 is not possible: "),
        ({"decoder": {"kind": "convolutional", "kernel": 0}}, "decoder.kernel: 0 is not possible: "),
        (
            {"decoder": {"kind": "recurrent", "input_feeding": True}},
            "decoder: input_feeding = True does nothing where attend is before; leave it out, or set attend to after.",
        ),
        ({"decoder": {"kind": "recurrent", "attend": "never", "score": "dot"}}, "set attend to before or after."),
        ({"decoder": {"kind": "recurrent", "radius": 3}}, "set extent to local-m or local-p."),
        ({"encoder": {"kind": "transformer", "max_positions": 7}}, "set position to learned."),
        ({"tie": "some"}, "tie: there is no 'some'; the choices are "),
        (
            {"encoder": {"kind": "recurrent", "width": 8}, "decoder": {"kind": "recurrent", "width": 9}, "tie": "all"},
            "tie is all, but the encoder's embeddings are 8 wide and the decoder's 9",
        ),
    ],
)
def test_invalid_settings_raise_one_sentence(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        ModelSettings.parse(data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not str(caught.value).startswith(":"), "the setting is named"


@given(width=st.integers(1, 99), embedding=st.none() | st.integers(1, 99))
def test_embedding_width_defaults_to_width(width: int, embedding: int | None) -> None:
    decoder = RecurrentDecoderSettings(width=width, embedding=embedding)
    assert decoder.embedding_width == (width if embedding is None else embedding)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        TransformerEncoderSettings().width = 3


def test_default_model_can_be_built() -> None:
    Seq2Seq(ModelSettings(), source_vocabulary_size=10, target_vocabulary_size=12)


def test_settings_and_presets_import_no_torch() -> None:
    code = "import sys, regard.tasks.presets, regard.models.settings; print('torch' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "False"
