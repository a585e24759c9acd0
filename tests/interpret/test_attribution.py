"""Gradient times input, held to finite differences and to a calculation by hand, of whatever is read."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from regard.data.batching import collate_sources
from regard.data.media import Medium
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.interpret import attribution as attributing
from regard.interpret import forced_pass as forced
from regard.interpret.attribution import attributed
from regard.loading import predictor_of
from regard.runs.bundle import Bundle
from regard.special_tokens import END
from tests.bundles import bundle_of
from tests.media import media_bundle, picture_bytes, recording_bytes

SMALL = 1e-4
CLASSES = ("cat", "dog", "emu")
# A preset, what it reads, how it is changed, and how many of the stem's places become one that is attended to.
MODELS: list[tuple[str, str, dict[str, Any], int]] = [
    ("show-attend-tell", "images", {}, 1),
    ("vit-caption", "images", {"source": {"stem": {"kind": "patches", "patch_size": 8}}}, 1),
    ("image-classifier", "images", {"labels": CLASSES}, 1),
    ("listen-attend-spell", "speech", {"encoder": {"layers": 3}}, 4),
    ("speech-transformer", "speech", {}, 1),
    ("speech-classifier", "speech", {"labels": CLASSES}, 1),
]
GIVEN = {"images": picture_bytes, "speech": recording_bytes}


def example(bundle: Bundle, kind: str) -> tuple[NDArray[Any], list[int]]:
    """A source, and something that might be said of it."""
    assert isinstance(bundle.source_side, Medium)
    return bundle.source_side.read(GIVEN[kind]()), [5, 6, 7, END] if bundle.target_side.has_eos else [5]


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures and frames in double precision."""

    def doubled(side: Any, sources: Any) -> tuple[torch.Tensor, torch.Tensor]:
        source, mask = collate_sources(side, sources)
        return source.double(), mask

    for part in (attributing, forced):
        monkeypatch.setattr(part, "collate_sources", doubled)


def slope(
    bundle: Bundle, source: Any, output: Sequence[int], scaled: Callable[[float], AbstractContextManager[None]]
) -> NDArray[np.float64]:
    """How each log-probability changes with the size of something."""
    changed = []
    for factor in (1 + SMALL, 1 - SMALL):
        with scaled(factor):
            changed.append(np.array(forced.forced(bundle, [source], [output])[0].token_scores))
    found: NDArray[np.float64] = (changed[0] - changed[1]) / (2 * SMALL)
    return found


def test_of_words(subwords: SubwordTokenizer) -> None:
    """With a word's embedding a little longer, the log-probability changes by that much of it."""
    bundle = bundle_of(subwords, "transformer", "transformer")
    bundle.model.double()
    source, output = [*bundle.source_side.encode(["the dog ran"])[0], END], [5, 6, 7, END]
    found = attributed(bundle, source, output)
    table = bundle.model.encoder.embedding.weight
    assert len(set(source)) == len(source), "each token has a row of its own to change"
    for place, token in enumerate(source):

        @contextmanager
        def longer(factor: float, token: int = token) -> Iterator[None]:
            kept = table.detach()[token].clone()
            table.detach()[token] *= factor
            yield
            table.detach()[token] = kept

        np.testing.assert_allclose(found["source"][:, place], slope(bundle, source, output, longer), atol=1e-4)


def test_of_sentences(subwords: SubwordTokenizer) -> None:
    """Where sentences are the places, each has what its words have together."""
    reads = {"kind": "text", "segments": 8, "sentence_segments": True, "unit": "sentence"}
    bundle = bundle_of(subwords, "no position", "transformer", source=reads, longest=40)
    bundle.model.double()
    parts = [[*part, END] for part in bundle.source_side.encode(["the dog ran", "a cat", "the mat"])]
    source, output = [token for part in parts for token in part], [5, 6, 7, END]
    found = attributed(bundle, source, output)["source"]
    assert found.shape == (len(output), len(parts))
    vectors, first = bundle.model.encoder.embedding.attribution_point, 0
    for place, part in enumerate(parts):

        @contextmanager
        def longer(factor: float, first: int = first, last: int = first + len(part)) -> Iterator[None]:
            def hook(module: Any, given: Any, output: torch.Tensor) -> torch.Tensor:
                return torch.cat([output[:, :first], factor * output[:, first:last], output[:, last:]], 1)

            handle = vectors.register_forward_hook(hook)
            yield
            handle.remove()

        first += len(part)
        np.testing.assert_allclose(found[:, place], slope(bundle, source, output, longer), rtol=1e-3, atol=1e-6)
    seen = predictor_of(bundle).attend("the dog ran . a cat .\tthe mat", "Hund", attribution=True)
    assert seen.attribution["source"].shape == (len(seen.target), len(seen.source))
    assert seen.source.unit == "sentences"


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(("name", "kind", "change", "together"), MODELS, ids=[model[0] for model in MODELS])
def test_of_cells_and_of_frames(name: str, kind: str, change: dict[str, Any], together: int) -> None:
    """The same of what a cell or a moment is, before it is said where it lies."""
    bundle = media_bundle(kind, preset=name, **change)
    bundle.model.double()
    source, output = example(bundle, kind)
    found = attributed(bundle, source, output)["source"]
    assert np.abs(found).max() > 1e-3, "there is something to get wrong"
    places = range(found.shape[1])
    for place in [*places[:2], *places[-2:]]:

        @contextmanager
        def longer(factor: float, first: int = place * together) -> Iterator[None]:
            def hook(module: Any, given: Any, output: torch.Tensor) -> torch.Tensor:
                output = output.clone()
                output[:, first : first + together] *= factor
                return output

            handle = bundle.model.encoder.embedding.norm.register_forward_hook(hook)
            yield
            handle.remove()

        np.testing.assert_allclose(found[:, place], slope(bundle, source, output, longer), rtol=1e-3, atol=1e-6)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(("name", "kind", "change", "together"), MODELS, ids=[model[0] for model in MODELS])
def test_all_places_together(name: str, kind: str, change: dict[str, Any], together: int) -> None:
    """No place is left out: with all of them longer, the change is the sum of all."""
    bundle = media_bundle(kind, preset=name, **change)
    bundle.model.double()
    source, output = example(bundle, kind)
    norm = bundle.model.encoder.embedding.norm

    @contextmanager
    def longer(factor: float) -> Iterator[None]:
        kept = [each.detach().clone() for each in (norm.weight, norm.bias)]
        for each, was in zip((norm.weight, norm.bias), kept, strict=True):
            each.detach().copy_(factor * was)
        yield
        for each, was in zip((norm.weight, norm.bias), kept, strict=True):
            each.detach().copy_(was)

    sums = attributed(bundle, source, output)["source"].sum(1)
    np.testing.assert_allclose(sums, slope(bundle, source, output, longer), rtol=1e-3, atol=1e-6)


@torch.no_grad()
def test_by_hand() -> None:
    """A mean of cells, a layer, and a softmax over classes: what that depends on can be written down. It does not
    attend, and is seen all the same."""
    bundle = media_bundle("images", labels=CLASSES, decoder={"pool": "mean", "encoder_state": False})
    _, (said,) = example(bundle, "images")
    model, held = bundle.model, []
    handle = model.encoder.embedding.norm.register_forward_hook(lambda *passed: held.append(passed[2][0]))
    seen = predictor_of(bundle).attend(picture_bytes(), "dog", attribution=True)
    handle.remove()
    cells = held[0]  # [T, E]
    mean = (cells + model.encoder.embedding.place).mean(0)
    inner = model.decoder.inner
    assert inner.in_features == len(mean), "the mean is all that it sees"
    above = inner.weight @ mean + inner.bias
    logits = model.output.weight @ above.relu() + model.output.bias
    shares = logits[4:].softmax(0)
    # d log p / d logits = one-hot − p; through the layer where it is above zero; to each cell its share of the mean.
    upward = model.output.weight[said] - shares @ model.output.weight[4:]
    wanted = cells @ (inner.weight.T @ (upward * (above > 0))) / len(cells)
    assert said == 5
    np.testing.assert_allclose(seen.attribution["source"][0], wanted.numpy(), atol=1e-5)
    assert seen.kinds == []
    assert len(seen.source) == len(cells) == 64


@pytest.mark.parametrize(("name", "kind", "change", "together"), MODELS, ids=[model[0] for model in MODELS])
def test_it_changes_nothing_else(name: str, kind: str, change: dict[str, Any], together: int) -> None:
    reads: Any = predictor_of(media_bundle(kind, preset=name, **change))
    given = GIVEN[kind]()
    before = reads.attend(given)
    seen = reads.attend(given, attribution=True)
    after = reads.attend(given)
    assert not before.attribution
    for other in (before, after):
        assert (seen.source, seen.target, seen.kinds) == (other.source, other.target, other.kinds)
        for which in seen.kinds:
            for one, same in zip(seen.weights[which], other.weights[which], strict=True):
                assert np.array_equal(one, same)
    assert seen.attribution["source"].shape == (len(seen.target), len(seen.source))
    assert seen.shown is not None


def test_the_same_in_one_pass_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = media_bundle("images")
    source, output = example(bundle, "images")
    whole = attributed(bundle, source, output)
    monkeypatch.setattr(attributing, "NUMBERS", 2 * len(source))
    parts = attributed(bundle, source, output)
    for over, values in whole.items():
        np.testing.assert_allclose(parts[over], values, atol=1e-5)
