"""Checkpoints: sealed, verified, pruned, and never half of one."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.training import checkpoints
from regard.training.checkpoints import Checkpoint, Checkpoints


def checkpoint(step: int, **state: Any) -> Checkpoint:
    return Checkpoint(step, {"weights": {"w": torch.full((50,), float(step))}}, {"step": step, **state})


def newest(store: Checkpoints) -> tuple[int | None, list[str]]:
    said: list[str] = []
    found = store.load_newest(said.append)
    return (None if found is None else found.step), said


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(3, tokens=7))
    found = store.load_newest(print)
    assert found is not None
    assert found.state == {"step": 3, "tokens": 7}
    assert torch.equal(found.groups["weights"]["w"], torch.full((50,), 3.0))


def test_the_newest_is_taken_and_old_ones_are_removed(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    for step in (1, 2, 10, 9):
        store.save(checkpoint(step))
    assert newest(store) == (10, [])
    assert sorted(path.name for path in store.folder.iterdir()) == ["00000009", "00000010"]


@pytest.mark.parametrize("file", ["weights.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_checkpoint_is_passed_over_and_told(tmp_path: Path, file: str, damage: str) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    store.save(checkpoint(2))
    path = store.folder / "00000002" / file
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        content[len(content) // 2] ^= 255
        path.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    step, said = newest(store)
    assert step == 1
    assert len(said) == 1
    assert "step 2 is damaged" in said[0]


def test_nothing_written_is_nothing_and_nothing_whole_is_an_error(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    assert newest(store) == (None, [])
    store.save(checkpoint(1))
    (store.folder / "00000001" / "manifest.json").unlink()
    with pytest.raises(ValueError, match="no checkpoint is whole, so this run cannot go on"):
        newest(store)


def test_a_candidate_that_is_named_and_lost_makes_the_checkpoint_unusable(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    digest = store.save_best_weights(2, {"w": torch.ones(3)})
    store.save(checkpoint(2, best=[{"step": 2, "merit": [1.0, 0.0], "hash": digest}]))
    assert newest(store) == (2, [])
    assert torch.equal(store.load_best_weights(2)["w"], torch.ones(3))
    (store.best_folder / "00000002.safetensors").write_bytes(b"x")
    assert newest(store)[0] == 1


def test_candidates_that_nobody_names_are_removed(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    for step in (1, 2, 3, 4):
        digest = store.save_best_weights(step, {"w": torch.ones(3)})
        store.save(checkpoint(step, best=[{"step": step, "merit": [0.0, 0.0], "hash": digest}]))
    assert sorted(path.stem for path in store.best_folder.iterdir()) == ["00000003", "00000004"]


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    real = checkpoints._write_synced

    def full(path: Path, content: bytes) -> str:
        if path.name == "state.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, content)

    monkeypatch.setattr(checkpoints, "_write_synced", full)
    with pytest.raises(OSError, match="No space left"):
        store.save(checkpoint(2))
    assert [path.name for path in store.folder.iterdir()] == ["00000001"], "what was half written is gone"
    assert newest(store) == (1, [])


def test_what_a_killed_save_left_is_swept_away(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    stale = store.folder / "00000002.tmp"
    stale.mkdir()
    (stale / "weights.safetensors").write_bytes(b"half")
    assert newest(store) == (1, [])
    store.save(checkpoint(3))
    assert not stale.exists()


def test_a_manifest_cannot_name_files_outside(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    manifest = store.folder / "00000001" / "manifest.json"
    about = json.loads(manifest.read_text())
    about["files"]["../../../etc/passwd"] = "0"
    manifest.write_text(json.dumps(about))
    with pytest.raises(ValueError, match="no checkpoint is whole"):
        newest(store)
