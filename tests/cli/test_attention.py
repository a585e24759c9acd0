"""regard attention: the family of mechanisms, listed, explained and drawn."""

import json

import pytest
import torch
from typer.testing import CliRunner

import regard.attention as family
from regard.attention import catalog
from regard.cli import app
from tests.cli.processes import run_regard


def test_list_prints_every_mechanism_in_one_line_with_its_paper() -> None:
    lines = run_regard("attention", "list").stdout.splitlines()
    for entry in catalog.entries():
        (line,) = [line for line in lines if line.startswith(f"  {entry.name} ")]
        assert entry.paper in line
        assert "arXiv:" in line


def test_list_prints_json() -> None:
    entries = json.loads(run_regard("attention", "list", "--json").stdout)
    assert [entry["name"] for entry in entries] == [entry.name for entry in catalog.entries()]
    only = json.loads(run_regard("attention", "list", "--axis", "score", "--json").stdout)
    assert [entry["name"] for entry in only] == [entry.name for entry in catalog.entries("score")]


@pytest.mark.parametrize("name", [entry.name for entry in catalog.entries()])
def test_show_prints_formula_paper_use_and_kernels(name: str) -> None:
    entry = catalog.find(name)
    text = CliRunner().invoke(app, ["attention", "show", name]).output
    assert entry.formula in text
    assert entry.paper in text
    assert entry.use in text
    for kernel in entry.kernels:
        assert f"{kernel}: {catalog.KERNELS[kernel]}" in text


def test_show_accepts_aliases_and_prints_json() -> None:
    assert json.loads(run_regard("attention", "show", "concat", "--json").stdout)["name"] == "additive"


def test_the_examples_in_the_catalog_run() -> None:
    """The Python that `show` prints as use runs."""
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
        variables = dict(names)
        if entry.axis == "channel-attention":
            variables["x"] = torch.randn(2, 16, 5, 5)
        for use in [part.removeprefix("or ") for part in entry.use.split("  # ")]:
            result = eval(use, variables)
            assert result is not None, entry.name
