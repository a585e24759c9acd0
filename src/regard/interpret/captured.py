"""Captured attention: every layer, head and kind over one source and its target, and what the places are.

One object, from which alignments, pictures, the terminal and the page are drawn. Imports no PyTorch.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from regard.alignment.alignment_head import AlignmentHead

Kind = Literal["cross", "encoder", "decoder"]
KINDS: dict[Kind, tuple[str, str]] = {  # what looks, and at what
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "before"),
}
Weights = NDArray[np.float32]
SPACE = "▁"
MIN_WORDS = 3  # that views show in place of tokens
MOST_SAID = 60  # characters of what was written, in a line about it
# Scripts that put no blanks between words: each piece stands for itself.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "BOPOMOFO")


@dataclass(frozen=True)
class Axis:
    """The places along one side of a matrix.

    unit: what a place is (subwords, words). labels: its text; a subword that begins a word begins with ▁. special:
    marks that are no text, such as the end.
    """

    labels: tuple[str, ...]
    special: tuple[bool, ...]
    unit: str = "subwords"

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.special):
            raise ValueError(
                f"an axis has {len(self.labels)} labels, but {len(self.special)} marks of what is special."
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def words(self) -> tuple[int, ...]:
        """The number of the word that each place is part of. A special place is a word of its own."""
        numbers: list[int] = []
        for at, label in enumerate(self.labels):
            begins = (
                at == 0
                or self.unit != "subwords"
                or label.startswith(SPACE)
                or self.special[at]
                or self.special[at - 1]
                or (self.labels[at - 1] != SPACE and _stands_alone(self.labels[at - 1][-1:], label[:1]))
            )
            numbers.append((numbers[-1] if numbers else -1) + begins)
        return tuple(numbers)

    def merged(self) -> "Axis":
        """Its words as places."""
        if self.unit != "subwords":
            return self
        words = self.words
        parts: list[list[str]] = [[] for _ in range(words[-1] + 1 if words else 0)]
        for label, word in zip(self.labels, words, strict=True):
            parts[word].append(label)
        special = [self.special[words.index(word)] for word in range(len(parts))]
        return Axis(tuple(text_of_pieces(pieces) for pieces in parts), tuple(special), "words")

    @property
    def merges_by_default(self) -> bool:
        """Whether views show words at first. They show tokens if fewer than `MIN_WORDS` words would be left of more
        tokens: the text of a character-level model may be a single word."""
        words = len({word for word, special in zip(self.words, self.special, strict=True) if not special})
        return words >= MIN_WORDS or words == len(self) - sum(self.special)

    def only(self, places: Sequence[int]) -> "Axis":
        """Some of its places."""
        return replace(
            self, labels=tuple(self.labels[at] for at in places), special=tuple(self.special[at] for at in places)
        )


def _stands_alone(before: str, after: str) -> bool:
    """Whether two characters that follow each other without a blank are of two words."""
    return any(unicodedata.name(each, "").startswith(UNSPACED) for each in (before, after))


def text_of_pieces(pieces: Sequence[str]) -> str:
    """What subwords say together; bytes that make no character, as they are written."""
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
class Branch:
    """One output of a beam: its score, the log-probability of each of its places, and what was attended to for it."""

    score: float
    token_scores: tuple[float, ...]
    target: Axis
    aligned: Weights  # [target, source]


@dataclass(frozen=True, repr=False)
class Shown:
    """A source that is no text, as it is drawn: a picture [C, S, S] or a spectrogram [frames, bands], in bytes."""

    kind: Literal["picture", "spectrogram"]
    values: NDArray[np.uint8]
    seconds: float = 0.0  # that a recording lasts
    sound: bytes = b""  # the recording itself as a WAV file, if it is known

    def __post_init__(self) -> None:
        axes = {"picture": 3, "spectrogram": 2}
        if self.kind not in axes or self.values.ndim != axes[self.kind] or self.values.dtype != np.uint8:
            raise ValueError(f"what is shown is a {self.kind} {self.values.shape} of {self.values.dtype}.")

    def __repr__(self) -> str:
        return f"<{self.kind} {' × '.join(map(str, self.values.shape))}>"


@dataclass(frozen=True, repr=False)
class Captured:
    """What a model attended to.

    weights: of each kind, a [heads, rows, columns] of each layer; which places rows and columns are, say `rows` and
    `columns`. Rows of "cross" and "decoder" are the steps that write each target place; `before` is what stood before
    each of them. hidden: of each kind and layer, [heads, rows], the weight on places that were taken away. attribution:
    gradient times input of each target place's log-probability, over "source" and over "before". aligned: [target,
    source], what shows best where each target place comes from, as `choice` says. beam: the outputs of a search, the
    best first, if asked for; in subwords, with their marks. shown: the source, if it is no text.
    """

    source: Axis
    target: Axis
    before: Axis
    weights: Mapping[Kind, Sequence[Weights]]
    hidden: Mapping[Kind, Sequence[Weights]] = field(default_factory=dict)
    attribution: Mapping[str, Weights] = field(default_factory=dict)
    aligned: Weights | None = None
    choice: AlignmentHead | None = None
    model: str = ""
    beam: tuple[Branch, ...] = ()
    shown: Shown | None = None

    def __post_init__(self) -> None:
        for kind, layers in self.weights.items():
            shape = len(self.rows(kind)), len(self.columns(kind))
            for layer in layers:
                if layer.ndim != 3 or layer.shape[1:] != shape:
                    raise ValueError(f"weights of {kind} are {layer.shape}, their places are {shape}.")
        for kind, masses in self.hidden.items():
            if [mass.shape for mass in masses] != [layer.shape[:2] for layer in self.weights.get(kind, [])]:
                raise ValueError(f"what is hidden of {kind} has not the shape of its weights.")
        cross = self.weights.get("cross", [])
        where = self.choice
        if (
            where is not None
            and cross
            and not (
                0 <= where.layer < len(cross) and (where.head is None or 0 <= where.head < len(cross[where.layer]))
            )
        ):
            raise ValueError("the choice is of a layer or a head that is not there.")
        if self.aligned is not None and self.aligned.shape != (len(self.target), len(self.source)):
            raise ValueError(f"the alignment is {self.aligned.shape}, its places are not.")
        for over, values in self.attribution.items():
            if values.shape != (len(self.target), len(self._axis(over))):
                raise ValueError(f"the attribution over {over} is {values.shape}, which are not its places.")

    @property
    def whole(self) -> bool:
        """Whether it is as it was captured: no place is hidden, no word merged."""
        return not self.hidden and self.source.unit != "words"

    @property
    def about(self) -> str:
        """What there is of it, in words."""
        sizes = [f"{kind} {len(layers)} × {len(layers[0])}" for kind, layers in self.weights.items() if layers]
        return f"layers × heads: {', '.join(sizes) or 'none, since this model does not attend'}"

    def __repr__(self) -> str:
        """In a line: a notebook keeps it beside the page, and all numbers of a recording would be megabytes."""
        words = self.target.merged()
        said = " ".join(label for label, mark in zip(words.labels, words.special, strict=True) if not mark)
        said = said if len(said) <= MOST_SAID else f"{said[: MOST_SAID - 1]}…"
        more = "; gradient times input" if self.attribution else ""
        return f"<Captured {said!r} over {len(self.source)} {self.source.unit}; {self.about}{more}>"

    def _axis(self, name: str) -> Axis:
        found = {"source": self.source, "target": self.target, "before": self.before}
        return found[name]

    def rows(self, kind: Kind) -> Axis:
        """What looks."""
        return self._axis(KINDS[kind][0])

    def columns(self, kind: Kind) -> Axis:
        """What is looked at."""
        return self._axis(KINDS[kind][1])

    @property
    def kinds(self) -> list[Kind]:
        """Those that this model has."""
        return [kind for kind in KINDS if self.weights.get(kind)]

    def matrix(self, kind: Kind = "cross", layer: int | None = None, head: int | None = None) -> Weights:
        """[rows, columns] of one layer and head; the mean over all where none is named."""
        layers = self.weights.get(kind) or []
        if not layers:
            raise ValueError(
                f"this model has no attention of the kind {kind!r}; it has {', '.join(self.kinds) or 'none'}."
            )
        if layer is not None and not -len(layers) <= layer < len(layers):
            raise ValueError(f"layer: there are {len(layers)}, from 0; there is no {layer}.")
        chosen = layers if layer is None else [layers[layer]]
        if head is not None and not all(-len(each) <= head < len(each) for each in chosen):
            raise ValueError(f"head: there are {min(map(len, chosen))}, from 0; there is no {head}.")
        means = [each.mean(0) if head is None else each[head] for each in chosen]
        total: Weights = np.mean(means, 0, dtype=np.float32)
        return total

    def merged(self) -> Self:
        """By words: looks at a word's pieces are summed, looks from them averaged."""

        def together(matrix: Weights, rows: Axis, columns: Axis) -> Weights:
            down, across = _sums(rows), _sums(columns)
            found = (down / down.sum(1, keepdims=True)) @ matrix @ across.T
            same: Weights = found.astype(np.float32, copy=False)  # as it is already, but NumPy's types do not know it
            return same

        weights = {
            kind: [together(layer, self.rows(kind), self.columns(kind)) for layer in layers]
            for kind, layers in self.weights.items()
        }
        hidden = {}
        for kind, masses in self.hidden.items():
            down = _sums(self.rows(kind))
            hidden[kind] = [mass @ (down / down.sum(1, keepdims=True)).T for mass in masses]
        # A word is explained by what explains all of its pieces: log-probabilities add up.
        attribution: dict[str, Weights] = {}
        for over, values in self.attribution.items():
            attribution[over] = (_sums(self.target) @ values @ _sums(self._axis(over)).T).astype(np.float32)
        return replace(
            self,
            source=self.source.merged(),
            target=self.target.merged(),
            before=self.before.merged(),
            weights=weights,
            hidden=hidden,
            attribution=attribution,
            aligned=None if self.aligned is None else together(self.aligned, self.target, self.source),
        )

    def without_special(self) -> Self:
        """Without marks such as the end; the weight that lay on them is in `hidden`."""
        kept = {
            name: [at for at, special in enumerate(self._axis(name).special) if not special]
            for name in ("source", "target", "before")
        }
        weights: dict[Kind, list[Weights]] = {}
        hidden: dict[Kind, list[Weights]] = {}
        for kind, layers in self.weights.items():
            rows, columns = (kept[name] for name in KINDS[kind])
            weights[kind] = [layer[:, rows][:, :, columns] for layer in layers]
            already = self.hidden.get(kind) or [np.zeros(layer.shape[:2], np.float32) for layer in layers]
            hidden[kind] = [
                (mass + layer.sum(-1))[:, rows] - less.sum(-1)
                for mass, layer, less in zip(already, layers, weights[kind], strict=True)
            ]
        attribution = {over: values[kept["target"]][:, kept[over]] for over, values in self.attribution.items()}
        return replace(
            self,
            source=self.source.only(kept["source"]),
            target=self.target.only(kept["target"]),
            before=self.before.only(kept["before"]),
            weights=weights,
            hidden=hidden,
            attribution=attribution,
            aligned=None if self.aligned is None else self.aligned[kept["target"]][:, kept["source"]],
        )


def _sums(axis: Axis) -> Weights:
    """[words, places], 1 where a place is part of a word."""
    words = np.array(axis.words, dtype=np.int64)
    count = int(words[-1]) + 1 if len(words) else 0
    found: Weights = (np.arange(count)[:, None] == words[None]).astype(np.float32)
    return found
