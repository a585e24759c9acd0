"""Predicting a file: what is printed beside its outputs."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from regard.cli.common import progress
from regard.cli.printing import exit_code

if TYPE_CHECKING:
    from regard.documents.document import Document, DocumentLayout
    from regard.documents.file_translation import Outcome
    from regard.inference.options import Options
    from regard.inference.predictor import Predictor

MAX_REPORTED = 10  # texts that something is wrong with


def predict_file(
    predictor: "Predictor",
    run: Path,
    path: Path,
    output: Path | None,
    layout: "DocumentLayout",
    options: "Options",
    as_json: bool,
) -> None:
    """Write a file's translation to another file, or to standard output."""
    from regard.documents.file_translation import (
        check_output_path,
        conditions_of,
        fingerprint_of,
        open_document,
        translate_document,
    )

    document, content = open_document(path, layout)
    if output is None:
        _write_to_standard_output(predictor, path, document, options, as_json)
        return
    output = check_output_path(output, path)
    fingerprint = fingerprint_of(content, conditions_of(run, predictor, options, layout))
    with progress(f"translating {path.name}", len(document.texts), as_json) as done:
        try:
            outcome = translate_document(predictor, document, options, output, fingerprint=fingerprint, done=done)
        except KeyboardInterrupt:
            typer.echo("Stopped; the same command goes on from here.", err=True)
            raise
    (_print_json if as_json else _print_outcome)(outcome, document, output)
    exit_code(len(outcome.failed))


def _write_to_standard_output(
    predictor: "Predictor", path: Path, document: "Document", options: "Options", as_json: bool
) -> None:
    with progress(f"translating {path.name}", len(document.texts), as_json) as done:
        results = predictor.results(document.texts, options, on_done=done)
    sys.stdout.buffer.write(document.write([None if result.error else result.text for result in results]))
    failed = [(number, result.error) for number, result in enumerate(results, 1) if result.error]
    for number, error in failed[:MAX_REPORTED]:
        typer.echo(f"regard: text {number:,} has no translation: {error}", err=True)
    exit_code(len(failed))


def _print_json(outcome: "Outcome", document: "Document", output: Path) -> None:
    record = {
        "output": str(output),
        "texts": len(outcome.texts),
        "resumed": outcome.resumed,
        "wrong": [{"text": number + 1, "why": why} for number, why in outcome.failed],
        "lost": [{"text": number + 1, "what": what} for number, what in outcome.missing],
        "notes": list(document.notes),
    }
    typer.echo(json.dumps(record, ensure_ascii=False))


def _print_outcome(outcome: "Outcome", document: "Document", output: Path) -> None:
    written = len(outcome.texts) - len(outcome.failed)
    typer.echo(f"{written:,} text{'s' * (written != 1)} into {output}", err=True)
    for note in document.notes[:MAX_REPORTED]:
        typer.echo(f"  {note}; it stays as it is", err=True)
    if outcome.resumed:
        typer.echo(f"{outcome.resumed:,} of them were done before it was stopped", err=True)
    for number, why in outcome.failed[:MAX_REPORTED]:
        typer.echo(f"  text {number + 1:,} has no translation: {why}", err=True)
    for number, what in outcome.missing[:MAX_REPORTED]:
        typer.echo(f"  text {number + 1:,} could not keep: {', '.join(what)}", err=True)
    for count, which in ((len(outcome.failed), "without a translation"), (len(outcome.missing), "that lost something")):
        if count > MAX_REPORTED:
            typer.echo(f"  in all {count:,} {which}", err=True)
