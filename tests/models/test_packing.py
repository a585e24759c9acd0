"""Texts that share a row see nothing of each other; a decoder alone is a language model."""

from typing import Any

import pytest
import torch

from regard.models.outputs import Packing
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings

POSITIONS = ("none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "t5")


def language_model(**more: Any) -> Seq2Seq:
    part = {"kind": "transformer", "width": 32, "heads": 2, "feedforward": 20, "layers": 2, "dropout": 0.0, **more}
    settings = ModelSettings.parse(
        {"source": {"kind": "none"}, "encoder": {"kind": "none"}, "decoder": part, "tie": "target"}
    )
    torch.manual_seed(0)
    return Seq2Seq(settings, source_vocabulary=0, target_vocabulary=17).double().eval()


def nothing(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(count, 0, dtype=torch.long), torch.ones(count, 0, dtype=torch.bool)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("window", [None, 2])
def test_a_row_of_several_texts_gives_what_each_gives_alone(position: str, window: int | None) -> None:
    model = language_model(position=position, window=window)
    texts = [torch.randint(4, 17, (length,)) for length in (3, 1, 5, 4)]
    row = torch.cat([*texts, torch.zeros(2, dtype=torch.long)])[None]
    passage = torch.tensor([[n for n, text in enumerate(texts, 1) for _ in text] + [0, 0]])
    place = torch.cat([torch.arange(len(text)) for text in texts] + [torch.zeros(2, dtype=torch.long)])[None]
    memory = model.encode(*nothing(1))
    whole = model.decoder(row, memory, packing=Packing(passage, place)).features[0]
    start = 0
    for text in texts:
        alone = model(*nothing(1), text[None]).features[0]
        torch.testing.assert_close(whole[start : start + len(text)], alone)
        start += len(text)


@pytest.mark.parametrize("position", POSITIONS)
def test_steps_equal_the_whole(position: str) -> None:
    model = language_model(position=position)
    targets = torch.randint(4, 17, (3, 7))
    whole = model.logits(model(*nothing(3), targets).features)
    state = model.start(model.encode(*nothing(3)))
    for at in range(7):
        logits, state = model.step(targets[:, at], state)
        torch.testing.assert_close(logits, whole[:, at])
        if at == 3:
            state = state.select(torch.tensor([0, 1, 2]))


def test_it_has_no_attention_to_anything_read() -> None:
    names = [name for name, _ in language_model().named_parameters()]
    assert not any("memory" in name or name.startswith("encoder") for name in names)


def test_what_reads_nothing_is_a_transformer_decoder_alone() -> None:
    for parts in (
        {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "transformer"}},
        {"encoder": {"kind": "none"}, "decoder": {"kind": "recurrent"}},
    ):
        with pytest.raises(ValueError, match="for a transformer decoder alone"):
            ModelSettings.parse({"source": {"kind": "none"}, **parts})
