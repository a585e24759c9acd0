"""regard fill and regard embed: what a model that reads makes of texts."""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Device, Json, progress
from regard.cli.translate import as_they_come
from regard.errors import RegardError

Texts = list[str]
FILE = re.compile(r"\S+\.(txt|tsv|csv|jsonl|text)(\.gz)?")  # what is a file's name rather than a text


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "fill",
        epilog='\b\nExamples:\n  regard fill run "A dog ___ in the park."\n'
        '  regard fill run "A [MASK] runs in the [MASK]." --best 10\n'
        "  cat texts.txt | regard fill run - --json",
    )(fill)
    app.command(
        "embed",
        epilog='\b\nExamples:\n  regard embed run "A dog runs." "A cat sleeps."     how alike they are\n'
        "  regard embed run sentences.txt -o vectors.npy\n"
        '  regard embed run "A dog runs." --json',
    )(embed)


def fill(
    run: Annotated[Path, typer.Argument(help="The folder of a run trained with --task masked_lm, or imported.")],
    text: Annotated[
        str, typer.Argument(metavar="TEXT | FILE | -", help="With ___ or [MASK] for each gap; - for lines.")
    ],
    best: Annotated[int, typer.Option(help="How many words for each gap.")] = 5,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Guess the words that are hidden in a text."""
    from regard.data.files import read_lines
    from regard.loading import load

    model = load(run, device=device)
    if "fill" not in dir(model):
        raise RegardError(f"{run}: this run guesses no words; train one with --task masked_lm.")
    wrong, several, some = False, text == "-", False
    texts: Iterable[list[str]] = as_they_come() if several else [[text]]
    if FILE.fullmatch(text):
        several, texts = True, [[line for line, _ in read_lines(Path(text))]]
    for lines in texts:
        some = some or bool(lines)
        for line in lines:
            try:
                gaps = model.fill(line, best=best)
            except RegardError as error:
                if not several:
                    raise
                wrong = True  # the lines after it are read all the same
                typer.echo(json.dumps({"text": line, "wrong": str(error)}) if as_json else str(error), err=not as_json)
                continue
            if as_json:
                records = [[{"word": g.word, "probability": round(g.probability, 6)} for g in gap] for gap in gaps]
                typer.echo(json.dumps({"text": line, "gaps": records}, ensure_ascii=False))
                continue
            for number, gap in enumerate(gaps, 1):
                if len(gaps) > 1:
                    typer.echo(f"gap {number}")
                for guess in gap:
                    typer.echo(f"  {guess.probability:6.1%}  {guess.word}")
        sys.stdout.flush()
    if not some:
        raise RegardError("there is no text.")
    if wrong:
        raise typer.Exit(1)


def embed(
    run: Annotated[Path, typer.Argument(help="The folder of a run that reads text.")],
    texts: Annotated[Texts, typer.Argument(metavar="TEXT... | FILE | -", help="Texts, or a file with one a line.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Into a .npy file, [texts, width].")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="As long as they are, not of length 1.")] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Vectors of texts: like texts have like ones. Without -o or --json, how alike the texts are."""
    from regard.data.files import read_lines
    from regard.inference.text_inputs import TextInputs
    from regard.loading import load

    if len(texts) == 1 and texts[0] == "-":
        texts = [line for lines in as_they_come() for line in lines]
    elif len(texts) == 1 and Path(texts[0]).is_file():
        texts = [line for line, _ in read_lines(Path(texts[0]))]
    elif len(texts) == 1 and FILE.fullmatch(texts[0]):
        raise RegardError(f"{texts[0]}: there is no such file.")
    if not texts:
        raise RegardError("there is no text.")
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise RegardError(f"text {number:,} of {len(texts):,} is empty; leave it out.")
    if output is not None and output.suffix.lower() != ".npy":
        raise RegardError(f"-o: {output} must end in .npy.")
    model = load(run, device=device)
    with progress(f"reading with {run}", len(texts), as_json) as done:
        if "embed" not in dir(model):
            raise RegardError("embed: this model does not read texts.")
        found = model.embed(texts, normalize=not raw, on_done=done)
    if cut := sum(not TextInputs(model.run).fits(text) for text in texts):
        typer.echo(
            f"{cut:,} texts are longer than the {model.run.max_source_tokens:,} tokens that are read, and were cut.",
            err=True,
        )
    if output is not None:
        import numpy as np

        np.save(output, found)
        typer.echo(f"{output}: {found.shape[0]:,} vectors of {found.shape[1]:,} numbers")
    elif as_json:
        for text, vector in zip(texts, found.tolist(), strict=True):
            typer.echo(json.dumps({"text": text, "vector": [round(x, 6) for x in vector]}, ensure_ascii=False))
    elif len(texts) == 1:
        typer.echo(
            f"{found.shape[1]:,} numbers, the first: {' '.join(f'{x:.4f}' for x in found[0, :8])}; see --json, -o"
        )
    else:
        lengths = (found**2).sum(1, keepdims=True) ** 0.5
        alike = found @ found.T / (lengths * lengths.T)
        for number, text in enumerate(texts):
            row = " ".join(f"{value:5.2f}" for value in alike[number])
            typer.echo(f"{row}  {text}")
