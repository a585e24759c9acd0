"""A demonstration: train a model on synthetic data of a task, evaluate it and draw its attention."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.evaluation.metrics.exact_match import is_exact_match
from regard.inference.predictor import Predictor
from regard.loading import predictor_from_bundle
from regard.tasks.base import all_tasks, get_task
from regard.tasks.presets import preset_settings
from regard.tasks.synthetic_data import SyntheticData
from regard.training.run import create_run, train
from regard.training.settings import run_settings
from regard.views.heat_map import LabeledMatrix, write_heat_maps
from regard.views.overlay import Overlay, render_overlay, write_overlay
from regard.views.terminal import render_matrix

MARKER = ".regard-demo"  # a file that marks the folder of a demonstration, which the next one may remove


@dataclass(frozen=True)
class DemoResult:
    """The result of a demonstration. exact: exact matches in percent; examples: of some examples, as JSON records."""

    task: str
    preset: str
    run: Path
    exact: float
    test_examples: int
    seconds: float
    examples: list[dict[str, Any]]
    success: str
    next_command: str


def demo_tasks() -> list[str]:
    """The tasks that have a demonstration."""
    return [task.name for task in all_tasks() if task.synthetic() is not None]


def run_demo(
    task: str,
    output: Path,
    *,
    preset: str | None = None,
    steps: int | None = None,
    seed: int = 1,
    assignments: list[str] | None = None,
    device: str = "auto",
    quiet: bool = False,
) -> DemoResult:
    """Train on synthetic data in a new folder, evaluate and draw. Raises RegardError."""
    data = get_task(task).synthetic()
    if data is None:
        raise RegardError(f"--task: there is no demonstration of {task!r}; there are {', '.join(demo_tasks())}.")
    preset = preset or data.preset
    limits = {"training": {"steps": steps or data.steps, "seed": seed}}
    demo_settings = data.run_settings(preset_settings(preset), output)
    settings = run_settings(preset, demo_settings, assignments or [], limits)
    if output.exists() and (output / MARKER).exists():
        shutil.rmtree(output)
    if (output / "settings.toml").exists():
        raise RegardError(f"-o: {output} is a run of your own; choose another folder for the demonstration.")
    create_run(settings, output)
    data.write(output, seed)
    (output / MARKER).write_text(f"{task}\n")
    trained = train(settings, output, quiet=quiet, device=device)
    if not trained.state.done:
        raise KeyboardInterrupt
    predictor = predictor_from_bundle(trained.bundle)
    exact, count = _evaluate(predictor, data, output)
    examples = _draw_examples(predictor, data, output, seed)
    seconds = round(trained.state.seconds, 1)
    return DemoResult(
        task, preset, output, exact, count, seconds, examples, data.describe_accuracy(count), data.next_command
    )


def _evaluate(predictor: Predictor, data: SyntheticData, folder: Path) -> tuple[float, int]:
    """Exact matches of the test split in percent, and its size."""
    tests = data.test_examples(folder)
    results = predictor.results([source for source, _ in tests], predictor.greedy_options())
    matches = [
        any(is_exact_match(result.text, reference) for reference in references)
        for result, (_, references) in zip(results, tests, strict=True)
    ]
    return 100 * sum(matches) / len(matches), len(matches)


def _draw_examples(predictor: Predictor, data: SyntheticData, folder: Path, seed: int) -> list[dict[str, Any]]:
    """A few examples with their attention, as text and as one picture."""
    examples: list[dict[str, Any]] = []
    matrices: list[LabeledMatrix] = []
    overlays: list[Overlay] = []
    for example in data.attention_examples(folder, seed):
        result = predictor.predict([example])[0]
        source = example.name if isinstance(example, Path) else str(example)
        record: dict[str, Any] = {"source": source, "text": result.text, "drawing": "(this model does not attend)"}
        captured = predictor.attend(example, result)
        if captured.kinds:
            captured = (
                captured.without_special_tokens() if data.by_token else captured.without_special_tokens().merge_words()
            )
            weights = captured.matrix("cross", -1)
            record |= {"attention": weights.tolist(), "target_tokens": list(captured.target.labels)}
            record["source_tokens"] = list(captured.source.labels)
            if captured.source_media is not None:
                overlays.append(Overlay(f"{source}: {result.text}", captured, weights))
                record["drawing"] = render_overlay(overlays[-1])
            else:
                record["drawing"] = render_matrix(weights.tolist(), captured.source.labels, captured.target.labels)
                matrices.append(LabeledMatrix(captured.source.labels, captured.target.labels, weights.tolist()))
        examples.append(record)
    if overlays:
        write_overlay(overlays, folder / "attention.png")
    elif matrices:
        write_heat_maps(matrices, folder / "attention.png")
    return examples
