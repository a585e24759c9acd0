"""Compiling the C library: with real compilers and processes, and on machines without a compiler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard import native
from regard.attention import Additive, attend

SCRIPT = """
import torch
from regard import native
from regard.attention.kernels.additive import additive_scores
lib = native.library()
score = additive_scores(torch.ones(1, 1, 2, 20), torch.ones(1, 1, 3, 20), torch.ones(1, 20))
print("built" if lib else "none:" + native.unavailable_reason())
print(round(score[0, 0, 0, 0].item(), 3))
"""


def run_script(**environment: str) -> list[str]:
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env={**os.environ, **environment}, check=True
    )
    return completed.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(native.library() is None, reason="no compiler here")
def test_library_is_compiled_once_and_cached(tmp_path: Path) -> None:
    assert run_script(XDG_CACHE_HOME=str(tmp_path)) == ["built", "19.281"]
    (library_path,) = (tmp_path / "regard").glob("native-*.so")
    modified = library_path.stat().st_mtime_ns
    assert run_script(XDG_CACHE_HOME=str(tmp_path)) == ["built", "19.281"]
    assert library_path.stat().st_mtime_ns == modified
    assert (tmp_path / "regard").stat().st_mode & 0o077 == 0
    assert [p.name for p in (tmp_path / "regard").iterdir()] == [library_path.name], "no temporary file is left"


@pytest.mark.slow
@pytest.mark.skipif(native.library() is None, reason="no compiler here")
def test_several_processes_compile_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    assert [process.communicate()[0].splitlines() for process in running] == [["built", "19.281"]] * 3


def test_without_a_compiler_pytorch_is_used(tmp_path: Path) -> None:
    output = run_script(XDG_CACHE_HOME=str(tmp_path), PATH=str(tmp_path))
    assert output == ["none:there is no C compiler (cc, gcc or clang) on this machine", "19.281"]


def test_failing_compiler_is_reported_and_pytorch_is_used(tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "cc"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'cannot find my head' >&2\nexit 1\n")
    broken.chmod(0o755)
    output = run_script(XDG_CACHE_HOME=str(tmp_path), PATH=f"{broken.parent}:/usr/bin:/bin")
    assert output == ["none:the C compiler failed: cannot find my head", "19.281"]


@pytest.mark.skipif(native.library() is None, reason="no compiler here")
def test_world_writable_cache_folder_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "regard"
    folder.mkdir()
    folder.chmod(0o777)
    output = run_script(XDG_CACHE_HOME=str(tmp_path))
    assert output[0].startswith("none:")
    assert "can be written by others" in output[0]
    assert output[1] == "19.281"


def test_without_a_cache_folder_pytorch_is_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = run_script(XDG_CACHE_HOME=str(tmp_path / "file"))
    assert output[0].startswith("none:")
    assert output[1] == "19.281"


@pytest.mark.skipif(not hasattr(os, "fork") or native.library() is None, reason="needs fork and a compiler")
def test_forked_child_can_use_threads() -> None:
    """Data loaders fork: the child has the pool's object but none of its threads."""
    code = """
import os, torch
torch.set_num_threads(2)
from regard.attention.kernels.entmax import entmax
scores = torch.randn(64, 256)  # nothing here makes PyTorch itself start threads, which would not survive the fork
alpha = torch.tensor(1.5)
before = entmax(scores, alpha)
child = os.fork()
if child == 0:
    os._exit(0 if bool((entmax(scores, alpha) == before).all()) else 1)
print(os.waitpid(child, 0)[1])
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert completed.stdout.strip() == "0"


def test_library_is_disabled_only_within_the_context() -> None:
    original = native.library()
    with native.disabled():
        assert native.library() is None
        assert native.unavailable_reason() == "the C kernels are switched off"
        q = torch.randn(1, 1, 3, 4)
        attend(q, q, q, score=Additive(4, 4))
    assert native.library() is original


@pytest.mark.slow
@pytest.mark.skipif(native.library() is None, reason="no compiler here")
def test_damaged_library_is_recompiled(tmp_path: Path) -> None:
    run_script(XDG_CACHE_HOME=str(tmp_path))
    (library_path,) = (tmp_path / "regard").glob("native-*.so")
    library_path.write_bytes(library_path.read_bytes()[:1000])
    assert run_script(XDG_CACHE_HOME=str(tmp_path)) == ["built", "19.281"]


def test_no_library_without_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert native._build.__wrapped__() == (None, "Could not determine home directory.")
