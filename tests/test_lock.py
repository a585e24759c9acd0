"""The locked versions are within the ranges of pyproject.toml, and CUDA is not required."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.install import GROUPS, StatusPrinter, locked_version, pip_status, torch_sources, without_password
from tools.lock import parse_requirements

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {"users": [], "developers": ["dev"], "bench": ["dev", "bench"]}
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def locked_requirements(*names: str) -> dict[str, str]:
    return {
        key: text
        for name in names
        for key, text in parse_requirements((ROOT / f"requirements/{name}.txt").read_text()).items()
    }


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("group", GROUPS)
def test_locked_versions_are_within_the_required_ranges(group: str, python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.1"}
    exact: dict[str, str] = {}
    for found in map(Requirement, locked_requirements("torch", *GROUPS[group])):
        if found.marker is None or found.marker.evaluate(environment):
            assert exact.setdefault(found.name, str(found.specifier)) == str(found.specifier), "one version of each"
    ranges = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    ranges += [each for extra in EXTRAS[group] for each in PROJECT["project"]["optional-dependencies"][extra]]
    for range_ in map(Requirement, ranges):
        version = exact[canonicalize_name(range_.name)].removeprefix("==")
        assert range_.specifier.contains(version), f"{range_} is locked as {version}; run make lock"


def test_all_requirements_but_pytorch_have_hashes() -> None:
    for requirement, text in locked_requirements(*GROUPS["bench"], "pip", "pretrained").items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", text), requirement
        assert not requirement.startswith(("torch==", "nvidia-", "cuda-", "triton"))
    assert [*locked_requirements("torch").values()] == [f"torch=={locked_version('torch')}\n"]


@pytest.mark.parametrize(
    ("index", "system", "driver", "index_answers", "expected"),
    [
        ("", "linux", False, True, ["+cpu", ""]),
        ("", "linux", False, False, [""]),
        ("", "linux", True, True, [""]),
        ("", "darwin", False, True, [""]),
        ("default", "linux", False, True, [""]),
        ("https://some.where/simple", "linux", True, True, ["https://some.where/simple"]),
    ],
)
def test_cpu_builds_are_tried_first_on_linux_without_a_driver(
    index: str, system: str, driver: bool, index_answers: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("tools.install.has_driver", lambda: driver)
    monkeypatch.setattr("tools.install.index_has_torch", lambda *_: index_answers)
    found = torch_sources(StatusPrinter(), {"TORCH_INDEX": index})
    for (requirement, where, _), source in zip(found, expected, strict=True):
        assert requirement == f"torch=={locked_version('torch')}" + (source if source == "+cpu" else "")
        assert (where is None) == (source == "")
        assert where == source or not source.startswith("https")


def test_the_status_of_pip_is_parsed_from_its_output() -> None:
    steps = [
        ("Collecting numpy==2.4.6 (from -r users.txt (line 9))", "looking up numpy"),
        ("  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)", "downloading numpy-2.4.6"),
        ("Progress 8000000 of 16900000", "downloading numpy-2.4.6: 8 of 17 MB"),
        ("Progress 16900000 of 16900000", "downloading numpy-2.4.6: 17 of 17 MB"),
        ("", "downloading numpy-2.4.6: 17 of 17 MB"),
        ("Installing collected packages: numpy, torch", "writing 2 packages"),
    ]
    now = "starting"
    for line, expected in steps:
        now = pip_status(line, now)
        assert now == expected


def test_passwords_are_removed_from_urls() -> None:
    assert without_password("https://me:secret@some.where/simple/x") == "https://some.where/simple/x"
