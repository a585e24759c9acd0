"""A demonstration: train a model on synthetic data of a task, evaluate it and draw its attention."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.evaluation.evaluators.base import EVALUATORS
from regard.evaluation.metrics.exact_match import is_exact_match
from regard.inference.pipelines.base import FilePipeline
from regard.inference.predictor import Predictor
from regard.interpret.captured_attention import Kind
from regard.loading import predictor_from_bundle
from regard.runs.folder import write_durably
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
    """The result of a demonstration.

    scores: of the test split, by name, such as exact matches in percent. examples: some of them as JSON records.
    success: a sentence. files: that were written, each with what it shows.
    """

    task: str
    preset: str
    run: Path
    scores: dict[str, float]
    test_examples: int
    seconds: float
    examples: list[dict[str, Any]]
    success: str
    files: dict[Path, str]
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
    settings = run_settings(preset, demo_settings, assignments or [], limits)  # some depend on the files
    write_durably(output / "settings.toml", settings.as_toml().encode())
    (output / MARKER).write_text(f"{task}\n")
    trained = train(settings, output, quiet=quiet, device=device)
    if not trained.state.done:
        raise KeyboardInterrupt
    predictor = predictor_from_bundle(trained.bundle)
    evaluate = _backtest if isinstance(predictor.pipeline, FilePipeline) else _count_exact_matches
    scores, count, success = evaluate(predictor, data, output)
    examples, files = _draw_examples(predictor, data, output, seed)
    seconds = round(trained.state.seconds, 1)
    return DemoResult(task, preset, output, scores, count, seconds, examples, success, files, data.next_command)


def _backtest(predictor: Predictor, data: SyntheticData, folder: Path) -> tuple[dict[str, float], int, str]:
    """The errors of forecasts of the test split, their number, and a sentence that compares them with naive ones."""
    evaluator = EVALUATORS.get(predictor.task.evaluator)()
    tests = [source for source, _ in data.test_examples(folder)]
    report = evaluator.evaluate(folder, predictor, tests, None, _no_progress).as_dict()
    name = predictor.task_metrics[0]
    scores = report["scores"].pop("model")
    others = ", ".join(f"{system} {values[name]:.3f}" for system, values in report["scores"].items())
    success = f"The {name} of {data.describe_accuracy(report['windows'])} is {scores[name]:.3f}; {others}"
    return scores, report["windows"], success


@contextlib.contextmanager
def _no_progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    yield lambda count: None


def _count_exact_matches(predictor: Predictor, data: SyntheticData, folder: Path) -> tuple[dict[str, float], int, str]:
    """Exact matches of the test split in percent, its size, and a sentence."""
    tests = data.test_examples(folder)
    results = predictor.results([source for source, _ in tests], predictor.greedy_options())
    matches = [
        any(is_exact_match(result.text, reference) for reference in references)
        for result, (_, references) in zip(results, tests, strict=True)
    ]
    exact = 100 * sum(matches) / len(matches)
    return {"exact": exact}, len(matches), f"{exact:.1f} % of {data.describe_accuracy(len(matches))}"


def _draw_examples(
    predictor: Predictor, data: SyntheticData, folder: Path, seed: int
) -> tuple[list[dict[str, Any]], dict[Path, str]]:
    """A few examples with their attention, as text and as one picture; the files that are written."""
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
            kind: Kind = "cross" if "cross" in captured.kinds else captured.kinds[0]
            weights = captured.matrix(kind, -1)
            record |= {"attention": weights.tolist(), "target_tokens": list(captured.target.labels)}
            record["source_tokens"] = list(captured.source.labels)
            if captured.source_media is not None:
                overlays.append(Overlay(f"{source}: {result.text}", captured, weights, kind))
                record["drawing"] = render_overlay(overlays[-1])
            else:
                record["drawing"] = render_matrix(weights.tolist(), captured.source.labels, captured.target.labels)
                matrices.append(LabeledMatrix(captured.source.labels, captured.target.labels, weights.tolist()))
        examples.append(record)
    if overlays:
        write_overlay(overlays, folder / "attention.png")
    elif matrices:
        write_heat_maps(matrices, folder / "attention.png")
    files = {folder / "attention.png": "the same as a picture"} if overlays or matrices else {}
    if isinstance(predictor.pipeline, FilePipeline):
        predictor.pipeline.write_file(data.test_examples(folder)[0][0], folder / "forecast.csv")
        files[folder / "forecast.png"] = "the forecast"
    return examples, {**files, folder / "curves.png": "how it learned"}
