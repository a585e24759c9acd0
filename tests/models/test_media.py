"""Properties of all models of images and audio, and of all classifiers."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ImageSource, ModelSettings
from regard.models.shapes import SHAPES
from regard.settings import merge_settings
from regard.special_tokens import BOS, EOS
from tests.models.variants import is_classifier, small_preset, source_kind

VOCABULARY = 13
SMALL_SOURCES: dict[str, dict[str, Any]] = {
    "image": {"size": 16},
    "audio": {"mel_bins": 12, "channels": 4},
    "series": {"columns": 12, "history": 64},
    "text": {},
}
MEDIA = [name for name in SHAPES if source_kind(name) in ("image", "audio")]
CLASSIFIERS = [name for name in SHAPES if is_classifier(name)]
STEMS: dict[str, dict[str, Any]] = {
    "patches": {"kind": "patches", "patch_size": 4},
    "plain": {"kind": "residual", "widths": [4, 8], "channel_attention": "none"},
    "se": {"kind": "residual", "widths": [4, 8], "channel_attention": "se"},
    "cbam": {"kind": "residual", "widths": [4, 8], "channel_attention": "cbam"},
    "eca": {"kind": "residual", "widths": [4, 8], "channel_attention": "eca", "blocks": 2},
}


def random_model(name: str, **source: Any) -> Seq2Seq:
    settings_data = small_preset(name)
    kind = source_kind(name)
    if kind == "image" and "stem" not in source:
        source["stem"] = STEMS["patches" if settings_data["source"]["stem"]["kind"] == "patches" else "se"]
    if kind != "text":
        settings_data = merge_settings(
            {**settings_data, "source": {}}, {"source": {**settings_data["source"], **SMALL_SOURCES[kind], **source}}
        )
    torch.manual_seed(0)
    model = Seq2Seq(
        ModelSettings.parse(settings_data), source_vocabulary_size=VOCABULARY, target_vocabulary_size=VOCABULARY
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.25)
    return model.eval()


def sources(model: Seq2Seq, lengths: list[int], *, padding: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Sources of this model, and their mask; `padding` more frames, filled with noise."""
    generator = torch.Generator().manual_seed(seed)
    source_settings = model.settings.source
    if isinstance(source_settings, ImageSource):
        positions = source_settings.grid**2
        return torch.randn(len(lengths), 3, 16, 16, generator=generator), torch.ones(
            len(lengths), positions, dtype=torch.bool
        )
    max_length = max(lengths)
    mask = torch.arange(max_length + padding)[None] < torch.tensor(lengths)[:, None]
    if source_settings.kind == "text":
        tokens = torch.randint(4, VOCABULARY, (len(lengths), max_length), generator=generator)
        return torch.nn.functional.pad(tokens, (0, padding)) * mask, mask
    if source_settings.kind == "series":  # they end at the last step, and are padded at the beginning
        steps = torch.randn(len(lengths), max_length, 12, generator=generator)
        noise = torch.randn(len(lengths), padding, 12, generator=generator)
        mask = torch.arange(max_length + padding)[None] >= max_length + padding - torch.tensor(lengths)[:, None]
        return torch.cat([noise, steps], 1), mask
    frames = torch.randn(len(lengths), max_length, 12, generator=generator)
    noise = torch.randn(len(lengths), padding, 12, generator=generator)
    return torch.cat([frames, noise], 1), mask


def targets(model: Seq2Seq, count: int, length: int = 5) -> Tensor:
    if model.settings.decoder.predicts == "classes":
        return torch.full((count, 1), BOS)
    tokens = torch.randint(4, VOCABULARY, (count, length), generator=torch.Generator().manual_seed(1))
    tokens[:, 0] = BOS
    return tokens


LENGTHS = [23, 9, 30, 12]
every_model = pytest.mark.parametrize("name", [*MEDIA, *(name for name in CLASSIFIERS if name not in MEDIA)])


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-5)


@every_model
def test_step_equals_forward(name: str) -> None:
    model = random_model(name)
    source, mask = sources(model, LENGTHS)
    inputs = targets(model, 4)
    with torch.inference_mode():
        full = model.scores(model(source, mask, inputs), source)
        state = model.start(model.encode(source, mask))
        for step, tokens in enumerate(inputs.unbind(1)):
            logits, state = model.step(tokens, state)
            close(logits.softmax(-1), full[:, step].softmax(-1))


@every_model
def test_output_is_independent_of_batch_and_padding(name: str) -> None:
    model = random_model(name)
    source, mask = sources(model, LENGTHS)
    padded, padded_mask = sources(model, LENGTHS, padding=5)
    tokens = targets(model, 4)
    with torch.no_grad():
        batched = model(source, mask, tokens).features
        close(model(padded, padded_mask, tokens).features, batched)
        for row in range(len(LENGTHS)):
            single, valid = slice(row, row + 1), mask[row] if source.ndim < 4 else slice(None)
            alone = source[single] if source.ndim == 4 else source[single][:, valid]
            close(model(alone, mask[single][:, valid], tokens[single]).features, batched[single])


@every_model
def test_weights_are_zero_at_padding_and_sum_to_one(name: str) -> None:
    model = random_model(name)
    source, mask = sources(model, LENGTHS)
    with torch.no_grad():
        memory = model.encode(source, mask)
        decoded = model(source, mask, targets(model, 4), need_weights=True)
    assert decoded.source_lengths is not None
    assert decoded.source_lengths.tolist() == memory.mask.sum(1).tolist()
    assert decoded.cross_attention
    for weights in decoded.cross_attention:
        assert weights.shape[-1] == memory.mask.shape[1]
        assert not weights[~memory.mask[:, None, None].expand_as(weights)].any()
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))


@every_model
def test_every_parameter_gets_a_gradient(name: str) -> None:
    model = random_model(name).train()
    source, mask = sources(model, LENGTHS)
    torch.manual_seed(0)
    decoded = model(source, mask, targets(model, 4))
    total = (decoded.features @ model.output.weight.T * torch.randn(VOCABULARY)).square().sum()
    if model.output.bias is not None:
        total = total + model.output.bias.sum()
    for draw in decoded.draws:
        total = total + draw.log_prob.sum()
    total.backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.any() or parameter_name.endswith("key.bias"), parameter_name


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("name", ["show-attend-tell", "image-classifier"])
def test_image_stem_has_the_positions_of_its_grid(name: str, stem: str) -> None:
    model = random_model(name, stem=STEMS[stem])
    source, mask = sources(model, [1, 1])
    memory = model.encode(source, mask)
    source_settings = model.settings.source
    assert isinstance(source_settings, ImageSource)
    assert memory.states.shape[1] == source_settings.grid**2
    assert memory.mask.all()


@pytest.mark.parametrize(
    ("subsampling", "pyramid", "positions"), [(1, False, 23), (2, False, 12), (4, True, 3), (8, False, 3)]
)
def test_subsampling_reduces_the_number_of_positions(subsampling: int, pyramid: bool, positions: int) -> None:
    settings_data = small_preset("listen-attend-spell")
    settings_data["encoder"] = {**settings_data["encoder"], "pyramid": pyramid, "layers": 2}
    settings_data["source"] = {"kind": "audio", "mel_bins": 12, "channels": 4, "subsampling": subsampling}
    model = Seq2Seq(ModelSettings.parse(settings_data), source_vocabulary_size=0, target_vocabulary_size=VOCABULARY)
    source, mask = sources(model, [23, 5])
    memory = model.encode(source, mask)
    assert memory.states.shape[1] == positions
    assert memory.mask[0].all()


def test_classifier_predicts_no_special_tokens() -> None:
    model = random_model("classifier")
    source, mask = sources(model, [7, 4])
    with torch.no_grad():
        logits, _ = model.step(torch.tensor([BOS, BOS]), model.start(model.encode(source, mask)))
    assert (logits[:, : EOS + 1] == -torch.inf).all()
    assert logits[:, EOS + 1 :].isfinite().all()


@pytest.mark.parametrize("pool", ["attention", "mean", "max", "none"])
@pytest.mark.parametrize("encoder_state", [True, False])
def test_pooling_with_and_without_the_encoder_state(pool: str, encoder_state: bool) -> None:
    settings_data = merge_settings(
        small_preset("classifier"), {"decoder": {"pool": pool, "encoder_state": encoder_state}}
    )
    if pool == "none" and not encoder_state:
        with pytest.raises(ValueError, match="nothing of the source would be seen"):
            ModelSettings.parse(settings_data)
        return
    model = Seq2Seq(
        ModelSettings.parse(settings_data), source_vocabulary_size=VOCABULARY, target_vocabulary_size=VOCABULARY
    ).eval()
    source, mask = sources(model, [7, 4])
    padded, padded_mask = sources(model, [7, 4], padding=3)
    tokens = targets(model, 2)
    close(model(source, mask, tokens).features, model(padded, padded_mask, tokens).features)


@pytest.mark.parametrize("channel_attention", ["se", "cbam", "eca"])
def test_channel_attention_weights_are_captured(channel_attention: str) -> None:
    model = random_model("image-classifier", stem=STEMS[channel_attention])
    source, _ = sources(model, [1, 1, 1])
    weights_by_block = model.encoder.embedding.channel_attention(source)
    assert len(weights_by_block) == len(model.encoder.embedding.blocks)
    for weights in weights_by_block:
        assert weights["channels"].shape[0] == 3
        assert ((weights["channels"] > 0) & (weights["channels"] < 1)).all()
        assert ("positions" in weights) == (channel_attention == "cbam")
    without_attention = random_model("image-classifier", stem=STEMS["plain"])
    assert without_attention.encoder.embedding.channel_attention(source) == []
