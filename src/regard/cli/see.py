"""regard see."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Json
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.interpret.captured import Captured, Kind, Weights

LITTLE = 0.02  # of the weight, that goes unmentioned
STRIP = 6  # pictures of a strip
WEIGHTS = "Weights say where a model looked, not why it wrote a word"
ATTRIBUTION = "--attribution says what would change it."


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "see",
        epilog="\b\nExamples:\n"
        '  regard see run "A dog runs in the park."\n'
        '  regard see run "A dog runs." --target "Ein Hund rennt." --attribution\n'
        '  regard see run "A dog runs." --kind encoder --layer 1 --head 3\n'
        '  regard see run "A dog runs." -o dog.png\n'
        '  regard see run "A dog runs." -o dog.html --compare other-run\n'
        '  regard see run "A dog runs." -o dog.json --top 8\n'
        "  regard see captions-run photo.png -o photo.html\n"
        "  regard see run --over-time -o forming.png",
    )(see)


def see(
    run: Annotated[Path, typer.Argument(help="A trained run's folder.")],
    text: Annotated[str | None, typer.Argument(help="What the model reads: a text, a picture, a recording.")] = None,
    target: Annotated[str | None, typer.Option(help="What it is to have written; else its own translation.")] = None,
    compare: Annotated[Path | None, typer.Option(help="Another run, beside the first.")] = None,
    also: Annotated[list[str] | None, typer.Option(help="Another text, beside the first. May be repeated.")] = None,
    over_time: Annotated[
        bool, typer.Option("--over-time", help="How the alignment of one validation example formed in training.")
    ] = False,
    beam: Annotated[
        int, typer.Option(min=0, max=20, help="In .html: the outputs of a search with so many hypotheses, as a tree.")
    ] = 5,
    kind: Annotated[str, typer.Option(help="cross (what is written to what is read), encoder or decoder.")] = "cross",
    layer: Annotated[int | None, typer.Option(min=1, help="One of them, from 1; the mean of all if none.")] = None,
    head: Annotated[int | None, typer.Option(min=1, help="One of them, from 1; the mean of all if none.")] = None,
    subwords: Annotated[bool, typer.Option("--subwords", help="Pieces as the model has them, not words.")] = False,
    special: Annotated[bool, typer.Option("--special", help="With marks such as the end.")] = False,
    attribution: Annotated[
        bool, typer.Option("--attribution", help="Gradient times input instead of weights: what a word depends on.")
    ] = False,
    channels: Annotated[
        bool, typer.Option("--channels", help="Of a picture: what SE, CBAM or ECA let pass, block by block.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A .png, .svg, .pdf; .html, .json or .safetensors with all of it."),
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="In .json and --json: so many weights of each row, the largest.")
    ] = None,
    language: Annotated[str, typer.Option("--to", help="The language it is to say, of a run of several.")] = "",
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Show what a model attends to while it writes. Nothing else named, the layer and head that align best."""
    from dataclasses import replace

    from regard.inference.options import Options
    from regard.interpret.captured import KINDS, Captured, Kind
    from regard.loading import load
    from regard.views import storage as storing

    if kind not in KINDS:
        raise RegardError(f"--kind: there is no {kind!r}; there are {', '.join(KINDS)}.")
    if attribution and (kind != "cross" or layer is not None or head is not None):
        raise RegardError("--attribution: it has no kind, layer or head; leave them out.")
    pictures = (".png", ".svg", ".pdf")
    if output is not None and output.suffix.lower() not in (*pictures, ".html", ".json", ".safetensors"):
        raise RegardError(f"-o: {output} must end in {', '.join(pictures)}, .html, .json or .safetensors.")
    suffix = output.suffix.lower() if output is not None else ""
    if as_json and (output is not None or over_time):
        raise RegardError("--json: it prints what -o x.json writes; leave out -o and --over-time.")
    if top is not None and not (as_json or suffix == ".json"):
        raise RegardError("--top: it is for .json and --json.")
    initial: dict[str, str | int | bool] = {
        "kind": kind,
        **({"layer": "attribution"} if attribution else {}),
        **({} if layer is None else {"layer": layer - 1}),
        **({} if head is None else {"head": head - 1, **({"layer": "mean"} if layer is None else {})}),
        **({"words": False} if subwords else {}),
        "special": special,
    }
    if over_time:
        if text is not None or target is not None or compare is not None or also or attribution or kind != "cross":
            raise RegardError("--over-time: it is of an example of the run's own; leave out texts, kinds and runs.")
        _show_over_time(run, output, (layer, head), subwords=subwords, special=special, initial=initial)
        return
    if text is None:
        raise RegardError("name a text for the model to read, or --over-time.")
    if channels:
        if target is not None or compare is not None or also or attribution or as_json or kind != "cross":
            raise RegardError("--channels: it is of one run and one picture; leave out the other options but -o.")
        _show_channels(run, text, output, device)
        return
    tree = beam > 0 and suffix == ".html"
    if tree:
        from regard.inference.attention import branches
    which: Kind = kind
    several: list[tuple[str, Captured]] = []
    for folder in [run, *([compare] if compare is not None else [])]:
        predictor = load(folder, engine="auto", device=device)
        for number, each in enumerate([text, *(also or [])]):
            about = predictor.description.model
            if about.source.kind == "nothing":  # there is only one kind of attention
                which, initial["kind"] = "decoder", "decoder"
            elif not (about.step_by_step or about.labels):
                which, initial["kind"] = "encoder", "encoder"
            searched = tree and about.source.kind == "text" and about.step_by_step
            options = Options(beam=beam, nbest=beam)
            options = options.with_(to=language) if language else options
            found = predictor.results([each], options)[0] if searched else None
            own = target if number == 0 and target is not None else found
            name = folder.resolve().name
            captured = replace(predictor.attend(each, own, attribution=attribution, to=language), model=name)
            if found is not None:
                captured = replace(captured, beam=branches(predictor.pipeline, found))
            if which == "cross" and "cross" not in captured.kinds and captured.kinds and not attribution:
                which, initial["kind"] = captured.kinds[0], captured.kinds[0]
            several.append((name, captured))
    if as_json:
        records = [storing.as_record(captured, top=top) for _, captured in several]
        typer.echo(json.dumps(records[0] if len(records) == 1 else records))
        return
    numbers = suffix in (".json", ".safetensors")
    if not (numbers or any(captured.kinds or captured.attribution for _, captured in several)):
        raise RegardError("this model does not attend; --attribution is what can be seen of it.")
    if output is not None and numbers:
        if len(several) > 1:
            raise RegardError(f"-o: a {suffix} has one capture; leave out --compare and --also.")
        storing.save(several[0][1], output, top=top)
        typer.echo(f"{output}: {several[0][1].about}")
    elif output is not None and suffix == ".html":
        from regard.views.page import write_page

        _check_place(several, which, layer, head)
        write_page(several, output, initial=initial)
        typer.echo(f"{output}: {several[0][1].about}; open it in a browser")
    else:
        _draw(several, which, (layer, head), output, attribution=attribution, subwords=subwords, special=special)


def _show_channels(run: Path, picture: str, output: Path | None, device: str) -> None:
    """What attention over channels and places lets pass."""
    from regard.inference.media_inputs import MediaInputs
    from regard.loading import load
    from regard.views.channel_attention import in_terminal, write_channels

    inputs = getattr(load(run, device=device).pipeline, "inputs", None)
    if not isinstance(inputs, MediaInputs):
        raise RegardError("--channels: this run reads text; channels are of pictures.")
    blocks = inputs.channel_attention(picture)
    if output is None:
        typer.echo(in_terminal(blocks))
        return
    write_channels(blocks, inputs.medium.read(picture), output)
    typer.echo(f"{output}: {len(blocks)} blocks")


def _show_over_time(
    run: Path,
    output: Path | None,
    place: tuple[int | None, int | None],
    *,
    subwords: bool,
    special: bool,
    initial: dict[str, str | int | bool],
) -> None:
    """A strip of pictures, a page with a slider, or one below the other in the terminal."""
    from regard.runs.folder import open_folder
    from regard.training.attention_history import over_time

    found = over_time(run, open_folder(run).choice())
    if output is not None and output.suffix.lower() == ".html":
        from regard.views.page import write_page

        several = [(f"step {step:,}", captured) for step, captured in found]
        _check_place(several, "cross", *place)
        write_page(several, output, over_time=True, initial=initial)
        typer.echo(f"{output}: {len(found)} validations; open it in a browser")
        return
    if output is not None and output.suffix.lower() in (".json", ".safetensors"):
        raise RegardError(f"-o: what was kept is in {run / 'attention'}; give a picture or an .html.")
    most = STRIP if output is not None else 3
    places = sorted({round(number * (len(found) - 1) / max(1, most - 1)) for number in range(most)})
    some = [(f"step {found[at][0]:,}", found[at][1]) for at in places]
    _draw(some, "cross", place, output, subwords=subwords, special=special, strip=True)


def _draw(
    several: "list[tuple[str, Captured]]",
    kind: "Kind",
    place: tuple[int | None, int | None],
    output: Path | None,
    *,
    subwords: bool,
    special: bool,
    attribution: bool = False,
    strip: bool = False,
) -> None:
    """In the terminal, or into a picture."""
    from regard.views.alignment_plot import Alignment, write_picture
    from regard.views.terminal import below, matrix

    words = not subwords and all(captured.rows(kind).merges_by_default for _, captured in several)
    panels = []
    overlaid: list[tuple[str, Captured, Weights]] = []
    for name, captured in several:
        shown = captured if special else captured.without_special()
        shown = shown.merged() if words else shown
        weights, where = _chosen(shown, kind, *place, attribution)
        about = name if strip else where if len(several) == 1 else f"{name}: {where}"
        if captured.shown is not None and kind == "cross":
            overlaid.append((about, shown, weights))
            continue
        panels.append(Alignment(shown.columns(kind).labels, shown.rows(kind).labels, weights.tolist(), about))
    if output is not None:
        if overlaid:
            from regard.views.overlay import write_overlay

            missing = write_overlay(overlaid, output)
        else:
            missing = write_picture(panels, output, strip=strip)
        titles = [title for title, _, _ in overlaid] or [panel.title for panel in panels]
        typer.echo(f"{output}: {'; '.join(titles)}")
        if missing:
            told = " ".join(missing[:10])
            typer.echo(f"No font here has {told}; install one (Noto has most scripts), or write an .svg.", err=True)
        return
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    wide = shutil.get_terminal_size((100, 40)).columns
    long = kind == "cross" and any(captured.source.unit == "sentences" for _, captured in several)
    for number, (title, captured, weights) in enumerate(overlaid):
        from regard.views.overlay import in_terminal

        typer.echo("\n" * bool(number) + in_terminal(captured, weights, wide))
        typer.echo(f"\n{title}")
    for number, panel in enumerate(panels):
        if long:
            drawn = below(panel.weights, panel.source, panel.target, wide)
        else:
            drawn = matrix(panel.weights, panel.source, panel.target, wide, coloured=coloured)
        typer.echo("\n" * bool(number) + drawn)
        typer.echo(f"\n{panel.title}")
    if not attribution:
        typer.echo(f"{WEIGHTS}; {ATTRIBUTION}" if "cross" in several[0][1].kinds else f"{WEIGHTS}.")


def _chosen(
    captured: "Captured", kind: "Kind", layer: int | None, head: int | None, attribution: bool
) -> tuple["Weights", str]:
    """The matrix to show, and what it is, in words."""
    if attribution:
        values = abs(captured.attribution["source"])
        largest = values.max(1, keepdims=True, initial=1e-30)
        return values / largest, "gradient times input: its size, the largest of each row full"
    if (
        kind == "cross"
        and layer is None
        and head is None
        and captured.aligned is not None
        and captured.choice is not None
    ):
        return (
            captured.aligned,
            f"attention, {_named(captured.choice.layer, captured.choice.head)}, "
            + ("since nothing is known of which aligns best" if captured.choice.guessed else "which aligns best")
            + ("; of the step after each word's own" if captured.choice.shifted else "")
            + _on_marks(captured, kind, captured.choice.layer, captured.choice.head),
        )
    _check_place([("", captured)], kind, layer, head)
    at = None if layer is None else layer - 1
    one = None if head is None else head - 1
    about = f"attention of the kind {kind}, {_named(at, one)}{_on_marks(captured, kind, at, one)}"
    return captured.matrix(kind, at, one), about


def _check_place(several: "list[tuple[str, Captured]]", kind: "Kind", layer: int | None, head: int | None) -> None:
    """Raises RegardError if none of them has this layer or head, from 1."""
    every = [captured.weights.get(kind) or [] for _, captured in several]
    most = max(map(len, every)), max((min(map(len, layers)) for layers in every if layers), default=0)
    for name, given, count in (("layer", layer, most[0]), ("head", head, most[1])):
        if most[0] and given is not None and given > count:
            raise RegardError(f"--{name}: there are {count}; there is no {given}.")


def _on_marks(captured: "Captured", kind: "Kind", layer: int | None, head: int | None) -> str:
    """How much of it is not shown, if that matters."""
    layers = captured.hidden.get(kind) or []
    some = layers if layer is None else layers[layer : layer + 1]
    means = [float((each if head is None else each[head]).mean()) for each in some if each.size]
    hidden = sum(means) / max(1, len(means))
    return f"; {hidden:.0%} of it on marks such as the end, which --special shows" if hidden > LITTLE else ""


def _named(layer: int | None, head: int | None) -> str:
    """In words, from 1."""
    one = "the mean of all layers" if layer is None else f"layer {layer + 1}"
    return f"{one}, {'the mean of its heads' if head is None else f'head {head + 1}'}"
