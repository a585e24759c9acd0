"""regard demo: the main job on built-in data, from nothing to a model that can be looked at."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.common import Device, Json, Set

TRAIN, VALID, TEST = 24_000, 500, 1_000
SHOWN = ("en", "pt", "de", "vi")  # languages of the examples that are drawn


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "demo", epilog="\b\nExamples:\n  regard demo\n  regard demo --preset transformer-tiny -o demo-transformer"
    )(demo)


def demo(
    preset: Annotated[str, typer.Option(help="Any preset; regard presets lists them.")] = "bahdanau",
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder of the run; an earlier demo there is removed.")
    ] = Path("demo"),
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 900,
    assignments: Set = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Another seed, other dates and other weights.")] = 1,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Learn to read dates, and show what the model looks at."""
    from regard.data import dates
    from regard.training.settings import run_settings

    settings = run_settings(
        preset, _settings(preset, output), assignments, {"training": {"steps": steps, "seed": seed}}
    )
    if output.exists() and (output / "dates-train.tsv").exists():
        shutil.rmtree(output)
    if (output / "settings.toml").exists():
        raise ValueError(f"-o: {output} is a run of your own; choose another folder for the demonstration.")
    from regard.training.run import begin, train

    begin(settings, output)
    for part, count in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        lines = [f"{text}\t{date}\n" for text, date in dates.pairs(count, part=part, seed=seed)]
        (output / f"dates-{part}.tsv").write_text("".join(lines), "utf-8")
    trained = train(settings, output, quiet=as_json, device=device)
    result = _judge(trained.bundle, output)
    result |= {"preset": preset, "run": str(output), "seconds": round(trained.where.seconds, 1)}
    drawn = _draw(trained.bundle, output, seed)
    if as_json:
        typer.echo(
            json.dumps(
                {**result, "examples": [{k: v for k, v in each.items() if k != "drawing"} for each in drawn]},
                ensure_ascii=False,
            )
        )
        return
    for each in drawn:
        typer.echo(f"\n{each['source']}  →  {each['text']}")
        typer.echo(each["drawing"])
    typer.echo(
        f"\n{result['exact']:.1f} % of {TEST:,} dates that were held out are read exactly right, after "
        f"{result['seconds']:.0f} seconds of training."
    )
    typer.echo(f"{output}/attention.png shows the same as a picture, {output}/curves.png how it learnt.")
    # With no environment active, as after `make demo`, the command is where it was called from.
    called = "python -m regard" if sys.argv[0].endswith("__main__.py") else os.path.relpath(sys.argv[0])
    command = "regard" if shutil.which("regard") else called
    typer.echo(f"Now your own pairs: {command} train pairs.tsv -o run")


def _settings(name: str, output: Path) -> dict[str, Any]:
    """What suits this task: characters, small models and batches, a rate that falls to zero with the last step."""
    from regard.models.presets import preset as settings_named

    model: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        kind = settings_named(name)["model"][side]["kind"]
        if kind != "transformer":
            model[side] = {"kind": kind, "width": 128, "embedding": 64, "dropout": 0.1}
        else:
            model[side] = {"kind": kind, "dropout": 0.1}
    files = {name: str((output / f"dates-{name}.tsv").absolute()) for name in ("train", "valid")}
    return {
        "model": model,
        "data": {
            "pairs": [files["train"]],
            "valid_pairs": [files["valid"]],
            "subwords": {"kind": "character", "size": 1200, "coverage": 1.0},
        },
        "training": {
            "judge": "exact",
            "tokens": 2048,
            "schedule": "cosine",
            "warmup": 50,
            "learning_rate": 3e-3,
            "smoothing": 0.0,
            "best": 1,
            "validate_every": 400,
        },
    }


def _judge(bundle: Any, output: Path) -> dict[str, Any]:
    from regard.decoding.loading import in_torch
    from regard.evaluation.metrics import corpus_score

    lines = [line.split("\t") for line in (output / "dates-test.tsv").read_text("utf-8").splitlines()]
    results = in_torch(bundle).translate([source for source, _ in lines], beam=1)
    outputs, references = [result.text for result in results], [target for _, target in lines]
    return {"exact": corpus_score("exact", outputs, [references]).value, "test_examples": len(lines)}


def _draw(bundle: Any, output: Path, seed: int) -> list[dict[str, Any]]:
    """A few held-out dates with their attention, in the terminal and as one picture."""
    import random

    from regard.data import dates
    from regard.decoding.loading import in_torch
    from regard.seeing.alignments import Alignment, write_picture
    from regard.seeing.terminal import matrix

    dice = random.Random(seed)
    held_out = [date for _, date in dates.pairs(len(SHOWN), part="test", seed=seed + 1)]
    texts = [dates.plainly(date, locale) for date, locale in zip(held_out, SHOWN, strict=True)]
    dice.shuffle(texts)
    drawn: list[dict[str, Any]] = []
    alignments: list[Alignment] = []
    for result in in_torch(bundle).translate(texts, attention=True):
        record: dict[str, Any] = {
            "source": result.source,
            "text": result.text,
            "drawing": "(this model does not attend)",
        }
        if result.attention and result.attention.kinds:
            seen = result.attention.without_special()
            weights, source, target = seen.matrix("cross", -1).tolist(), seen.source.labels, seen.target.labels
            record |= {"attention": weights, "source_pieces": list(source), "pieces": list(target)}
            record["drawing"] = matrix(weights, source, target)
            alignments.append(Alignment(source, target, weights))
        drawn.append(record)
    if alignments:
        write_picture(alignments, output / "attention.png")
    return drawn
