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
        "convert-fairseq",
        epilog="\b\nExamples:\n  regard convert-fairseq checkpoint.pt data-bin --sentencepiece spm.model -o folder\n"
        "  regard import folder -o run",
    )(convert_fairseq)
    app.command(
        "export",
        epilog="\b\nExamples:\n  regard export run --to ctranslate2 -o folder\n"
        "  regard export run --to onnx -o folder\n  regard export bert --to huggingface -o folder",
    )(export)


def convert_fairseq(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of a Transformer, such as checkpoint_best.pt.")],
    dictionaries: Annotated[Path, typer.Argument(help="The folder with dict.SOURCE.txt and dict.TARGET.txt.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder; made new.")],
    sentencepiece: Annotated[
        list[Path] | None,
        typer.Option(help="The model that tokenizes texts; given twice, the source's and the target's."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prepare a fairseq checkpoint for import.

    What comes out is a folder of safetensors.
    The checkpoint's format could run anything when it is opened: here nothing but tensors and plain values is allowed.
    Without sentencepiece, texts must be tokenized like the checkpoint's training data, with spaces between tokens.
    """
    from regard.interop.fairseq import convert_checkpoint

    files = convert_checkpoint(checkpoint, dictionaries, output, sentencepiece=tuple(sentencepiece or ()))
    _print_files(output, files, as_json=as_json, hint=f". Go on with: regard import {output} -o run")


def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            help="A folder: Hugging Face's (config.json, safetensors, vocabulary), CTranslate2's, or convert-fairseq's."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The run's folder; made new.")],
    as_json: Json = False,
) -> None:
    """Make a run of a model trained elsewhere.

    Of Hugging Face's BERT, RoBERTa, DistilBERT, ESM, GPT-2, GPT-NeoX, Marian and Pegasus, and of CTranslate2's and
    fairseq's translation models. Nothing is fetched, and nothing in it can run.
    """
    from regard.interop.folder_import import import_folder
    from regard.tasks.base import task_from_description

    bundle = import_folder(folder, output)
    if as_json:
        record = {"run": str(output), "parameters": bundle.model.size, "vocabulary": len(bundle.target_vocabulary)}
        typer.echo(json.dumps(record))
    else:
        hint = task_from_description(bundle.description).usage(output)
        typer.echo(f"{output}: {bundle.model.size:,} parameters. {hint}")


def export(
    run: Annotated[Path, typer.Argument(help="A trained or imported run's folder.")],
    to: Annotated[str, typer.Option(help="huggingface, ctranslate2, onnx or safetensors.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder; made new.")],
    precision: Annotated[str, typer.Option(help="Of CTranslate2's weights: float32 or int8.")] = "float32",
    as_json: Json = False,
) -> None:
    """Write a run in another project's format."""
    from regard.interop.run_export import export_run

    _print_files(output, export_run(run, to, output, precision=precision), as_json=as_json)


def _print_files(folder: Path, files: list[str], *, as_json: bool, hint: str = "") -> None:
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "files": files}))
    else:
        typer.echo(f"{folder}: {', '.join(files)}{hint}")
