"""The command, as a real process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard import __version__
from regard.attention import catalog


def regard(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "regard", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def test_version() -> None:
    assert regard("--version").stdout == f"regard {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["attention", "--help"],
        ["attention", "gallery", "--help"],
        *([name, "--help"] for name in ("train", "presets", "evaluate", "demo")),
    ],
)
def test_help_answers_with_an_example(arguments: list[str]) -> None:
    done = regard(*arguments)
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
def test_what_needs_no_torch_does_not_import_it(arguments: list[str]) -> None:
    code = (
        "import sys; sys.argv = ['regard', *sys.argv[1:]]\n"
        "import regard.cli\n"
        "try: regard.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_list_gives_every_choice_one_line_with_its_paper() -> None:
    lines = regard("attention", "list").stdout.splitlines()
    for entry in catalog.entries():
        (line,) = [line for line in lines if line.startswith(f"  {entry.name} ")]
        assert entry.paper in line
        assert "arXiv:" in line


def test_list_as_json() -> None:
    entries = json.loads(regard("attention", "list", "--json").stdout)
    assert [entry["name"] for entry in entries] == [entry.name for entry in catalog.entries()]
    only = json.loads(regard("attention", "list", "--axis", "score", "--json").stdout)
    assert [entry["name"] for entry in only] == [entry.name for entry in catalog.entries("score")]


@pytest.mark.parametrize("name", [entry.name for entry in catalog.entries()])
def test_show_tells_formula_paper_and_kernels(name: str) -> None:
    entry = catalog.find(name)
    from typer.testing import CliRunner

    from regard.cli import app

    text = CliRunner().invoke(app, ["attention", "show", name]).output
    assert entry.formula in text
    assert entry.paper in text
    assert entry.use in text
    for kernel in entry.kernels:
        assert f"{kernel}: {catalog.KERNELS[kernel]}" in text


def test_show_knows_other_names_and_speaks_json() -> None:
    assert json.loads(regard("attention", "show", "concat", "--json").stdout)["name"] == "additive"


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
def test_mistakes_end_in_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = regard(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_the_examples_in_the_catalogue_run() -> None:
    """What `show` tells people to write is Python that runs."""
    import torch

    import regard.attention as family

    names = {name: getattr(family, name) for name in family.__all__}
    q = torch.randn(2, 8, 6, 4)
    names |= {
        "q": q,
        "k": q,
        "v": q,
        "width": 16,
        "source_width": 12,
        "channels": 16,
        "length": 9,
        "x": torch.randn(2, 9, 16),
    }
    for entry in catalog.entries():
        given = dict(names)
        if entry.axis == "image":
            given["x"] = torch.randn(2, 16, 5, 5)
        for use in [part.removeprefix("or ") for part in entry.use.split("  # ")]:
            result = eval(use, given)
            assert result is not None, entry.name


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m regard attention list | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stdout == "score: how well does this key fit this query?\n"
    assert done.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_any_terminal_gets_an_answer(encoding: str) -> None:
    done = regard("attention", "show", "scaled-dot", PYTHONIOENCODING=encoding, LC_ALL="C")
    assert done.returncode == 0
    assert "formula  q" in done.stdout


def test_a_renamed_option_gets_an_error_that_names_the_new_one() -> None:
    done = regard("align", "run", "pairs.tsv", "--symmetrise=union")
    assert done.returncode == 2
    assert done.stderr == "regard: --symmetrise: this option is now called --symmetrize.\n"


def test_the_help_of_evaluate_lists_every_metric_of_outputs() -> None:
    from regard.evaluation.metrics import output_metrics

    words = regard("evaluate", "--help").stdout.replace(",", " ").replace(";", " ").replace(".", " ").split()
    assert {metric.name for metric in output_metrics()} <= set(words)
    assert "{metrics}" not in words
