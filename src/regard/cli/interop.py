"""regard import and regard export: other projects' models."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Json


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "import",
        epilog="\b\nExamples:\n  regard import path/to/opus-mt-en-de -o run\n  regard translate run 'A dog runs.'\n"
        "  regard import path/to/bert-base-uncased -o bert\n  regard fill bert 'A dog [MASK] in the park.'",
    )(import_)
    app.command(
        "export",
        epilog="\b\nExamples:\n  regard export run --to ctranslate2 -o folder\n"
        "  regard export run --to onnx -o folder\n  regard export bert --to huggingface -o folder",
    )(export)


def import_(
    folder: Annotated[Path, typer.Argument(help="A folder of Hugging Face's: config.json, safetensors, vocabulary.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The run's folder; made new.")],
    as_json: Json = False,
) -> None:
    """Make a run of a model that was trained elsewhere: BERT, RoBERTa, DistilBERT, GPT-2, Marian.

    Nothing is fetched, and nothing in it can run.
    """
    from regard.interop.importing import import_folder

    bundle = import_folder(folder, output)
    about = bundle.description.model
    if as_json:
        record = {"run": str(output), "parameters": bundle.model.size, "vocabulary": len(bundle.target_side)}
        typer.echo(json.dumps(record))
        return
    typer.echo(f"{output}: {bundle.model.size:,} parameters. {_next(output, about.source.kind, about)}")


def _next(run: Path, reads: str, about: object) -> str:
    """What to do with it."""
    if reads == "nothing":
        return f'Go on from a text with: regard generate {run} "..."'
    if getattr(about, "guesses", False):
        return f'Fill gaps with: regard fill {run} "... ___ ..."'
    if getattr(about, "labels", False) or getattr(about, "step_by_step", False):
        return f'Use it with: regard translate {run} "..."'
    return f'Texts become vectors with: regard embed {run} "..." "..."'


def export(
    run: Annotated[Path, typer.Argument(help="A trained or imported run's folder.")],
    to: Annotated[str, typer.Option(help="huggingface (what was imported), ctranslate2, onnx or safetensors.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder; made new.")],
    precision: Annotated[str, typer.Option(help="Of CTranslate2's weights: float32 or int8.")] = "float32",
    as_json: Json = False,
) -> None:
    """Write a run in another project's format."""
    from regard.interop.exporting import export as write

    files = write(run, to, output, kind=precision)
    if as_json:
        typer.echo(json.dumps({"folder": str(output), "files": files}))
    else:
        typer.echo(f"{output}: {', '.join(files)}")
