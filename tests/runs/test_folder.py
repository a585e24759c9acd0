"""What is written to disk is the old or the new, and JSON that is none is refused."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.runs.folder import read_json, write_durably


@pytest.mark.parametrize("fails", ["write", "fsync", "replace", None])
def test_a_file_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    content: bytes = b"new"
    if fails == "write":
        content = "new"  # type: ignore[assignment]  # not bytes, so writing fails midway
    elif fails is not None:
        monkeypatch.setattr(os, fails, full)
    if fails is None:
        write_durably(path, content)
    else:
        with pytest.raises((OSError, TypeError)):
            write_durably(path, content)
    assert path.read_bytes() == (b"new" if fails is None else b"old")
    assert [p.name for p in tmp_path.iterdir()] == ["file"], "nothing half-written is left"


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []

    def noted(name: str, original: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            happened.append(name)
            return original(*given)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    write_durably(tmp_path / "file", b"new")
    assert happened == ["fsync", "replace", "fsync"], "the content, the name, the folder"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xff", b"3"])
def test_json_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / "file"))):
        read_json(tmp_path / "file")
    with pytest.raises(ValueError, match="it cannot be read"):
        read_json(tmp_path / "nowhere")


def test_json_that_is_fine_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('{"a": [1, "ä"]}', "utf-8")
    assert read_json(tmp_path / "file") == {"a": [1, "ä"]}
