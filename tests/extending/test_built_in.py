"""A built-in extension is one new file in the folder that CONTRIBUTING.md names: each example becomes one here."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regard

HERE = Path(__file__).parent
PACKAGE = Path(regard.__file__).parent
GUIDE = (HERE.parent.parent / "CONTRIBUTING.md").read_text()
EXAMPLES = {  # the axis in CONTRIBUTING.md and in the registry, the name, and the example's file
    "score": ("score", "negative-distance", "negative_distance.py"),
    "normalizer": ("normalizer", "relu", "relu_normalizer.py"),
    "encoder, decoder, head, source": ("encoder", "depthwise", "depthwise_encoder.py"),
    "task": ("task", "transliteration", "transliteration.py"),
    "metric": ("metric", "first_word", "first_word.py"),
    "document format": ("document", "srt", "subtitles.py"),
    "search": ("search", "second-start", "second_start.py"),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("src") / "regard"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.parametrize("row", EXAMPLES)
def test_one_new_file_is_enough(package: Path, row: str) -> None:
    axis, name, file = EXAMPLES[row]
    folder = re.search(rf"^\| {row} \| `([^`]+)`", GUIDE, re.MULTILINE)
    assert folder is not None
    shutil.copy(HERE / file, package / folder[1] / f"{name.replace('-', '_')}.py")
    code = (
        f"import regard.plugins; assert regard.__file__.startswith({str(package)!r}); "
        f"registry = regard.plugins.get_registry({axis!r}); registry.get({name!r}); "
        f"assert {name!r} in registry.builtin_names()"
    )
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=environment)
