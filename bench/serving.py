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
SEQUENTIAL_SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
import regard
translator = regard.load(sys.argv[1], device="cpu", engine=sys.argv[2], threads=1)
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"translations": [{"text": translator.translate(given["text"]).text}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
class Server(HTTPServer):
    request_queue_size = 512
server = Server(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}/", file=sys.stderr, flush=True)
server.serve_forever()
"""


@dataclass
class LoadResult:
    """The result of one load test."""

    seconds: float
    latencies: list[float] = field(default_factory=list)
    rejected: int = 0
    incorrect: int = 0
    failed: int = 0

    @property
    def throughput(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, fraction: float) -> float:
        """The latency percentile in milliseconds."""
        ranked = sorted(self.latencies) or [0.0]
        return 1000 * ranked[min(len(ranked) - 1, int(fraction * len(ranked)))]


class Server:
    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        assert self.process.stderr is not None
        match = None
        while match is None:
            match = re.search(r"http://([^/:]+):(\d+)", self.process.stderr.readline())
        self.host, self.port = match[1], int(match[2])

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
    server: Server, path: str, texts: list[str], expected: list[str], index: int, until: float, result: LoadResult
) -> None:
    while time.perf_counter() < until:
        number = index % len(texts)
        index += 1
        start = time.perf_counter()
        try:
            status, content = await ask(server, path, json.dumps({"text": texts[number]}).encode())
        except (OSError, IndexError, ValueError):
            result.failed += 1
            await asyncio.sleep(0.05)
            continue
        if status == 429:
            result.rejected += 1
            await asyncio.sleep(0.2)
            continue
        if status != 200:
            result.failed += 1
            continue
        result.latencies.append(time.perf_counter() - start)
        result.incorrect += json.loads(content)["translations"][0]["text"] != expected[number]


def run_load(
    server: Server, path: str, texts: list[str], expected: list[str], clients: int, seconds: float
) -> LoadResult:
    result = LoadResult(seconds)

    async def run_clients() -> None:
        until = time.perf_counter() + seconds
        tasks = [client(server, path, texts, expected, 17 * number, until, result) for number in range(clients)]
        await asyncio.gather(*tasks)

    asyncio.run(run_clients())
    return result


def offline(translator: Predictor, texts: list[str]) -> list[str]:
    """A translator's output for the sentences of each text, joined."""
    sentences = [split_sentences(text) for text in texts]
    outputs = iter(translator.translate([sentence for each in sentences for sentence, _ in each]))
    return ["".join(next(outputs).text + blanks for _, blanks in each) for each in sentences]


def show(name: str, result: LoadResult, memory: tuple[float, float]) -> None:
    p50, p95, p99 = (result.percentile(fraction) for fraction in (0.5, 0.95, 0.99))
    print(
        f"  {name:34} {result.throughput:7.1f}/s  p50 {p50:6.1f}  p95 {p95:6.1f}  p99 {p99:6.1f} ms"
        f"  refused {result.rejected}  failed {result.failed}  wrong {result.incorrect}"
        f"  memory {memory[0]:.0f} -> {memory[1]:.0f} MiB"
    )


def main() -> None:
    arguments = sys.argv[1:]
    settings = {"--seconds": 30.0, "--minutes": 0.0}
    engine = "auto"
    for name in (*settings, "--engine"):
        if name in arguments:
            index = arguments.index(name)
            if name == "--engine":
                engine = arguments[index + 1]
            else:
                settings[name] = float(arguments[index + 1])
            del arguments[index : index + 2]
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    run, texts = arguments[0], Path(arguments[1]).read_text("utf-8").splitlines()
    translator = regard.load(run, device="cpu", engine=engine)
    expected = offline(translator, texts)
    server = Server([sys.executable, "-m", "regard", "serve", run, "--port", "0", "--engine", engine])
    path = "/v1/translate"
    while asyncio.run(ask(server, path, json.dumps({"text": texts[0]}).encode()))[0] != 200:
        time.sleep(0.2)
    loads: dict[int, LoadResult] = {}
    print(f"{run}: {settings['--seconds']:g} s each, clients in closed loop")
    for clients in CLIENTS:
        before = server.memory()
        loads[clients] = run_load(server, path, texts, expected, clients, settings["--seconds"])
        show(f"{clients} clients", loads[clients], (before, server.memory()))
    sequential_claims: list[Claim] = []
    for name, sequential_engine in {"the same engine": engine, "CTranslate2": "ctranslate2"}.items():
        sequential_server = Server([sys.executable, "-c", SEQUENTIAL_SERVER, run, sequential_engine])
        before = sequential_server.memory()
        result = run_load(sequential_server, path, texts, expected, 64, settings["--seconds"])
        show(f"64, one at a time, {name}", result, (before, sequential_server.memory()))
        sequential_server.stop()
        ratio = loads[64].throughput / result.throughput
        sequential_claims.append(Claim("throughput of 64 clients", f"{name}, one request at a time", ratio, 3.0))
    claims = [
        Claim("throughput of 64 clients", "one client", loads[64].throughput / loads[1].throughput, 4.0),
        *sequential_claims,
        Claim(
            "wrong answers", "(a count)", float(sum(result.incorrect for result in loads.values())), 0.0, at_most=True
        ),
        Claim(
            "failed requests", "(a count)", float(sum(result.failed for result in loads.values())), 0.0, at_most=True
        ),
    ]
    if settings["--minutes"]:
        memory = [server.memory()]
        for _ in range(10):
            run_load(server, path, texts, expected, 64, 6 * settings["--minutes"])
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
