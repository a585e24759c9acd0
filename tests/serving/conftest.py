"""A real server process with small models."""

import json
import re
import signal
import subprocess
import sys
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


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A process, and how to ask it."""

    def __init__(self, runs: list[Path], *more: str) -> None:
        command = [sys.executable, "-m", "regard", "serve", *map(str, runs), "--port", "0", *more]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
        self.said: list[str] = []
        self.url = ""
        while not self.url:
            line = self.process.stderr.readline()
            assert line, f"it ended: {self.said}"
            self.said.append(line)
            if found := re.search(r"http://[^/]+", line):
                self.url = found[0]
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if self.ask("/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError("it never was ready")

    def ask(
        self, path: str, given: Any = None, *, headers: dict[str, str] | None = None, form: bytes | None = None
    ) -> Answer:
        data, kind = form, "application/x-www-form-urlencoded"
        if given is not None:
            data, kind = json.dumps(given).encode(), "application/json"
        request = urllib.request.Request(self.url + path, data, {"content-type": kind, **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.said += self.process.communicate(timeout=60)[1].splitlines(keepends=True)


@pytest.fixture(scope="session")
def runs(subwords: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """English to German and back, by a Transformer and by a GRU."""
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for name, kind, languages in (("en-de", "transformer", ("en", "de")), ("de-en", "bahdanau", ("de", "en"))):
        encoder = "transformer" if kind == "transformer" else "recurrent"
        about = {"source_language": languages[0], "target_language": languages[1]}
        (folder / name).mkdir()
        save_bundle(folder / name, random_bundle(subwords, encoder, kind, **about))
        made.append(folder / name)
    return made


@pytest.fixture(scope="session")
def server(runs: list[Path]) -> Iterator[Server]:
    started = Server(runs, "--log")
    yield started
    started.stop()


@pytest.fixture
def new_server(runs: list[Path]) -> Iterator[Callable[..., Server]]:
    """Servers of a test's own."""
    started: list[Server] = []

    def start(*more: str) -> Server:
        started.append(Server(runs[:1], *more))
        return started[-1]

    yield start
    for each in started:
        each.stop()
