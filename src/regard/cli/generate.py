"""regard generate."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Json, Precision, RunLoader, Texts
from regard.cli.decoding_options import add_decoding_command
from regard.cli.printing import ResultPrinter
from regard.cli.standard_input import FILE_NAME, input_batches
from regard.cli.verbs import check_verb, option_groups

if TYPE_CHECKING:
    from regard.inference.options import Options
    from regard.inference.predictor import Predictor


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    add_decoding_command(
        app,
        "generate",
        generate,
        partial(option_groups, "generate"),
        epilog="\b\nExamples:\n"
        '  regard generate run "A dog"\n'
        '  regard generate run "A dog" --temperature 0.8 --top-p 0.95 --nbest 5\n'
        '  regard generate run "" --max-tokens 200 --seed 7\n'
        '  regard generate run "A dog" --beam 5 --scores\n'
        "  cat prompts.txt | regard generate run - --json",
    )


def generate(
    run: Annotated[Path, typer.Argument(help="The folder of a run trained with --task causal_lm.")],
    prompts: Annotated[
        Texts | None,
        typer.Argument(
            metavar="[TEXT... | FILE | -]", help="How the text begins; a file of prompts, or - for lines of input."
        ),
    ] = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: Json = False,
    *,
    options: "Options",
) -> None:
    """Continue a prompt with a language model. It samples, unless --beam or --search is given; one text is streamed."""
    predictor = RunLoader(run, device=device, precision=precision).load()
    check_verb(run, predictor.task, "generate")
    generate_texts(predictor, prompts or [], options, as_json)


def generate_texts(predictor: "Predictor", inputs: Sequence[str], options: "Options", as_json: bool) -> None:
    """Print continuations of prompts; one that is sampled or searched greedily is streamed."""
    prompts = _read_prompts(inputs)
    scores = options.scores
    options = predictor.resolve_options(options)
    options = options if as_json else options.with_changes(scores=False)
    if len(prompts) == 1 and prompts != ["-"] and not (scores or as_json) and predictor.streams(options):
        predictor.stream(prompts[0], _write_and_flush, options)
        typer.echo()
        return
    several = len(prompts) > 1 or prompts == ["-"]
    printer = ResultPrinter(as_json, scores, numbered=options.nbest > 1 and several)
    for batch in input_batches(prompts):
        for result in predictor.predict(batch, options):
            printer(result)
        sys.stdout.flush()
    printer.exit()


def _read_prompts(inputs: Sequence[str]) -> list[str]:
    """The prompts; the lines of a file, if one text is the name of an existing file."""
    if len(inputs) == 1 and FILE_NAME.fullmatch(inputs[0]) and Path(inputs[0]).is_file():
        from regard.data.input_files import read_lines

        return [line for line, _ in read_lines(Path(inputs[0]))]
    return list(inputs) or [""]


def _write_and_flush(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
