"""Classes as a vocabulary: each label is one token. The same calls as subwords have, so that nothing else differs."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.data.settings import SubwordSettings
from regard.errors import RegardError
from regard.special_tokens import UNKNOWN

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
MOST = 10_000  # classes; more are texts, not classes
FEW = 20  # examples, of which each may have a class of its own


class Labels:
    """The labels of a training set."""

    ends = False  # a label is all there is: no end follows
    target_file = "target.labels"

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self._tokens = {label: at for at, label in enumerate(self.labels, len(SPECIAL))}
        if len(self._tokens) != len(self.labels) or not self.labels:
            raise RegardError("labels must be different, and at least one.")

    @staticmethod
    def of(lines: Iterable[str]) -> "Labels":
        """All that these have, in the order of the alphabet. Raises RegardError if they are no classes."""
        counts = Counter(lines)
        if len(counts) > MOST:
            raise RegardError(
                f"there are {len(counts):,} different labels, such as {next(iter(counts))[:60]!r}; these are texts, "
                f"not classes: leave out --task classification, or name their column with data.target_column."
            )
        if counts.total() >= FEW and len(counts) > counts.total() / 2:
            raise RegardError(
                f"of {counts.total():,} labels {len(counts):,} are different, such as {next(iter(counts))[:60]!r}; "
                f"these are texts, not classes: name the column of the labels with --set data.target_column=NAME, or a "
                f"number."
            )
        if len(counts) < 2:
            raise RegardError(f"every example has the label {next(iter(counts), '')[:60]!r}; there is nothing to tell.")
        return Labels(sorted(counts))

    @property
    def model(self) -> bytes:
        """As a file's content."""
        return json.dumps(self.labels, ensure_ascii=False, indent=0).encode()

    @staticmethod
    def load(path: Path) -> "Labels":
        """From a file. Raises RegardError if it is none."""
        try:
            content = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise RegardError(f"{path}: there is no such file.") from None
        except (OSError, ValueError) as error:
            raise RegardError(f"{path}: it cannot be read ({error}).") from None
        kind: type[Labels] = Labels
        if isinstance(content, dict) and set(content) == {"tags"}:
            kind, content = Tags, content["tags"]
        elif isinstance(content, dict) and set(content) == {"ends", "unanswered"}:
            return Ends(unanswered=content["unanswered"] is True)
        if not isinstance(content, list) or not all(isinstance(label, str) for label in content):
            raise RegardError(f"{path}: expected a list of labels.")
        try:
            return kind(content)
        except ValueError as error:
            raise RegardError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Into a file."""
        path.write_bytes(self.model)

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.labels)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Each label's token; unknown ones are told as such."""
        return [[self._tokens.get(text, UNKNOWN)] for text in texts]

    def check(self, label: str) -> None:
        """Raises RegardError, naming those that there are, for a label that is none."""
        if label not in self._tokens:
            some = ", ".join(self.labels[:20]) + (", …" if len(self.labels) > 20 else "")
            raise RegardError(f"there is no class {label[:60]!r}; there are {some}.")

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """The same: a label can be cut in one way only."""
        return self.encode(texts)

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The label of each sequence."""
        return [" ".join(self.labels[t - len(SPECIAL)] for t in each if t >= len(SPECIAL)) for each in tokens]

    def token(self, piece: str) -> int | None:
        """Of this label, if there is one."""
        return self._tokens.get(piece)

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """What each token looks like."""
        return [SPECIAL[t] if t < len(SPECIAL) else "▁" + self.labels[t - len(SPECIAL)] for t in map(int, tokens)]


class Tags(Labels):
    """Labels of words: a text of them, with blanks between, is a token for each."""

    @staticmethod
    def of(lines: Iterable[str]) -> "Tags":
        """All that these have. Raises RegardError if there are too many to be tags."""
        counts = Counter(tag for line in lines for tag in line.split())
        if len(counts) > MOST:
            some = next(iter(counts))[:60]
            raise RegardError(f"there are {len(counts):,} different tags, such as {some!r}; these are texts, not tags.")
        if len(counts) < 2:
            raise RegardError(f"every word has the tag {next(iter(counts), '')[:60]!r}; there is nothing to tell.")
        return Tags(sorted(counts))

    @property
    def model(self) -> bytes:
        """As a file's content."""
        return json.dumps({"tags": self.labels}, ensure_ascii=False, indent=0).encode()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token of each tag; unknown ones are told as such."""
        return [[self._tokens.get(tag, UNKNOWN) for tag in text.split()] for text in texts]

    def check(self, label: str) -> None:
        """Raises RegardError, naming those that there are, for tags that are none."""
        for tag in label.split():
            super().check(tag)


class Ends(Labels):
    """What a place may be of a span: its first, or its last. unanswered: a span may be none, which is told at the mark
    that begins a source (Devlin et al. 2018, arXiv:1810.04805, section 4.3)."""

    def __init__(self, *, unanswered: bool = False) -> None:
        super().__init__(("first", "last"))
        self.unanswered = unanswered

    @property
    def model(self) -> bytes:
        """As a file's content."""
        return json.dumps({"ends": self.labels, "unanswered": self.unanswered}).encode()
