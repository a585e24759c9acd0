"""What holds for every model of pictures and recordings, and for every model that tells classes apart."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ImageSource, ModelSettings
from regard.models.shapes import SHAPES
from regard.settings import merged
from regard.special_tokens import BEGIN, END
from tests.models.variants import kind_of, small_preset

V = 13
SMALL: dict[str, dict[str, Any]] = {
    "image": {"size": 16},
    "audio": {"mel_bins": 12, "channels": 4},
    "text": {},
}
MEDIA = [name for name in SHAPES if kind_of(name)[0] in ("image", "audio")]
CLASSES = [name for name in SHAPES if kind_of(name)[1]]
STEMS: dict[str, dict[str, Any]] = {
    "patches": {"kind": "patches", "patch_size": 4},
    "plain": {"kind": "residual", "widths": [4, 8], "channel_attention": "none"},
    "se": {"kind": "residual", "widths": [4, 8], "channel_attention": "se"},
    "cbam": {"kind": "residual", "widths": [4, 8], "channel_attention": "cbam"},
    "eca": {"kind": "residual", "widths": [4, 8], "channel_attention": "eca", "blocks": 2},
}


def make(name: str, **source: Any) -> Seq2Seq:
    given = small_preset(name)
    kind = kind_of(name)[0]
    if kind == "image" and "stem" not in source:
        source["stem"] = STEMS["patches" if given["source"]["stem"]["kind"] == "patches" else "se"]
    if kind != "text":
        given = merged({**given, "source": {}}, {"source": {**given["source"], **SMALL[kind], **source}})
    torch.manual_seed(0)
    model = Seq2Seq(ModelSettings.parse(given), source_vocabulary=V, target_vocabulary=V)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.25)
    return model.eval()


def sources(model: Seq2Seq, lengths: list[int], *, more: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Sources of this model, and their mask; `more` frames of padding, filled with noise."""
    dice = torch.Generator().manual_seed(seed)
    about = model.settings.source
    if isinstance(about, ImageSource):
        side = about.grid**2
        return torch.randn(len(lengths), 3, 16, 16, generator=dice), torch.ones(len(lengths), side, dtype=torch.bool)
    most = max(lengths)
    mask = torch.arange(most + more)[None] < torch.tensor(lengths)[:, None]
    if about.kind == "text":
        tokens = torch.randint(4, V, (len(lengths), most), generator=dice)
        return torch.nn.functional.pad(tokens, (0, more)) * mask, mask
    frames = torch.randn(len(lengths), most, 12, generator=dice)
    noise = torch.randn(len(lengths), more, 12, generator=dice)
    return torch.cat([frames, noise], 1), mask


def targets(model: Seq2Seq, count: int, length: int = 5) -> Tensor:
    if model.settings.decoder.predicts == "classes":
        return torch.full((count, 1), BEGIN)
    said = torch.randint(4, V, (count, length), generator=torch.Generator().manual_seed(1))
    said[:, 0] = BEGIN
    return said


LENGTHS = [23, 9, 30, 12]
every = pytest.mark.parametrize("name", [*MEDIA, *(name for name in CLASSES if name not in MEDIA)])


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-5)


@every
def test_step_by_step_equals_all_at_once(name: str) -> None:
    model = make(name)
    source, mask = sources(model, LENGTHS)
    said = targets(model, 4)
    with torch.inference_mode():
        whole = model.scores(model(source, mask, said), source)
        state = model.start(model.encode(source, mask))
        for at, tokens in enumerate(said.unbind(1)):
            logits, state = model.step(tokens, state)
            close(logits.softmax(-1), whole[:, at].softmax(-1))


@every
def test_company_and_padding_change_nothing(name: str) -> None:
    model = make(name)
    source, mask = sources(model, LENGTHS)
    wider, wider_mask = sources(model, LENGTHS, more=5)
    said = targets(model, 4)
    with torch.no_grad():
        together = model(source, mask, said).features
        close(model(wider, wider_mask, said).features, together)
        for row, length in enumerate(LENGTHS):
            one = slice(row, row + 1)
            alone = source[one] if source.ndim == 4 else source[one, :length]
            close(
                model(alone, mask[one] if source.ndim == 4 else mask[one, :length], said[one]).features, together[one]
            )


@every
def test_weights_lie_on_real_places_and_sum_to_one(name: str) -> None:
    model = make(name)
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


@every
def test_every_parameter_gets_a_gradient(name: str) -> None:
    model = make(name).train()
    source, mask = sources(model, LENGTHS)
    torch.manual_seed(0)
    decoded = model(source, mask, targets(model, 4))
    total = (decoded.features @ model.output.weight.T * torch.randn(V)).square().sum()
    if model.output.bias is not None:
        total = total + model.output.bias.sum()
    for draw in decoded.draws:
        total = total + draw.log_prob.sum()
    total.backward()
    for which, parameter in model.named_parameters():
        assert parameter.grad is not None, which
        assert parameter.grad.isfinite().all(), which
        assert parameter.grad.any() or which.endswith("key.bias"), which


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("name", ["show-attend-tell", "image-classifier"])
def test_every_image_stem_gives_the_positions_of_its_grid(name: str, stem: str) -> None:
    model = make(name, stem=STEMS[stem])
    source, mask = sources(model, [1, 1])
    memory = model.encode(source, mask)
    about = model.settings.source
    assert isinstance(about, ImageSource)
    assert memory.states.shape[1] == about.grid**2
    assert memory.mask.all()


@pytest.mark.parametrize(
    ("subsample", "pyramid", "positions"), [(1, False, 23), (2, False, 12), (4, True, 3), (8, False, 3)]
)
def test_frames_become_fewer_positions(subsample: int, pyramid: bool, positions: int) -> None:
    given = small_preset("listen-attend-spell")
    given["encoder"] = {**given["encoder"], "pyramid": pyramid, "layers": 2}
    given["source"] = {"kind": "audio", "mel_bins": 12, "channels": 4, "subsampling": subsample}
    model = Seq2Seq(ModelSettings.parse(given), source_vocabulary=0, target_vocabulary=V)
    source, mask = sources(model, [23, 5])
    memory = model.encode(source, mask)
    assert memory.states.shape[1] == positions
    assert memory.mask[0].all()


def test_only_classes_are_said_by_what_tells_classes_apart() -> None:
    model = make("classifier")
    source, mask = sources(model, [7, 4])
    with torch.no_grad():
        logits, _ = model.step(torch.tensor([BEGIN, BEGIN]), model.start(model.encode(source, mask)))
    assert (logits[:, : END + 1] == -torch.inf).all()
    assert logits[:, END + 1 :].isfinite().all()


@pytest.mark.parametrize("pool", ["attention", "mean", "max", "none"])
@pytest.mark.parametrize("state", [True, False])
def test_pooling_with_and_without_the_state(pool: str, state: bool) -> None:
    given = merged(small_preset("classifier"), {"decoder": {"pool": pool, "encoder_state": state}})
    if pool == "none" and not state:
        with pytest.raises(ValueError, match="nothing of the source would be seen"):
            ModelSettings.parse(given)
        return
    model = Seq2Seq(ModelSettings.parse(given), source_vocabulary=V, target_vocabulary=V).eval()
    source, mask = sources(model, [7, 4])
    wider, wider_mask = sources(model, [7, 4], more=3)
    said = targets(model, 2)
    close(model(source, mask, said).features, model(wider, wider_mask, said).features)


@pytest.mark.parametrize("attend", ["se", "cbam", "eca"])
def test_what_channels_and_places_let_pass_can_be_seen(attend: str) -> None:
    model = make("image-classifier", stem=STEMS[attend])
    source, _ = sources(model, [1, 1, 1])
    looks = model.encoder.embedding.channel_attention(source)
    assert len(looks) == len(model.encoder.embedding.blocks)
    for look in looks:
        assert look["channels"].shape[0] == 3
        assert ((look["channels"] > 0) & (look["channels"] < 1)).all()
        assert ("positions" in look) == (attend == "cbam")
    plain = make("image-classifier", stem=STEMS["plain"])
    assert plain.encoder.embedding.channel_attention(source) == []
