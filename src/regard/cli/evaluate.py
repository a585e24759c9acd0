"""regard evaluate."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from regard.cli.common import Device, Engine, Json, Precision, Shortlist, layout_of
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.data.example import Example, Layout
    from regard.evaluation.report import Outputs
    from regard.runs.folder import Description

Files = list[Path]
MISTAKES = 5  # kinds of them that are told


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "evaluate",
        epilog="\b\nExamples:\n"
        "  regard evaluate run test.tsv\n"
        "  regard evaluate run --source test.en --reference test.de --reference test2.de\n"
        "  regard evaluate run test.tsv --metric bleu,chrf --picture lengths.png\n"
        "  regard evaluate run test.tsv --compare other-run\n"
        "  regard evaluate language-run test.txt\n"
        "  regard evaluate --outputs translated.txt --reference test.de\n"
        "  regard evaluate run --source test.en --reference test.de --gold test.links\n"
        "  regard evaluate --links found.links --gold test.links",
    )(evaluate)


def evaluate(
    run: Annotated[Path | None, typer.Argument(help="A trained run's folder; none if --outputs are given.")] = None,
    pairs: Annotated[Files | None, typer.Argument(help="Test files with both sides.")] = None,
    source: Annotated[Path | None, typer.Option(help="A text file of sources, one a line.")] = None,
    reference: Annotated[Files | None, typer.Option(help="Its references, line by line; several may be given.")] = None,
    outputs: Annotated[Path | None, typer.Option(help="Score this text file instead of a run's outputs.")] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="With commas between: bleu, bleu1 to bleu3, chrf, ter, exact, cer, wer, rouge1, rouge2, rougeL, "
            "cider, f1 (of classes), tags, names (their F1), span_exact and span_f1 (SQuAD's); those that suit the run "
            "if not given."
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="Right word alignments, line by line: judge the run's alignment of the test set."),
    ] = None,
    links: Annotated[
        Path | None, typer.Option(help="With --gold: judge this file of links instead of a run's.")
    ] = None,
    tokenize: Annotated[str | None, typer.Option(help="For BLEU: 13a, none (already tokenised), zh, char, ...")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept in search; 1 is greedy.")] = 5,
    length_penalty: Annotated[float, typer.Option(help="Above 0 prefers longer outputs.")] = 1.0,
    coverage_penalty: Annotated[
        float, typer.Option(help="Above 0 prefers outputs that attend to the whole source.")
    ] = 0.0,
    compare: Annotated[Path | None, typer.Option(help="Another run on the same test, with paired bootstrap.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Write the scores by source length as a .png.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write what the model said, one a line.")
    ] = None,
    source_language: Annotated[str | None, typer.Option("--from", help="For files with several languages.")] = None,
    target_language: Annotated[str | None, typer.Option("--to", help="For files with several languages.")] = None,
    source_column: Annotated[
        str | None, typer.Option(help="Of a table: a name, or a number from 1; the run's own if none.")
    ] = None,
    target_column: Annotated[str | None, typer.Option(help="The same for the reference.")] = None,
    media: Annotated[
        Path | None, typer.Option(help="The folder of the pictures or recordings that a table names, if not its own.")
    ] = None,
    engine: Engine = "auto",
    precision: Precision = "float32",
    shortlist: Shortlist = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score a trained model, or a file of outputs, on a test set."""
    if gold is not None or links is not None:
        layout = layout_of(run, source_language, target_language, source_column, target_column)
        _judge_links(run, links, gold, (pairs or [], source, reference or []), layout, device, as_json)
        return
    from regard.cli.common import progress
    from regard.evaluation.metrics import NAMES
    from regard.inference.options import Options

    about = _about(run)
    if run is not None and about is not None and (about.model.source.kind == "nothing" or about.model.guesses):
        from regard.cli.generate import judge

        if any(each is not None for each in (metric, source, reference, outputs, compare, picture, output)):
            raise RegardError(
                f"{run}: a language model has its perplexity only; give files of plain text, and no more."
            )
        judge(run, pairs or [], device, as_json)
        return
    metric = metric or _usual_metrics(about)
    known = {name.lower(): name for name in NAMES}
    names = [known.get(name.strip().lower(), name.strip()) for name in metric.split(",") if name.strip()]
    names = list(dict.fromkeys(names))
    for name in names or [""]:
        if name not in NAMES:
            raise RegardError(f"--metric: there is no {name!r}; there are {', '.join(NAMES)}.")
    if outputs is not None and run is not None:
        raise RegardError("--outputs: either a run is judged or a file of outputs; leave one out.")
    if run is None and outputs is None:
        raise RegardError("name a run, or a file with --outputs, as in: regard evaluate run test.tsv")
    if outputs is not None and compare is not None and source is None:
        raise RegardError(
            "--compare: give the --source that the outputs were made from, for the other run to translate."
        )
    if picture is not None and picture.suffix.lower() != ".png":
        raise RegardError(f"--picture: {picture} must end in .png.")
    if picture is not None and about is not None and about.model.source.kind != "text":
        raise RegardError("--picture: it shows scores by the length of texts, and this run reads files; leave it out.")
    if picture is not None and outputs is not None and source is None:
        raise RegardError(
            "--picture: give the --source that the outputs were made from; it shows scores by its length."
        )
    from regard.evaluation.bleu_tokenizers import check_tokeniser

    check_tokeniser(tokenize)
    layout = layout_of(run, source_language, target_language, source_column, target_column)
    test = _test_set(pairs or [], source, reference or [], outputs, layout, _Files.of(about, media))
    several = about is not None and bool(about.target_languages)
    to = (target_language or "") if several else ""
    options = Options(beam=beam, length_penalty=length_penalty, coverage_penalty=coverage_penalty, to=to)

    def say(which: Path, sources: list[Any]) -> "Outputs":
        from regard.evaluation.report import run_model
        from regard.inference.loading import load

        translator = load(which, engine=engine, device=device, precision=precision, shortlist=shortlist)
        with progress(f"translating with {which}", len(sources), as_json) as done:
            return run_model(translator, sources, options, done)

    report = _report(run, compare, test, names, tokenize, say)
    report |= {"beam": beam} if run is not None else {}
    if output is not None:
        output.write_text("".join(f"{text}\n" for text in report["texts"]), "utf-8")
    if picture is not None:
        from regard.evaluation.report import draw_by_length

        draw_by_length(names[0], report["series"], picture)
    if as_json:
        plain = {name: value for name, value in report.items() if name not in ("texts", "series")}
        plain["by_length"] = {
            label: [asdict(bucket) for bucket in buckets] for label, buckets in report["series"].items()
        }
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    _print(report, names)


def _about(run: Path | None) -> "Description | None":
    if run is None:
        return None
    from regard.runs.folder import open_folder

    return open_folder(run).description


def _usual_metrics(about: "Description | None") -> str:
    """What is asked of such a model."""
    if about is None:
        return "bleu,chrf,ter,exact"
    if about.model.labels:
        return "exact,f1"
    if about.model.spans:
        return "span_exact,span_f1,exact"
    if about.model.tags:
        return "tags,names,exact"
    if about.model.source.kind == "images":
        return "bleu1,bleu2,bleu3,bleu,chrf,rougeL,cider,exact"
    if about.model.source.kind == "speech":
        return "wer,cer,exact"
    return "rouge1,rouge2,rougeL,exact" if about.whole else "bleu,chrf,ter,exact"


class _Files(NamedTuple):
    """Whether sources are names of files, where these are, and whether something is said of them or a class."""

    names: bool = False
    folder: Path | None = None
    classes: bool = False
    unsaid: bool = False  # something is asked, and what is said may be nothing

    @staticmethod
    def of(about: "Description | None", folder: Path | None) -> "_Files":
        names = about is not None and about.model.source.kind != "text"
        if folder is not None and not names:
            raise RegardError("--media: it is for runs that read pictures or recordings; this one reads text.")
        said = about is not None and about.model.says != "text"
        spans = about is not None and about.model.spans
        return _Files(names, folder, said, spans)

    def flaw(self, example: "Example") -> str:
        """Why a file is not even looked for, in words; empty if it is."""
        try:
            self.source(example)
        except RegardError as error:
            return str(error)
        return ""

    def source(self, example: "Example") -> Any:
        """What the model is given."""
        from regard.data.media_store import found_in

        if not self.names:
            return example.source
        return found_in(example.source, example.file, self.folder) if example.content is None else example.content


def _judge_links(
    run: Path | None,
    links: Path | None,
    gold: Path | None,
    test: tuple[Files, Path | None, Files],
    layout: "Layout",
    device: str,
    as_json: bool,
) -> None:
    """Alignment error rate, precision and recall."""
    from regard.evaluation.alignment_error import agreement, read_links

    if gold is None:
        raise RegardError("--links: give the right ones with --gold.")
    if (run is None) == (links is None):
        raise RegardError("--gold: name a run and a test set, or a file of --links; one of the two.")
    right, first = read_links(gold)
    if links is not None:
        found = [each.possible for each in read_links(links)[0]]
    else:
        from regard.cli.align import links_of, pairs_of

        assert run is not None
        files, source, references = test
        examples = pairs_of(files, source, references[0] if references else None, layout)
        found = [set(each or ()) for each in links_of(run, examples, device, as_json)]
    result = agreement(found, right)
    if as_json:
        typer.echo(json.dumps({**asdict(result), "sentences": len(right), "gold_counts_from": first}))
        return
    typer.echo(
        f"{len(right):,} sentences, {result.links:,} links, {result.gold:,} sure ones in the gold (from {first})"
    )
    for name in ("aer", "precision", "recall"):
        typer.echo(f"  {name:9} {getattr(result, name):6.2f}")


class Judged(NamedTuple):
    """What is judged."""

    sources: list[Any]  # the outputs themselves, where no sources were given with them
    references: list[list[str]]  # each set of them
    outputs: list[str] | None = None  # where a file of them is judged
    given: Path | None = None  # that file, if its sources were given with it
    set_aside: Mapping[str, int] = {}  # of a file with both sides: what has no two sides, by reason


def _test_set(
    pairs: Files, source: Path | None, references: Files, outputs: Path | None, layout: "Layout", files: _Files
) -> Judged:
    from collections import Counter

    from regard.data.column_detection import layout_with_question
    from regard.data.input_validation import find_problem, normalize_whitespace
    from regard.data.readers import read_aligned, read_pairs

    if outputs is not None:
        if not references or pairs:
            raise RegardError("--outputs: give its references with --reference.")
        columns = [list(read_aligned(outputs, reference)) for reference in references]
        texts = [example.source for example in columns[0]]
        sources = texts if source is None else [example.source for example in read_aligned(source, references[0])]
        return Judged(
            sources, [[example.target for example in column] for column in columns], texts, source and outputs
        )
    if pairs and (source or references):
        raise RegardError("test files with both sides and --source are two ways of saying one thing; use one.")
    aside: Counter[str] = Counter()
    if pairs:
        found = []
        asked = files.unsaid or layout.question_column is not None
        layouts = [layout_with_question(path, layout) if asked else layout for path in pairs]
        for example in (example for path, own in zip(pairs, layouts, strict=True) for example in read_pairs(path, own)):
            empty = find_problem(example.source, example.target, allow_empty_target=files.unsaid)
            if wrong := example.problem or empty or files.flaw(example):
                aside[wrong] += 1
            else:
                found.append(replace(example, target=normalize_whitespace(example.target)))
    elif source is not None and references:
        found = list(read_aligned(source, references[0]))
    else:
        raise RegardError("name a test set: a file with both sides, or --source and --reference.")
    more = [[example.target for example in read_aligned(source, each)] for each in references[1:]] if source else []
    if not found:
        raise RegardError(f"the test set is empty{'; set aside: ' + _reasons(aside) if aside else ''}.")
    # Targets of one record, and of one picture, are references of one source.
    groups: dict[tuple[str, int | str], list[Example]] = {}
    for example in found:
        which = example.source if files.names and not files.classes else example.line
        groups.setdefault((example.file, which), []).append(example)
    grouped = list(groups.values())
    most = max(map(len, grouped))
    own = [[each[min(at, len(each) - 1)].target for each in grouped] for at in range(most)]
    return Judged([files.source(each[0]) for each in grouped], [*own, *more], set_aside=dict(aside))


def _reasons(aside: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(aside.items()))


def _report(
    run: Path | None,
    other: Path | None,
    test: Judged,
    names: list[str],
    tokenize: str | None,
    say: Callable[[Path, list[Any]], "Outputs"],
) -> dict[str, Any]:
    from regard.evaluation.bleu_tokenizers import bleu_tokeniser
    from regard.evaluation.bootstrap import compare
    from regard.evaluation.report import by_length, confusions, lengths, scores

    sources, references, texts = test.sources, test.references, test.outputs
    how = tokenize or bleu_tokeniser(references[0])
    by_words = all(isinstance(source, str) for source in sources)
    report: dict[str, Any] = {"sentences": len(sources), "series": {}, "set_aside": test.set_aside}
    report["length_in"] = lengths(sources)[0] if by_words else "nothing"
    if texts is not None:
        report["texts"] = texts
        if test.given is not None:
            report["series"][str(test.given)] = by_length(names[0], sources, texts, references, how)
    if run is not None:
        said = say(run, sources)
        report |= {"run": str(run), "texts": said.texts, "seconds": round(said.seconds, 2), "engine": said.engine}
        report |= {
            "tokens_per_second": round(said.tokens / said.seconds),
            "sentences_per_second": round(len(sources) / said.seconds, 1),
            "sources_in_parts": said.long,
            "not_read": said.wrong,
            **({"not_read_why": said.why} if said.why else {}),
        }
        if by_words:
            report["series"][str(run)] = by_length(names[0], sources, said.texts, references, how)
    report["scores"] = [asdict(score) for score in scores(names, report["texts"], references, how)]
    if "f1" in names:
        report["confusions"] = confusions(report["texts"], references[0])[:MISTAKES]
    if other is not None:
        theirs = say(other, sources)
        if by_words:
            report["series"][str(other)] = by_length(names[0], sources, theirs.texts, references, how)
        compared = [compare(name, report["texts"], theirs.texts, references, tokenize=how) for name in names]
        report["compared_with"] = str(other)
        report["comparison"] = [asdict(each) for each in compared]
    return report


def _print(report: dict[str, Any], names: list[str]) -> None:
    aside = report["set_aside"]
    typer.echo(f"{report['sentences']:,} sentences{'; set aside: ' + _reasons(aside) if aside else ''}")
    for score in report["scores"]:
        typer.echo(f"  {score['name']:7} {score['value']:7.2f}   {score['signature']}")
    if "seconds" in report:
        typer.echo(
            f"  {report['sentences_per_second']:,} sentences/s, {report['tokens_per_second']:,} tokens/s, "
            f"beam {report['beam']}, {report['engine']}"
        )
    if report.get("sources_in_parts"):
        typer.echo(f"  {report['sources_in_parts']:,} sources are longer than the model reads, and were read in parts")
    if report.get("not_read"):
        why = f"; the first is {report['not_read_why']}" if report.get("not_read_why") else ""
        typer.echo(f"  {report['not_read']:,} sources could not be read, and count as wrong{why}")
    for right, said, count in report.get("confusions", []):
        typer.echo(f"  {count:6,} times {right} was taken for {said}")
    for label, buckets in report["series"].items():
        typer.echo(f"{names[0]} by the source's length in {report['length_in']}, {label}")
        for bucket in buckets:
            bar = "█" * max(0, round(bucket.value / 4))
            typer.echo(f"  {bucket.shortest:4}–{bucket.longest:<4} {bucket.count:6,}  {bucket.value:6.2f}  {bar}")
    for each in report.get("comparison", []):
        low, high = each["interval"]
        typer.echo(
            f"{each['measure']}: {each['first']:.2f}, {report['compared_with']} {each['second']:.2f}: the second is "
            f"{each['second'] - each['first']:+.2f} (95 % between {low:+.2f} and {high:+.2f}), p = {each['p']:.3f}"
        )
