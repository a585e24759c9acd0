"""The gallery: the weights of every mechanism on one small sentence.

The word vectors are constructed: each French query is a mixture of the English keys that it translates, and has its
position, so that there is an alignment to find. Nothing is trained, so the weights are the same every time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention import (
    T5,
    Additive,
    ALiBi,
    Attention,
    Bilinear,
    Entmax,
    Hard,
    Learned,
    LocalMonotonic,
    LocalPredictive,
    Location,
    Raw,
    Rotary,
    Shaw,
    Sigmoid,
    Sinusoidal,
    Softmax,
    Sparsemax,
    Window,
    catalog,
    weights,
)
from regard.attention.extents import EXTENTS
from regard.attention.normalizers import NORMALIZERS
from regard.attention.scores import SCORES

SOURCE = ["she", "did", "not", "read", "the", "old", "book"]
TARGET = ["elle", "n'", "a", "pas", "lu", "le", "vieux", "livre"]
# For each French word the indices and weights of the English words that it translates.
TRANSLATIONS: list[dict[int, float]] = [
    {0: 1.0},
    {2: 0.7, 1: 0.3},
    {1: 0.7, 3: 0.35},
    {2: 0.9},
    {3: 1.0},
    {4: 1.0},
    {5: 1.0, 6: 0.2},
    {6: 1.0, 5: 0.2},
]
WIDTH = 16  # of the word vectors, without one more feature for the position
SHARPNESS = 3.4


@dataclass(frozen=True)
class GalleryPanel:
    """One matrix of weights and its description. The fields are keys of `--json`."""

    axis: str
    title: str
    formula: str
    look_for: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]  # [rows][columns]
    allowed: list[list[bool]]


def to_dict(panel: GalleryPanel) -> dict[str, object]:
    """For JSON."""
    from dataclasses import asdict

    return asdict(panel)


def gallery_panels() -> list[GalleryPanel]:
    """Every mechanism on the same sentence."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        built_in = [*_scores(), *_normalizers(), *_extents(), *_positions()]
        return [*built_in, *_plugins()]


def _queries_and_keys() -> tuple[Tensor, Tensor]:
    """French queries [1, 1, 8, 17] and English keys [1, 1, 7, 17]; the last number is the position, -1 to 1."""
    vectors = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(4)))[0][: len(SOURCE)]
    vectors = vectors + 0.25 * vectors.roll(1, 0) - 0.2 * vectors.roll(3, 0)  # some are similar, some opposed
    keys = vectors * SHARPNESS
    mixture = torch.zeros(len(TARGET), len(SOURCE))
    for row, words in enumerate(TRANSLATIONS):
        for column, amount in words.items():
            mixture[row, column] = amount
    queries = mixture @ vectors * SHARPNESS

    def with_position(x: Tensor, scale: float) -> Tensor:
        return torch.cat([x, scale * torch.linspace(-1, 1, len(x))[:, None]], -1)[None, None]

    return with_position(queries, 1.0), with_position(keys, 0.0)


def _panel(
    name: str, look_for: str, matrix: Tensor, rows: list[str], *, title: str = "", allowed: Tensor | None = None
) -> GalleryPanel:
    entry = catalog.find(name)
    visible = torch.ones_like(matrix[0, 0], dtype=torch.bool) if allowed is None else allowed
    rounded = [[round(float(w), 4) for w in row] for row in matrix[0, 0]]
    return GalleryPanel(
        entry.axis, title or entry.name, entry.formula, look_for, rows, SOURCE, rounded, visible.tolist()
    )


def _scores() -> Iterator[GalleryPanel]:
    query, key = _queries_and_keys()
    D = WIDTH + 1
    bilinear = Bilinear(D, D)
    bilinear.weight.copy_(torch.eye(D) * 0.3)
    # tanh(x + 1) - tanh(x - 1) peaks at x = 0: two hidden units for each dimension measure how similar q and k are.
    additive = Additive(D, D, 2 * WIDTH)
    features = torch.eye(D)[:WIDTH].repeat(2, 1) * 2
    additive.weight_query.copy_(features[None])
    additive.weight_key.copy_(-features[None])
    assert additive.bias is not None
    additive.bias.copy_(torch.cat([torch.ones(WIDTH), -torch.ones(WIDTH)])[None])
    additive.v.copy_(torch.cat([torch.ones(WIDTH), -torch.ones(WIDTH)])[None] * 0.6)
    yield _panel("dot", "long vectors win: sharp", weights(query, key, score="dot", scale=0.6), TARGET)
    yield _panel("scaled-dot", "the same, softened by √D", weights(query, key), TARGET)
    yield _panel("cosine", "never above 1, so it needs a scale", weights(query, key, score="cosine", scale=4.0), TARGET)
    yield _panel("bilinear", "W decides what agreement means", weights(query, key, score=bilinear), TARGET)
    yield _panel("additive", "a small network finds the same words", weights(query, key, score=additive), TARGET)
    yield _panel(
        "location", "only the first word is known: then it moves on", _location_weights(query, key, additive), TARGET
    )


def _location_weights(query: Tensor, key: Tensor, additive: Additive) -> Tensor:
    """Weights if all queries but the first are zero: the largest weight moves one position right with each query."""
    D, width = query.shape[-1], additive.width
    score = Location(D, D, width + 1, filters=1, size=3)
    attention = Attention(D, head_width=width + 1, score=score, project="")
    assert score.bias is not None
    assert additive.bias is not None
    for parameter, value in (
        (score.weight_query, additive.weight_query),
        (score.weight_key, additive.weight_key),
        (score.bias, additive.bias),
        (score.v, additive.v),
    ):
        parameter.zero_()
        parameter[:, :width] = value
    score.v[:, -1] = 6
    score.filters.copy_(torch.tensor([[1.0, 0.0, 0.0]]))  # the previous weight of the position to the left
    score.weight_filter.zero_()
    score.weight_filter[:, -1] = 2
    queries = query[:, 0].clone()
    queries[:, 1:] = 0
    found: Tensor | None = attention(queries, key[:, 0], need_weights=True).weights
    assert found is not None
    return found


def _normalizers() -> Iterator[GalleryPanel]:
    query, key = _queries_and_keys()
    for name, look_for, normalize, title in (
        ("softmax", "a little weight everywhere", Softmax(), "softmax (soft)"),
        ("hard", "one position a row, now and then a strange one", Hard("gumbel"), "hard, drawn"),
        ("hard", "one position a row, the best", Hard().eval(), "hard, arg-max"),
        ("entmax", "a few positions, fading to exact zeros", Entmax(1.5), "entmax, α = 1.5"),
        ("sparsemax", "fewer positions, exact zeros", Sparsemax(), ""),
        ("sigmoid", "rows need not sum to one", Sigmoid(-1.0), "sigmoid, b = −1"),
        ("none", "scores as they are, some negative", Raw(), ""),
    ):
        yield _panel(name, look_for, weights(query, key, normalize=normalize, scale=0.12), TARGET, title=title)


def _extents() -> Iterator[GalleryPanel]:
    query, key = _queries_and_keys()
    rows, columns = torch.arange(len(TARGET)), torch.arange(len(SOURCE))
    yield _panel("global", "every word may be attended to", weights(query, key), TARGET)
    monotonic = LocalMonotonic(1)
    yield _panel(
        "local-m", "a band along the diagonal", weights(query, key, extent=monotonic), TARGET, title="local-m, r = 1",
        allowed=monotonic.allowed(rows, columns),
    )  # fmt: skip
    predictive = LocalPredictive(WIDTH + 1, radius=2.0, width=1)
    predictive.weight.zero_()
    predictive.weight[0, 0, -1] = 0.8  # the position is its only input
    predictive.v.fill_(3.0)
    center = predictive.centers(query, torch.full((1, 1, 1), float(len(SOURCE))))[0, 0]
    yield _panel(
        "local-p", "a window at a predicted position, fading out", weights(query, key, extent=predictive), TARGET,
        title="local-p, r = 2", allowed=(columns - center[:, None]).abs() <= 2,
    )  # fmt: skip
    causal = columns[None] <= columns[:, None]
    yield _panel(
        "causal",
        "self-attention that never attends to later words",
        weights(key, key, extent="causal"),
        SOURCE,
        allowed=causal,
    )
    for title, look_for, window in (
        ("window, r = 1", "neighbors only", Window(1)),
        ("window, r = 2, causal", "the last words only", Window(2, causal=True)),
        ("window, r = 1, one global token", "the first word sees and is seen by all", Window(1, global_tokens=1)),
    ):
        yield _panel(
            "window",
            look_for,
            weights(key, key, extent=window, scale=0.1),
            SOURCE,
            title=title,
            allowed=window.allowed(columns, columns),
        )


def _positions() -> Iterator[GalleryPanel]:
    """Equal queries and keys, which differ only in their positions."""
    same = torch.ones(1, 1, len(SOURCE), WIDTH)
    sinusoidal = Sinusoidal(WIDTH)(torch.zeros(1, len(SOURCE), WIDTH))[None] * 1.6
    table = Learned(len(SOURCE), WIDTH)
    table.table.weight.copy_(torch.eye(WIDTH)[: len(SOURCE)] * 3 + torch.eye(WIDTH).roll(1, 1)[: len(SOURCE)] * 2)
    learned = table(torch.zeros(1, len(SOURCE), WIDTH))[None]
    t5 = T5(1)
    t5.table.zero_()
    t5.table[0, t5.bucket(torch.tensor(-1))] = 3.0
    shaw = Shaw(WIDTH, max_distance=2)
    shaw.keys.copy_(torch.tensor([0.0, 0.0, 0.2, 0.6, 0.2])[:, None].expand(-1, WIDTH))
    for name, look_for, matrix, title in (
        ("sinusoidal", "near positions have alike waves", weights(sinusoidal, sinusoidal), "sinusoidal, added"),
        ("learned", "a table, here one that links neighbors", weights(learned, learned), "learned, added"),
        (
            "rotary",
            "only the distance counts: constant diagonals",
            weights(same, same, position=Rotary(WIDTH), scale=0.6),
            "",
        ),
        ("alibi", "far is penalized, evenly", _alibi(same), ""),
        ("shaw", 'a vector a distance, here "one ahead"', weights(same, same, position=shaw), ""),
        ("t5", 'a number a distance, here "one back"', weights(same, same, position=t5), ""),
    ):
        yield _panel(name, look_for, matrix, SOURCE, title=title)


def _plugins() -> Iterator[GalleryPanel]:
    """Scores, normalizers and extents of plugins, with their initial parameters."""
    query, key = _queries_and_keys()
    sizes = {"query_width": WIDTH + 1, "key_width": WIDTH + 1, "head_width": WIDTH + 1, "heads": 1, "key_heads": 1}
    for axis in (SCORES, NORMALIZERS, EXTENTS):
        for name in [name for name in axis.ordered() if name not in axis.builtin_names()]:
            summary, allowed = catalog.find(name).summary, None
            if axis is SCORES:
                score = SCORES.get(name).create(**sizes)
                if score.sequential:
                    module = Attention(WIDTH + 1, score=score, project="")
                    matrix = module(query[:, 0], key[:, 0], need_weights=True).weights
                else:
                    matrix = weights(query, key, score=score)
            elif axis is NORMALIZERS:
                matrix = weights(query, key, normalize=name, scale=0.12)
            else:
                extent = EXTENTS.get(name).create(query_width=WIDTH + 1, heads=1, radius=2)
                matrix = weights(query, key, extent=extent)
                if extent.form != "predicted":
                    allowed = extent.allowed(torch.arange(len(TARGET)), torch.arange(len(SOURCE)))
            assert matrix is not None
            yield _panel(name, summary, matrix, TARGET, allowed=allowed)


def _alibi(same: Tensor) -> Tensor:
    """The head with the steepest of eight slopes, one half."""
    return weights(same.expand(1, 8, -1, -1), same.expand(1, 8, -1, -1), position=ALiBi(8), heads=[0])
