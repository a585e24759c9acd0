"""The base class and the registry of engines: models that are ready to search. `selection.py` chooses one."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from regard.alignment.shortlist import Shortlist
from regard.data.vocabulary import SourceInput
from regard.inference.results import Hypothesis
from regard.inference.search_config import Constraints, SearchConfig
from regard.registry import Registry
from regard.runs.folder import RunFolder


def available_cores() -> int:
    """How many CPU cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # which not every system has
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


class Engine(ABC):
    """A model that is ready to search.

    name: as in `--engine`. title: its name in messages. priority: of the engines that can run a model, the highest is
    chosen.
    default_precision: where none is given. batch_tokens: the best batch size in source tokens, padding and beams
    counted.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    priority: ClassVar[int]
    default_precision: ClassVar[str] = "int8"
    batch_tokens: int

    @classmethod
    @abstractmethod
    def unsupported_model(cls, opened: RunFolder, device: str) -> str:
        """Why it cannot run a model on a device here, as a clause; empty if it can."""

    @classmethod
    @abstractmethod
    def open(cls, opened: RunFolder, *, device: str, precision: str, threads: int, shortlist: Shortlist | None) -> Self:
        """A run, ready to search. threads: 0 for one on each core. Raises RegardError."""

    @abstractmethod
    def unsupported_reason(self, config: SearchConfig) -> str:
        """Why it cannot search like this, as a clause; empty if it can."""

    @abstractmethod
    def search(
        self, sources: Sequence[SourceInput], config: SearchConfig, constraints: Sequence[Constraints] | None = None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source (tokens with the end of sequence, or an array), best first.

        constraints: what each output must satisfy; only PyTorch's engine is given any.
        """


HELPERS = ("selection", "native_weights", "torch_int8", "shortlisted_model")
ENGINES: Registry[type[Engine]] = Registry("engine", "regard.inference.engines", deferred=True, helpers=HELPERS)


def reason_not_on_cpu(device: str) -> str:
    """Why a model is to run on another device than the CPU, as a clause; empty if it is not."""
    if device not in ("auto", "cpu"):
        return f"it is to run on {device}"
    try:
        import ctranslate2
    except ImportError:
        return ""
    return (
        "there is a GPU, on which PyTorch is faster" if device == "auto" and ctranslate2.get_cuda_device_count() else ""
    )
