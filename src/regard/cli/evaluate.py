"""regard evaluate."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from regard.cli.common import (
    Device,
    Engine,
    Files,
    Json,
    Media,
    Precision,
    Shortlist,
    SourceColumn,
    SourceFile,
    SourceLanguage,
    TargetColumn,
    TargetLanguage,
    check_output_is_no_input,
    progress,
    resolve_layout,
)
from regard.cli.decoding_options import add_decoding_command, check_applicable
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.evaluation.evaluation_set import EvaluationFiles
    from regard.evaluation.report import Report, Systems
    from regard.inference.options import Options
    from regard.runs.folder import RunDescription

# Names of the parameters that apply to word alignments, to the evaluator of a task, and to a file of outputs.
LINK_OPTIONS = frozenset(("links", "gold", "as_json"))
ALIGNMENT_OPTIONS = LINK_OPTIONS | {
    *("run", "pairs", "source", "reference", "device"),
    *("source_language", "target_language", "source_column", "target_column"),
}
TASK_OPTIONS = frozenset(("run", "pairs", "metric", "device", "as_json"))
OUTPUT_OPTIONS = frozenset(
    (
        *("pairs", "source", "reference", "outputs", "metric", "tokenize", "plot", "output", "as_json"),
        *("source_language", "target_language", "source_column", "target_column", "media"),
    )
)
BAR_UNIT = 4  # points of a score that one block of a bar stands for

Run = Annotated[Path | None, typer.Argument(help="A trained run's folder; none if --outputs are given.")]
Pairs = Annotated[Files | None, typer.Argument(help="Test files with source and target.")]
References = Annotated[Files | None, typer.Option(help="Its references, line by line; several may be given.")]
Outputs = Annotated[Path | None, typer.Option(help="Score this text file instead of a run's outputs.")]
Metric = Annotated[
    str | None, typer.Option(help="With commas between; those that suit the run if not given. {metrics}.")
]
Gold = Annotated[
    Path | None, typer.Option(help="Right word alignments, line by line: score the run's alignment of the test set.")
]
Links = Annotated[Path | None, typer.Option(help="With --gold: score this file of links instead of a run's.")]
Tokenize = Annotated[str | None, typer.Option(help="For BLEU: 13a, none (already tokenized), zh, char, ...")]
Compare = Annotated[Path | None, typer.Option(help="Another run on the same test, with paired bootstrap.")]
Plot = Annotated[Path | None, typer.Option(help="Write the scores by source length as a .png.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write the model's outputs, one a line.")]


class EvaluateCommand(TyperCommand):
    """Lists the registered metrics in its help, those of plugins included; imports them only then."""

    def get_help(self, ctx: Any) -> str:
        from regard.evaluation.metrics import METRICS, LossMetric

        by_task: dict[str, list[str]] = {}
        for metric in (item for _, item in sorted(METRICS.items()) if item.inputs != LossMetric.inputs):
            by_task.setdefault(metric.task, []).append(metric.name)
        listed = "; ".join(f"{task.replace('_', ' ')}: {', '.join(names)}" for task, names in by_task.items())
        for option in self.params:
            if "{metrics}" in (text := getattr(option, "help", None) or ""):
                option.help = text.replace("{metrics}", f"For {listed}")  # type: ignore[attr-defined]
        return super().get_help(ctx)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    add_decoding_command(
        app,
        "evaluate",
        evaluate,
        lambda: ("search",),
        cls=EvaluateCommand,
        epilog="\b\nExamples:\n"
        "  regard evaluate run test.tsv\n"
        "  regard evaluate run --source test.en --reference test.de --reference test2.de\n"
        "  regard evaluate run test.tsv --metric bleu,chrf --plot lengths.png\n"
        "  regard evaluate run test.tsv --compare other-run\n"
        "  regard evaluate language-run test.txt\n"
        "  regard evaluate --outputs translated.txt --reference test.de\n"
        "  regard evaluate run --source test.en --reference test.de --gold test.links\n"
        "  regard evaluate --links found.links --gold test.links",
    )


def evaluate(
    run: Run = None,
    pairs: Pairs = None,
    source: SourceFile = None,
    reference: References = None,
    outputs: Outputs = None,
    metric: Metric = None,
    gold: Gold = None,
    links: Links = None,
    tokenize: Tokenize = None,
    compare: Compare = None,
    plot: Plot = None,
    output: Output = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    media: Media = None,
    engine: Engine = "auto",
    precision: Precision = "float32",
    shortlist: Shortlist = False,
    device: Device = "auto",
    as_json: Json = False,
    *,
    options: "Options",
) -> None:
    """Score a trained model, or a file of outputs, on a test set."""
    from regard.evaluation.evaluation_set import EvaluationFiles, load_evaluation_set
    from regard.evaluation.evaluators.base import EVALUATORS
    from regard.evaluation.metrics import parse_metric_names
    from regard.evaluation.report import Generator, Systems, default_metrics, evaluate_systems
    from regard.tasks.base import task_from_description

    layout = resolve_layout(run, source_language, target_language, source_column, target_column)
    files = EvaluationFiles(pairs or (), source, reference or (), outputs, media, layout)
    for option, written in (("-o", output), ("--plot", plot)):
        check_output_is_no_input(option, written, (*files.pairs, source, *files.references, outputs, gold, links))
    if gold is not None or links is not None:
        check_applicable(ALIGNMENT_OPTIONS if links is None else LINK_OPTIONS, "does not apply to word alignments")
        _evaluate_alignment(run, links, gold, files, device, as_json)
        return
    description = _description(run)
    if run is not None and description is not None and task_from_description(description).evaluator in EVALUATORS:
        check_applicable(TASK_OPTIONS, f"does not apply to a run for {task_from_description(description).title}")
        _evaluate_by_task(run, files.pairs, metric, device, as_json)
        return
    if run is None and compare is None:
        check_applicable(OUTPUT_OPTIONS, "is for a run, and there is none")
    names = parse_metric_names(metric) if metric else default_metrics(description)
    systems = Systems(run, outputs, compare)
    _check_options(systems, source, plot, tokenize, description)
    data = load_evaluation_set(files, description)
    to = (target_language or "") if description is not None and description.target_languages else ""
    generator = Generator(options.with_changes(to=to), engine, device, precision, shortlist)
    report = evaluate_systems(data, names, systems, generator, partial(progress, quiet=as_json), tokenize=tokenize)
    _write_files(report, output, plot)
    _print_json(report.as_json()) if as_json else _print_report(report)


def _description(run: Path | None) -> "RunDescription | None":
    if run is None:
        return None
    from regard.runs.folder import open_run

    return open_run(run).description


def _check_options(
    systems: "Systems",
    source: Path | None,
    plot: Path | None,
    tokenize: str | None,
    description: "RunDescription | None",
) -> None:
    """Raises RegardError for options that do not go together."""
    from regard.evaluation.bleu_tokenizers import check_tokenizer

    if systems.outputs is not None and systems.run is not None:
        raise RegardError("--outputs: either a run is evaluated or a file of outputs; leave one out.")
    if systems.run is None and systems.outputs is None:
        raise RegardError("name a run, or a file with --outputs, as in: regard evaluate run test.tsv")
    if systems.outputs is not None and systems.compare_with is not None and source is None:
        raise RegardError(
            "--compare: give the --source that the outputs were made from, for the other run to translate."
        )
    if plot is not None and plot.suffix.lower() != ".png":
        raise RegardError(f"--plot: {plot} must end in .png.")

    if plot is not None and description is not None and not description.model.source.is_text:
        raise RegardError("--plot: it shows scores by the length of texts, and this run reads files; leave it out.")
    if plot is not None and systems.outputs is not None and source is None:
        raise RegardError("--plot: give the --source that the outputs were made from; it shows scores by its length.")
    check_tokenizer(tokenize)


def _evaluate_alignment(
    run: Path | None, links: Path | None, gold: Path | None, files: "EvaluationFiles", device: str, as_json: bool
) -> None:
    """Alignment error rate, precision and recall."""
    from regard.evaluation.alignment_error import read_links, score_alignment
    from regard.evaluation.word_alignment import align_pairs, read_pairs_to_align

    if gold is None:
        raise RegardError("--links: give the right ones with --gold.")
    if (run is None) == (links is None):
        raise RegardError("--gold: name a run and a test set, or a file of --links; one of the two.")
    references, first = read_links(gold)
    if links is not None:
        predicted = [each.possible for each in read_links(links)[0]]
    else:
        assert run is not None
        target = files.references[0] if files.references else None
        examples = read_pairs_to_align(files.pairs, files.source, target, files.layout)
        for note in examples.notes:
            typer.echo(note, err=True)
        alignments = align_pairs(run, examples.pairs, device, partial(progress, quiet=as_json))
        predicted = [set(each or ()) for each in alignments]
    result = score_alignment(predicted, references)
    if as_json:
        _print_json({**asdict(result), "sentences": len(references), "gold_counts_from": first})
        return
    typer.echo(
        f"{len(references):,} sentences, {result.links:,} links, {result.gold:,} sure ones in the gold (from {first})"
    )
    for name in ("aer", "precision", "recall"):
        typer.echo(f"  {name:9} {getattr(result, name):6.2f}")


def _evaluate_by_task(run: Path, files: Sequence[Path], metric: str | None, device: str, as_json: bool) -> None:
    """The report of the evaluator that the run's task names."""
    from regard.evaluation.evaluators.base import EVALUATORS
    from regard.loading import load

    metrics = [name.strip() for name in metric.split(",")] if metric else None
    predictor = load(run, device=device)
    evaluator = EVALUATORS.get(predictor.task.evaluator)()
    report = evaluator.evaluate(run, predictor, files, metrics, partial(progress, quiet=as_json))
    if as_json:
        _print_json({"run": str(run), **report.as_dict()})
        return
    for line in report.lines():
        typer.echo(line)


def _write_files(report: "Report", output: Path | None, plot: Path | None) -> None:
    if output is not None:
        output.write_text("".join(f"{text}\n" for text in report.texts), "utf-8")
    if plot is not None:
        from regard.evaluation.by_length import plot_by_length

        plot_by_length(report.scores[0].name, report.by_length, plot)


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, ensure_ascii=False))


def _print_report(report: "Report") -> None:
    from regard.evaluation.evaluation_set import format_reasons

    rejected = f"; rejected: {format_reasons(report.rejected)}" if report.rejected else ""
    typer.echo(f"{report.sentences:,} sentences{rejected}")
    width = max(7, *(len(score.name) for score in report.scores))
    for score in report.scores:
        typer.echo(f"  {score.name:{width}} {score.value:7.2f}   {score.signature}")
    if (generated := report.generated) is not None:
        searched = "" if report.beam is None else f"beam {report.beam}, "
        typer.echo(
            f"  {report.sentences_per_second:,} sentences/s, {report.tokens_per_second:,} tokens/s, "
            f"{searched}{generated.engine}"
        )
        if generated.split_sources:
            typer.echo(f"  {generated.split_sources:,} sources are longer than the model reads, and were split")
        if generated.unreadable:
            first = f"; the first is {generated.first_error}" if generated.first_error else ""
            typer.echo(f"  {generated.unreadable:,} sources could not be read, and count as wrong{first}")
    for each in report.confusions or []:
        typer.echo(f"  {each.count:6,} times {each.reference} was taken for {each.output}")
    for label, buckets in report.by_length.items():
        typer.echo(f"{report.scores[0].name} by the source's length in {report.length_unit}, {label}")
        for bucket in buckets:
            bar = "█" * max(0, round(bucket.value / BAR_UNIT))
            typer.echo(f"  {bucket.shortest:4}–{bucket.longest:<4} {bucket.count:6,}  {bucket.value:6.2f}  {bar}")
    for comparison in report.comparisons:
        low, high = comparison.interval
        typer.echo(
            f"{comparison.metric}: {comparison.first:.2f}, {report.compared_with} {comparison.second:.2f}: "
            f"the second is {comparison.second - comparison.first:+.2f} "
            f"(95 % between {low:+.2f} and {high:+.2f}), p = {comparison.p:.3f}"
        )
