"""What a model predicts, as it is stored in a run: labels, or the scale of series; a target that is text has a
tokenizer (`data/tokenizers/`)."""

from pathlib import Path
from typing import Protocol, Self

from regard.registry import Registry


class Target(Protocol):
    """What a model needs to encode and decode what it predicts. target_file: its file in a run."""

    target_file: str

    @property
    def model(self) -> bytes:
        """The content of its file."""
        ...


class StoredTarget(Target, Protocol):
    """A target that is read from its own file."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """From its file. Raises RegardError if it is missing or damaged."""
        ...


# A run has the file of one of them, or a tokenizer.
TARGETS: Registry[type[StoredTarget]] = Registry("target", "regard.data.targets", helpers=("base",))
