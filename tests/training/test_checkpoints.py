"""Checkpoints are complete, verified by hashes, and pruned."""

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


def load_newest(store: Checkpoints) -> tuple[int | None, list[str]]:
    reports: list[str] = []
    found = store.load_newest(reports.append)
    return (None if found is None else found.step), reports


def test_a_saved_checkpoint_is_loaded_unchanged(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(3, tokens=7))
    found = store.load_newest(print)
    assert found is not None
    assert found.state == {"step": 3, "tokens": 7}
    assert torch.equal(found.groups["weights"]["w"], torch.full((50,), 3.0))


def test_the_newest_checkpoint_is_loaded_and_old_ones_are_removed(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    for step in (1, 2, 10, 9):
        store.save(checkpoint(step))
    assert load_newest(store) == (10, [])
    assert sorted(path.name for path in store.folder.iterdir()) == ["00000009", "00000010"]


@pytest.mark.parametrize("file", ["weights.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_checkpoint_is_skipped_and_reported(tmp_path: Path, file: str, damage: str) -> None:
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
    step, reports = load_newest(store)
    assert step == 1
    assert len(reports) == 1
    assert "step 2 is damaged" in reports[0]


def test_no_checkpoint_is_none_and_only_damaged_ones_are_an_error(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    assert load_newest(store) == (None, [])
    store.save(checkpoint(1))
    (store.folder / "00000001" / "manifest.json").unlink()
    with pytest.raises(ValueError, match="no checkpoint is intact, so this run cannot continue"):
        load_newest(store)


def test_a_checkpoint_whose_best_weights_are_damaged_is_skipped(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    digest = store.save_best_weights(2, {"w": torch.ones(3)})
    store.save(checkpoint(2, best=[{"step": 2, "merit": [1.0, 0.0], "hash": digest}]))
    assert load_newest(store) == (2, [])
    assert torch.equal(store.load_best_weights(2)["w"], torch.ones(3))
    (store.best_folder / "00000002.safetensors").write_bytes(b"x")
    assert load_newest(store)[0] == 1


def test_unreferenced_best_weights_are_removed(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    for step in (1, 2, 3, 4):
        digest = store.save_best_weights(step, {"w": torch.ones(3)})
        store.save(checkpoint(step, best=[{"step": step, "merit": [0.0, 0.0], "hash": digest}]))
    assert sorted(path.stem for path in store.best_folder.iterdir()) == ["00000003", "00000004"]


def test_a_full_disk_keeps_earlier_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    write = checkpoints._write_synced

    def write_until_full(path: Path, content: bytes) -> str:
        if path.name == "state.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write(path, content)

    monkeypatch.setattr(checkpoints, "_write_synced", write_until_full)
    with pytest.raises(OSError, match="No space left"):
        store.save(checkpoint(2))
    assert [path.name for path in store.folder.iterdir()] == ["00000001"], "the incomplete checkpoint was removed"
    assert load_newest(store) == (1, [])


def test_temporary_folders_of_killed_saves_are_removed(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    stale = store.folder / "00000002.tmp"
    stale.mkdir()
    (stale / "weights.safetensors").write_bytes(b"half")
    assert load_newest(store) == (1, [])
    store.save(checkpoint(3))
    assert not stale.exists()


def test_a_manifest_cannot_refer_to_files_outside_its_folder(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    store.save(checkpoint(1))
    manifest = store.folder / "00000001" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["files"]["../../../etc/passwd"] = "0"
    manifest.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="no checkpoint is intact"):
        load_newest(store)
