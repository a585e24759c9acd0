"""regard fill."""

import json
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Json, RunLoader, Texts
from regard.cli.decoding_options import add_decoding_command
from regard.cli.printing import exit_if_failed
from regard.cli.standard_input import FILE_NAME, input_batches
from regard.cli.verbs import check_verb, option_groups
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inference.options import Options
    from regard.inference.pipelines.fill_mask import MaskPrediction
    from regard.inference.predictor import Predictor

DEFAULT_NBEST = 5  # words for each mask


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    add_decoding_command(
        app,
        "fill",
        fill,
        partial(option_groups, "fill"),
        epilog='\b\nExamples:\n  regard fill run "A dog ___ in the park."\n'
        '  regard fill run "A [MASK] runs in the [MASK]." --nbest 10\n'
        "  cat texts.txt | regard fill run - --json",
    )


def fill(
    run: Annotated[Path, typer.Argument(help="The folder of a run trained with --task masked_lm, or imported.")],
    texts: Annotated[
        Texts, typer.Argument(metavar="TEXT... | FILE | -", help="With ___ or [MASK] for each mask; - for lines.")
    ],
    device: Device = "auto",
    as_json: Json = False,
    *,
    options: "Options",
) -> None:
    """Predict the masked words of a text: the 5 most likely for each mask, or as many as --nbest."""
    predictor = RunLoader(run, device=device).load()
    check_verb(run, predictor.task, "fill")
    fill_texts(predictor, texts, options, as_json)


def fill_texts(predictor: "Predictor", inputs: Sequence[str], options: "Options", as_json: bool) -> None:
    """Print the most likely words of every mask. Of several texts, an invalid one does not stop the others."""
    predictor.resolve_options(options)
    nbest = options.nbest if "nbest" in options.model_fields_set else DEFAULT_NBEST
    reads_lines = len(inputs) == 1 and (inputs[0] == "-" or FILE_NAME.fullmatch(inputs[0]))
    failed = count = 0
    for texts in _batches(inputs):
        for text in texts:
            count += 1
            try:
                _print_masks(text, predictor.fill(text, nbest=nbest), as_json)
            except RegardError as error:
                if not reads_lines and len(inputs) == 1:
                    raise
                failed += 1
                record = json.dumps({"text": text, "error": str(error)})
                typer.echo(record if as_json else str(error), err=not as_json)
        sys.stdout.flush()
    if not count:
        raise RegardError("there is no text.")
    exit_if_failed(failed)


def _batches(inputs: Sequence[str]) -> Iterable[list[str]]:
    """Texts in batches: the ones given, the lines of one file, or the lines of standard input."""
    if len(inputs) == 1 and FILE_NAME.fullmatch(inputs[0]):
        from regard.data.input_files import read_lines

        return [[line for line, _ in read_lines(Path(inputs[0]))]]
    return input_batches(inputs)


def _print_masks(text: str, masks: "Sequence[Sequence[MaskPrediction]]", as_json: bool) -> None:
    if as_json:
        records = [[{"word": each.word, "probability": round(each.probability, 6)} for each in mask] for mask in masks]
        typer.echo(json.dumps({"text": text, "masks": records}, ensure_ascii=False))
        return
    for number, mask in enumerate(masks, 1):
        if len(masks) > 1:
            typer.echo(f"mask {number}")
        for prediction in mask:
            typer.echo(f"  {prediction.probability:6.1%}  {prediction.word}")
