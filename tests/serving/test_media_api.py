"""Pictures and recordings over HTTP, and on the pages in a browser."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image
from playwright.sync_api import Browser, expect

import regard
from regard.inference.options import Options
from regard.runs.bundle import save_bundle
from regard.views.storage import from_record
from tests.browser import checked_page, needs_chromium
from tests.bundles import random_bundle
from tests.media import audio_bytes, image_bytes, media_bundle
from tests.serving.conftest import Response, Server

BINARY = {"content-type": "application/octet-stream"}


@pytest.fixture(scope="module")
def runs(subwords: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("media")
    bundles = {
        "captions": media_bundle("images", languages=("en", "de")),
        "animals": media_bundle("images", labels=("cat", "dog", "emu")),
        "spoken": media_bundle("speech"),
        "text": random_bundle(subwords, "recurrent", "bahdanau"),
    }
    for name, bundle in bundles.items():
        (folder / name).mkdir()
        save_bundle(folder / name, bundle)
    return [folder / name for name in bundles]


@pytest.fixture(scope="module")
def server(runs: list[Path]) -> Iterator[Server]:
    started = Server(runs)
    yield started
    started.stop()


def send(server: Server, path: str, raw: bytes) -> Response:
    return server.request(path, body=raw, headers=BINARY)


def predict_offline(run: Path, raw: bytes, **options: Any) -> Any:
    return regard.load(run).results([raw], Options(**options))[0]


def test_predictions_equal_those_of_the_predictor(server: Server, runs: list[Path]) -> None:
    for index, name, raw in (
        (0, "captions", image_bytes()),
        (1, "animals", image_bytes()),
        (2, "spoken", audio_bytes()),
    ):
        answer = send(server, f"/v1/predict-file?model={name}&nbest=2", raw).json()
        expected = predict_offline(runs[index], raw, nbest=2)
        assert answer["text"] == expected.text
        assert np.isclose(answer["score"], expected.score, atol=1e-5)
        assert [other["text"] for other in answer["alternatives"]] == [other.text for other in expected.alternatives]
    german = send(server, "/v1/predict-file?model=captions&to=de", image_bytes()).json()
    assert german["text"] == predict_offline(runs[0], image_bytes(), to="de").text


def test_concurrent_requests_get_the_same_results_as_single_ones(server: Server, runs: list[Path]) -> None:
    alone = [predict_offline(runs[0], image_bytes(seed=n)).text for n in range(12)]
    with ThreadPoolExecutor(12) as pool:
        captions = pool.map(
            lambda n: send(server, "/v1/predict-file?model=captions", image_bytes(seed=n)).json()["text"], range(12)
        )
        assert list(captions) == alone


def test_attention_equals_that_of_the_predictor(server: Server, runs: list[Path]) -> None:
    answer = send(server, "/v1/attend-file?model=spoken&target=one+two&attribution=true", audio_bytes()).json()
    actual = from_record(answer["attention"])
    expected = regard.load(runs[2]).attend(audio_bytes(), "one two", attribution=True)
    assert actual.source_media is not None
    assert expected.source_media is not None
    assert np.array_equal(actual.source_media.values, expected.source_media.values)
    assert actual.source_media.audio == expected.source_media.audio
    assert np.allclose(actual.weights["cross"][0], expected.weights["cross"][0], atol=2e-5)
    assert np.allclose(actual.attribution["source"], expected.attribution["source"], rtol=1e-4, atol=1e-9)
    without_attribution = send(server, "/v1/attend-file?model=captions", image_bytes()).json()
    assert not without_attribution["attention"]["attribution"], "attribution is slow, so only on request"
    animal = send(server, "/v1/attend-file?model=animals&attribution=true", image_bytes()).json()
    assert np.shape(animal["attention"]["attribution"]["source"]) == (1, 64)


def decompression_bomb() -> bytes:
    file = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(file, "PNG")
    return file.getvalue()


def hour_of_audio() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(8000 * 3600, np.int16), 8000, format="FLAC")
    return file.getvalue()


def test_invalid_requests_get_an_error_message(server: Server) -> None:
    for path, raw, status, message in (
        ("/v1/predict-file?model=captions", b"", 400, "the body is empty"),
        ("/v1/predict-file?model=captions", b"nothing", 400, "not a picture"),
        ("/v1/predict-file?model=captions", audio_bytes(), 400, "not a picture"),
        ("/v1/predict-file?model=captions", image_bytes("JPEG")[:400], 400, "cut short"),
        ("/v1/predict-file?model=captions", decompression_bomb(), 400, "million"),
        ("/v1/predict-file?model=spoken", image_bytes(), 400, "not a recording"),
        ("/v1/predict-file?model=spoken", hour_of_audio(), 400, "lasts 3,600 seconds"),
        ("/v1/predict-file?model=text", image_bytes(), 400, "texts go to /v1/translate"),
        ("/v1/predict-file?model=none", image_bytes(), 400, "there is no model"),
        ("/v1/predict-file", image_bytes(), 400, "several models read files; name one of captions, animals, spoken"),
        ("/v1/predict-file?model=captions&to=fr", image_bytes(), 400, "there is no 'fr'; this model has en, de"),
        ("/v1/predict-file?model=captions&beam=900", image_bytes(), 400, "beam"),
        ("/v1/predict-file?model=captions&beam=-1", image_bytes(), 400, "beam"),
        ("/v1/predict-file?model=captions&nbest=0", image_bytes(), 400, "nbest"),
        ("/v1/attend-file?model=captions", b"nothing", 400, "not a picture"),
        (
            f"/v1/attend-file?model=captions&attribution=true&target={70 * 'a+'}",
            image_bytes(),
            400,
            "at most 64 subwords",
        ),
        ("/v1/attend-file?model=animals&attribution=true&target=yak", image_bytes(), 400, "there is no class 'yak'"),
    ):
        answer = send(server, path, raw)
        assert answer.status == status, (path, answer.body[:200])
        assert message in answer.json()["error"]
    text = server.request("/v1/translate", {"text": "a dog", "model": "captions"})
    assert (text.status, "reads pictures, not text" in text.json()["error"]) == (400, True)
    attention = server.request("/v1/attend", {"text": "a dog", "model": "captions"})
    assert (attention.status, "send one to /v1/attend-file" in attention.json()["error"]) == (400, True)


def peak_memory(server: Server) -> int:
    """In kilobytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def test_text_is_never_opened_as_a_file_of_the_server(server: Server, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(image_bytes())
    names = f"{tmp_path / 'secret.png'}\n/etc/passwd\n".encode()
    for path in ("/v1/lines?model=captions", "/v1/file?model=captions&name=a.txt", "/v1/lines?model=spoken"):
        answer = send(server, path, names)
        assert answer.status == 400
        assert "not text" in answer.json()["error"]


def test_decompression_bombs_are_rejected_before_decoding(server: Server) -> None:
    image, audio = decompression_bomb(), hour_of_audio()
    send(server, "/v1/predict-file?model=captions", image_bytes())
    before = peak_memory(server)
    with ThreadPoolExecutor(8) as pool:
        jobs = [("captions", image), ("spoken", audio)] * 8
        statuses = list(pool.map(lambda job: send(server, f"/v1/predict-file?model={job[0]}", job[1]).status, jobs))
    assert statuses == [400] * 16
    assert peak_memory(server) - before < 150_000, "unpacked, sixteen of them would be gigabytes"
    assert send(server, "/v1/predict-file?model=captions", image_bytes()).status == 200


def test_models_report_their_modality_task_and_options(server: Server) -> None:
    models = {model["name"]: model for model in server.request("/v1/models").json()["models"]}
    assert {name: model["modality"] for name, model in models.items()} == {
        "captions": "image",
        "animals": "image",
        "spoken": "audio",
        "text": "text",
    }
    assert (models["animals"]["task"], models["animals"]["output"]) == ("classification", "Class")
    assert models["animals"]["options"] == ["nbest", "scores", "attention"]
    assert models["captions"]["languages"] == ["en", "de"]


@needs_chromium
def test_page_predicts_from_chosen_files(browser: Browser, server: Server, runs: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "<b>scene.png"
    path.write_bytes(image_bytes())
    invalid = tmp_path / "wrong.png"
    invalid.write_bytes(b"nothing")
    with checked_page(browser, server.url, harmless="responded with a status of 400") as page:
        page.wait_for_selector("#model:not([disabled])", timeout=60_000)
        page.wait_for_selector("#source-file:not([hidden])")
        assert page.locator("#source").is_hidden()
        page.set_input_files("#media", path)
        page.wait_for_selector("#target[data-text]:not([data-text=''])")
        assert (
            page.evaluate("document.getElementById('target').dataset.text")
            == predict_offline(runs[0], image_bytes()).text
        )
        assert page.evaluate("document.getElementById('source-image').naturalWidth") == 64
        page.select_option("#target-language", value="de")
        german = predict_offline(runs[0], image_bytes(), to="de").text
        page.wait_for_function("text => document.getElementById('target').dataset.text === text", arg=german)
        page.set_input_files("#media", invalid)
        expect(page.locator("#status")).to_contain_text("not a picture")
        page.select_option("#model", label="spoken")
        assert page.locator("#source-title").text_content() == "Recording"
        recording = tmp_path / "a.wav"
        recording.write_bytes(audio_bytes())
        page.set_input_files("#media", recording)
        page.wait_for_selector("#target[data-text]:not([data-text=''])")
        assert page.locator("#source-audio").is_visible()
        page.select_option("#model", label="text")
        assert page.locator("#source").is_visible()
        assert page.locator("#source-file").is_hidden()


@needs_chromium
def test_live_page_shows_attention_over_chosen_files(browser: Browser, server: Server, tmp_path: Path) -> None:
    path = tmp_path / "scene.png"
    path.write_bytes(image_bytes())
    with checked_page(browser, server.url, harmless="responded with a status of 400") as page:
        page.goto(f"{server.url}/see")
        page.wait_for_selector("#live-file-label:not([hidden])", timeout=60_000)
        page.set_input_files("#live-file", path)
        page.wait_for_selector(".source-overlay canvas.image")
        words = page.locator("button.word")
        count = words.count()
        assert count >= 1
        words.nth(count - 1).click()
        assert "current" in (words.nth(count - 1).get_attribute("class") or "")
        page.select_option("#layer", value="attribution")
        page.fill("#live-target", "a red circle")
        expect(page.locator("#live-status")).to_have_text("of your own words")
        assert page.input_value("#layer") == "attribution"
        page.fill("#live-target", "字" * 30)  # too many subwords for attribution, so only attention is shown
        expect(page.locator("#layer option[value=attribution]")).to_have_count(0)
        expect(page.locator("#live-status")).to_have_text("of your own words")
        page.select_option("#live-model", value="spoken")
        recording = tmp_path / "a.wav"
        recording.write_bytes(audio_bytes())
        page.set_input_files("#live-file", recording)
        page.wait_for_selector(".source-overlay audio")
        assert page.evaluate("document.querySelector('.source-overlay audio').readyState >= 0")
