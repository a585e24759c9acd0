"""Old names of settings: migrated in files, refused with the new name on the command line."""

import pytest

from regard import renames
from regard.renames import migrate, new_name

SETTINGS = renames.SETTINGS


def test_british_spellings_of_earlier_versions_are_migrated() -> None:
    old = {"model": {"encoder": {"initialisation": "glorot"}, "decoder": {"normalise": "hard"}}}
    new = {"model": {"encoder": {"initialization": "glorot"}, "decoder": {"normalize": "hard"}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renames, "SETTINGS", SETTINGS)
        assert migrate(old) == new
        assert new_name("model.decoder.normalise") == "model.decoder.normalize"


@pytest.fixture(autouse=True)
def sample_renames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renames, "SETTINGS", {"model.*.colour": ".color", "data.old": "training.new"})
    monkeypatch.setattr(renames, "VALUES", {"model.*.color": {"grey": "gray"}})


def test_files_are_migrated() -> None:
    old = {"model": {"encoder": {"colour": "grey", "width": 3}, "empty": {}}, "data": {"old": [1]}}
    new = {"model": {"encoder": {"color": "gray", "width": 3}, "empty": {}}, "training": {"new": [1]}}
    assert migrate(old) == new
    assert migrate(new) == new


def test_old_names_get_their_new_names() -> None:
    assert new_name("model.decoder.colour") == "model.decoder.color"
    assert new_name("data.old") == "training.new"
    assert new_name("model.decoder.color") is None
