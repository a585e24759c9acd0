"""regard generate."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Device, Json, Precision
from regard.cli.translate import Teller, as_they_come
from regard.errors import RegardError

Texts = list[str]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "generate",
        epilog="\b\nExamples:\n"
        '  regard generate run "A dog"\n'
        '  regard generate run "A dog" --temperature 0.8 --top-p 0.95 --nbest 5\n'
        '  regard generate run "" --max-tokens 200 --seed 7\n'
        '  regard generate run "A dog" --beam 5 --scores\n'
        "  cat beginnings.txt | regard generate run - --json",
    )(generate)


def generate(
    run: Annotated[Path, typer.Argument(help="The folder of a run trained with --task causal_lm.")],
    given: Annotated[str, typer.Argument(metavar="[TEXT | -]", help="How the text begins; - for lines of input.")] = "",
    max_tokens: Annotated[int, typer.Option(help="That are said after it, at most.")] = 64,
    nbest: Annotated[int, typer.Option(help="How many texts for each beginning.")] = 1,
    temperature: Annotated[float, typer.Option(help="Below 1 surer, above 1 wilder.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Draw among the k likeliest words.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw among the fewest words with this probability.")] = None,
    seed: Annotated[int, typer.Option(help="Of the draws: the same gives the same text.")] = 1,
    greedy: Annotated[bool, typer.Option("--greedy", help="Take the likeliest word each time, draw nothing.")] = False,
    beam: Annotated[int, typer.Option(help="Search with so many hypotheses instead of drawing; 1 is greedy.")] = 0,
    length_penalty: Annotated[float, typer.Option(help="With a beam: above 0 prefers longer texts.")] = 1.0,
    no_repeat_ngram: Annotated[
        int, typer.Option(help="Never say so many tokens in a row twice; 0 for never mind.")
    ] = 0,
    forbidden: Annotated[Texts | None, typer.Option(help="A word or phrase not to say. May be repeated.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Tell each text's score.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: Json = False,
) -> None:
    """Let a language model go on from how a text begins. One text is told word by word, as it is said."""
    from regard.inference.options import Options
    from regard.loading import load
    from regard.runs.folder import open_folder

    if open_folder(run).description.model.source.kind != "nothing":
        guesses = open_folder(run).description.model.guesses
        raise RegardError(
            f"{run}: this run guesses what is hidden; use regard fill."
            if guesses
            else f"{run}: this run reads something before it says anything; use regard translate."
        )
    if max_tokens < 1:
        raise RegardError(f"--max-tokens: {max_tokens} is not possible; it must be at least 1.")
    searched = beam or (1 if greedy else 0)
    if searched and (top_k or top_p or temperature != 1.0):
        raise RegardError("--beam and --greedy search; leave out --temperature, --top-k and --top-p, which draw.")
    options = Options(
        beam=max(searched, nbest, 1),
        nbest=nbest,
        length_penalty=length_penalty,
        no_repeat_ngram=no_repeat_ngram,
        temperature=None if searched else temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        max_tokens=max_tokens,
        forbidden=tuple(forbidden or ()),
        scores=scores and as_json,
    )
    model = load(run, device=device, precision=precision)
    if given != "-" and nbest == 1 and options.beam == 1 and not scores and not as_json:

        def heard(piece: str) -> None:
            sys.stdout.write(piece)
            sys.stdout.flush()

        model.stream(given, heard, options)
        typer.echo()
        return
    tell = Teller(options, scores=scores, numbered=nbest > 1 and given == "-", as_json=as_json)
    for beginnings in as_they_come() if given == "-" else [[given]]:
        for result in model.predict(beginnings, options):
            tell(result)
        sys.stdout.flush()
    if tell.wrong:
        raise typer.Exit(1)
