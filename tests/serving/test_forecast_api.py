"""Forecasts over HTTP, and on the pages in a browser."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

import regard
from regard.views.storage import from_record
from tests.browser import checked_page, needs_chromium
from tests.data.series.samples import write_waves
from tests.end_to_end.commands import run_regard, set_options
from tests.serving.conftest import Response, Server

CSV = {"content-type": "text/csv"}
COLUMNS = ("a", "b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, and runs for them: with quantiles, and with attention from each step ahead."""
    path = tmp_path_factory.mktemp("forecasts")
    write_waves(path / "train.csv", 300)
    write_waves(path / "test.csv", 120, start=300)
    quantiles = set_options(["model.decoder.quantiles=[0.1, 0.5, 0.9]"])
    for name, options in {
        "linear": ("--preset", "linear-forecast", *quantiles),
        "steps": ("--preset", "step-transformer", *set_options(["model.encoder.layers=1"])),
    }.items():
        sizes = ("--horizon", 6, "--history", 24, "--steps", 20, "--quiet")
        run_regard("train", path / "train.csv", "-o", path / name, *options, *sizes)
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    started = Server([folder / "linear", folder / "steps"])
    yield started
    started.stop()


def send(server: Server, query: str, content: bytes) -> Response:
    return server.request(f"/v1/forecast?{query}", body=content, headers=CSV)


def table(folder: Path) -> bytes:
    return (folder / "test.csv").read_bytes()


def test_an_uploaded_table_is_forecast_as_by_the_predictor(server: Server, folder: Path) -> None:
    answer = send(server, "model=linear", table(folder)).json()
    expected = regard.load(folder / "linear").forecast(folder / "test.csv").forecast[0]
    (forecast,) = answer["forecasts"]
    assert (answer["model"], answer["step"], answer["notes"]) == ("linear", "1 hour", [])
    assert len(forecast["time"]) == 6
    assert forecast["point"] == "0.5"
    for at, column in enumerate(COLUMNS):
        outputs = forecast["columns"][column]
        assert list(outputs) == ["0.1", "0.5", "0.9"]
        np.testing.assert_array_equal(np.array(list(outputs.values())).T, expected.values[:, at])
        assert len(forecast["history"]["columns"][column]) == 24
    assert forecast["truth"] is None


def test_json_columns_and_rows_give_the_same_forecast(server: Server, folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(table(folder).decode())))
    typed = [{"date": row["date"], **{name: float(row[name]) for name in COLUMNS}} for row in rows]
    columns = {name: [row[name] for row in typed] for name in typed[0]}
    expected = send(server, "model=linear", table(folder)).json()["forecasts"]
    for body in ({"columns": columns, "model": "linear"}, {"rows": typed, "model": "linear"}):
        assert server.request("/v1/forecast", body).json()["forecasts"] == expected


def test_a_forecast_from_an_earlier_time_has_the_truth(server: Server, folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(table(folder).decode())))
    start = rows[-4]["date"]
    (forecast,) = send(server, f"model=linear&start={start.replace(' ', '%20')}", table(folder)).json()["forecasts"]
    assert forecast["time"][0].startswith(start)
    assert forecast["truth"]["a"][:4] == [float(row["a"]) for row in rows[-4:]]
    assert forecast["truth"]["a"][4:] == [None, None]
    until = "\n".join(table(folder).decode().splitlines()[:-4]) + "\n"
    (alone,) = send(server, "model=linear", until.encode()).json()["forecasts"]
    assert alone["columns"] == forecast["columns"], "later rows are not read"


def test_missing_values_are_reported(server: Server, folder: Path) -> None:
    lines = table(folder).decode().splitlines()
    lines[50] = f"{lines[50].split(',')[0]},,"
    answer = send(server, "model=linear", "\n".join(lines).encode()).json()
    assert answer["notes"] == ["2 missing values, filled in"]


def test_attention_over_an_uploaded_table(server: Server, folder: Path) -> None:
    path = "/v1/attend-file?model=steps&name=test.csv&attribution=true"
    record = server.request(path, body=table(folder), headers=CSV).json()["attention"]
    captured = from_record(record)
    assert captured.matrix("cross").shape == (6, 24)
    assert captured.attribution["source"].shape == (6, 24)
    assert captured.source_media is not None
    assert (captured.source_media.kind, captured.source_media.values.shape) == ("series", (24, 2))


@pytest.mark.parametrize(
    ("query", "content", "status", "message"),
    [
        ("model=linear", "", 400, "the body is empty"),
        ("model=linear", "date,a\n2024-01-01 00:00,1\n", 400, "there is no column 'b'"),
        ("model=linear", "date,a,b\nsoon,1,2\n", 400, "is not a time"),
        ("model=linear", "date,a,b\n2024-01-01 00:00,1,x\n", 400, "is not"),
        ("model=linear&name=t.exe", "date,a,b\n", 400, "a table of series is one of"),
        ("model=linear&start=soon", "TABLE", 400, "start: 'soon' is not a time"),
        ("model=linear&beam=3", "TABLE", 400, "beam: this does not apply"),
        ("model=none", "TABLE", 400, "there is no model 'none'"),
        ("", "TABLE", 400, "several models forecast series"),
    ],
)
def test_what_cannot_be_forecast_is_an_error_message(
    server: Server, folder: Path, query: str, content: str, status: int, message: str
) -> None:
    answer = send(server, query, table(folder) if content == "TABLE" else content.encode())
    assert (answer.status, message in answer.json()["error"]) == (status, True), answer.json()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"columns": {"date": ["2024-01-01 00:00"], "a": [1.0], "b": [2.0, 3.0]}}, "the same length"),
        ({"columns": {"date": ["2024-01-01 00:00"], "a": "1", "b": [2.0]}}, "the column 'a' is not a list"),
        ({"columns": {"date": ["2024-01-01 00:00"], "a": [[1]], "b": [2]}}, "numbers"),
        ({"columns": []}, "expected an object"),
        ({"rows": [1]}, "expected a list of objects"),
        ({"rows": [], "columns": {}}, "either"),
        ({"columns": {}, "beam": 3}, "beam: there is no such field"),
        ({"columns": {}, "model": 5}, "model: expected the name of a model"),
        ({"columns": {}, "start": 5}, "start: "),
        ({"columns": {"date": [10**400], "a": [1.0], "b": [10**400]}}, "is not"),
    ],
)
def test_json_that_is_no_series_is_an_error_message(server: Server, body: object, message: str) -> None:
    raw = json.dumps({"model": "linear", **body} if isinstance(body, dict) else body).encode()
    answer = server.request("/v1/forecast", body=raw, headers={"content-type": "application/json"})
    assert (answer.status, message in answer.json()["error"]) == (400, True), answer.json()


def test_models_tell_where_and_what_files_are_sent(server: Server) -> None:
    for model in server.request("/v1/models").json()["models"]:
        assert (model["path"], model["options"]) == ("/v1/forecast", ["start"])
        assert {".csv", ".tsv", ".jsonl"} <= set(model["accepts"])
    texts = server.request("/v1/translate", {"text": "a", "model": "linear"})
    assert texts.status == 400


@needs_chromium
def test_the_page_draws_a_chart_and_offers_the_values(browser: Browser, server: Server, folder: Path) -> None:
    with checked_page(browser, server.url) as page:
        page.wait_for_selector("#model:not([disabled])", timeout=60_000)
        page.set_input_files("#media", folder / "test.csv")
        expect(page.locator("#forecast svg")).to_have_count(2)
        label = page.locator("#forecast svg").first.get_attribute("aria-label") or ""
        assert label.startswith("a: forecast from ")
        assert page.locator("#forecast polygon.band").count() == 2
        assert page.locator("#forecast-values tr").count() == 7
        with page.expect_download() as download:
            page.click("#forecast-download")
        rows = list(csv.reader(io.StringIO(download.value.path().read_text())))
        assert rows[0] == ["time", *(f"{column} {q}" for column in COLUMNS for q in ("0.1", "0.5", "0.9"))]
        expected = regard.load(folder / "linear").forecast(folder / "test.csv").forecast[0]
        assert float(rows[1][1]) == pytest.approx(expected.values[0, 0, 0])


@needs_chromium
def test_the_attention_page_draws_over_the_series(browser: Browser, server: Server, folder: Path) -> None:
    with checked_page(browser, server.url) as page:
        page.goto(f"{server.url}/see")
        page.wait_for_selector("#live-model option", state="attached", timeout=60_000)
        page.select_option("#live-model", "steps")
        page.set_input_files("#live-file", folder / "test.csv")
        expect(page.locator(".source-overlay canvas")).to_be_visible()
        assert page.locator(".steps button.word").count() == 6
