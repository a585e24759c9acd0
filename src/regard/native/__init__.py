"""Compiles, loads and calls the C library beside it: inner loops that PyTorch cannot fuse, and models without PyTorch.

regard.h declares and documents all that it exports. It is compiled for this machine's processor at the first use (a few
seconds), and kept in the user's cache folder. Where there is no C compiler, or the folder cannot be trusted,
`library()` is None, `unavailable_reason()` gives the reason, and the same algebra runs in PyTorch.

A loaded library must agree with `abi.py` in its version, its structs and its enums. A cached one that does not is
compiled again; if the new one does not either, regard.h and abi.py differ, which is a bug: `AbiMismatchError`.
"""

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from regard.native import abi

if TYPE_CHECKING:  # engines that do without PyTorch build and load the library, too
    from torch import Tensor

FOLDER = Path(__file__).parent
# Sums may be reordered (that is what vectorizing a sum means); NaN and infinity keep their meaning.
FLAGS = ["-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math"]
FLAGS += ["-fno-signed-zeros", "-fassociative-math", "-fvisibility=hidden"]
MIN_WORK_PER_THREAD = 1 << 16  # elements of inner-loop work below which another thread costs more than it saves


class _UnavailableError(Exception):
    """Why there is no library; the message is shown to people."""


class _Switch:
    on = True


_switch = _Switch()


def library() -> ctypes.CDLL | None:
    """The compiled library, or None where it is not available. Raises AbiMismatchError if it contradicts abi.py."""
    return _build()[0] if _switch.on else None


def unavailable_reason() -> str:
    """Why `library()` is None."""
    return _build()[1] if _switch.on else "the C kernels are switched off"


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """Within this context the PyTorch forms run, as on a machine without a compiler."""
    before, _switch.on = _switch.on, False
    try:
        yield
    finally:
        _switch.on = before


@cache
def _build() -> tuple[ctypes.CDLL | None, str]:
    try:
        return _load(), ""
    except (_UnavailableError, OSError, RuntimeError, subprocess.SubprocessError) as error:  # RuntimeError: no home
        return None, str(error) or type(error).__name__


def _load() -> ctypes.CDLL:
    path, is_cached = _compile()
    lib = ctypes.CDLL(str(path))
    try:
        abi.check(lib)
    except abi.AbiMismatchError:
        if not is_cached:
            raise
        path.unlink(missing_ok=True)
        lib = ctypes.CDLL(str(_compile()[0]))
        abi.check(lib)
    return lib


def _compile() -> tuple[Path, bool]:
    """The library's file, and whether it was in the cache already."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise _UnavailableError("there is no C compiler (cc, gcc or clang) on this machine")
    sources = sorted(FOLDER.glob("*.c"))
    contents = [path.read_bytes() for path in (*sources, *sorted(FOLDER.glob("*.h")))]
    cache_key = b"\0".join([*contents, " ".join(FLAGS).encode(), compiler.encode(), _processor().encode()])
    folder, name = _cache_folder(), f"native-{_digest(cache_key)}"
    for built in folder.glob(f"{name}-*.so"):
        # The name ends in the content's hash: a damaged library could take the process down as it is loaded.
        if built.stem == f"{name}-{_digest(built.read_bytes())}":
            return built, True
        built.unlink(missing_ok=True)
    # Compiled to another name and then renamed, so that a killed or a second process never leaves half a library.
    handle, temporary = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    try:
        command = [compiler, *FLAGS, *map(str, sources), "-o", temporary, "-lm"]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if completed.returncode != 0:
            message = (completed.stderr.strip().splitlines() or ["no message"])[0]
            raise _UnavailableError(f"the C compiler failed: {message}")
        target = folder / f"{name}-{_digest(Path(temporary).read_bytes())}.so"
        os.replace(temporary, target)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return target, False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


def _processor() -> str:
    """What -march=native depends on: a home folder may be shared between machines."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return f"{platform.machine()} {platform.processor()} {platform.node()}"


def _cache_folder() -> Path:
    """A folder that only this user can write to: what lies there is loaded as code."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "regard"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise _UnavailableError(f"{folder} can be written by others, so nothing in it is loaded; chmod 700 {folder}")
    return folder


def is_supported(*tensors: "Tensor") -> bool:
    """Whether the C kernels support these tensors: float32 on the CPU, and a library that could be compiled."""
    import torch

    return all(t.device.type == "cpu" and t.dtype == torch.float32 for t in tensors) and library() is not None


def lanes() -> int:
    """Floats in a SIMD vector; some kernels require widths that are multiples of it. 1 without a library."""
    lib = library()
    return int(lib.regard_simd_lanes()) if lib else 1


def call(
    name: str,
    tensors: "Sequence[Tensor | None]",
    numbers: Sequence[int | float | Sequence[int] | ctypes.c_void_p],
    *,
    count: int,
    work: int,
) -> None:
    """Call a C kernel over the range [0, count) of its outermost index, divided among PyTorch's number of threads.

    `tensors` come first in the C signature, as pointers (NULL for None), then the range, then `numbers`: ints as int64,
    floats as float, sequences of ints as arrays of int64, pointers as they are. `work` is the total number of
    inner-loop elements. The caller makes sure that tensors are as regard.h says, dense float32 for the most part.
    """
    lib = library()
    assert lib is not None
    function: Callable[..., None] = getattr(lib, name)
    pointers = [ctypes.c_void_p(None if t is None else t.data_ptr()) for t in tensors]
    scalars = [_as_c(number) for number in numbers]

    def run(start: int, stop: int) -> None:  # ctypes releases the GIL while the kernel runs
        function(*pointers, ctypes.c_int64(start), ctypes.c_int64(stop), *scalars)

    import torch

    threads = max(1, min(torch.get_num_threads(), count, work // MIN_WORK_PER_THREAD))
    if threads == 1:
        run(0, count)
        return
    bounds = [count * part // threads for part in range(threads + 1)]
    futures = [_pool().submit(run, bounds[part], bounds[part + 1]) for part in range(1, threads)]
    run(bounds[0], bounds[1])
    for future in futures:
        future.result()


def _as_c(number: int | float | Sequence[int] | ctypes.c_void_p) -> object:
    if isinstance(number, ctypes.c_void_p):
        return number
    if isinstance(number, float):
        return ctypes.c_float(number)
    return ctypes.c_int64(number) if isinstance(number, int) else (ctypes.c_int64 * len(number))(*number)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="regard-native")


if hasattr(os, "register_at_fork"):  # a forked child has the pool's object but none of its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
