"""The locked versions: they are within the ranges of pyproject.toml, and nobody is made to install CUDA."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.install import GROUPS, Teller, locked, places, progress, without_password
from tools.lock import blocks

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {"users": [], "developers": ["dev"], "bench": ["dev", "bench"]}
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def lines(*names: str) -> dict[str, str]:
    return {
        key: text for name in names for key, text in blocks((ROOT / f"requirements/{name}.txt").read_text()).items()
    }


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("group", GROUPS)
def test_what_the_project_requires_is_locked_within_its_range(group: str, python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.1"}
    exact: dict[str, str] = {}
    for found in map(Requirement, lines("torch", *GROUPS[group])):
        if found.marker is None or found.marker.evaluate(environment):
            assert exact.setdefault(found.name, str(found.specifier)) == str(found.specifier), "one version of each"
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    wanted += [each for extra in EXTRAS[group] for each in PROJECT["project"]["optional-dependencies"][extra]]
    for range_ in map(Requirement, wanted):
        version = exact[canonicalize_name(range_.name)].removeprefix("==")
        assert range_.specifier.contains(version), f"{range_} is locked as {version}; run make lock"


def test_all_have_hashes_but_pytorch() -> None:
    for requirement, text in lines(*GROUPS["bench"], "pip", "pretrained").items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", text), requirement
        assert not requirement.startswith(("torch==", "nvidia-", "cuda-", "triton"))
    assert [*lines("torch").values()] == [f"torch=={locked('torch')}\n"]


@pytest.mark.parametrize(
    ("index", "system", "driver", "answers", "expected"),
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
    index: str, system: str, driver: bool, answers: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("tools.install.has_driver", lambda: driver)
    monkeypatch.setattr("tools.install.offers", lambda *_: answers)
    found = places(Teller(), {"TORCH_INDEX": index})
    for (requirement, where, _), said in zip(found, expected, strict=True):
        assert requirement == f"torch=={locked('torch')}" + (said if said == "+cpu" else "")
        assert (where is None) == (said == "")
        assert where == said or not said.startswith("https")


def test_what_pip_is_at_is_read_from_its_lines() -> None:
    said = [
        ("Collecting numpy==2.4.6 (from -r users.txt (line 9))", "looking up numpy"),
        ("  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)", "downloading numpy-2.4.6"),
        ("Progress 8000000 of 16900000", "downloading numpy-2.4.6: 8 of 17 MB"),
        ("Progress 16900000 of 16900000", "downloading numpy-2.4.6: 17 of 17 MB"),
        ("", "downloading numpy-2.4.6: 17 of 17 MB"),
        ("Installing collected packages: numpy, torch", "writing 2 packages"),
    ]
    now = "starting"
    for line, expected in said:
        now = progress(line, now)
        assert now == expected


def test_no_password_is_shown() -> None:
    assert without_password("https://me:secret@some.where/simple/x") == "https://some.where/simple/x"
