"""Old names of settings: migrated in files, refused with the new name where they are typed."""

import pytest

from regard import renames
from regard.renames import migrated, new_name


@pytest.fixture(autouse=True)
def some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renames, "SETTINGS", {"model.*.colour": ".color", "data.old": "training.new"})
    monkeypatch.setattr(renames, "VALUES", {"model.*.color": {"grey": "gray"}})


def test_files_are_migrated() -> None:
    old = {"model": {"encoder": {"colour": "grey", "width": 3}, "empty": {}}, "data": {"old": [1]}}
    new = {"model": {"encoder": {"color": "gray", "width": 3}, "empty": {}}, "training": {"new": [1]}}
    assert migrated(old) == new
    assert migrated(new) == new


def test_typed_names_are_told_apart() -> None:
    assert new_name("model.decoder.colour") == "model.decoder.color"
    assert new_name("data.old") == "training.new"
    assert new_name("model.decoder.color") is None
