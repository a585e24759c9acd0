"""Which Pythons `make test-newer` finds, and that it fails where one of them fails."""

import os
import sys
from pathlib import Path

import pytest
from tools.newer_pythons import main, newer_pythons


def write_script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Pythons 3.97 to 3.99: on PATH a shim that fails and one that works, and pyenv's."""
    write_script(tmp_path / "shims/python3.97", "echo 'pyenv: python3.97: command not found' >&2; exit 127")
    write_script(tmp_path / "shims/python3.98", "echo 98")
    write_script(tmp_path / "shims/python3.8", "echo 8")
    write_script(tmp_path / "shims/python3.98-config", "echo 98")
    write_script(tmp_path / "pyenv/versions/3.97.1/bin/python3.97", "echo 97")
    write_script(tmp_path / "pyenv/versions/3.98.0/bin/python3.98", "echo 98")
    write_script(tmp_path / "pyenv/versions/3.99.0a1/bin/python3.99", "echo 0")  # no release yet
    path = os.pathsep.join([str(tmp_path / "shims"), str(tmp_path / "missing")])
    return {"PATH": path, "PYENV_ROOT": str(tmp_path / "pyenv")}


def test_working_newer_pythons_are_found_once_each(environment: dict[str, str], tmp_path: Path) -> None:
    found = newer_pythons(environment, than=11)
    assert found == {97: tmp_path / "pyenv/versions/3.97.1/bin/python3.97", 98: tmp_path / "shims/python3.98"}
    assert newer_pythons(environment, than=98) == {}


@pytest.mark.parametrize("broken", ["", "3.97", "3.98"])
def test_the_command_runs_on_all_and_fails_if_one_fails(
    broken: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    command = f"import sys; print('ran', sys.argv[-1]); sys.exit(sys.argv[-1] == 'VENV=.venv-{broken}')"
    assert main([sys.executable, "-c", command]) == (broken != "")
    output = capfd.readouterr().out
    assert output.count("ran VENV=.venv-3.97") == output.count("ran VENV=.venv-3.98") == 1
    assert (f"Failed on Python {broken}." in output) == (broken != "")
