"""A real server process with small models."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from regard.runs.bundle import save_bundle
from tests.bundles import LINES, random_bundle

TEXTS = [*LINES[:4], "the dog ran", "a cat", "park on the mat", "the the the"]


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A server process, and a client for it."""

    def __init__(self, runs: list[Path], *options: str) -> None:
        command = [sys.executable, "-m", "regard", "serve", *map(str, runs), "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
        self.stderr_lines: list[str] = []
        self.url = ""
        while not self.url:
            line = self.process.stderr.readline()
            assert line, f"the server ended: {self.stderr_lines}"
            self.stderr_lines.append(line)
            if found := re.search(r"http://[^/]+", line):
                self.url = found[0]
        # The log is read all the time: a server whose pipe is full would wait for ever.
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if self.request("/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError("the server did not become ready")

    def request(
        self, path: str, json_body: Any = None, *, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> Response:
        """GET without a body, POST with one. A body in bytes is a form unless the headers say otherwise."""
        content_type = "application/x-www-form-urlencoded"
        if json_body is not None:
            body, content_type = json.dumps(json_body).encode(), "application/json"
        request = urllib.request.Request(self.url + path, body, {"content-type": content_type, **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Response(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
        except urllib.error.HTTPError as error:
            return Response(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)
            self._reader.join(timeout=60)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr_lines.append(line)


@pytest.fixture(scope="session")
def runs(subwords: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A Transformer from English to German, and a GRU from German to English."""
    folder = tmp_path_factory.mktemp("runs")
    run_folders = []
    for name, decoder, languages in (("en-de", "transformer", ("en", "de")), ("de-en", "bahdanau", ("de", "en"))):
        encoder = "transformer" if decoder == "transformer" else "recurrent"
        metadata = {"source_language": languages[0], "target_language": languages[1]}
        (folder / name).mkdir()
        save_bundle(folder / name, random_bundle(subwords, encoder, decoder, **metadata))
        run_folders.append(folder / name)
    return run_folders


@pytest.fixture(scope="session")
def server(runs: list[Path]) -> Iterator[Server]:
    started = Server(runs, "--access-log")
    yield started
    started.stop()


@pytest.fixture
def new_server(runs: list[Path]) -> Iterator[Callable[..., Server]]:
    """A function that starts a server with these options; it is stopped after the test."""
    started: list[Server] = []

    def start(*options: str) -> Server:
        started.append(Server(runs[:1], *options))
        return started[-1]

    yield start
    for server in started:
        server.stop()
