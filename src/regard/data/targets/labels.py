"""Labels as a target vocabulary, each of them one token; the interface is that of a subword vocabulary."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from regard.data.settings import SubwordSettings
from regard.data.targets.base import TARGETS
from regard.errors import RegardError
from regard.special_tokens import UNK

SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
MAX_LABELS = 10_000  # targets with more are texts, not classes
MIN_EXAMPLES = 20  # with fewer, each example may have a label of its own


@TARGETS.register("labels")
class Labels:
    """The classes of a training set."""

    plural_name: ClassVar[str] = "labels"
    has_eos = False
    target_file = "target.labels"

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self._tokens = {label: at for at, label in enumerate(self.labels, len(SPECIAL_PIECES))}
        if len(self._tokens) != len(self.labels) or not self.labels:
            raise RegardError("labels must be different, and at least one.")

    @staticmethod
    def from_targets(targets: Iterable[str]) -> "Labels":
        """All labels of these targets, in alphabetical order. Raises RegardError if the targets are no classes."""
        counts = Counter(targets)
        if len(counts) > MAX_LABELS:
            raise RegardError(
                f"there are {len(counts):,} different labels, such as {next(iter(counts))[:60]!r}; these are texts, "
                f"not classes: leave out --task classification, or name their column with data.target_column."
            )
        if counts.total() >= MIN_EXAMPLES and len(counts) > counts.total() / 2:
            raise RegardError(
                f"of {counts.total():,} labels {len(counts):,} are different, such as {next(iter(counts))[:60]!r}; "
                f"these are texts, not classes: name the column of the labels with --set data.target_column=NAME, or a "
                f"number."
            )
        if len(counts) < 2:
            raise RegardError(f"every example has the label {next(iter(counts), '')[:60]!r}; nothing can be learned.")
        return Labels(sorted(counts))

    @property
    def model(self) -> bytes:
        """The content of the vocabulary's file."""
        return json.dumps(self.labels, ensure_ascii=False, indent=0).encode()

    @classmethod
    def load(cls, path: Path) -> "Labels":
        """Labels of any kind from a file. Raises RegardError if it is missing or damaged."""
        try:
            content = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise RegardError(f"{path}: there is no such file.") from None
        except (OSError, ValueError) as error:
            raise RegardError(f"{path}: it cannot be read ({error}).") from None
        kind: type[Labels] = Labels
        if isinstance(content, dict) and set(content) == {"tags"}:
            kind, content = TagLabels, content["tags"]
        elif isinstance(content, dict) and set(content) in ({"spans", "unanswered"}, {"ends", "unanswered"}):
            return SpanLabels(unanswered=content["unanswered"] is True)
        if not isinstance(content, list) or not all(isinstance(label, str) for label in content):
            raise RegardError(f"{path}: expected a list of labels.")
        try:
            return kind(content)
        except ValueError as error:
            raise RegardError(f"{path}: {error}") from None

    def __len__(self) -> int:
        return len(SPECIAL_PIECES) + len(self.labels)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Each label's token; the unknown token for labels that are not in the vocabulary."""
        return [[self._tokens.get(text, UNK)] for text in texts]

    def check(self, label: str) -> None:
        """Raise RegardError, with the known labels, for an unknown label."""
        if label not in self._tokens:
            some = ", ".join(self.labels[:20]) + (", …" if len(self.labels) > 20 else "")
            raise RegardError(f"there is no class {label[:60]!r}; there are {some}.")

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """The same as `encode`: a label has only one segmentation."""
        return self.encode(texts)

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The label of each sequence."""
        return [
            " ".join(self.labels[t - len(SPECIAL_PIECES)] for t in each if t >= len(SPECIAL_PIECES)) for each in tokens
        ]

    def token(self, piece: str) -> int | None:
        """The token of a label, if there is one."""
        return self._tokens.get(piece)

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """The label of each token, with ▁ before it."""
        return [
            SPECIAL_PIECES[t] if t < len(SPECIAL_PIECES) else "▁" + self.labels[t - len(SPECIAL_PIECES)]
            for t in map(int, tokens)
        ]


class TagLabels(Labels):
    """Labels of words: a target is a sequence of tags with spaces between, each of them one token."""

    plural_name = "tags"

    @staticmethod
    def from_targets(targets: Iterable[str]) -> "TagLabels":
        """All tags of these targets. Raises RegardError if there are too many to be tags."""
        counts = Counter(tag for target in targets for tag in target.split())
        if len(counts) > MAX_LABELS:
            some = next(iter(counts))[:60]
            raise RegardError(f"there are {len(counts):,} different tags, such as {some!r}; these are texts, not tags.")
        if len(counts) < 2:
            raise RegardError(f"every word has the tag {next(iter(counts), '')[:60]!r}; nothing can be learned.")
        return TagLabels(sorted(counts))

    @property
    def model(self) -> bytes:
        """The content of the vocabulary's file."""
        return json.dumps({"tags": self.labels}, ensure_ascii=False, indent=0).encode()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Each tag's token; the unknown token for tags that are not in the vocabulary."""
        return [[self._tokens.get(tag, UNK) for tag in text.split()] for text in texts]

    def check(self, label: str) -> None:
        """Raise RegardError, with the known tags, for unknown tags."""
        for tag in label.split():
            super().check(tag)


class SpanLabels(Labels):
    """Labels of positions in span question answering: the first and the last of a span.

    unanswered: there may be no span, which is predicted at the BOS token of the source (Devlin et al. 2018,
    arXiv:1810.04805, section 4.3).
    """

    plural_name = "answer spans"

    def __init__(self, *, unanswered: bool = False) -> None:
        super().__init__(("first", "last"))
        self.unanswered = unanswered

    @property
    def model(self) -> bytes:
        """The content of the vocabulary's file."""
        return json.dumps({"spans": self.labels, "unanswered": self.unanswered}).encode()
