"""The entry point: help, startup time, errors, exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard import __version__
from tests.cli.processes import run_regard


def test_version() -> None:
    assert run_regard("--version").stdout == f"regard {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["attention", "--help"],
        ["attention", "gallery", "--help"],
        *(
            [name, "--help"]
            for name in ("train", "presets", "evaluate", "demo", "predict", "translate", "tag", "see", "plugins")
        ),
    ],
)
def test_help_shows_usage_and_examples(arguments: list[str]) -> None:
    done = run_regard(*arguments)
    assert done.returncode == 0
    assert "Usage: " in done.stdout
    if arguments != ["attention", "--help"]:
        assert "Examples:\n    regard " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["attention", "list"],
        ["attention", "show", "additive"],
        ["attention", "show", "nope"],
    ],
)
def test_commands_without_models_import_no_heavy_packages(arguments: list[str]) -> None:
    code = (
        "import sys; sys.argv = ['regard', *sys.argv[1:]]\n"
        "import regard.cli\n"
        "try: regard.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'matplotlib', 'rich'} | ({'pydantic'} if '-' in sys.argv[1] else set())\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["attention", "show", "aditive"], "regard: there is no mechanism 'aditive'; did you mean 'additive'?"),
        (["attention", "list", "--axis", "scores"], "regard: --axis: there is no 'scores'; the axes are score"),
        (["attention", "gallery", "-o", "x.pdf"], "regard: --output: x.pdf must end in .html or .png."),
        (
            ["attention", "gallery", "-o", "no/such/folder/x.html"],
            "regard: --output: no/such/folder/x.html cannot be written",
        ),
        (["attention", "gallery", "-o", "/proc/x.html"], "regard: "),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_user_errors_are_one_sentence_without_traceback(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = run_regard(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_closed_pipe_is_not_an_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m regard attention list | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stdout == "score: how well does this key fit this query?\n"
    assert done.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_output_works_in_any_terminal_encoding(encoding: str) -> None:
    done = run_regard("attention", "show", "scaled-dot", PYTHONIOENCODING=encoding, LC_ALL="C")
    assert done.returncode == 0
    assert "formula  q" in done.stdout
