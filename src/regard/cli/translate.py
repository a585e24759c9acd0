"""regard translate."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.common import Device, Engine, Json, Precision, Shortlist, layout_of
from regard.documents.document import DOCUMENTS, DocumentLayout, has_known_suffix, kind_of, read_document
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inference.options import Options
    from regard.inference.predictor import Predictor
    from regard.inference.results import Result


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "translate",
        epilog="\b\nExamples:\n"
        '  regard translate run "A dog runs in the park."\n'
        "  regard translate run article.txt -o article.de.txt --paragraphs\n"
        "  regard translate run app.po -o app.de.po\n"
        "  regard translate run table.csv --column text -o out.csv\n"
        "  regard translate captions-run photo.jpg another.png\n"
        "  cat lines.txt | regard translate run - --nbest 3 --json\n"
        '  regard translate run "the cat" --glossary terms.tsv --alignment',
    )(translate)


Texts = list[str]
AT_ONCE = 4096  # lines of input that are translated together, if they are there
SHOWN = 10  # texts that something went wrong with


def translate(
    run: Annotated[Path, typer.Argument(help="A trained run's folder.")],
    given: Annotated[
        Texts,
        typer.Argument(
            metavar="[TEXT | FILE | -]", help="A text, a file, or - for lines of input; pictures or recordings."
        ),
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where a file's translation goes.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept in search; 1 is greedy.")] = 5,
    nbest: Annotated[int, typer.Option(help="How many of them to tell.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Above 0 prefers longer outputs.")] = 1.0,
    coverage_penalty: Annotated[float, typer.Option(help="Above 0 prefers outputs that attend to all words.")] = 0.0,
    no_repeat_ngram: Annotated[int, typer.Option(help="Never repeat so many tokens in a row.")] = 0,
    beam_groups: Annotated[int, typer.Option(help="Diverse beam search: the beam in so many groups.")] = 1,
    diversity_penalty: Annotated[float, typer.Option(help="For a token of another group.")] = 0.5,
    temperature: Annotated[float | None, typer.Option(help="Draw words; below 1 surer, above 1 wilder.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw among the k likeliest words.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw among the fewest words with this probability.")] = None,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 1,
    max_length_ratio: Annotated[float | None, typer.Option(help="Output tokens per source token.")] = None,
    prefix: Annotated[str, typer.Option(help="How every output begins.")] = "",
    forbidden: Annotated[Texts | None, typer.Option(help="A word or phrase not to say. May be repeated.")] = None,
    required: Annotated[Texts | None, typer.Option(help="A word or phrase that must be said. May be repeated.")] = None,
    glossary: Annotated[Path | None, typer.Option(help="A .tsv of terms: source, tab, target.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Tell each output's score.")] = False,
    alignment: Annotated[bool, typer.Option("--alignment", help="Tell which word is from which: 0-0 1-2.")] = False,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Lines are paragraphs: split them into sentences, put them back.")
    ] = False,
    column: Annotated[str | None, typer.Option(help="Of a table: the source's column, by name or from 1.")] = None,
    kind: Annotated[
        str | None, typer.Option(help=f"Of file, where its name does not say: {', '.join(DOCUMENTS)}.")
    ] = None,
    source_language: Annotated[str | None, typer.Option("--from", help="For files with several languages.")] = None,
    target_language: Annotated[str | None, typer.Option("--to", help="For files with several languages.")] = None,
    engine: Engine = "auto",
    precision: Precision = "auto",
    threads: Annotated[int, typer.Option(help="0 for one on each processor core.")] = 0,
    shortlist: Shortlist = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Translate a text, lines, or a file of any kind that people translate."""
    from regard.inference.options import Options

    options = Options(
        beam=max(beam, nbest) if beam > 0 else beam,
        nbest=nbest,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        no_repeat_ngram=no_repeat_ngram,
        beam_groups=beam_groups,
        diversity_penalty=diversity_penalty,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        max_length_ratio=max_length_ratio,
        prefix=prefix,
        forbidden=tuple(forbidden or ()),
        required=tuple(required or ()),
        glossary=_terms(glossary) if glossary is not None else {},
        scores=scores and as_json,
        alignment=alignment,
    )
    from regard.runs.folder import open_folder

    about = open_folder(run).description
    if about.target_languages:
        options = replace(options, to=target_language or "")
    elif target_language is not None and about.model.source.kind != "text":
        raise RegardError("--to: this run says everything in one language; leave it out.")
    output = None if output == Path("-") else output
    if about.model.source.kind == "nothing":
        raise RegardError(f"{run}: this is a language model, which goes on from a text; use regard generate.")
    if about.model.source.kind != "text":
        _media(
            run, given, output, options, device, scores, as_json, plain=not (alignment or paragraphs or kind or column)
        )
        return
    if len(given) > 1:
        raise RegardError("one text or one file at a time; put a text between quotation marks.")
    what = given[0]
    path = _file_named(what, output)
    if path is None and (paragraphs or kind or column):
        raise RegardError("--paragraphs, --kind and --column are for files; name one.")
    from regard.loading import load

    predictor = load(run, engine=engine, device=device, precision=precision, threads=threads, shortlist=shortlist)
    if sys.stderr.isatty() and not as_json:
        typer.echo(f"{predictor.engine_reason}", err=True)
    more = nbest > 1 or scores or alignment  # than a file has a place for
    if path is not None:
        own = layout_of(run, None, None, column, None)  # a run that answers has columns of its own
        if about.model.spans or own.question_column is not None:
            from regard.data.column_detection import layout_with_question

            own = layout_with_question(path, own)
        answers = own.question_column is not None
        place = own.source_column if answers or column is not None else None
        layout = DocumentLayout(
            source_language or about.source_language,
            target_language or about.target_language,
            place,
            own.question_column,
            paragraphs=paragraphs,
            kind=kind,
        )
        as_lines = kind_of(path, layout) == "text" and not paragraphs and output is None and (more or as_json)
        if more and not as_lines:
            raise RegardError("--nbest, --scores and --alignment are for texts and for lines, without --output.")
        if not as_lines:
            _file(predictor, run, path, output, layout, options, as_json)
            return
        tell = Teller(options, scores=scores, numbered=nbest > 1, as_json=as_json)
        with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for result in predictor.predict((line.rstrip("\r\n") for line in file), options):
                tell(result)
    else:
        tell = Teller(options, scores=scores, numbered=nbest > 1 and what == "-", as_json=as_json)
        for lines in as_they_come() if what == "-" else [[what]]:
            for result in predictor.predict(lines, options):
                tell(result)
            sys.stdout.flush()
    _leave(tell.wrong)


def _media(
    run: Path,
    given: Texts,
    output: Path | None,
    options: "Options",
    device: str,
    scores: bool,
    as_json: bool,
    *,
    plain: bool,
) -> None:
    """What a model of pictures or recordings says to each of these files; - for lines of their names."""
    from regard.cli.common import progress
    from regard.loading import load

    if not plain:
        raise RegardError("--alignment, --paragraphs, --kind and --column are for texts; this run reads files.")
    if output is not None:
        raise RegardError("--output: what is said goes to the output, a line for each file, so redirect it with >.")
    predictor = load(run, device=device)
    names = [line for lines in as_they_come() for line in lines] if given == ["-"] else given
    with progress("reading", len(names), as_json) as done:
        results = predictor.results(names, options, on_done=done)
    tell = Teller(options, scores=scores, numbered=False, as_json=as_json, named=len(names) > 1, files=True)
    for result in results:
        tell(result)
    _leave(tell.wrong)


def _leave(wrong: int) -> None:
    """With 1 if there are texts without a translation: programs look at that."""
    if wrong:
        raise typer.Exit(1)


def _file_named(what: str, output: Path | None) -> Path | None:
    """The file that is meant, or None if it is a text. Raises RegardError where neither would be right."""
    if not what.strip():
        raise RegardError("there is nothing to translate; give a text, a file, or - for lines of input.")
    if what == "-" or len(what) > 1000 or "\n" in what or "\0" in what:
        path = None
    else:
        path = Path(what)
        if path.is_dir():
            raise RegardError(f"{what}: this is a folder; name a file in it, or say it as input: echo {what} | ... -")
        if not path.is_file():
            if not any(map(str.isspace, what)) and (
                has_known_suffix(path) or what.startswith(("/", "./", "../", "~/"))
            ):
                raise RegardError(f"{what}: there is no such file.")
            if output is not None and path.suffix:
                raise RegardError(f"{what}: there is no such file.")
            path = None
    if path is None and output is not None:
        raise RegardError("--output: it is for files; what else is said goes to the output, so redirect it with >.")
    return path


def as_they_come() -> Iterator[list[str]]:
    """The lines of the input that are there, whenever there are some: a typist is answered at once, a file in bulk."""
    import queue
    import threading

    if sys.stdin is None:
        raise RegardError("there is no input to read; name a text or a file.")
    waiting: queue.Queue[str | None] = queue.Queue(2 * AT_ONCE)
    failed: list[Exception] = []

    def read() -> None:
        try:
            for line in sys.stdin:
                waiting.put(line.rstrip("\r\n"))
        except (OSError, ValueError) as error:
            failed.append(error)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    more = True
    while more:
        lines = [waiting.get()]
        with contextlib.suppress(queue.Empty):
            while lines[-1] is not None and len(lines) < AT_ONCE:
                lines.append(waiting.get(timeout=0.01))
        more = lines[-1] is not None
        yield [line for line in lines if line is not None]
    if failed:
        raise RegardError(f"the input cannot be read ({failed[0]}); convert it to UTF-8 first.")


def _terms(path: Path) -> dict[str, str]:
    """A glossary. Raises RegardError."""
    from regard.data.example import Layout
    from regard.data.readers import read_pairs

    if path.suffix.lower() not in (".tsv", ".csv", ".jsonl"):
        raise RegardError(f"--glossary: {path} must be a .tsv, .csv or .jsonl of terms: source and target.")
    terms: dict[str, str] = {}
    for example in read_pairs(path, Layout()):
        if example.problem or not example.source.strip() or not example.target.strip():
            raise RegardError(
                f"{path}, line {example.line}: {example.problem or 'a side is empty'}; a line has two terms."
            )
        terms[example.source.strip()] = example.target.strip()
    return terms


class Teller:
    """Tells results, a line for each output: its number if there are several for each text, its score, the text, and
    which word is from which, as far as that was asked for, with tabs between."""

    def __init__(
        self,
        options: "Options",
        *,
        scores: bool,
        numbered: bool,
        as_json: bool,
        named: bool = False,
        files: bool = False,
    ) -> None:
        self._options, self._scores, self._numbered, self._as_json = options, scores, numbered, as_json
        self._named, self._files = named, files
        self._count = self.wrong = 0

    def __call__(self, result: "Result") -> None:
        from regard.alignment.aligner import pharaoh

        self._count += 1
        self.wrong += bool(result.error)
        if self._as_json:
            typer.echo(json.dumps(_record(result), ensure_ascii=False))
            return
        if result.error:
            what = f"{result.source}: " if self._files else f"text {self._count:,} has no translation: "
            typer.echo(f"regard: {what}{result.error}", err=True)
        outputs = [(result.text, result.score), *((other.text, other.score) for other in result.others)]
        for place, (text, score) in enumerate(outputs):
            cells = [result.source] * self._named + [str(self._count)] * self._numbered
            cells += [f"{score:.4f}"] * self._scores + [text]
            if self._options.alignment:
                cells.append(pharaoh(result.alignment) if result.alignment is not None and place == 0 else "")
            typer.echo("\t".join(cells))
        if result.missing:
            typer.echo(f"regard: text {self._count:,} could not keep: {', '.join(result.missing)}", err=True)


def _record(result: "Result") -> dict[str, Any]:
    record: dict[str, Any] = {"source": result.source, "text": result.text, "score": round(result.score, 6)}
    if result.others:
        record["others"] = [{"text": other.text, "score": round(other.score, 6)} for other in result.others]
    if result.token_scores is not None:
        record["token_scores"] = [round(score, 6) for score in result.token_scores]
    if result.alignment is not None:
        record["alignment"] = result.alignment
    for name, value in (("missing", result.missing), ("wrong", result.error)):
        if value:
            record[name] = value
    return record


def _file(
    predictor: "Predictor", run: Path, path: Path, output: Path | None, layout: Any, options: "Options", as_json: bool
) -> None:
    from regard.cli.common import progress
    from regard.documents.file_translation import fingerprint_of, translate_document
    from regard.runs.folder import stamp_of

    content = path.read_bytes()
    document = read_document(content, str(path), kind_of(path, layout), layout)
    if output is None:
        with progress(f"translating {path.name}", len(document.texts), as_json) as done:
            results = predictor.results(document.texts, options, on_done=done)
        sys.stdout.buffer.write(document.write([None if result.error else result.text for result in results]))
        wrong = [number for number, result in enumerate(results, 1) if result.error]
        for number in wrong[:SHOWN]:
            typer.echo(f"regard: text {number:,} has no translation: {results[number - 1].error}", err=True)
        _leave(len(wrong))
        return
    output = _place_for(output, path)
    about = f"{stamp_of(run)} {predictor.engine_reason} {options} {layout}"
    with progress(f"translating {path.name}", len(document.texts), as_json) as done:
        try:
            outcome = translate_document(
                predictor, document, options, output, fingerprint=fingerprint_of(content, about), done=done
            )
        except KeyboardInterrupt:
            typer.echo("Stopped; the same command goes on from here.", err=True)
            raise
    record = {
        "output": str(output),
        "texts": len(outcome.texts),
        "resumed": outcome.resumed,
        "wrong": [{"text": number + 1, "why": why} for number, why in outcome.failed],
        "lost": [{"text": number + 1, "what": what} for number, what in outcome.missing],
        "notes": list(document.notes),
    }
    if as_json:
        typer.echo(json.dumps(record, ensure_ascii=False))
        _leave(len(outcome.failed))
        return
    told = len(outcome.texts) - len(outcome.failed)
    typer.echo(f"{told:,} text{'s' * (told != 1)} into {output}", err=True)
    for note in document.notes[:SHOWN]:
        typer.echo(f"  {note}; it stays as it is", err=True)
    if outcome.resumed:
        typer.echo(f"{outcome.resumed:,} of them were done before it was stopped", err=True)
    for number, why in outcome.failed[:SHOWN]:
        typer.echo(f"  text {number + 1:,} has no translation: {why}", err=True)
    for number, what in outcome.missing[:SHOWN]:
        typer.echo(f"  text {number + 1:,} could not keep: {', '.join(what)}", err=True)
    for count, which in ((len(outcome.failed), "without a translation"), (len(outcome.missing), "that lost something")):
        if count > SHOWN:
            typer.echo(f"  in all {count:,} {which}", err=True)
    _leave(len(outcome.failed))


def _place_for(output: Path, source: Path) -> Path:
    """The file that is to be written. Raises RegardError if it cannot be: devices and pipes would become files."""
    if output.exists() and not output.is_file():
        raise RegardError(f"--output: {output} is no file; name one, or leave it out and redirect with >.")
    output = output.resolve()
    if output.exists() and output.samefile(source):
        raise RegardError(f"--output: {output} is the file that is translated; name another one.")
    if not output.parent.is_dir():
        raise RegardError(f"--output: there is no folder {output.parent}; make it first.")
    if not os.access(output.parent, os.W_OK):
        raise RegardError(f"--output: {output.parent} may not be written to; check its permissions.")
    return output
