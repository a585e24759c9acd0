"""Packed texts do not attend to each other; a decoder alone is a language model."""

from typing import Any

import pytest
import torch

from regard.models.outputs import Packing
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings

POSITIONS = ("none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "t5")


def language_model(**overrides: Any) -> Seq2Seq:
    decoder = {
        "kind": "transformer",
        "width": 32,
        "heads": 2,
        "feedforward": 20,
        "layers": 2,
        "dropout": 0.0,
        **overrides,
    }
    settings = ModelSettings.parse(
        {"source": {"kind": "none"}, "encoder": {"kind": "none"}, "decoder": decoder, "tie": "target"}
    )
    torch.manual_seed(0)
    return Seq2Seq(settings, source_vocabulary_size=0, target_vocabulary_size=17).double().eval()


def empty_source(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(count, 0, dtype=torch.long), torch.ones(count, 0, dtype=torch.bool)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("window", [None, 2])
def test_packed_texts_equal_separate_texts(position: str, window: int | None) -> None:
    model = language_model(position=position, window=window)
    texts = [torch.randint(4, 17, (length,)) for length in (3, 1, 5, 4)]
    row = torch.cat([*texts, torch.zeros(2, dtype=torch.long)])[None]
    document = torch.tensor([[n for n, text in enumerate(texts, 1) for _ in text] + [0, 0]])
    positions = torch.cat([torch.arange(len(text)) for text in texts] + [torch.zeros(2, dtype=torch.long)])[None]
    memory = model.encode(*empty_source(1))
    packed = model.decoder(row, memory, packing=Packing(document, positions)).features[0]
    start = 0
    for text in texts:
        separate = model(*empty_source(1), text[None]).features[0]
        torch.testing.assert_close(packed[start : start + len(text)], separate)
        start += len(text)


@pytest.mark.parametrize("position", POSITIONS)
def test_step_equals_forward(position: str) -> None:
    model = language_model(position=position)
    targets = torch.randint(4, 17, (3, 7))
    packed = model.logits(model(*empty_source(3), targets).features)
    state = model.start(model.encode(*empty_source(3)))
    for step in range(7):
        logits, state = model.step(targets[:, step], state)
        torch.testing.assert_close(logits, packed[:, step])
        if step == 3:
            state = state.select(torch.tensor([0, 1, 2]))


def test_language_model_has_no_cross_attention() -> None:
    names = [name for name, _ in language_model().named_parameters()]
    assert not any("memory" in name or name.startswith("encoder") for name in names)


def test_models_without_source_must_be_transformer_decoders() -> None:
    for components in (
        {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "transformer"}},
        {"encoder": {"kind": "none"}, "decoder": {"kind": "recurrent"}},
    ):
        with pytest.raises(ValueError, match="for a transformer decoder alone"):
            ModelSettings.parse({"source": {"kind": "none"}, **components})
