"""regard align."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Json, layout_of, progress
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.data.example import Layout

Files = list[Path]
Pairs = list[tuple[str, str]]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "align",
        epilog="\b\nExamples:\n"
        "  regard align run pairs.tsv -o pairs.links\n"
        "  regard align run --source test.en --target test.de\n"
        "  regard align run pairs.tsv --backward other-run --symmetrise intersection\n"
        "  regard evaluate run --source test.en --reference test.de --gold test.links",
    )(align)


def align(
    run: Annotated[Path, typer.Argument(help="A trained run's folder.")],
    pairs: Annotated[Files | None, typer.Argument(help="Files with both sides.")] = None,
    source: Annotated[Path | None, typer.Option(help="A text file of sources, one a line.")] = None,
    target: Annotated[Path | None, typer.Option(help="Its targets, line by line.")] = None,
    backward: Annotated[
        Path | None, typer.Option(help="A run from the target's language to the source's: use both.")
    ] = None,
    symmetrise: Annotated[
        str | None, typer.Option(help="How, with --backward: grow-diag-final-and if not said, intersection or union.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the links here.")] = None,
    source_language: Annotated[str | None, typer.Option("--from", help="For files with several languages.")] = None,
    target_language: Annotated[str | None, typer.Option("--to", help="For files with several languages.")] = None,
    source_column: Annotated[
        str | None, typer.Option(help="Of a table: a name, or a number from 1; the run's own if none.")
    ] = None,
    target_column: Annotated[str | None, typer.Option(help="The same for the target.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Tell which word comes from which: a line for each pair, as in 0-0 1-2 (source word, target word, from 0)."""
    from regard.alignment.aligner import SYMMETRIES, pharaoh, symmetrised

    if symmetrise is not None and symmetrise not in SYMMETRIES:
        raise RegardError(f"--symmetrise: there is no {symmetrise!r}; there are {', '.join(SYMMETRIES)}.")
    if symmetrise is not None and backward is None:
        raise RegardError("--symmetrise: it needs a run of the other direction, given with --backward.")
    if backward is not None:
        _check_backward(run, backward)
    layout = layout_of(run, source_language, target_language, source_column, target_column)
    examples = pairs_of(pairs or [], source, target, layout)
    found = links_of(run, examples, device, as_json)
    if backward is not None:
        how = symmetrise or SYMMETRIES[0]
        turned = links_of(backward, [(target, source) for source, target in examples], device, as_json)
        for number, (one, other) in enumerate(zip(found, turned, strict=True)):
            if one is not None and other is not None:
                found[number] = sorted(symmetrised(one, [(there, here) for here, there in other], how))
    if as_json:
        records = (
            {"source": pair[0], "target": pair[1], "links": None if links is None else sorted(links)}
            for pair, links in zip(examples, found, strict=True)
        )
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
    else:
        lines = ["" if links is None else pharaoh(links) for links in found]
    text = "".join(f"{line}\n" for line in lines)
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
    if left_out := sum(links is None for links in found):
        told = "1 pair is" if left_out == 1 else f"{left_out:,} pairs are"
        typer.echo(f"{told} longer than the model reads: an empty line.", err=True)


def _check_backward(run: Path, backward: Path) -> None:
    """Raises RegardError if both are known to go the same way."""
    from regard.runs.folder import open_folder

    one, other = (open_folder(each).description for each in (run, backward))
    known = [one.source_language, one.target_language, other.target_language, other.source_language]
    if run.resolve() == backward.resolve() or (all(known) and known[:2] != known[2:]):
        raise RegardError(f"--backward: {backward} is no run from the target's language to the source's.")


def pairs_of(files: Files, source: Path | None, target: Path | None, layout: "Layout") -> Pairs:
    """The texts of both sides, a pair for each line, whatever is wrong with it."""
    from regard.data.readers import read_aligned, read_pairs

    if files and (source or target):
        raise RegardError("files with both sides and --source are two ways of saying one thing; use one.")
    if files:
        found = [example for path in files for example in read_pairs(path, layout)]
        for path in files:
            lines = [example.line for example in found if example.file == str(path)]
            if path.suffix in (".tsv", ".tab") and lines and lines[-1] > len(lines):
                told = f"{path}: {lines[-1]:,} lines, {len(lines):,} pairs; lines without a pair have none here."
                typer.echo(told, err=True)
    elif source is not None and target is not None:
        found = list(read_aligned(source, target))
    else:
        raise RegardError("name pairs to align: a file with both sides, or two text files side by side.")
    return [(example.source, example.target) for example in found]


def links_of(run: Path, pairs: Pairs, device: str, quiet: bool) -> list[list[tuple[int, int]] | None]:
    """By a run's attention. Raises RegardError if it has none."""
    from regard.inference.attention import aligned
    from regard.inference.loading import load

    translator = load(run, engine="torch", device=device)
    if getattr(translator.description.model.decoder, "attend", "") == "never":
        raise RegardError(f"{run}: this model does not attend, so it cannot tell what comes from where.")
    with progress(f"aligning with {run}", len(pairs), quiet) as done:
        return aligned(translator, pairs, done)
