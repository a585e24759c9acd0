"""Keeps glibc from returning freed memory to the system between steps.

A training step frees and allocates the same large tensors again and again. By default glibc maps each of them anew, and
the kernel zeroes every page: a third of a small model's time. Higher malloc thresholds keep the pages in the process.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
TRIM_THRESHOLD = 1 << 30
TOP_PAD = 1 << 26
MAX_MMAP_THRESHOLD = 1 << 25  # glibc rejects larger values


def raise_malloc_thresholds() -> bool:
    """Make glibc keep freed memory in this process. Returns whether it did; does nothing with other C libraries."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl and others
        return False
    thresholds = ((M_MMAP_THRESHOLD, MAX_MMAP_THRESHOLD), (M_TRIM_THRESHOLD, TRIM_THRESHOLD), (M_TOP_PAD, TOP_PAD))
    return all(mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in thresholds)
