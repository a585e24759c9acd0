"""Forecasting by the command: train, evaluate, predict, see, resume; what is refused."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.errors import RegardError
from tests.data.series.samples import write_waves
from tests.end_to_end.commands import run_regard, set_options

QUICK = ("--steps", 60, "--quiet", *set_options(["training.validate_every=30", "training.learning_rate=3e-3"]))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_waves(folder / "train.csv", 600)
    write_waves(folder / "test.csv", 200, start=600)
    return folder


@pytest.fixture(scope="module")
def trained(tables: Path) -> Path:
    """A linear model with quantiles of both columns, 12 hours ahead."""
    run = tables / "run"
    quantiles = set_options(["model.decoder.quantiles=[0.1, 0.5, 0.9]"])
    model = ("--preset", "linear-forecast", "--horizon", 12, "--history", 48, *quantiles)
    run_regard("train", tables / "train.csv", "-o", run, *model, *QUICK)
    return run


def test_forecasts_beat_naive_ones_and_all_metrics_are_reported(trained: Path, tables: Path) -> None:
    report = json.loads(run_regard("evaluate", trained, tables / "test.csv", "--json").stdout)
    assert (report["windows"], report["horizon"], report["season"]) == (200 - 48 - 12 + 1, 12, 24)
    scores = report["scores"]
    assert set(scores) == {"model", "ridge regression", "seasonal naive", "naive"}
    assert set(scores["model"]) == {"mse", "mae", "mase", "smape", "pinball", "coverage_error"}
    assert scores["model"]["mse"] < scores["naive"]["mse"] / 3
    coverage = report["coverage"]
    assert coverage["nominal"] == pytest.approx(80)
    assert abs(coverage["actual"] - coverage["nominal"]) == pytest.approx(scores["model"]["coverage_error"])
    assert len(report["by_step"]["model"]["mse"]) == 12
    assert np.mean(report["by_step"]["model"]["mse"]) == pytest.approx(scores["model"]["mse"])
    lines = run_regard("evaluate", trained, tables / "test.csv", "--metric", "mae,coverage_error").stdout.splitlines()
    assert lines[0] == "141 forecasts of 12 steps of 1 hour, 2 columns"
    assert "mae by steps ahead" in lines
    assert any("of the values are between the outermost quantiles; nominal are 80.0 %" in line for line in lines)


def test_a_forecast_is_a_table_and_a_plot(trained: Path, tables: Path, tmp_path: Path) -> None:
    done = run_regard("predict", trained, tables / "test.csv", "-o", tmp_path / "f.csv")
    assert done.stdout.startswith(f"{tmp_path / 'f.csv'}: 12 steps of 1 series")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((tmp_path / "f.csv").open()))
    assert list(rows[0]) == ["time", *(f"{column} {q}" for column in "ab" for q in (0.1, 0.5, 0.9))]
    assert rows[0]["time"] == "2024-02-03 08:00:00"  # 800 hours after the first row
    for row in rows:
        assert float(row["a 0.1"]) <= float(row["a 0.5"]) <= float(row["a 0.9"])
    truth = 100 + 10 * np.cos(2 * np.pi * np.arange(800, 812) / 24)
    assert np.abs(np.array([float(row["b 0.5"]) for row in rows]) - truth).max() < 6
    printed = run_regard("forecast", trained, tables / "test.csv").stdout
    assert printed == (tmp_path / "f.csv").read_text()
    record = json.loads(run_regard("forecast", trained, tables / "test.csv", "--json").stdout)
    assert record["time"][0] == "2024-02-03 08:00:00"


def test_python_takes_files_columns_and_arrays(trained: Path, tables: Path) -> None:
    predictor = regard.load(trained)
    from_file = predictor.forecast(tables / "test.csv")
    with (tables / "test.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns |= {name: [float(each) for each in columns[name]] for name in "ab"}
    from_columns = predictor.forecast(columns)
    array = np.stack([columns["a"], columns["b"]], 1).astype(float)
    from_array = predictor.forecast(array)
    for other in (from_columns, from_array):
        np.testing.assert_allclose(other.forecast[0].values, from_file.forecast[0].values, rtol=1e-5, atol=1e-5)
    assert from_columns.forecast[0].times.tolist() == from_file.forecast[0].times.tolist()
    assert "its shape is (4, 3)" in predictor.forecast(np.zeros((4, 3))).error
    assert "there is no column 'b'" in predictor.forecast({"date": ["2024-01-01"], "a": [1.0]}).error
    several = predictor.forecast([tables / "test.csv", tables / "train.csv"])
    np.testing.assert_array_equal(several[0].forecast[0].values, from_file.forecast[0].values)
    with pytest.raises(RegardError, match="a forecast has no target"):
        predictor.attend(tables / "test.csv", "text")
    assert not predictor.attend(tables / "test.csv").kinds, "a linear model"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "{run}", "{tables}/none.csv"), "there is no such file"),
        (("predict", "{run}", "{tables}/test.csv", "-o", "{tables}/f.png"), "must end in .csv, .tsv or .jsonl"),
        (("predict", "{run}", "{tables}/test.csv", "--column", "a"), "are for texts; this run reads tables"),
        (("predict", "{run}"), "there is nothing to read"),
        (
            ("predict", "{run}", "{tables}/test.csv", "--beam", "3"),
            "beam: this does not apply to a run for forecasting",
        ),
        (("evaluate", "{run}"), "name a test set: a table of series"),
        (("evaluate", "{run}", "{tables}/test.csv", "--metric", "bleu"), "bleu is not a metric of forecasts"),
        (("translate", "{run}", "text"), "text: there is no such file"),
        (("see", "{run}", "{tables}/test.csv"), "this model does not attend; --attribution"),
        (("predict", "{run}", "{tables}/test.csv", "--start", "soon"), "start: 'soon' is not a time"),
        (("predict", "{run}", "{tables}/test.csv", "--start", "2031-01-01"), "start: 2031-01-01 is outside the series"),
        (("train", "{tables}/train.csv", "-o", "{tables}/x", "--horizon", "0"), "data.series.horizon"),
        (("train", "{tables}/train.csv", "-o", "{tables}/x", "--time", "hour"), "there is no column 'hour'"),
        (("train", "{tables}/train.csv", "-o", "{tables}/x", "--known", "c"), "there is no column 'c'"),
        (
            ("train", "{tables}/train.csv", "-o", "{tables}/x", "--preset", "bahdanau", "--task", "forecasting"),
            "--preset",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    trained: Path, tables: Path, arguments: tuple[str, ...], message: str
) -> None:
    filled = [each.format(run=trained, tables=tables) for each in arguments]
    done = run_regard(*filled, check=False)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset", ["patch-transformer", "column-transformer", "step-transformer", "series-rnn", "series-conv"]
)
def test_every_preset_trains_forecasts_and_shows_its_attention(preset: str, tables: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_regard("train", tables / "train.csv", "-o", run, "--preset", preset, "--history", 48, *QUICK)
    assert json.loads(run_regard("evaluate", run, tables / "test.csv", "--json").stdout)["horizon"] == 24
    run_regard("predict", run, tables / "test.csv", "-o", tmp_path / "f.jsonl")
    run_regard("see", run, tables / "test.csv", "-o", tmp_path / "x.html")
    run_regard("see", run, tables / "test.csv", "-o", tmp_path / "x.png")


@pytest.mark.slow
def test_several_series_in_long_form(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 300, series=("x", "y"))
    run = tmp_path / "run"
    done = run_regard("train", tmp_path / "t.csv", "-o", run, "--preset", "linear-forecast", "--series", "id", *QUICK)
    assert done.returncode == 0
    run_regard("forecast", run, tmp_path / "t.csv", "-o", tmp_path / "f.csv")
    rows = list(csv.DictReader((tmp_path / "f.csv").open()))
    assert [row["series"] for row in rows] == ["x"] * 24 + ["y"] * 24


@pytest.mark.slow
def test_an_interrupted_run_ends_with_the_same_bits(tables: Path, tmp_path: Path) -> None:
    options = ("--preset", "patch-transformer", "--history", 48, *QUICK, *set_options(["training.save_every=20"]))
    for name in ("whole", "parts"):
        run_regard("train", tables / "train.csv", "-o", tmp_path / name, *options)
    for folder in sorted((tmp_path / "parts" / "checkpoints").iterdir())[1:]:
        if folder.is_dir() and folder.name.isdigit():
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
    run_regard("train", "--resume", tmp_path / "parts")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_known_columns_have_future_values_in_rows_without_targets(tmp_path: Path) -> None:
    """The target repeats the known column; only rows after the end tell what comes."""
    rows = [f"{time},{known},{known}" for time, known in _alternating(400)]
    future = [f"{time},,{known}" for time, known in _alternating(6, first=400, level=5.0)]
    (tmp_path / "train.csv").write_text("\n".join(["time,sales,price", *rows]) + "\n")
    (tmp_path / "next.csv").write_text("\n".join(["time,sales,price", *rows[-60:], *future]) + "\n")
    run = tmp_path / "run"
    options = ("--preset", "column-transformer", "--known", "price", "--horizon", 6, "--history", 24, "--steps", 150)
    rates = set_options(["training.learning_rate=3e-3", "training.validate_every=50"])
    run_regard("train", tmp_path / "train.csv", "-o", run, *options, *rates, "--quiet")
    predictor = regard.load(run)
    forecast = predictor.forecast(tmp_path / "next.csv").forecast[0]
    assert forecast.times[0] - forecast.history_times[-1] == 3600, "it begins after the last row with a target"
    (tmp_path / "same.csv").write_text("\n".join(["time,sales,price", *rows[-60:]]) + "\n")
    other = predictor.forecast(tmp_path / "same.csv").forecast[0]
    assert (forecast.times == other.times).all()
    assert np.abs(forecast.point - other.point).max() > 0.1, "the future price is read"
    noted = run_regard("forecast", run, tmp_path / "same.csv").stderr
    assert "price: the last value is repeated where a row is missing" in noted
    assert "price" not in run_regard("forecast", run, tmp_path / "next.csv").stderr


def _alternating(count: int, *, first: int = 0, level: float = 0.0) -> list[tuple[str, float]]:
    generator = np.random.default_rng(first)
    start = np.datetime64("2024-01-01T00:00:00")
    return [
        (str(start + np.timedelta64(first + step, "h")).replace("T", " "), round(level + float(value), 3))
        for step, value in enumerate(generator.normal(size=count))
    ]


@pytest.mark.slow
def test_series_in_files_are_classified(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    for split, count in (("train", 160), ("test", 40)):
        lines = []
        for number in range(count):
            speed, steps = (0.2, 0.6)[number % 2], int(generator.integers(30, 50))
            phase = generator.uniform(0, 6)
            values = np.stack([np.sin(speed * np.arange(steps) + phase), generator.normal(size=steps)], 1)
            name = f"{split}-{number}.{'npy' if number % 3 else 'csv'}"
            if name.endswith("npy"):
                np.save(tmp_path / name, values)
            else:
                np.savetxt(tmp_path / name, values, delimiter=",", header="x,y", comments="")
            lines.append(f"{name},{('slow', 'fast')[number % 2]}")
        (tmp_path / f"{split}.csv").write_text("\n".join(["file,label", *lines]) + "\n")
    run = tmp_path / "run"
    small = set_options(["model.encoder.width=32", "training.learning_rate=3e-3"])
    done = run_regard("train", tmp_path / "train.csv", "--task", "classification", "-o", run, "--steps", 120, *small)
    assert "2 columns" in done.stdout + done.stderr
    scores = json.loads(run_regard("evaluate", run, tmp_path / "test.csv", "--json").stdout)["scores"]
    assert {score["name"]: score["value"] for score in scores}["exact"] > 90
    assert run_regard("classify", run, tmp_path / "test-0.csv").stdout.strip() == "slow"
    run_regard("see", run, tmp_path / "test-1.npy", "-o", tmp_path / "x.png")
    report = json.loads(run_regard("classify", run, tmp_path / "train.csv", "--json", check=False).stdout)
    assert "not a table of numbers" in report["error"]
