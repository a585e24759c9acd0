"""Durable writes leave the old or the new file, and invalid JSON is refused."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.runs.folder import read_json, write_durably


@pytest.mark.parametrize("failing_step", ["write", "fsync", "replace", None])
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_step: str | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def raise_disk_full(*_: object) -> None:
        raise OSError("the disk is full")

    content: bytes = b"new"
    if failing_step == "write":
        content = "new"  # type: ignore[assignment]  # not bytes, so writing fails midway
    elif failing_step is not None:
        monkeypatch.setattr(os, failing_step, raise_disk_full)
    if failing_step is None:
        write_durably(path, content)
    else:
        with pytest.raises((OSError, TypeError)):
            write_durably(path, content)
    assert path.read_bytes() == (b"new" if failing_step is None else b"old")
    assert [p.name for p in tmp_path.iterdir()] == ["file"], "nothing half-written is left"


def test_the_content_is_synced_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def recorded(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            calls.append(name)
            return original(*args)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, recorded(name, getattr(os, name)))
    write_durably(tmp_path / "file", b"new")
    assert calls == ["fsync", "replace", "fsync"], "the content, the name, the folder"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xff", b"3"])
def test_invalid_json_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / "file"))):
        read_json(tmp_path / "file")
    with pytest.raises(ValueError, match="it cannot be read"):
        read_json(tmp_path / "missing")


def test_a_json_object_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('{"a": [1, "ä"]}', "utf-8")
    assert read_json(tmp_path / "file") == {"a": [1, "ä"]}
