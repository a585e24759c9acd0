"""Captured attention: every layer, head and kind over one source and its target, and labels for the positions.

All views are drawn from this one object. Imports no PyTorch.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from regard.alignment.alignment_head import AlignmentHead
from regard.data.media.base import MediaKind
from regard.errors import RegardError

Kind = Literal["cross", "encoder", "decoder"]
KINDS: dict[Kind, tuple[str, str]] = {  # queries and keys, which are rows and columns
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "decoder_input"),
}
Weights = NDArray[np.float32]
SPACE = "▁"
MIN_WORDS = 3  # views show tokens if merging would leave fewer words
MAX_REPR_CHARACTERS = 60  # of the target text
# Scripts without blanks between words: each token is a word.
UNSPACED_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "BOPOMOFO")


@dataclass(frozen=True)
class Axis:
    """The positions along one side of a matrix.

    labels: their texts; a subword that begins a word begins with ▁. special: which are special tokens, such as the end
    of sequence. unit: what a position is (subwords, words, labels, sentences, cells, frames).
    """

    labels: tuple[str, ...]
    special: tuple[bool, ...]
    unit: str = "subwords"

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.special):
            raise ValueError(
                f"an axis has {len(self.labels)} labels, but {len(self.special)} flags for special tokens."
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def word_indices(self) -> tuple[int, ...]:
        """The index of the word that each position belongs to. A special token is a word of its own."""
        indices: list[int] = []
        for position, label in enumerate(self.labels):
            begins_word = (
                position == 0
                or self.unit != "subwords"
                or label.startswith(SPACE)
                or self.special[position]
                or self.special[position - 1]
                or (self.labels[position - 1] != SPACE and _is_unspaced(self.labels[position - 1][-1:], label[:1]))
            )
            indices.append((indices[-1] if indices else -1) + begins_word)
        return tuple(indices)

    def merge_words(self) -> "Axis":
        """The same with words as positions."""
        if self.unit != "subwords":
            return self
        indices = self.word_indices
        pieces: list[list[str]] = [[] for _ in range(indices[-1] + 1 if indices else 0)]
        for label, word in zip(self.labels, indices, strict=True):
            pieces[word].append(label)
        special = [self.special[indices.index(word)] for word in range(len(pieces))]
        return Axis(tuple(join_pieces(each) for each in pieces), tuple(special), "words")

    @property
    def merges_by_default(self) -> bool:
        """Whether views show words at first. They show tokens if fewer than `MIN_WORDS` words would be left of more
        tokens: the text of a character-level model may be a single word."""
        words = len({word for word, special in zip(self.word_indices, self.special, strict=True) if not special})
        return words >= MIN_WORDS or words == len(self) - sum(self.special)

    def select(self, positions: Sequence[int]) -> "Axis":
        """An axis with only these positions."""
        return replace(
            self,
            labels=tuple(self.labels[position] for position in positions),
            special=tuple(self.special[position] for position in positions),
        )


def _is_unspaced(before: str, after: str) -> bool:
    """Whether one of two adjacent characters is of a script without blanks, so that they belong to two words."""
    return any(unicodedata.name(each, "").startswith(UNSPACED_SCRIPTS) for each in (before, after))


def join_pieces(pieces: Sequence[str]) -> str:
    """The text of subwords. Byte tokens that are not valid UTF-8 stay as they are written."""
    raw = bytearray()
    for piece in pieces:
        if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            raw.append(int(piece[3:5], 16))
        else:
            raw += piece.encode("utf-8", "surrogatepass")
    try:
        return raw.decode("utf-8", "surrogatepass").replace(SPACE, " ").strip() or SPACE * bool(pieces)
    except UnicodeDecodeError:
        return "".join(pieces).replace(SPACE, " ").strip()


@dataclass(frozen=True)
class BeamHypothesis:
    """One output of beam search: its score, the log-probability of each token, and its attention to the source."""

    score: float
    token_scores: tuple[float, ...]
    target: Axis
    alignment_weights: Weights  # [target, source]


@dataclass(frozen=True, repr=False)
class SourceMedia:
    """A source that is not text, as it is drawn, in bytes: an image [C, S, S], a spectrogram [frames, bands], or series
    [steps, columns]."""

    kind: MediaKind
    values: NDArray[np.uint8]
    seconds: float = 0.0  # duration of a recording
    audio: bytes = b""  # the recording as a WAV file, if it is known

    def __post_init__(self) -> None:
        axes = {"image": 3, "spectrogram": 2, "series": 2}
        if self.kind not in axes or self.values.ndim != axes[self.kind] or self.values.dtype != np.uint8:
            raise ValueError(f"source_media: it is a {self.kind} {self.values.shape} of {self.values.dtype}.")

    @property
    def is_image(self) -> bool:
        return self.kind == "image"

    @property
    def drawn_kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that are drawn over it: those whose columns are its positions."""
        return ("cross", "encoder") if self.kind == "series" else ("cross",)

    def __repr__(self) -> str:
        return f"<{self.kind} {' × '.join(map(str, self.values.shape))}>"


@dataclass(frozen=True, repr=False)
class CapturedAttention:
    """Attention weights over a source and a target.

    decoder_input: the token before each target position. weights: for each kind, [heads, rows, columns]
    of each layer, rows and columns labeled by the axes `rows(kind)` and `columns(kind)`; rows of "cross" and "decoder"
    are decoding steps. hidden_weights: for each kind, [heads, rows] of each layer, the weight on positions that were
    removed. attribution: gradient times input of each target position's log-probability, [target, source] and
    [target, decoder_input]. alignment_weights: [target, source], the weights of the layer and head `alignment_head`.
    beam: the outputs of beam search if requested, the best first, in subwords with special tokens.
    source_media: the source, if it is not text.
    """

    source: Axis
    target: Axis
    decoder_input: Axis
    weights: Mapping[Kind, Sequence[Weights]]
    hidden_weights: Mapping[Kind, Sequence[Weights]] = field(default_factory=dict)
    attribution: Mapping[str, Weights] = field(default_factory=dict)
    alignment_weights: Weights | None = None
    alignment_head: AlignmentHead | None = None
    model: str = ""
    beam: tuple[BeamHypothesis, ...] = ()
    source_media: SourceMedia | None = None

    def __post_init__(self) -> None:
        for kind, layers in self.weights.items():
            shape = len(self.rows(kind)), len(self.columns(kind))
            for layer in layers:
                if layer.ndim != 3 or layer.shape[1:] != shape:
                    raise ValueError(f"weights of {kind} have the shape {layer.shape}, their axes {shape}.")
        for kind, sums in self.hidden_weights.items():
            if [each.shape for each in sums] != [layer.shape[:2] for layer in self.weights.get(kind, [])]:
                raise ValueError(f"hidden_weights of {kind} do not have the shape of its weights.")
        cross = self.weights.get("cross", [])
        head = self.alignment_head
        if (
            head is not None
            and cross
            and not (0 <= head.layer < len(cross) and (head.head is None or 0 <= head.head < len(cross[head.layer])))
        ):
            raise ValueError("alignment_head: it is of a layer or a head that is not there.")
        if self.alignment_weights is not None and self.alignment_weights.shape != (len(self.target), len(self.source)):
            raise ValueError(f"the alignment has the shape {self.alignment_weights.shape}, its axes have not.")
        for over, values in self.attribution.items():
            if values.shape != (len(self.target), len(self._axis(over))):
                raise ValueError(f"the attribution over {over} has the shape {values.shape}, its axes have not.")

    @property
    def is_unmodified(self) -> bool:
        """Whether no position was removed and no words were merged since it was captured."""
        return not self.hidden_weights and self.source.unit != "words"

    @property
    def summary(self) -> str:
        """The number of layers and heads of each kind."""
        sizes = [f"{kind} {len(layers)} × {len(layers[0])}" for kind, layers in self.weights.items() if layers]
        return f"layers × heads: {', '.join(sizes) or 'none, since this model does not attend'}"

    def __repr__(self) -> str:
        """One line: a notebook stores it beside the page, and all numbers of a recording would be megabytes."""
        words = self.target.merge_words()
        text = " ".join(label for label, special in zip(words.labels, words.special, strict=True) if not special)
        text = text if len(text) <= MAX_REPR_CHARACTERS else f"{text[: MAX_REPR_CHARACTERS - 1]}…"
        attribution = "; gradient times input" if self.attribution else ""
        return f"<CapturedAttention {text!r} over {len(self.source)} {self.source.unit}; {self.summary}{attribution}>"

    def _axis(self, name: str) -> Axis:
        axes = {"source": self.source, "target": self.target, "decoder_input": self.decoder_input}
        return axes[name]

    def rows(self, kind: Kind) -> Axis:
        """The queries."""
        return self._axis(KINDS[kind][0])

    def columns(self, kind: Kind) -> Axis:
        """The keys."""
        return self._axis(KINDS[kind][1])

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of attention that this model has."""
        return [kind for kind in KINDS if self.weights.get(kind)]

    def matrix(self, kind: Kind = "cross", layer: int | None = None, head: int | None = None) -> Weights:
        """[rows, columns] of one layer and head, from 0; the mean over all of them where none is given."""
        layers = self.weights.get(kind) or []
        if not layers:
            raise RegardError(
                f"this model has no attention of the kind {kind!r}; it has {', '.join(self.kinds) or 'none'}."
            )
        if layer is not None and not -len(layers) <= layer < len(layers):
            raise RegardError(f"layer: there are {len(layers)}, from 0; there is no {layer}.")
        selected = layers if layer is None else [layers[layer]]
        if head is not None and not all(-len(each) <= head < len(each) for each in selected):
            raise RegardError(f"head: there are {min(map(len, selected))}, from 0; there is no {head}.")
        means = [each.mean(0) if head is None else each[head] for each in selected]
        total: Weights = np.mean(means, 0, dtype=np.float32)
        return total

    def merge_words(self) -> Self:
        """The same with words as positions: weights on the tokens of a word are summed, rows of its tokens averaged."""

        def merge(matrix: Weights, rows: Axis, columns: Axis) -> Weights:
            row_words, column_words = _word_membership(rows), _word_membership(columns)
            merged = (row_words / row_words.sum(1, keepdims=True)) @ matrix @ column_words.T
            same: Weights = merged.astype(np.float32, copy=False)  # float32 already, but NumPy's types do not know it
            return same

        weights = {
            kind: [merge(layer, self.rows(kind), self.columns(kind)) for layer in layers]
            for kind, layers in self.weights.items()
        }
        hidden_weights = {}
        for kind, sums in self.hidden_weights.items():
            row_words = _word_membership(self.rows(kind))
            hidden_weights[kind] = [each @ (row_words / row_words.sum(1, keepdims=True)).T for each in sums]
        # Attributions of the tokens of a word are summed: log-probabilities add up.
        attribution: dict[str, Weights] = {}
        for over, values in self.attribution.items():
            row_words, column_words = _word_membership(self.target), _word_membership(self._axis(over))
            attribution[over] = (row_words @ values @ column_words.T).astype(np.float32)
        return replace(
            self,
            source=self.source.merge_words(),
            target=self.target.merge_words(),
            decoder_input=self.decoder_input.merge_words(),
            weights=weights,
            hidden_weights=hidden_weights,
            attribution=attribution,
            alignment_weights=None
            if self.alignment_weights is None
            else merge(self.alignment_weights, self.target, self.source),
        )

    def without_special_tokens(self) -> Self:
        """The same without special tokens, such as the end of sequence; their weight is in `hidden_weights`."""
        positions = {
            name: [position for position, special in enumerate(self._axis(name).special) if not special]
            for name in ("source", "target", "decoder_input")
        }
        weights: dict[Kind, list[Weights]] = {}
        hidden_weights: dict[Kind, list[Weights]] = {}
        for kind, layers in self.weights.items():
            rows, columns = (positions[name] for name in KINDS[kind])
            weights[kind] = [layer[:, rows][:, :, columns] for layer in layers]
            previous = self.hidden_weights.get(kind) or [np.zeros(layer.shape[:2], np.float32) for layer in layers]
            hidden_weights[kind] = [
                (hidden + layer.sum(-1))[:, rows] - remaining.sum(-1)
                for hidden, layer, remaining in zip(previous, layers, weights[kind], strict=True)
            ]
        attribution = {
            over: values[positions["target"]][:, positions[over]] for over, values in self.attribution.items()
        }
        return replace(
            self,
            source=self.source.select(positions["source"]),
            target=self.target.select(positions["target"]),
            decoder_input=self.decoder_input.select(positions["decoder_input"]),
            weights=weights,
            hidden_weights=hidden_weights,
            attribution=attribution,
            alignment_weights=None
            if self.alignment_weights is None
            else self.alignment_weights[positions["target"]][:, positions["source"]],
        )


def _word_membership(axis: Axis) -> Weights:
    """[words, positions], 1 where a position belongs to a word."""
    indices = np.array(axis.word_indices, dtype=np.int64)
    count = int(indices[-1]) + 1 if len(indices) else 0
    membership: Weights = (np.arange(count)[:, None] == indices[None]).astype(np.float32)
    return membership
