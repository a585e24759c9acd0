"""regard align."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import (
    Device,
    Files,
    Json,
    SourceColumn,
    SourceFile,
    SourceLanguage,
    TargetColumn,
    TargetLanguage,
    check_output_is_no_input,
    progress,
    resolve_layout,
)

Backward = Annotated[Path | None, typer.Option(help="A run from the target's language to the source's: use both.")]
Symmetrize = Annotated[
    str | None, typer.Option(help="How, with --backward: grow-diag-final-and if not given, intersection or union.")
]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "align",
        epilog="\b\nExamples:\n"
        "  regard align run pairs.tsv -o pairs.links\n"
        "  regard align run --source test.en --target test.de\n"
        "  regard align run pairs.tsv --backward other-run --symmetrize intersection\n"
        "  regard evaluate run --source test.en --reference test.de --gold test.links",
    )(align)


def align(
    run: Annotated[Path, typer.Argument(help="A trained run's folder.")],
    pairs: Annotated[Files | None, typer.Argument(help="Files with source and target.")] = None,
    source: SourceFile = None,
    target: Annotated[Path | None, typer.Option(help="Its targets, line by line.")] = None,
    backward: Backward = None,
    symmetrize: Symmetrize = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the links here.")] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Align words: a line of links for each pair, as in 0-0 1-2 (source word, target word, from 0)."""
    from regard.evaluation.word_alignment import (
        align_both_directions,
        align_pairs,
        check_symmetrization,
        read_pairs_to_align,
    )

    check_symmetrization(symmetrize, run, backward)
    check_output_is_no_input("-o", output, (*(pairs or ()), source, target))
    layout = resolve_layout(run, source_language, target_language, source_column, target_column)
    examples = read_pairs_to_align(pairs or [], source, target, layout)
    for note in examples.notes:
        typer.echo(note, err=True)
    bar = partial(progress, quiet=as_json)
    if backward is None:
        alignments = align_pairs(run, examples.pairs, device, bar)
    else:
        alignments = align_both_directions(run, backward, examples.pairs, device, bar, symmetrization=symmetrize)
    text = _format(examples.pairs, alignments, as_json)
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
    if too_long := sum(links is None for links in alignments):
        subject = "1 pair is" if too_long == 1 else f"{too_long:,} pairs are"
        typer.echo(f"{subject} longer than the model reads: an empty line.", err=True)


def _format(pairs: Sequence[tuple[str, str]], alignments: Sequence[list[tuple[int, int]] | None], as_json: bool) -> str:
    """A line for each pair: links in Pharaoh format, or a JSON object."""
    from regard.alignment.aligner import pharaoh

    if as_json:
        records = (
            {"source": source, "target": target, "links": None if links is None else sorted(links)}
            for (source, target), links in zip(pairs, alignments, strict=True)
        )
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
    else:
        lines = ["" if links is None else pharaoh(links) for links in alignments]
    return "".join(f"{line}\n" for line in lines)
