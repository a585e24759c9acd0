"""Gradient times input against finite differences and a calculation by hand, for every kind of source."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from regard.data.batch import collate_sources
from regard.data.media.base import MediaProcessor
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.interpret import attribution, forced_pass
from regard.interpret.attribution import compute_attribution
from regard.loading import predictor_from_bundle
from regard.runs.bundle import Bundle
from regard.special_tokens import EOS
from tests.bundles import random_bundle
from tests.media import audio_bytes, image_bytes, media_bundle

STEP = 1e-4
CLASSES = ("cat", "dog", "emu")
# A preset, its kind of source, changed settings, and how many positions of the stem the encoder joins into one.
MODELS: list[tuple[str, str, dict[str, Any], int]] = [
    ("show-attend-tell", "images", {}, 1),
    ("vit-caption", "images", {"source": {"stem": {"kind": "patches", "patch_size": 8}}}, 1),
    ("image-classifier", "images", {"labels": CLASSES}, 1),
    ("listen-attend-spell", "speech", {"encoder": {"layers": 3}}, 4),
    ("speech-transformer", "speech", {}, 1),
    ("speech-classifier", "speech", {"labels": CLASSES}, 1),
]
SOURCES = {"images": image_bytes, "speech": audio_bytes}


def example(bundle: Bundle, kind: str) -> tuple[NDArray[Any], list[int]]:
    """A source and an output."""
    assert isinstance(bundle.source_processor, MediaProcessor)
    return bundle.source_processor.read(SOURCES[kind]()), [5, 6, 7, EOS] if bundle.target_vocabulary.has_eos else [5]


@pytest.fixture
def double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images and frames are collated in double precision."""

    def collate_as_double(side: Any, sources: Any) -> tuple[torch.Tensor, torch.Tensor]:
        source, mask = collate_sources(side, sources)
        return source.double(), mask

    for module in (attribution, forced_pass):
        monkeypatch.setattr(module, "collate_sources", collate_as_double)


def finite_difference(
    bundle: Bundle, source: Any, output: Sequence[int], scaled: Callable[[float], AbstractContextManager[None]]
) -> NDArray[np.float64]:
    """The derivative of each log-probability with respect to a factor. scaled: a context in which it is applied."""
    scores = []
    for factor in (1 + STEP, 1 - STEP):
        with scaled(factor):
            scores.append(np.array(forced_pass.run_forced_pass(bundle, [source], [output])[0].token_scores))
    found: NDArray[np.float64] = (scores[0] - scores[1]) / (2 * STEP)
    return found


def test_attribution_of_tokens_is_the_derivative(subwords: SubwordTokenizer) -> None:
    """The derivative of the log-probability with respect to the scale of one token's embedding."""
    bundle = random_bundle(subwords, "transformer", "transformer")
    bundle.model.double()
    source, output = [*bundle.source_processor.encode(["the dog ran"])[0], EOS], [5, 6, 7, EOS]
    found = compute_attribution(bundle, source, output)
    table = bundle.model.encoder.embedding.weight
    assert len(set(source)) == len(source), "each token has a row of its own to change"
    for position, token in enumerate(source):

        @contextmanager
        def scaled(factor: float, token: int = token) -> Iterator[None]:
            original = table.detach()[token].clone()
            table.detach()[token] *= factor
            yield
            table.detach()[token] = original

        np.testing.assert_allclose(
            found["source"][:, position], finite_difference(bundle, source, output, scaled), atol=1e-4
        )


def test_attribution_of_a_sentence_is_the_sum_over_its_tokens(subwords: SubwordTokenizer) -> None:
    """Where positions are sentences."""
    source_settings = {"kind": "text", "segments": 8, "sentence_segments": True, "unit": "sentence"}
    bundle = random_bundle(subwords, "no position", "transformer", source=source_settings, max_tokens=40)
    bundle.model.double()
    segments = [[*segment, EOS] for segment in bundle.source_processor.encode(["the dog ran", "a cat", "the mat"])]
    source, output = [token for segment in segments for token in segment], [5, 6, 7, EOS]
    found = compute_attribution(bundle, source, output)["source"]
    assert found.shape == (len(output), len(segments))
    vectors, first = bundle.model.encoder.embedding.attribution_point, 0
    for position, segment in enumerate(segments):

        @contextmanager
        def scaled(factor: float, first: int = first, last: int = first + len(segment)) -> Iterator[None]:
            def hook(module: Any, arguments: Any, output: torch.Tensor) -> torch.Tensor:
                return torch.cat([output[:, :first], factor * output[:, first:last], output[:, last:]], 1)

            handle = vectors.register_forward_hook(hook)
            yield
            handle.remove()

        first += len(segment)
        np.testing.assert_allclose(
            found[:, position], finite_difference(bundle, source, output, scaled), rtol=1e-3, atol=1e-6
        )
    captured = predictor_from_bundle(bundle).attend("the dog ran . a cat .\tthe mat", "Hund", attribution=True)
    assert captured.attribution["source"].shape == (len(captured.target), len(captured.source))
    assert captured.source.unit == "sentences"


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize(("name", "kind", "change", "joined"), MODELS, ids=[model[0] for model in MODELS])
def test_attribution_of_cells_and_frames_is_the_derivative(
    name: str, kind: str, change: dict[str, Any], joined: int
) -> None:
    """The derivative with respect to the scale of a cell or frame, before its position embedding is added."""
    bundle = media_bundle(kind, preset=name, **change)
    bundle.model.double()
    source, output = example(bundle, kind)
    found = compute_attribution(bundle, source, output)["source"]
    assert np.abs(found).max() > 1e-3, "the comparison is not of zeros"
    positions = range(found.shape[1])
    for position in [*positions[:2], *positions[-2:]]:

        @contextmanager
        def scaled(factor: float, first: int = position * joined) -> Iterator[None]:
            def hook(module: Any, arguments: Any, output: torch.Tensor) -> torch.Tensor:
                output = output.clone()
                output[:, first : first + joined] *= factor
                return output

            handle = bundle.model.encoder.embedding.norm.register_forward_hook(hook)
            yield
            handle.remove()

        np.testing.assert_allclose(
            found[:, position], finite_difference(bundle, source, output, scaled), rtol=1e-3, atol=1e-6
        )


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize(("name", "kind", "change", "joined"), MODELS, ids=[model[0] for model in MODELS])
def test_attributions_of_all_positions_sum_to_the_derivative(
    name: str, kind: str, change: dict[str, Any], joined: int
) -> None:
    """No position is left out: the derivative with respect to the scale of all is the sum."""
    bundle = media_bundle(kind, preset=name, **change)
    bundle.model.double()
    source, output = example(bundle, kind)
    norm = bundle.model.encoder.embedding.norm

    @contextmanager
    def scaled(factor: float) -> Iterator[None]:
        original = [each.detach().clone() for each in (norm.weight, norm.bias)]
        for each, value in zip((norm.weight, norm.bias), original, strict=True):
            each.detach().copy_(factor * value)
        yield
        for each, value in zip((norm.weight, norm.bias), original, strict=True):
            each.detach().copy_(value)

    sums = compute_attribution(bundle, source, output)["source"].sum(1)
    np.testing.assert_allclose(sums, finite_difference(bundle, source, output, scaled), rtol=1e-3, atol=1e-6)


@torch.no_grad()
def test_attribution_by_hand() -> None:
    """A mean of cells, a layer, and a softmax over classes, whose gradient can be written down. This model has no
    attention, and attribution all the same."""
    bundle = media_bundle("images", labels=CLASSES, decoder={"pool": "mean", "encoder_state": False})
    _, (label,) = example(bundle, "images")
    model, norm_outputs = bundle.model, []
    handle = model.encoder.embedding.norm.register_forward_hook(lambda *arguments: norm_outputs.append(arguments[2][0]))
    captured = predictor_from_bundle(bundle).attend(image_bytes(), "dog", attribution=True)
    handle.remove()
    cells = norm_outputs[0]  # [T, E]
    mean = (cells + model.encoder.embedding.position).mean(0)
    inner = model.decoder.inner
    assert inner.in_features == len(mean), "the mean is its only input"
    hidden = inner.weight @ mean + inner.bias
    logits = model.output.weight @ hidden.relu() + model.output.bias
    probabilities = logits[4:].softmax(0)
    # d log p / d logits = one-hot − p; through the layer where it is above zero; divided by the number of cells.
    gradient = model.output.weight[label] - probabilities @ model.output.weight[4:]
    expected = cells @ (inner.weight.T @ (gradient * (hidden > 0))) / len(cells)
    assert label == 5
    np.testing.assert_allclose(captured.attribution["source"][0], expected.numpy(), atol=1e-5)
    assert captured.kinds == []
    assert len(captured.source) == len(cells) == 64


@pytest.mark.parametrize(("name", "kind", "change", "joined"), MODELS, ids=[model[0] for model in MODELS])
def test_attribution_does_not_change_the_captured_attention(
    name: str, kind: str, change: dict[str, Any], joined: int
) -> None:
    predictor: Any = predictor_from_bundle(media_bundle(kind, preset=name, **change))
    source = SOURCES[kind]()
    before = predictor.attend(source)
    captured = predictor.attend(source, attribution=True)
    after = predictor.attend(source)
    assert not before.attribution
    for other in (before, after):
        assert (captured.source, captured.target, captured.kinds) == (other.source, other.target, other.kinds)
        for captured_kind in captured.kinds:
            for layer, expected in zip(captured.weights[captured_kind], other.weights[captured_kind], strict=True):
                assert np.array_equal(layer, expected)
    assert captured.attribution["source"].shape == (len(captured.target), len(captured.source))
    assert captured.source_media is not None


def test_the_number_of_passes_does_not_change_attribution(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = media_bundle("images")
    source, output = example(bundle, "images")
    one_pass = compute_attribution(bundle, source, output)
    monkeypatch.setattr(attribution, "MAX_SOURCE_VALUES", 2 * len(source))
    several_passes = compute_attribution(bundle, source, output)
    for over, values in one_pass.items():
        np.testing.assert_allclose(several_passes[over], values, atol=1e-5)
