"""regard see."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Json, Run, RunLoader
from regard.cli.decoding_options import add_decoding_command, check_applicable
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inference.options import Options
    from regard.interpret.captured_attention import CapturedAttention
    from regard.views.panels import Captures, Selection

STRIP_PANELS, TERMINAL_PANELS = 6, 3  # of attention over training
# Names of the parameters that apply to attention over training, and to channel attention.
OVER_TIME_OPTIONS = frozenset(("run", "over_time", "layer", "head", "subwords", "special", "output"))
CHANNEL_OPTIONS = frozenset(("run", "text", "channels", "output", "device"))
MAX_CHARACTERS = 10  # listed in a message, that no font has

Text = Annotated[str | None, typer.Argument(help="What the model reads: a text, a picture, a recording.")]
Target = Annotated[str | None, typer.Option(help="The target; without it, the model's own output.")]
Compare = Annotated[Path | None, typer.Option(help="Another run, beside the first.")]
Also = Annotated[list[str] | None, typer.Option(help="Another text, beside the first. May be repeated.")]
OverTime = Annotated[
    bool, typer.Option("--over-time", help="How the alignment of one validation example formed in training.")
]
KindName = Annotated[
    str | None,
    typer.Option(help="cross (target to source), encoder or decoder; cross if the model has it, unless named."),
]
Layer = Annotated[int | None, typer.Option(min=1, help="One of them, from 1; the mean of all if none.")]
Subwords = Annotated[bool, typer.Option("--subwords", help="Tokens as the model has them, not words.")]
Special = Annotated[bool, typer.Option("--special-tokens", help="With special tokens, such as the end of sequence.")]
Attribution = Annotated[
    bool, typer.Option("--attribution", help="Gradient times input instead of weights: what a word depends on.")
]
Channels = Annotated[
    bool, typer.Option("--channel-attention", help="Of a picture: what SE, CBAM or ECA let pass, block by block.")
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="A .png, .svg, .pdf; .html, .json or .safetensors with all of it."),
]
Top = Annotated[int | None, typer.Option(min=1, help="In .json and --json: so many weights of each row, the largest.")]


@dataclass(frozen=True)
class _OutputFormat:
    """The file to write, if any, and its format. top: in .json, only so many weights of each row, the largest."""

    output: Path | None
    top: int | None
    as_json: bool

    @property
    def suffix(self) -> str:
        return "" if self.output is None else self.output.suffix.lower()

    def check(self) -> None:
        """Raises RegardError for an unknown suffix, and for options that do not go together."""
        from regard.views.panels import FILE_SUFFIXES

        if self.output is not None and self.suffix not in FILE_SUFFIXES:
            listed = f"{', '.join(FILE_SUFFIXES[:-1])} or {FILE_SUFFIXES[-1]}"
            raise RegardError(f"-o: {self.output} must end in {listed}.")
        if self.as_json and self.output is not None:
            raise RegardError("--json: it prints what -o x.json writes; leave out -o.")
        if self.top is not None and not (self.as_json or self.suffix == ".json"):
            raise RegardError("--top: it is for .json and --json.")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    add_decoding_command(
        app,
        "see",
        see,
        lambda: ("search", "language"),
        epilog="\b\nExamples:\n"
        '  regard see run "A dog runs in the park."\n'
        '  regard see run "A dog runs." --target "Ein Hund rennt." --attribution\n'
        '  regard see run "A dog runs." --kind encoder --layer 1 --head 3\n'
        '  regard see run "A dog runs." -o dog.png\n'
        '  regard see run "A dog runs." -o dog.html --compare other-run\n'
        '  regard see run "A dog runs." -o dog.json --top 8\n'
        "  regard see captions-run photo.png -o photo.html\n"
        "  regard see run --over-time -o forming.png",
    )


def see(
    run: Run,
    text: Text = None,
    target: Target = None,
    compare: Compare = None,
    also: Also = None,
    over_time: OverTime = False,
    kind: KindName = None,
    layer: Layer = None,
    head: Layer = None,
    subwords: Subwords = False,
    special: Special = False,
    attribution: Attribution = False,
    channels: Channels = False,
    output: Output = None,
    top: Top = None,
    device: Device = "auto",
    as_json: Json = False,
    *,
    options: "Options",
) -> None:
    """Show what a model attends to: by default, the layer and head that align best.

    In .html, the outputs of beam search are a tree, unless --beam 1 is given.
    """
    from regard.views.panels import Selection

    selection = Selection(kind, layer, head, attribution, subwords, special)
    output_format = _OutputFormat(output, top, as_json)
    output_format.check()
    if over_time:
        check_applicable(OVER_TIME_OPTIONS, "does not apply to --over-time, which shows an example of the run's own")
        _show_over_time(run, output_format, selection)
        return
    if text is None:
        raise RegardError("name a text for the model to read, or --over-time.")
    if channels:
        check_applicable(CHANNEL_OPTIONS, "does not apply to --channel-attention")
        _show_channels(run, text, output, device)
        return
    runs = [run, *([compare] if compare is not None else [])]
    captures = _capture(runs, [text, *(also or [])], target, options, selection, output_format, device)
    _show(captures, selection, output_format)


def _capture(
    runs: list[Path],
    texts: list[str],
    target: str | None,
    options: "Options",
    selection: "Selection",
    output_format: _OutputFormat,
    device: str,
) -> "list[tuple[str, CapturedAttention]]":
    """Captured attention of every run over every text. target: of the first text."""
    from regard.inference.attention_view import build_attention_view

    found: list[tuple[str, CapturedAttention]] = []
    for run in runs:
        predictor, name = RunLoader(run, device=device).load(), run.resolve().name
        for number, text in enumerate(texts):
            text_target = target if number == 0 else None
            settings = {"attribution": selection.attribution, "tree": output_format.suffix == ".html"}
            found.append((name, build_attention_view(predictor, text, text_target, options, name=name, **settings)))
    return found


def _show(captures: "Captures", selection: "Selection", output_format: _OutputFormat) -> None:
    """Print captures, or write them into a file."""
    from regard.views import storage
    from regard.views.panels import DATA_SUFFIXES

    if output_format.as_json:
        records = [storage.to_record(captured, top=output_format.top) for _, captured in captures]
        typer.echo(json.dumps(records[0] if len(records) == 1 else records))
    elif output_format.output is not None and output_format.suffix in DATA_SUFFIXES:
        if len(captures) > 1:
            raise RegardError(f"-o: a {output_format.suffix} has one capture; leave out --compare and --also.")
        storage.save(captures[0][1], output_format.output, top=output_format.top)
        typer.echo(f"{output_format.output}: {captures[0][1].summary}")
    elif output_format.output is not None and output_format.suffix == ".html":
        _write_page(captures, selection, output_format.output, over_time=False)
        typer.echo(f"{output_format.output}: {captures[0][1].summary}; open it in a browser")
    else:
        _draw(captures, selection, output_format.output)


def _show_channels(run: Path, picture: str, output: Path | None, device: str) -> None:
    """Print or draw the weights of attention over channels and positions, block by block."""
    from regard.inference.inputs.media import MediaInputs
    from regard.views.channel_attention import render_channel_attention, write_channel_attention

    inputs = getattr(RunLoader(run, device=device).load().pipeline, "inputs", None)
    if not isinstance(inputs, MediaInputs):
        raise RegardError("--channel-attention: this run reads text; channels are of pictures.")
    blocks = inputs.channel_attention(picture)
    if output is None:
        typer.echo(render_channel_attention(blocks))
        return
    write_channel_attention(blocks, inputs.medium.read(picture), output)
    typer.echo(f"{output}: {len(blocks)} blocks")


def _show_over_time(run: Path, output_format: _OutputFormat, selection: "Selection") -> None:
    """Attention over training: a strip of panels in a picture, a page with a slider, or panels in the terminal."""
    from regard.runs.folder import open_run
    from regard.training.attention_history import load_attention_history
    from regard.views.panels import DATA_SUFFIXES, select_evenly

    history = load_attention_history(run, open_run(run).alignment_head())
    captures = [(f"step {step:,}", captured) for step, captured in history]
    if output_format.output is not None and output_format.suffix == ".html":
        _write_page(captures, selection, output_format.output, over_time=True)
        typer.echo(f"{output_format.output}: {len(captures)} validations; open it in a browser")
        return
    if output_format.suffix in DATA_SUFFIXES:
        raise RegardError(f"-o: the saved attention is in {run / 'attention'}; give a picture or an .html.")
    panels = select_evenly(captures, TERMINAL_PANELS if output_format.output is None else STRIP_PANELS)
    _draw(panels, selection, output_format.output, strip=True)


def _write_page(captures: "Captures", selection: "Selection", output: Path, *, over_time: bool) -> None:
    from regard.views.html_page import write_page
    from regard.views.panels import check_drawable

    check_drawable(captures)
    kind = selection.resolve_kind(captures)
    selection.check_layer_and_head(captures, kind)
    write_page(captures, output, over_time=over_time, initial=selection.initial_page_state(kind))


def _draw(captures: "Captures", selection: "Selection", output: Path | None, *, strip: bool = False) -> None:
    """Draw in the terminal, or into a picture."""
    from regard.views.panels import interpretation_caveat, render_panels, select_panels, write_panels

    panels = select_panels(captures, selection, strip=strip)
    if output is None:
        typer.echo(render_panels(panels))
        if text := interpretation_caveat(captures, selection):
            typer.echo(text)
        return
    missing = write_panels(panels, output, strip=strip)
    typer.echo(f"{output}: {'; '.join(panel.title for panel in panels)}")
    if missing:
        characters = " ".join(missing[:MAX_CHARACTERS])
        typer.echo(f"No font here has {characters}; install one (Noto has most scripts), or write an .svg.", err=True)
