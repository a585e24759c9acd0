"""regard embed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Json, RunLoader, Texts, progress
from regard.cli.standard_input import FILE_NAME, input_batches
from regard.errors import RegardError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regard.inference.options import Options
    from regard.inference.predictor import Predictor


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "embed",
        epilog='\b\nExamples:\n  regard embed run "A dog runs." "A cat sleeps."     how alike they are\n'
        "  regard embed run sentences.txt -o vectors.npy\n"
        '  regard embed run "A dog runs." --json',
    )(embed)


def embed(
    run: Annotated[Path, typer.Argument(help="The folder of a run that reads text.")],
    texts: Annotated[Texts, typer.Argument(metavar="TEXT... | FILE | -", help="Texts, or a file with one a line.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Into a .npy file, [texts, width].")] = None,
    raw: Annotated[bool, typer.Option("--no-normalize", help="As long as they are, not of length 1.")] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Vectors of texts: similar texts have similar ones. Without -o or --json, how similar the texts are."""
    from regard.inference.pipelines.text_embedding import count_truncated

    texts = _read_texts(texts)
    if output is not None and output.suffix.lower() != ".npy":
        raise RegardError(f"-o: {output} must end in .npy.")
    predictor = RunLoader(run, device=device).load()
    if not hasattr(predictor, "embed"):
        raise RegardError(f"{run}: this model does not read texts, and cannot embed them.")
    with progress(f"embedding with {run}", len(texts), as_json) as on_done:
        vectors = predictor.embed(texts, normalize=not raw, on_done=on_done)
    if truncated := count_truncated(predictor.run, texts):
        limit = predictor.run.max_source_tokens
        typer.echo(f"{truncated:,} texts are longer than the model's {limit:,} tokens, and were truncated.", err=True)
    if output is not None:
        import numpy

        numpy.save(output, vectors)
        typer.echo(f"{output}: {vectors.shape[0]:,} vectors of {vectors.shape[1]:,} numbers")
    else:
        _print_vectors(texts, vectors, as_json)


def print_vectors(predictor: "Predictor", inputs: Sequence[str], options: "Options", as_json: bool) -> None:
    """Print the vectors of texts, or how similar the texts are: what `regard predict` does with a run that embeds."""
    predictor.resolve_options(options)
    texts = _read_texts(list(inputs))
    _print_vectors(texts, predictor.embed(texts), as_json)


def _print_vectors(texts: Sequence[str], vectors: "NDArray[np.float32]", as_json: bool) -> None:
    if not as_json:
        _print_similarities(texts, vectors)
        return
    for text, vector in zip(texts, vectors.tolist(), strict=True):
        typer.echo(json.dumps({"text": text, "vector": [round(x, 6) for x in vector]}, ensure_ascii=False))


def _read_texts(inputs: Texts) -> Texts:
    """The texts that are given, the lines of one file, or those of standard input. Raises RegardError."""
    if len(inputs) == 1 and Path(inputs[0]).is_file():
        from regard.data.input_files import read_lines

        texts = [line for line, _ in read_lines(Path(inputs[0]))]
    elif len(inputs) == 1 and FILE_NAME.fullmatch(inputs[0]):
        raise RegardError(f"{inputs[0]}: there is no such file.")
    else:
        texts = [line for lines in input_batches(inputs) for line in lines]
    if not texts:
        raise RegardError("there is no text.")
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise RegardError(f"text {number:,} of {len(texts):,} is empty; leave it out.")
    return texts


def _print_similarities(texts: Sequence[str], vectors: "NDArray[np.float32]") -> None:
    if len(texts) == 1:
        first = " ".join(f"{value:.4f}" for value in vectors[0, :8])
        typer.echo(f"{vectors.shape[1]:,} numbers, the first: {first}; see --json, -o")
        return
    lengths = (vectors**2).sum(1, keepdims=True) ** 0.5
    similarities = vectors @ vectors.T / (lengths * lengths.T)
    for text, row in zip(texts, similarities, strict=True):
        typer.echo(f"{' '.join(f'{value:5.2f}' for value in row)}  {text}")
