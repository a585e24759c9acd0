"""Predicting a file, and reporting what could not be predicted."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from regard.cli.common import progress
from regard.cli.printing import exit_if_failed

if TYPE_CHECKING:
    from regard.documents.document import Document, DocumentLayout
    from regard.documents.file_translation import FileTranslation
    from regard.inference.options import Options
    from regard.inference.predictor import Predictor

MAX_REPORTED = 10  # texts with problems that are listed


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
        open_document,
        translate_document,
        translation_conditions,
        translation_fingerprint,
    )

    document, content = open_document(path, layout)
    if output is None:
        _write_to_standard_output(predictor, path, document, options, as_json)
        return
    output = check_output_path(output, path)
    fingerprint = translation_fingerprint(content, translation_conditions(run, predictor, options, layout))
    with progress(f"translating {path.name}", len(document.texts), as_json) as done:
        try:
            translation = translate_document(predictor, document, options, output, fingerprint=fingerprint, done=done)
        except KeyboardInterrupt:
            typer.echo("Stopped; the same command goes on from here.", err=True)
            raise
    (_print_json if as_json else _print_report)(translation, document, output)
    exit_if_failed(len(translation.failed))


def _write_to_standard_output(
    predictor: "Predictor", path: Path, document: "Document", options: "Options", as_json: bool
) -> None:
    with progress(f"translating {path.name}", len(document.texts), as_json) as done:
        results = predictor.results(document.texts, options, on_done=done)
    sys.stdout.buffer.write(document.write([None if result.error else result.text for result in results]))
    failed = [(number, result.error) for number, result in enumerate(results, 1) if result.error]
    for number, error in failed[:MAX_REPORTED]:
        typer.echo(f"regard: text {number:,} has no translation: {error}", err=True)
    exit_if_failed(len(failed))


def _print_json(translation: "FileTranslation", document: "Document", output: Path) -> None:
    record = {
        "output": str(output),
        "texts": len(translation.texts),
        "resumed": translation.resumed,
        "errors": [{"text": number + 1, "error": reason} for number, reason in translation.failed],
        "missing": [{"text": number + 1, "placeholders": placeholders} for number, placeholders in translation.missing],
        "notes": list(document.notes),
    }
    typer.echo(json.dumps(record, ensure_ascii=False))


def _print_report(translation: "FileTranslation", document: "Document", output: Path) -> None:
    written = len(translation.texts) - len(translation.failed)
    typer.echo(f"{written:,} text{'s' * (written != 1)} into {output}", err=True)
    for note in document.notes[:MAX_REPORTED]:
        typer.echo(f"  {note}; it stays as it is", err=True)
    if translation.resumed:
        typer.echo(f"{translation.resumed:,} of them were done before it was stopped", err=True)
    for number, reason in translation.failed[:MAX_REPORTED]:
        typer.echo(f"  text {number + 1:,} has no translation: {reason}", err=True)
    for number, placeholders in translation.missing[:MAX_REPORTED]:
        typer.echo(f"  text {number + 1:,} could not keep: {', '.join(placeholders)}", err=True)
    for count, which in (
        (len(translation.failed), "without a translation"),
        (len(translation.missing), "that lost something"),
    ):
        if count > MAX_REPORTED:
            typer.echo(f"  in all {count:,} {which}", err=True)
