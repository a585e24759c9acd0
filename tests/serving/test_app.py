"""The service as a process: its APIs, API keys, limits, error responses and shutdown."""

import asyncio
import base64
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deepl
import polib
import pytest
from libretranslatepy import LibreTranslateAPI

import regard
from regard.serving.api_keys import hash_key, new_key
from regard.serving.limits import Limits
from regard.serving.middleware import RequestMiddleware
from tests.serving.conftest import TEXTS, Server


@pytest.fixture(scope="session")
def expected(runs: list[Path]) -> dict[str, str]:
    """Offline translations of TEXTS."""
    translator = regard.load(runs[0])
    return {text: translator.translate(text).text for text in TEXTS}


def test_health_readiness_and_list_of_models(server: Server) -> None:
    assert server.request("/health").json()["status"] == "alive"
    assert server.request("/ready").json() == {"status": "ready"}
    names = [(m["name"], m["source"], m["target"]) for m in server.request("/v1/models").json()["models"]]
    assert names == [("en-de", "en", "de"), ("de-en", "de", "en")]


def test_the_api_schema_has_the_limits_of_the_service(server: Server) -> None:
    schema = server.request("/openapi.json").json()
    body = schema["components"]["schemas"]["PredictionRequest"]["properties"]
    parameters = {each["name"]: each["schema"] for each in schema["paths"]["/v1/lines"]["post"]["parameters"]}
    form = server.request("/v1/models").json()["option_schema"]
    for name in ("beam", "nbest"):
        limit = getattr(Limits(), name)
        assert [each[name]["maximum"] for each in (body, parameters, form)] == [limit] * 3


def test_translate_equals_offline_translation_and_returns_details(server: Server, expected: dict[str, str]) -> None:
    answer = server.request("/v1/translate", {"text": TEXTS, "target": "de"}).json()
    assert answer["model"] == "en-de"
    assert [each["text"] for each in answer["translations"]] == [expected[text] for text in TEXTS]
    body = {"text": "the cat", "model": "de-en", "nbest": 3, "scores": True, "alignment": True, "attention": True}
    (translation,) = server.request("/v1/translate", body).json()["translations"]
    (sentence,) = translation["sentences"]
    assert len(translation["alternatives"]) == 2
    assert len(sentence["token_scores"]) == len(sentence["tokens"])
    cross = sentence["attention"]["weights"]["cross"]
    assert len(cross[0][0]) == len(sentence["tokens"])
    assert len(cross[0][0][0]) == len(sentence["source_tokens"])
    assert sentence["attention"]["source"]["labels"] == sentence["source_tokens"]
    assert sum(sentence["token_scores"]) / len(sentence["tokens"]) == pytest.approx(sentence["score"], abs=1e-3)


def test_line_breaks_and_whitespace_are_preserved(server: Server, expected: dict[str, str]) -> None:
    text = "the cat sat on the mat\n\n  the dog ran\n"
    (translation,) = server.request("/v1/translate", {"text": text, "target": "de"}).json()["translations"]
    assert translation["text"] == f"{expected['the cat sat on the mat']}\n\n  {expected['the dog ran']}\n"


def test_libretranslate_client(server: Server, expected: dict[str, str]) -> None:
    client = LibreTranslateAPI(server.url)
    assert client.translate("the dog ran", "en", "de") == expected["the dog ran"]
    languages = client.languages()
    assert {"code": "en", "name": "English", "targets": ["de"]} in languages
    detected = client.detect("the cat sat on the mat")
    assert all(0 < each["confidence"] <= 100 for each in detected)


def test_libretranslate_requests_and_responses(server: Server, expected: dict[str, str]) -> None:
    single = server.request(
        "/translate", {"q": "the dog ran", "source": "en", "target": "de", "alternatives": 2}
    ).json()
    assert single["translatedText"] == expected["the dog ran"]
    assert len(single["alternatives"]) == 2
    many = server.request("/translate", {"q": ["the dog ran"], "source": "en", "target": "de"}).json()
    assert many["translatedText"] == [expected["the dog ran"]], "a list is answered with a list"
    form = server.request("/translate", body=b"q=the+dog+ran&source=en&target=de").json()
    assert form["translatedText"] == expected["the dog ran"]
    auto = server.request("/translate", {"q": "the dog ran", "source": "auto", "target": "de"}).json()
    assert auto["detectedLanguage"]["language"] == "en"
    html = server.request(
        "/translate", {"q": "<p class='a&b'>the dog ran</p><script>x</script>", "target": "de", "format": "html"}
    ).json()["translatedText"]
    assert html.startswith("<p class='a&b'>")
    assert html.endswith("</p><script>x</script>")
    deeplx = server.request("/translate", {"text": "the dog ran", "source_lang": "EN", "target_lang": "DE"}).json()
    assert deeplx["data"] == expected["the dog ran"]
    for invalid in (
        {"source": "en", "target": "de"},
        {"q": "x", "source": "fr", "target": "de"},
        {"q": "x", "target": "xx"},
    ):
        answer = server.request("/translate", invalid)
        assert answer.status == 400
        assert "error" in answer.json()


def test_damaged_model_stops_the_server_with_an_error_message(runs: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(runs[0], broken)
    (broken / "model.safetensors").write_bytes(b"nonsense")
    command = [sys.executable, "-m", "regard", "serve", str(broken), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "model.safetensors: it is damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_port_in_use_stops_the_server_with_an_error_message(server: Server, runs: list[Path]) -> None:
    command = [sys.executable, "-m", "regard", "serve", str(runs[0]), "--port", server.url.rpartition(":")[2]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "cannot be listened on (Address already in use); choose another --port." in done.stderr


def test_huge_content_length_is_rejected_without_waiting_for_the_body(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as client:
        client.sendall(
            b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n{"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 4")


def test_slow_body_is_rejected_with_status_408() -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    async def receive() -> Any:
        await asyncio.sleep(0.06)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    middleware = RequestMiddleware(app, limits=Limits(seconds=0.2), hosts=("localhost",))
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost")]}
    asyncio.run(asyncio.wait_for(middleware(scope, receive, send), 20))
    assert sent[0]["status"] == 408


def test_errors_are_json_objects_with_one_key(server: Server) -> None:
    for answer, status in (
        (server.request("/nowhere"), 404),
        (server.request("/v1/translate"), 405),
        (server.request("/v1/translate", body=b"text=x"), 400),
        (server.request("/v1/translate", body=b"{", headers={"content-type": "application/json"}), 400),
        (server.request("/v1/translate", {"text": "x", "required": ["a"], "forbidden": ["a"], "target": "de"}), 400),
    ):
        assert answer.status == status
        assert list(answer.json()) == ["error"]


def test_deepl_client(server: Server, expected: dict[str, str]) -> None:
    client = deepl.Translator("any", server_url=server.url)
    result = client.translate_text("the dog ran", source_lang="EN", target_lang="DE")
    assert result.text == expected["the dog ran"]
    assert result.detected_source_lang == "EN"
    assert result.billed_characters == len("the dog ran")
    results = client.translate_text(TEXTS, source_lang="EN", target_lang="DE")
    assert [each.text for each in results] == [expected[text] for text in TEXTS]
    assert {each.code for each in client.get_source_languages()} == {"EN", "DE"}
    assert client.get_usage().character.count > 0
    with pytest.raises(deepl.DeepLException, match="there are none here"):
        client.translate_text("the cat", source_lang="EN", target_lang="DE", glossary="abc")
    with pytest.raises(deepl.DeepLException, match="not supported"):
        client.translate_text("the cat", target_lang="DE", formality="more")
    tagged = client.translate_text("the cat <x>the dog</x>", target_lang="DE", tag_handling="xml", ignore_tags="x")
    assert "<x>the dog</x>" in str(tagged)
    with pytest.raises(deepl.DeepLException, match="no model translates from"):
        client.translate_text("x", source_lang="FR", target_lang="DE")
    too_many = server.request("/v2/translate", {"text": ["x"] * 51, "target_lang": "DE"})
    assert too_many.status == 400
    assert "message" in too_many.json()
    assert server.request("/v2/translate", {"text": ["x" * (129 << 10)], "target_lang": "DE"}).status == 413


def test_lines_are_translated_in_order(server: Server, expected: dict[str, str]) -> None:
    text = "\n".join(TEXTS * 10)
    unusual_breaks = server.request("/v1/lines?target=de", body="the\x0c cat\r\na\u2028dog\n\n".encode()).body
    assert len(unusual_breaks.splitlines()) == 3, "only line ends end lines"
    answer = server.request("/v1/lines?target=de", body=text.encode())
    records = [json.loads(line) for line in answer.body.splitlines()]
    assert [record["text"] for record in records] == [expected[text] for text in TEXTS * 10]
    assert [record["line"] for record in records] == list(range(1, len(records) + 1))


def test_uploaded_file_is_returned_translated(server: Server, expected: dict[str, str]) -> None:
    content = b'msgid "the dog ran"\nmsgstr ""\n'
    records = [
        json.loads(line)
        for line in server.request("/v1/file?name=../../a.po&model=en-de", body=content).body.splitlines()
    ]
    assert records[0] == {"done": 0, "total": 1}
    assert records[-1]["name"] == "a.de.po", "a name, never a path"
    written = base64.b64decode(records[-1]["content"]).decode()
    (entry,) = polib.pofile(written + "\n# end\n")
    assert entry.msgstr == expected["the dog ran"]
    assert "#, fuzzy" in written
    table = server.request("/v1/file?name=a.csv&model=en-de&column=2", body=b"1,the dog ran\n")
    translated_table = base64.b64decode(json.loads(table.body.splitlines()[-1])["content"])
    assert translated_table.startswith(b"1,the dog ran,")
    invalid = server.request("/v1/file?name=a.xlf&model=en-de", body=b"<html/>")
    assert invalid.status == 400
    assert "not XLIFF" in invalid.json()["error"]


def test_concurrent_clients_get_their_own_translations(server: Server, expected: dict[str, str]) -> None:
    def is_correct(number: int) -> bool:
        text = TEXTS[number % len(TEXTS)]
        (translation,) = server.request("/v1/translate", {"text": text, "target": "de"}).json()["translations"]
        return translation["text"] == expected[text]

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(is_correct, range(200)))


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"text": "x" * 30_000}, 413, "30,000 characters are too many"),
        ({"text": ["x"] * 129}, 413, "129 texts are too many"),
        ({"text": "x", "beam": 11}, 400, "beam: it must be between 1 and 10"),
        ({"text": "x", "beam": 0}, 400, "beam"),
        ({"text": "x", "nbest": 11}, 400, "nbest: it must be between 1 and 10"),
        ({"text": "x", "temperature": -1}, 400, "temperature"),
        ({"text": "x", "model": "none"}, 400, "there is no model 'none'"),
        ({"text": "x", "target": "fr"}, 400, "no model translates from any language to fr"),
        ({"text": 3}, 400, "text"),
        ({"text": [1]}, 400, "text"),
        ({"texts": "x"}, 400, "text"),
        (
            {"text": "x", "target": "de", "no_repeat": 2},
            400,
            "no_repeat: this option is now called no_repeat_ngram_size.",
        ),
        ({"text": "x", "target": "de", "beem": 2}, 400, "beem: there is no such field; see /docs."),
        ({"text": "x", "target": "de", "beam": "3"}, 400, "beam: '3' is not possible; it must be a whole number."),
        (
            {"text": "x", "target": "de", "scores": "yes"},
            400,
            "scores: 'yes' is not possible; it must be true or false.",
        ),
        ({"text": "x", "target": "de", "temperature": True}, 400, "temperature: True is not possible"),
        ({"text": "x", "target": "de", "forbidden": "y"}, 400, "forbidden: give a list of words or phrases"),
        ({"text": "x", "target": "de", "to": "zh"}, 400, "to: there is no 'zh'; this model has one language."),
        ({}, 400, "text"),
        ({"text": "x", "forbidden": ["y" * 3000], "target": "de"}, 400, "at most 2,000 characters together"),
        ({"text": "x", "glossary": {str(n): "x" for n in range(200)}, "target": "de"}, 400, "glossary: at most 128"),
    ],
)
def test_invalid_requests_get_an_error_message(server: Server, body: dict, status: int, message: str) -> None:
    answer = server.request("/v1/translate", body)
    assert answer.status == status
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("beam=x", "beam: 'x' is not possible; it must be a whole number."),
        ("beem=3", "beem: there is no such option"),
        ("no_repeat=2", "no_repeat: this option is now called no_repeat_ngram_size."),
        ("beam=3&beam=4", "beam: it is given more than once."),
        ("nbest=2", "nbest: this does not apply to /v1/lines; leave it out."),
        ("attention=true", "attention: this does not apply to /v1/lines; leave it out."),
        ("to=zh", "to: there is no 'zh'"),
    ],
)
def test_invalid_query_parameters_get_an_error_message(server: Server, query: str, message: str) -> None:
    answer = server.request(f"/v1/lines?target=de&{query}", body=b"the cat", headers={"content-type": "text/plain"})
    assert answer.status == 400
    assert message in answer.json()["error"]


def test_options_in_the_query_are_used(server: Server, runs: list[Path]) -> None:
    (line,) = server.request(
        "/v1/lines?target=de&beam=2&max_length_ratio=0.5&forbidden=a", body=b"the cat sat"
    ).body.splitlines()
    expected = regard.load(runs[0]).translate("the cat sat", beam=2, max_length_ratio=0.5, forbidden=["a"])
    assert json.loads(line)["text"] == expected.text


def test_malformed_bodies_are_rejected(server: Server) -> None:
    for body, content_type in (
        (b"{", "application/json"),
        (b"[1]", "application/json"),
        (b"\xff\xfe", "application/json"),
    ):
        assert server.request("/v1/translate", body=body, headers={"content-type": content_type}).status == 400
        assert server.request("/translate", body=body, headers={"content-type": content_type}).status == 400
    assert server.request("/translate", body=b"q=%ff&target=de").status == 400
    assert server.request("/translate", body=b"&".join(b"a=1" for _ in range(5000))).status == 400
    assert server.request("/translate", body=b"x", headers={"content-type": "image/png"}).status == 415
    assert server.request("/translate", body=b"[" * 100_000, headers={"content-type": "application/json"}).status == 400
    assert server.request("/v1/translate", body=b"x" * (2 << 20)).status == 413
    assert server.request("/nothing").status == 404


def test_lone_surrogate_fails_only_its_own_text(server: Server, expected: dict[str, str]) -> None:
    raw = b'{"text": ["the dog ran", "half \\ud83d", "a cat"], "target": "de"}'
    answer = server.request("/v1/translate", body=raw, headers={"content-type": "application/json"}).json()
    first, bad, last = answer["translations"]
    assert first["text"] == expected["the dog ran"]
    assert last["text"] == expected["a cat"]
    assert "half a character" in bad["error"]
    for text in ("\u202e\u200b\ufeff", "ﷺ" * 50, "\x00\x1b[31m", "e" + "\u0301" * 300):
        assert server.request("/v1/translate", {"text": text, "target": "de"}).status == 200


def test_unknown_hosts_are_rejected_and_security_headers_are_sent(server: Server) -> None:
    assert server.request("/health", headers={"host": "evil.example"}).status == 421
    assert server.request("/health", headers={"host": "localhost:1"}).status == 200
    answer = server.request("/", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "server" not in answer.headers


def test_chunked_body_is_limited_too(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 20) as raw:
        raw.sendall(b"POST /translate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(40):
                raw.sendall(chunk)
        except OSError:
            pass  # the server closed the connection
        raw.settimeout(20)
        assert b"413" in raw.recv(1000)
    assert server.request("/health").status == 200


def test_huge_headers_are_rejected(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 20) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 200_000 + b"\r\n\r\n")
        raw.settimeout(20)
        assert b" 200 " not in raw.recv(1000)
    assert server.request("/health").status == 200


def test_metrics_contain_no_texts_keys_or_addresses(server: Server) -> None:
    server.request("/v1/translate", {"text": "a secret text"}, headers={"authorization": "Bearer my-secret-key"})
    server.request("/some/path/nobody/knows")
    text = server.request("/metrics").body.decode()
    assert 'regard_requests_total{route="/v1/translate",status="200"}' in text
    assert 'route="other"' in text
    assert "regard_texts_total" in text
    for secret in ("secret", "127.0.0.1", "nobody"):
        assert secret not in text


def test_api_keys(new_server: Callable[..., Server], tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "keys").write_text(f"# mine\nalice {hash_key(key)}\n")
    server = new_server("--api-keys", str(tmp_path / "keys"), "--access-log")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {key}"}, {"authorization": key}):
        assert server.request("/v1/translate", {"text": "the cat"}, headers=headers).status == 403
    assert (
        server.request("/v1/translate", {"text": "the cat"}, headers={"authorization": f"Bearer {key}"}).status == 200
    )
    assert server.request("/translate", {"q": "the cat", "target": "de"}).status == 403
    assert server.request("/translate", {"q": "the cat", "target": "de", "api_key": key}).status == 200
    with pytest.raises(deepl.AuthorizationException):
        deepl.Translator("wrong", server_url=server.url).translate_text("the cat", target_lang="DE")
    assert deepl.Translator(key, server_url=server.url).translate_text("the cat", target_lang="DE").text
    assert server.request("/v1/lines?target=de", body=b"x").status == 403
    assert server.request("/v1/file?name=a.txt", body=b"x").status == 403
    assert server.request("/health").status == server.request("/ready").status == 200
    server.stop()
    assert not any(key in line for line in server.stderr_lines)


def test_log_lines_cannot_be_forged(new_server: Callable[..., Server]) -> None:
    server = new_server("--access-log")
    server.request("/%0d%0a%7b%22status%22:200%7d%1b%5b31m")
    server.stop()
    lines = [line for line in server.stderr_lines if line.startswith("{")]
    forged = [line for line in lines if "31m" in line]
    assert len(forged) == 1
    assert "\x1b" not in forged[0]
    assert json.loads(forged[0])["status"] == 404


def test_sigterm_under_load_loses_no_accepted_request(
    new_server: Callable[..., Server], expected: dict[str, str]
) -> None:
    server = new_server()
    answers: list[tuple[int, str, str]] = []
    refused = threading.Event()

    def client(number: int) -> None:
        while not refused.is_set():
            text = TEXTS[number % len(TEXTS)]
            try:
                answer = server.request("/v1/translate", {"text": text, "target": "de"})
            except OSError as error:
                # Not accepted: the server listens no longer. Any other error would be a lost request.
                reason = getattr(error, "reason", error)
                assert isinstance(reason, ConnectionRefusedError | ConnectionResetError), reason
                refused.set()
                return
            (translation,) = answer.json()["translations"]
            answers.append((answer.status, text, translation["text"]))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert server.process.wait(60) in (0, -signal.SIGTERM)
    assert len(answers) > 20
    assert all(status == 200 and translation == expected[text] for status, text, translation in answers)


def test_texts_of_disconnected_clients_are_dropped(new_server: Callable[..., Server]) -> None:
    server = new_server()
    host, port = server.url.removeprefix("http://").split(":")
    body = json.dumps(
        {"text": [f"the cat sat on the mat {n}" for n in range(100)], "beam": 10, "target": "de"}
    ).encode()
    for _ in range(20):
        with socket.create_connection((host, int(port)), 20) as raw:
            raw.sendall(
                b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                + f"content-length: {len(body)}\r\n\r\n".encode()
                + body
            )
            time.sleep(0.02)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        text = server.request("/metrics").body.decode()
        abandoned = [line for line in text.splitlines() if line.startswith("regard_abandoned_total{")]
        waiting = [line for line in text.splitlines() if line.startswith("regard_queue_length{")]
        if int(abandoned[0].split()[-1]) > 0 and int(waiting[0].split()[-1]) == 0:
            break
        time.sleep(0.2)
    assert int(abandoned[0].split()[-1]) > 0
    assert server.request("/v1/translate", {"text": "the cat", "target": "de"}).status == 200
