"""Metrics, by name: of outputs against references, or of a model's loss.

A metric is a class in one file of this folder, or in a plugin, registered by one line:

    @METRICS.register("exact")
    class ExactMatch(MeanMetric):
        summary = "outputs that equal a reference, in percent"
        task = "classification"
        higher_is_better = True

A metric reduces a corpus to one row of statistics a sentence, and computes the score from rows. So the score of any
resampled set of sentences (see `regard.evaluation.bootstrap`) takes moments. Importing this imports neither PyTorch nor
sacrebleu.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.registry import Registry
from regard.renames import new_value

Inputs = str  # "text", "labels", "tags", "forecasts", "loss", or a kind that a plugin's task provides
References = Sequence[Sequence[str]]  # references[k][i] is the k-th reference of output i
Statistics = NDArray[np.float64]  # (sentences, numbers of a sentence)


@dataclass(frozen=True)
class Score:
    """A number, and how it was computed."""

    name: str
    value: float
    signature: str
    higher_is_better: bool


class Metric(ABC):
    """What every metric declares; none of it has a default."""

    name: ClassVar[str]  # set by METRICS.register
    summary: ClassVar[str]  # one line, for help and documentation
    task: ClassVar[str]  # the task that it is usually reported for
    inputs: ClassVar[Inputs]  # what it is computed from: outputs and references of one kind, or a model's loss
    higher_is_better: ClassVar[bool]

    @classmethod
    def sort_key(cls, value: float) -> float:
        """The value, negated if lower is better, so that better values have higher keys."""
        return value if cls.higher_is_better else -value


class LossMetric(Metric):
    """A function of the mean loss of a token, known in training without generating anything."""

    inputs: ClassVar[Inputs] = "loss"

    @classmethod
    @abstractmethod
    def from_loss(cls, loss: float) -> float:
        """The metric's value, by the mean loss (natural logarithm) of a target token."""


class OutputMetric(Metric):
    """A metric of outputs against references.

    tokenize: sacrebleu's tokenizer, for metrics that use one. effective_order: leave out orders of n-grams that no
    output has, for few or short sentences; for metrics of n-grams.
    """

    inputs: ClassVar[Inputs] = "text"
    references: ClassVar[Literal["one", "many"]] = "many"

    def __init__(self, *, tokenize: str | None = None, effective_order: bool = False) -> None:
        self.tokenize, self.effective_order = tokenize, effective_order

    @abstractmethod
    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        """One row for each sentence, from which `from_statistics` computes the score of any of them together."""

    @abstractmethod
    def from_statistics(self, rows: Statistics) -> float:
        """The score of the sentences of these rows."""

    @abstractmethod
    def signature(self, references: References) -> str:
        """How the score is computed, to be printed beside it."""

    def score(self, outputs: Sequence[str], references: References) -> Score:
        """The score of all sentences. Raises RegardError if there is not one reference for each output."""
        references = checked_references(outputs, references)
        if self.references == "one":
            references = references[:1]
        value = self.from_statistics(self.statistics(outputs, references))
        return Score(self.name, value, self.signature(references), self.higher_is_better)


class MeanMetric(OutputMetric):
    """The mean over sentences, in percent, each scored by the reference that is best for it."""

    @abstractmethod
    def sentence_score(self, output: str, reference: str) -> float:
        """Between 0 and 1."""

    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        best = max if self.higher_is_better else min
        by_sentence = zip(outputs, zip(*references, strict=True), strict=True)
        rows = [[best(self.sentence_score(output, each) for each in own)] for output, own in by_sentence]
        return np.array(rows, dtype=np.float64)

    def from_statistics(self, rows: Statistics) -> float:
        return float(100 * rows[:, 0].mean())

    def signature(self, references: References) -> str:
        return "mean over sentences"


class _MetricRegistry(Registry[type[Metric]]):
    """Metrics by name; refuses one that does not declare what every metric must."""

    def add(self, name: str, item: type[Metric], *, aliases: tuple[str, ...] = ()) -> None:
        for attribute in ("higher_is_better", "summary", "task", "inputs"):
            if not hasattr(item, attribute):
                raise RegardError(f"{self._origin_of(item).file}: metric {name!r} must declare {attribute}.")
        super().add(name, item, aliases=aliases)
        item.name = name

    def match(self, name: str) -> str | None:
        """The registered name that equals this one, ignoring case, or that it is an alias of."""
        names = self.names()  # which imports the modules that define aliases
        by_lowercase = {each.lower(): self._canonical(each) for each in (*self._aliases, *names)}
        return by_lowercase.get(name.lower())


METRICS = _MetricRegistry("metric", "regard.evaluation.metrics")


def checked_references(outputs: Sequence[str], references: References) -> References:
    """The references, if there is one of each set for every output. Raises RegardError otherwise."""
    if not outputs:
        raise RegardError("there is nothing to score.")
    for number, each in enumerate(references, 1):
        if len(each) != len(outputs):
            raise RegardError(f"reference {number} has {len(each):,} sentences and the output {len(outputs):,}.")
    return references


def output_metric(name: str, *, tokenize: str | None = None, effective_order: bool = False) -> OutputMetric:
    """The metric of this name, ready to score outputs. Raises RegardError if there is none."""
    metric = METRICS.get(name)
    if not issubclass(metric, OutputMetric):
        raise RegardError(f"{metric.name} is a metric of {metric.inputs}, which outputs and references do not have.")
    return metric(tokenize=tokenize, effective_order=effective_order)


def output_metrics() -> list[type[OutputMetric]]:
    """All metrics of outputs against references, by name."""
    return [metric for _, metric in sorted(METRICS.items()) if issubclass(metric, OutputMetric)]


def parse_metric_names(text: str, *, where: str = "--metric") -> list[str]:
    """The registered names of a comma-separated list in any case, without duplicates. Raises RegardError for others."""
    found = []
    for name in [each.strip() for each in text.split(",") if each.strip()] or [""]:
        if (match := METRICS.match(name)) is None:
            if (renamed := new_value("training.metric", name)) is not None:
                raise RegardError(f"{where}: {name} is now called {renamed}.")
            raise METRICS.unknown(name, where=where)
        found.append(output_metric(match).name)
    return list(dict.fromkeys(found))


def corpus_score(
    name: str,
    outputs: Sequence[str],
    references: References,
    tokenize: str | None = None,
    *,
    effective_order: bool = False,
) -> Score:
    """The score of this name over all sentences; see OutputMetric."""
    return output_metric(name, tokenize=tokenize, effective_order=effective_order).score(outputs, references)
