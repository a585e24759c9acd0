"""Numeric series to their future."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.errors import RegardError
from regard.tasks.base import TASKS, Preset, Task, TrainOption
from regard.tasks.synthetic_data import SyntheticData
from regard.tasks.training_defaults import TRANSFORMER

if TYPE_CHECKING:
    from regard.data.dataset_kinds.base import DatasetKind
    from regard.data.settings import DataSettings
    from regard.data.targets.base import Target
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.models.settings import ModelSettings

# The default horizon: about so many seconds ahead, by the largest step that it is for.
HORIZONS = ((60, 3600), (3600, 86_400), (86_400, 14 * 86_400), (7 * 86_400, 13 * 7 * 86_400))
MONTHLY_HORIZONS = {1: 12, 3: 8, 12: 5}
HISTORY_FACTOR = 5  # the default history in horizons
MAX_HISTORY = 512
TRAINING = {**TRANSFORMER, "batch_tokens": 64, "metric": "loss", "label_smoothing": 0.0, "warmup_steps": 200}


@TASKS.register("forecasting")
class Forecasting(Task):
    """numeric series to their future."""

    name, verb, output = "forecasting", "forecast", "Forecast"
    summary = "numeric series to their future"
    options = frozenset({"forecast"})
    metrics = ("mse", "mae", "mase", "smape")
    metric_inputs = frozenset({"loss", "forecasts"})
    loss = "forecast"
    evaluator = "forecast"
    reads_lines = False
    test_file = "test.csv"
    input_example = "series.csv -o forecast.csv"
    default_presets = {"series": "patch-transformer"}  # noqa: RUF012
    presets = (
        Preset("patch-transformer", {**TRAINING, "learning_rate": 5e-4, "steps": 2000}),
        Preset("column-transformer", {**TRAINING, "learning_rate": 5e-4, "steps": 2000}),
        Preset("step-transformer", {**TRAINING, "learning_rate": 5e-4, "steps": 2000}),
        Preset("series-rnn", {**TRAINING, "learning_rate": 1e-3, "steps": 2000}),
        Preset("series-conv", {**TRAINING, "learning_rate": 1e-3, "steps": 2000}),
        Preset("linear-forecast", {**TRAINING, "learning_rate": 2e-3, "steps": 2000}),
    )
    train_options = {  # noqa: RUF012
        "horizon": TrainOption(
            "data.series.horizon", int, "Forecasting: steps to forecast; a day of hourly data if none."
        ),
        "history": TrainOption("model.source.history", int, "Forecasting: steps that a forecast is made from."),
        "series": TrainOption("data.series.series", str, "Forecasting: the column that names each row's series."),
        "time": TrainOption("data.series.time", str, "Forecasting: the column of times."),
        "known": TrainOption(
            "data.series.known", str, "Forecasting: a column that is known in advance, such as a price.", many=True
        ),
    }

    def data(self) -> "DatasetKind":
        from regard.data.dataset_kinds.series_windows import SeriesWindows

        return SeriesWindows()

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        from regard.data.media.series import SeriesProcessor

        return 0.95 if SeriesProcessor.recognizes(data) else 0.0

    def modality(self, data: "DataSettings") -> str | None:
        """Any table with a time and a number will do."""
        return "series"

    def configure(self, settings: dict[str, Any]) -> None:
        """Horizon, history and the number of columns, from the files where they are not given."""
        data, model = settings.get("data", {}), settings["model"]
        source, head = model.setdefault("source", {"kind": "series"}), model["decoder"]
        files = [Path(each) for each in data.get("pairs") or ()]
        if not all(each.is_file() for each in files):  # reported when they are read
            return
        if not files or source.get("kind") != "series" or head.get("kind") != "forecast":
            return
        from regard.data.series.shape import read_shape

        series = data.setdefault("series", {})
        shape = read_shape(files, series)
        horizon = (
            default_horizon(shape.step, shape.longest) if series.get("horizon") is None else int(series["horizon"])
        )
        series["horizon"] = head["horizon"] = horizon
        source.setdefault("history", max(1, min(MAX_HISTORY, HISTORY_FACTOR * horizon, shape.longest // 3)))
        source["columns"], source["covariates"] = shape.targets + shape.covariates, shape.covariates
        _match_head(source, head, shape.targets)
        if shape.covariates and _treats_columns_apart(settings["model"]):
            raise RegardError(
                "data.series.known and calendar: this model treats each column apart, and would not read them; choose "
                "--preset column-transformer, or set model.source.channels=mixed."
            )

    def preset(self, data: "DataSettings", modality: str) -> str:
        """Columns that are known in advance need a model that reads columns together."""
        has_covariates = bool(data.series.known or data.series.calendar)
        return "column-transformer" if has_covariates else super().preset(data, modality)

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.decoder.predicts == "values"

    def check(self, model: "ModelSettings") -> None:
        if model.decoder.predicts != "values":
            raise RegardError("--preset: this model forecasts no values; leave it out, or choose one for forecasting.")

    def describe_target(self, target: "Target") -> str:
        from regard.data.targets.series import SeriesTarget

        assert isinstance(target, SeriesTarget)
        return f"{len(target.targets):,} columns, {target.horizon:,} steps of {target.step} ahead"

    def synthetic(self) -> "SyntheticData":
        return Loads()

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        from regard.inference.pipelines.forecast import ForecastPipeline

        return ForecastPipeline(run)


class Loads(SyntheticData):
    """The hourly load of a town, a day ahead, with quantiles."""

    preset, steps = "patch-transformer", 400
    horizon, history = 24, 168
    counts: ClassVar = {"train": 24 * 150, "valid": 24 * 30, "test": 24 * 30}  # hours
    suffix = "csv"
    next_command = "train series.csv --task forecasting -o run"

    def settings(self, preset: dict[str, Any]) -> dict[str, Any]:
        return {
            "data": {"series": {"horizon": self.horizon, "time": "time", "targets": ["load", "temperature"]}},
            "model": {
                "source": {"kind": "series", "history": self.history},
                "decoder": {"kind": "forecast", "quantiles": [0.1, 0.5, 0.9]},
            },
            "training": {"metric": "mse", "validate_every": 100, "learning_rate": 2e-3},
        }

    def write(self, folder: Path, seed: int) -> None:
        from regard.data.synthetic.loads import load_table

        first = 0
        for split, hours in self.counts.items():
            before = self.history if first else 0  # the history of a split's first forecast
            (folder / f"{split}.csv").write_text(load_table(hours + before, first=first - before, seed=seed), "utf-8")
            first += hours

    def test_examples(self, folder: Path) -> list[tuple[Any, list[str]]]:
        return [(folder / "test.csv", [])]

    def describe_accuracy(self, count: int) -> str:
        return f"{count:,} forecasts of the load of a town, a day ahead"


def default_horizon(step: Any, rows: int) -> int:
    """Steps ahead: an hour of minutes, a day of hours, two weeks of days, a quarter of weeks, a year of months."""
    steps = MONTHLY_HORIZONS.get(step.months, 4)
    if not step.months:
        ahead = next((seconds for largest, seconds in HORIZONS if step.seconds <= largest), 12 * step.seconds)
        steps = max(1, ahead // step.seconds)
    return int(max(1, min(steps, rows // 8)))


def _treats_columns_apart(model: dict[str, Any]) -> bool:
    """Whether the forecast of a column depends on no other column."""
    from regard.models.settings import ENCODERS, SeriesSource

    source = SeriesSource.parse(model["source"])
    is_identity = ENCODERS.get(model.get("encoder", {}).get("kind", "none")).is_identity
    return source.is_channel_independent or (source.unit == "column" and is_identity)


def _match_head(source: dict[str, Any], head: dict[str, Any], targets: int) -> None:
    """The sizes of the head that follow from the source."""
    from regard.models.settings import SeriesSource

    parsed = SeriesSource.parse(source)
    head["columns"] = targets
    head["sequences"] = parsed.columns if parsed.is_channel_independent else 1
    head["memory_length"], head["history"] = parsed.positions, parsed.history
