"""The test set of an evaluation: sources, references, and the outputs to score where a file has them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.data.example import Example, Layout
from regard.data.input_validation import find_problem, normalize_whitespace
from regard.data.media_store import resolve_media_path
from regard.data.readers import read_aligned, read_pairs
from regard.data.task_columns import layout_with_question
from regard.errors import RegardError
from regard.runs.folder import RunDescription
from regard.tasks.base import task_from_description


@dataclass(frozen=True)
class EvaluationFiles:
    """Where a test set is: files with source and target, or aligned text files. media: the folder of files that a table
    names, if not its own."""

    pairs: Sequence[Path] = ()
    source: Path | None = None
    references: Sequence[Path] = ()
    outputs: Path | None = None
    media: Path | None = None
    layout: Layout = field(default_factory=Layout)


@dataclass(frozen=True)
class EvaluationSet:
    """The examples that are scored. Sources are inputs of a model: texts, paths of files, or arrays."""

    sources: list[Any] | None  # None where only outputs and references were given
    references: list[list[str]]  # references[k][i] is the k-th reference of source i
    outputs: list[str] | None = None  # where a file of them is scored
    rejected: Mapping[str, int] = field(default_factory=dict)  # examples that are not scored, by reason

    def __len__(self) -> int:
        return len(self.references[0])

    @property
    def text_sources(self) -> list[str] | None:
        """The sources, if they are texts."""
        return self.sources if self.sources and all(isinstance(each, str) for each in self.sources) else None


@dataclass(frozen=True)
class _SourceKind:
    """The properties of a run's sources and targets that decide how a test file is read."""

    media: bool = False  # sources name files
    folder: Path | None = None  # of these files
    text_targets: bool = True  # rather than classes, tags or spans
    empty_targets: bool = False  # a question may have no answer

    @staticmethod
    def from_description(description: RunDescription | None, folder: Path | None) -> "_SourceKind":
        media = description is not None and not description.model.source.is_text
        if folder is not None and not media:
            raise RegardError("--media: it is for runs that read pictures or recordings; this one reads text.")
        if description is None:
            return _SourceKind()
        kind = task_from_description(description).data()
        return _SourceKind(media, folder, kind.has_eos, kind.allows_empty)

    def source(self, example: Example) -> Any:
        """The input of the model. Raises RegardError if a file lies outside its folder."""
        if not self.media:
            return example.source
        return (
            resolve_media_path(example.source, example.file, self.folder)
            if example.content is None
            else example.content
        )

    def problem(self, example: Example) -> str:
        """Why an example cannot be scored; empty if it can."""
        if problem := example.problem or find_problem(
            example.source, example.target, allow_empty_target=self.empty_targets
        ):
            return problem
        try:
            self.source(example)
        except RegardError as error:
            return str(error)
        return ""


def load_evaluation_set(files: EvaluationFiles, description: RunDescription | None) -> EvaluationSet:
    """Read a test set for a run of this description, or for outputs. Raises RegardError if there is none."""
    kind = _SourceKind.from_description(description, files.media)
    if files.outputs is not None:
        return _load_outputs(files, files.outputs)
    if files.pairs and (files.source or files.references):
        raise RegardError("give either test files with source and target, or --source and --reference, not both.")
    rejected: Counter[str] = Counter()
    more_references: list[list[str]] = []
    if files.pairs:
        examples = _read_examples(files, kind, rejected)
    elif files.source is not None and files.references:
        examples = list(read_aligned(files.source, files.references[0]))
        more_references = [
            [each.target for each in read_aligned(files.source, other)] for other in files.references[1:]
        ]
    else:
        raise RegardError("name a test set: a file with source and target, or --source and --reference.")
    if not examples:
        reasons = f"; rejected: {format_reasons(rejected)}" if rejected else ""
        raise RegardError(f"the test set is empty{reasons}.")
    grouped = _group_references(examples, kind)
    reference_count = max(map(len, grouped))
    references = [[each[min(at, len(each) - 1)].target for each in grouped] for at in range(reference_count)]
    sources = [kind.source(each[0]) for each in grouped]
    return EvaluationSet(sources, [*references, *more_references], rejected=dict(rejected))


def format_reasons(counts: Mapping[str, int]) -> str:
    """Counts of examples by reason, for a sentence."""
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))


def _load_outputs(files: EvaluationFiles, outputs: Path) -> EvaluationSet:
    if not files.references or files.pairs:
        raise RegardError("--outputs: give its references with --reference.")
    columns = [list(read_aligned(outputs, reference)) for reference in files.references]
    sources = None
    if files.source is not None:
        sources = [example.source for example in read_aligned(files.source, files.references[0])]
    references = [[example.target for example in column] for column in columns]
    return EvaluationSet(sources, references, [example.source for example in columns[0]])


def _read_examples(files: EvaluationFiles, kind: _SourceKind, rejected: Counter[str]) -> list[Example]:
    """The examples that can be scored; the others are counted by reason."""
    valid = []
    with_questions = kind.empty_targets or files.layout.question_column is not None
    for path in files.pairs:
        layout = layout_with_question(path, files.layout) if with_questions else files.layout
        for example in read_pairs(path, layout):
            if problem := kind.problem(example):
                rejected[problem] += 1
            else:
                valid.append(replace(example, target=normalize_whitespace(example.target)))
    return valid


def _group_references(examples: Sequence[Example], kind: _SourceKind) -> list[list[Example]]:
    """Examples grouped by source: the targets of one record, or the texts about one file, are its references."""
    groups: dict[tuple[str, int | str], list[Example]] = {}
    for example in examples:
        key = example.source if kind.media and kind.text_targets else example.line
        groups.setdefault((example.file, key), []).append(example)
    return list(groups.values())
