"""A model, or a file of outputs, evaluated on a test set: scores, scores by source length, speed, a comparison."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.evaluation.bleu_tokenizers import detect_tokenizer
from regard.evaluation.bootstrap import Comparison, compare_outputs
from regard.evaluation.by_length import Bucket, score_by_length, source_lengths
from regard.evaluation.evaluation_set import EvaluationSet
from regard.evaluation.metrics import METRICS, Score, corpus_score
from regard.inference.options import Options
from regard.inference.predictor import Predictor
from regard.loading import load
from regard.runs.folder import RunDescription
from regard.tasks.base import get_task, task_from_description

MAX_CONFUSIONS = 5  # listed in a report

# Given a description and the number of steps: a context whose value is called with the number of newly finished steps.
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def default_metrics(description: RunDescription | None) -> list[str]:
    """The metrics of a run's task; without a run, those of translation."""
    return list((task_from_description(description) if description is not None else get_task("translation")).metrics)


@dataclass(frozen=True)
class GeneratedOutputs:
    """What a model generated for every source, and how fast."""

    texts: list[str]
    seconds: float
    tokens: int  # generated
    split_sources: int  # longer than the model's limit, so that they were split
    engine: str
    beam: int | None = None  # None for a task without search
    unreadable: int = 0  # sources that could not be read; their output is empty
    first_error: str = ""  # of these


@dataclass(frozen=True)
class Generator:
    """Loads runs and generates outputs: the options for both."""

    options: Options
    engine: str = "auto"
    device: str = "auto"
    precision: str = "float32"
    shortlist: bool = False

    def __call__(self, run: Path, sources: Sequence[Any], progress: Progress) -> GeneratedOutputs:
        """The outputs of a run for these sources."""
        predictor = load(
            run, engine=self.engine, device=self.device, precision=self.precision, shortlist=self.shortlist
        )
        with progress(f"translating with {run}", len(sources)) as advance:
            return generate_outputs(predictor, sources, self.options, advance)


def generate_outputs(
    predictor: Predictor, sources: Sequence[Any], options: Options, advance: Callable[[int], None]
) -> GeneratedOutputs:
    """Outputs for all sources, which are texts, or files for a model of media."""
    start = time.perf_counter()
    results = predictor.results(sources, options, on_done=advance)
    seconds = time.perf_counter() - start
    failed = [result for result in results if result.error]
    if len(failed) == len(results):
        raise RegardError(f"{failed[0].source}: {failed[0].error}.")
    return GeneratedOutputs(
        texts=[result.text for result in results],
        seconds=seconds,
        tokens=sum(len(result.tokens) for result in results),
        split_sources=sum(result.chunk_count > 1 for result in results),
        engine=predictor.engine_reason,
        beam=options.beam if "search" in predictor.task.options and options.search_name == "beam" else None,
        unreadable=len(failed),
        first_error=f"{failed[0].source}: {failed[0].error}" if failed else "",
    )


@dataclass(frozen=True)
class Confusion:
    """How often one class was predicted instead of another."""

    reference: str
    output: str
    count: int


@dataclass(frozen=True)
class Report:
    """The result of an evaluation."""

    sentences: int
    rejected: Mapping[str, int]
    texts: list[str]  # the outputs that were scored
    scores: list[Score]
    length_unit: str  # "words", "characters", or "nothing" where sources are not texts
    by_length: dict[str, list[Bucket]]  # by the first metric, of each system
    confusions: list[Confusion] | None  # for metrics of classes
    run: Path | None = None
    generated: GeneratedOutputs | None = None  # by the run
    beam: int | None = None
    compared_with: Path | None = None
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def sentences_per_second(self) -> float:
        """Of the run."""
        assert self.generated is not None
        return round(self.sentences / self.generated.seconds, 1)

    @property
    def tokens_per_second(self) -> int:
        """Of the run."""
        assert self.generated is not None
        return round(self.generated.tokens / self.generated.seconds)

    def as_json(self) -> dict[str, Any]:
        """Plain data, without the outputs."""
        record: dict[str, Any] = {
            "sentences": self.sentences,
            "rejected": dict(self.rejected),
            "length_unit": self.length_unit,
        }
        if self.generated is not None:
            record |= {
                "run": str(self.run),
                "seconds": round(self.generated.seconds, 2),
                "engine": self.generated.engine,
                "tokens_per_second": self.tokens_per_second,
                "sentences_per_second": self.sentences_per_second,
                "split_sources": self.generated.split_sources,
                "unreadable": self.generated.unreadable,
                **({"first_error": self.generated.first_error} if self.generated.first_error else {}),
                "beam": self.beam,
            }
        record["scores"] = [asdict(score) for score in self.scores]
        if self.confusions is not None:
            record["confusions"] = [[each.reference, each.output, each.count] for each in self.confusions]
        if self.compared_with is not None:
            record["compared_with"] = str(self.compared_with)
            record["comparison"] = [asdict(each) for each in self.comparisons]
        record["by_length"] = {
            label: [asdict(bucket) for bucket in buckets] for label, buckets in self.by_length.items()
        }
        return record


@dataclass(frozen=True)
class Systems:
    """The systems that are evaluated: a run, or a file of outputs, and a run to compare with."""

    run: Path | None = None
    outputs: Path | None = None
    compare_with: Path | None = None


def evaluate_systems(
    data: EvaluationSet,
    metrics: Sequence[str],
    systems: Systems,
    generator: Generator,
    progress: Progress,
    *,
    tokenize: str | None = None,
) -> Report:
    """Score a run's outputs, or those that the test set has, and compare them with another run's."""
    tokenize = tokenize or detect_tokenizer(data.references[0])
    texts, generated, other_texts = data.outputs, None, None
    if systems.run is not None:
        generated = generator(systems.run, data.sources or [], progress)
        texts = generated.texts
    assert texts is not None
    if systems.compare_with is not None:
        other_texts = generator(systems.compare_with, data.sources or [], progress).texts
    sources = data.text_sources
    series: dict[str, list[Bucket]] = {}
    if sources is not None:
        for label, outputs in ((systems.run or systems.outputs, texts), (systems.compare_with, other_texts)):
            if outputs is not None:
                series[str(label)] = score_by_length(metrics[0], sources, outputs, data.references, tokenize)
    measured = sources or data.outputs
    labels = any(METRICS.get(name).inputs == "labels" for name in metrics)
    return Report(
        sentences=len(data),
        rejected=data.rejected,
        texts=texts,
        scores=[corpus_score(name, texts, data.references, tokenize) for name in metrics],
        length_unit=source_lengths(measured)[0] if measured else "nothing",
        by_length=series,
        confusions=confusions(texts, data.references[0])[:MAX_CONFUSIONS] if labels else None,
        run=systems.run,
        generated=generated,
        beam=None if generated is None else generated.beam,
        compared_with=systems.compare_with,
        comparisons=[]
        if other_texts is None
        else [compare_outputs(name, texts, other_texts, data.references, tokenize=tokenize) for name in metrics],
    )


def confusions(outputs: Sequence[str], references: Sequence[str]) -> list[Confusion]:
    """Pairs of classes that differ, with their counts; the most frequent first."""
    counts = Counter((r, o) for o, r in zip(outputs, references, strict=True) if o != r)
    return [Confusion(reference, output, count) for (reference, output), count in counts.most_common()]
