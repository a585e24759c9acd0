"""regard predict, and the verbs of all tasks (regard translate, regard classify, ...): one implementation."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.common import (
    Device,
    Engine,
    Json,
    Precision,
    Run,
    RunLoader,
    Shortlist,
    SourceLanguage,
    Texts,
    Threads,
    progress,
)
from regard.cli.decoding_options import add_decoding_command
from regard.cli.embed import print_vectors
from regard.cli.fill import fill_texts
from regard.cli.generate import generate_texts
from regard.cli.printing import ResultPrinter
from regard.cli.standard_input import input_batches
from regard.cli.verbs import FOR_EVERY_TASK, check_verb, option_groups
from regard.documents.document import DOCUMENTS, DocumentLayout
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inference.options import Options
    from regard.inference.pipelines.base import FilePipeline
    from regard.inference.predictor import Predictor
    from regard.tasks.base import Task

# Verbs whose output is not one text for each input.
SPECIAL_VERBS: dict[str, Callable[["Predictor", Sequence[str], "Options", bool], None]] = {
    "generate": generate_texts,
    "fill": fill_texts,
    "embed": print_vectors,
}
DOCUMENT_EXAMPLES = (
    "article.txt -o article.de.txt --paragraphs",
    "app.po -o app.de.po",
    "table.csv --column text -o out.csv",
    "- --nbest 3 --json < lines.txt",
    '"the cat" --glossary terms.tsv --alignment',
)

Inputs = Annotated[
    Texts | None,
    typer.Argument(
        metavar="[TEXT... | FILE | -]", help="Texts, a file, or - for lines of input; pictures or recordings."
    ),
]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Where a file's translation goes.")]
Paragraphs = Annotated[
    bool, typer.Option("--paragraphs", help="Lines are paragraphs: split them into sentences, put them back.")
]
Column = Annotated[str | None, typer.Option(help="Of a table: the source's column, by name or from 1.")]


@dataclass(frozen=True)
class FileOptions:
    """Options about a file."""

    paragraphs: bool = False
    column: str | None = None
    format: str | None = None
    source_language: str | None = None

    def __bool__(self) -> bool:
        return bool(self.paragraphs or self.column or self.format)


def add_to(app: typer.Typer) -> None:
    """Register `regard predict`; the verbs of tasks are added by `regard.cli.root`."""
    examples = ['"A dog runs in the park."', "photo.jpg another.png", *DOCUMENT_EXAMPLES]
    _add(app, "predict", "Predict with any run: translate, caption, classify, tag, ...", examples)


def add_verb(app: typer.Typer, verb: str, tasks: "Sequence[Task]") -> None:
    """Register the verb of some tasks."""
    summary = "; ".join(task.summary for task in tasks)
    examples = [task.input_example for task in tasks]
    examples += ["- --json < lines.txt"] if all(task.reads_lines for task in tasks) else []
    if verb in FOR_EVERY_TASK:
        examples += DOCUMENT_EXAMPLES
    _add(app, verb, f"{summary[:1].upper()}{summary[1:]}.", list(dict.fromkeys(examples)))


def _add(app: typer.Typer, verb: str, summary: str, examples: Sequence[str]) -> None:
    lines = "".join(f"  regard {verb} run {example}\n" for example in examples)
    command = partial(predict, verb=verb)
    settings = {"help": summary, "epilog": f"\b\nExamples:\n{lines}"}
    add_decoding_command(app, verb, command, partial(option_groups, verb), **settings)


def predict(
    run: Run,
    inputs: Inputs = None,
    output: Output = None,
    paragraphs: Paragraphs = False,
    column: Column = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help=f"Of file, where its name does not say: {', '.join(DOCUMENTS)}.")
    ] = None,
    source_language: SourceLanguage = None,
    engine: Engine = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
    shortlist: Shortlist = False,
    device: Device = "auto",
    as_json: Json = False,
    *,
    verb: str,
    options: "Options",
) -> None:
    """Predict with any run: texts, lines of input, pictures or recordings, or a file that is written back."""
    from regard.inference.pipelines.base import FilePipeline

    predictor = RunLoader(run, engine, device, precision, threads, shortlist).load()
    check_verb(run, predictor.task, verb)
    file_options = FileOptions(paragraphs, column, file_format, source_language)
    output = None if output == Path("-") else output
    if isinstance(predictor.pipeline, FilePipeline):
        if file_options:
            raise RegardError("--paragraphs, --format and --column are for texts; this run reads tables of series.")
        predictor.resolve_options(options)
        _predict_tables(predictor.pipeline, inputs or [], output, options, as_json)
    elif (special := SPECIAL_VERBS.get(predictor.task.verb)) is not None:
        if file_options or output is not None:
            raise RegardError(
                "--output, --paragraphs, --format and --column: this run's outputs are printed; leave out."
            )
        special(predictor, inputs or [], options, as_json)
    elif predictor.reads_files:
        _predict_media(predictor, inputs or [], output, file_options, options, as_json)
    else:
        _predict_texts(predictor, run, inputs or [], output, file_options, options, as_json)


def _predict_tables(
    pipeline: "FilePipeline", inputs: Sequence[str], output: Path | None, options: "Options", as_json: bool
) -> None:
    """What a pipeline that reads whole files writes or prints."""
    if not inputs:
        raise RegardError("there is nothing to read; name a table of series, such as series.csv.")
    if output is not None and len(inputs) > 1:
        raise RegardError("-o: one table is written at a time; give one input.")
    for name in inputs:
        report = pipeline.write_file(Path(name), output, options, as_json=as_json)
        for note in report.notes:
            typer.echo(f"{name}: {note}", err=True)
        for line in report.lines:
            typer.echo(line)


def _predict_media(
    predictor: "Predictor",
    inputs: Sequence[str],
    output: Path | None,
    file_options: FileOptions,
    options: "Options",
    as_json: bool,
) -> None:
    """Outputs for images or recordings, each a file."""
    if file_options:
        raise RegardError("--paragraphs, --format and --column are for texts; this run reads files.")
    if output is not None:
        raise RegardError("--output: outputs are printed, a line for each file, so redirect them with >.")
    names = [line for lines in input_batches(inputs) for line in lines]
    if not names:
        raise RegardError("there is nothing to read; name files, or - for lines of input.")
    printer = ResultPrinter(as_json, options.scores, named=len(names) > 1, files=True)
    with progress("reading", len(names), as_json) as done:
        results = predictor.results(names, _options_to_compute(options, as_json), on_done=done)
    for result in results:
        printer(result)
    printer.exit()


def _predict_texts(
    predictor: "Predictor",
    run: Path,
    inputs: Sequence[str],
    output: Path | None,
    file_options: FileOptions,
    options: "Options",
    as_json: bool,
) -> None:
    """Outputs for texts, for lines of standard input, or for a file."""
    from regard.documents.input_arguments import document_path

    path = document_path(inputs, output)
    if path is None and file_options:
        raise RegardError("--paragraphs, --format and --column are for files; name one.")
    if sys.stderr.isatty() and not as_json:
        typer.echo(f"{predictor.engine_reason}", err=True)
    several = path is not None or len(inputs) > 1 or list(inputs) == ["-"]
    printer = ResultPrinter(as_json, options.scores, options.alignment, numbered=options.nbest > 1 and several)
    if path is None:
        predictor.resolve_options(options)
        for texts in input_batches(inputs):
            _print_all(predictor.predict(texts, _options_to_compute(options, as_json)), printer)
        printer.exit()
        return
    from regard.cli.predict_file import predict_file

    layout = _document_layout(predictor, run, path, file_options, options)
    if not predictor.description.target_languages:
        options = options.with_changes(to="")  # --to names the language of the file here
    predictor.resolve_options(options)
    if _is_printed_by_lines(path, layout, output, options, as_json):
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            lines = (line.rstrip("\r\n") for line in file)
            _print_all(predictor.predict(lines, _options_to_compute(options, as_json)), printer)
        printer.exit()
    else:
        predict_file(predictor, run, path, output, layout, options, as_json)


def _print_all(results: Any, printer: ResultPrinter) -> None:
    for result in results:
        printer(result)
    sys.stdout.flush()


def _options_to_compute(options: "Options", as_json: bool) -> "Options":
    """The options without token scores unless the output is JSON, which alone has them."""
    return options if as_json else options.with_changes(scores=False)


def _is_printed_by_lines(
    path: Path, layout: DocumentLayout, output: Path | None, options: "Options", as_json: bool
) -> bool:
    """Whether the results of a file's lines are printed one by one. Raises RegardError for options that files lack."""
    from regard.documents.document import document_format

    has_details = options.nbest > 1 or options.scores or options.alignment
    is_plain = document_format(path, layout) == "text" and not layout.paragraphs
    by_lines = is_plain and output is None and (has_details or as_json)
    if has_details and not by_lines:
        raise RegardError("--nbest, --scores and --alignment are for texts and for lines, without --output.")
    return by_lines


def _document_layout(
    predictor: "Predictor", run: Path, path: Path, file_options: FileOptions, options: "Options"
) -> DocumentLayout:
    from regard.runs.table_layout import resolve_layout

    table = predictor.task.table_layout(path, resolve_layout(run, None, None, file_options.column, None))
    answers_questions = table.question_column is not None
    return DocumentLayout(
        file_options.source_language or predictor.description.source_language,
        options.to or predictor.description.target_language,
        table.source_column if answers_questions or file_options.column is not None else None,
        table.question_column,
        paragraphs=file_options.paragraphs,
        format=file_options.format,
    )
