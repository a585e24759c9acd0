"""Runs a make command on every newer Python that is installed, each in a virtual environment of its own.

    python3 tools/newer_pythons.py make test

Pythons are looked for on PATH and among pyenv's. The command fails if it fails on one of them, or if one of them cannot
be set up.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

NAME = re.compile(r"python3\.\d+")
PRINT_MINOR = "import sys; v = sys.version_info; print(v.minor * (v.major == 3 and v.releaselevel == 'final'))"


def candidates(environment: Mapping[str, str]) -> Iterable[Path]:
    """All files named python3.N, those on PATH first."""
    folders = [Path(folder) for folder in environment.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(environment.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for folder in [*folders, *sorted(pyenv.glob("versions/*/bin"))]:
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def minor_version(python: Path) -> int:
    """Its minor version; 0 if it does not run, such as a pyenv shim of an inactive version, or is no final release."""
    try:
        done = subprocess.run([python, "-c", PRINT_MINOR], capture_output=True, text=True, timeout=30, check=False)
        return int(done.stdout) if done.returncode == 0 else 0
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def newer_pythons(environment: Mapping[str, str], than: int) -> dict[int, Path]:
    """One Python of each newer minor version."""
    found: dict[int, Path] = {}
    for path in candidates(environment):
        number = int(path.name.rpartition(".")[2])
        if number > than and number not in found and minor_version(path) == number:
            found[number] = path
    return dict(sorted(found.items()))


def main(command: list[str]) -> int:
    """Returns the exit code."""
    pythons = newer_pythons(os.environ, sys.version_info.minor)
    names = ", ".join(f"3.{number} ({path})" for number, path in pythons.items())
    print(f"Newer than {sys.version_info.major}.{sys.version_info.minor}: {names or 'none is installed'}", flush=True)
    failed = []
    for number, path in pythons.items():
        print(f"--- Python 3.{number}", flush=True)
        variables = [f"PYTHON={path}", f"VENV=.venv-3.{number}"]
        if subprocess.run([shutil.which(command[0]) or command[0], *command[1:], *variables], check=False).returncode:
            failed.append(f"3.{number}")
    if failed:
        print(f"Failed on Python {', '.join(failed)}.", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
