"""The service under load: clients in closed loop, every answer held to the offline one.

    python -m bench.serving RUN SOURCE [--seconds 30] [--minutes 10] [--engine torch]

1, 8, 64 and 256 clients ask for a sentence, wait for its answer and ask for the next. Beside it, the same model behind
a server that takes one request at a time, with the same engine and with CTranslate2. The offline answer is that of each
of its sentences, as the service splits them. With --minutes, 64 clients go on that long, and memory must stay flat.
"""

import asyncio
import atexit
import json
import re
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import regard
from bench.measure import Claim, report
from regard.data.sentence_splitting import split_sentences
from regard.inference.predictor import Predictor

CLIENTS = (1, 8, 64, 256)
ONE_BY_ONE = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
import regard
translator = regard.load(sys.argv[1], device="cpu", engine=sys.argv[2], threads=1)
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = json.dumps({"translations": [{"text": translator.translate(given["text"]).text}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(said)
    def log_message(self, *_):
        pass
class Server(HTTPServer):
    request_queue_size = 512
server = Server(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}/", file=sys.stderr, flush=True)
server.serve_forever()
"""


@dataclass
class Load:
    """What came of one load."""

    seconds: float
    taken: list[float] = field(default_factory=list)
    refused: int = 0
    wrong: int = 0
    failed: int = 0

    @property
    def throughput(self) -> float:
        return len(self.taken) / self.seconds

    def at(self, share: float) -> float:
        """Milliseconds below which so many answers came."""
        ranked = sorted(self.taken) or [0.0]
        return 1000 * ranked[min(len(ranked) - 1, int(share * len(ranked)))]


class Server:
    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        assert self.process.stderr is not None
        found = None
        while found is None:
            found = re.search(r"http://([^/:]+):(\d+)", self.process.stderr.readline())
        self.host, self.port = found[1], int(found[2])

    def memory(self) -> float:
        """MiB that are resident."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


async def ask(server: Server, path: str, body: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        answer = await reader.read()
    finally:
        writer.close()
    header, _, content = answer.partition(b"\r\n\r\n")
    return int(header.split(b" ", 2)[1]), content


async def client(
    server: Server, path: str, texts: list[str], expected: list[str], at: int, until: float, load: Load
) -> None:
    while time.perf_counter() < until:
        number = at % len(texts)
        at += 1
        start = time.perf_counter()
        try:
            status, content = await ask(server, path, json.dumps({"text": texts[number]}).encode())
        except (OSError, IndexError, ValueError):
            load.failed += 1
            await asyncio.sleep(0.05)
            continue
        if status == 429:
            load.refused += 1
            await asyncio.sleep(0.2)
            continue
        if status != 200:
            load.failed += 1
            continue
        load.taken.append(time.perf_counter() - start)
        load.wrong += json.loads(content)["translations"][0]["text"] != expected[number]


def loaded(server: Server, path: str, texts: list[str], expected: list[str], clients: int, seconds: float) -> Load:
    load = Load(seconds)

    async def all_of_them() -> None:
        until = time.perf_counter() + seconds
        tasks = [client(server, path, texts, expected, 17 * number, until, load) for number in range(clients)]
        await asyncio.gather(*tasks)

    asyncio.run(all_of_them())
    return load


def offline(translator: Predictor, texts: list[str]) -> list[str]:
    """What a translator says to the sentences of each text, put back."""
    parts = [split_sentences(text) for text in texts]
    said = iter(translator.translate([sentence for each in parts for sentence, _ in each]))
    return ["".join(next(said).text + blanks for _, blanks in each) for each in parts]


def show(name: str, load: Load, memory: tuple[float, float]) -> None:
    p50, p95, p99 = (load.at(share) for share in (0.5, 0.95, 0.99))
    print(
        f"  {name:34} {load.throughput:7.1f}/s  p50 {p50:6.1f}  p95 {p95:6.1f}  p99 {p99:6.1f} ms"
        f"  refused {load.refused}  failed {load.failed}  wrong {load.wrong}"
        f"  memory {memory[0]:.0f} -> {memory[1]:.0f} MiB"
    )


def main() -> None:
    given = sys.argv[1:]
    settings = {"--seconds": 30.0, "--minutes": 0.0}
    engine = "auto"
    for name in (*settings, "--engine"):
        if name in given:
            at = given.index(name)
            if name == "--engine":
                engine = given[at + 1]
            else:
                settings[name] = float(given[at + 1])
            del given[at : at + 2]
    if len(given) != 2:
        raise SystemExit(__doc__)
    run, texts = given[0], Path(given[1]).read_text("utf-8").splitlines()
    translator = regard.load(run, device="cpu", engine=engine)
    expected = offline(translator, texts)
    server = Server([sys.executable, "-m", "regard", "serve", run, "--port", "0", "--engine", engine])
    path = "/v1/translate"
    while asyncio.run(ask(server, path, json.dumps({"text": texts[0]}).encode()))[0] != 200:
        time.sleep(0.2)
    loads: dict[int, Load] = {}
    print(f"{run}: {settings['--seconds']:g} s each, clients in closed loop")
    for clients in CLIENTS:
        before = server.memory()
        loads[clients] = loaded(server, path, texts, expected, clients, settings["--seconds"])
        show(f"{clients} clients", loads[clients], (before, server.memory()))
    one_by_one: list[Claim] = []
    for name, theirs in {"the same engine": engine, "CTranslate2": "ctranslate2"}.items():
        alone = Server([sys.executable, "-c", ONE_BY_ONE, run, theirs])
        before = alone.memory()
        load = loaded(alone, path, texts, expected, 64, settings["--seconds"])
        show(f"64, one at a time, {name}", load, (before, alone.memory()))
        alone.stop()
        ratio = loads[64].throughput / load.throughput
        one_by_one.append(Claim("throughput of 64 clients", f"{name}, one request at a time", ratio, 3.0))
    claims = [
        Claim("throughput of 64 clients", "one client", loads[64].throughput / loads[1].throughput, 4.0),
        *one_by_one,
        Claim("wrong answers", "(a count)", float(sum(load.wrong for load in loads.values())), 0.0, at_most=True),
        Claim("failed requests", "(a count)", float(sum(load.failed for load in loads.values())), 0.0, at_most=True),
    ]
    if settings["--minutes"]:
        memory = [server.memory()]
        for _ in range(10):
            loaded(server, path, texts, expected, 64, 6 * settings["--minutes"])
            memory.append(server.memory())
        print("  memory, MiB:", " ".join(f"{each:.0f}" for each in memory))
        growth = statistics.mean(memory[-3:]) / statistics.mean(memory[2:5])
        claims.append(
            Claim(f"memory after {settings['--minutes']:g} minutes", "its beginning", growth, 1.05, at_most=True)
        )
    server.stop()
    report(claims)


if __name__ == "__main__":
    main()
