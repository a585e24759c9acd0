"""Keeps the C library from giving memory back between steps.

A training step frees and asks for the same large tensors again and again. glibc maps each anew by default, and the
kernel fills every page with zeros: a third of a small model's time. Raising two thresholds keeps the pages.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
LARGE = 1 << 30
LARGEST_THRESHOLD = 1 << 25  # glibc takes no larger one


def keep_memory() -> bool:
    """Ask glibc to keep freed memory for this process; whether it agreed. Elsewhere nothing is done."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl and others
        return False
    wishes = ((M_MMAP_THRESHOLD, LARGEST_THRESHOLD), (M_TRIM_THRESHOLD, LARGE), (M_TOP_PAD, 1 << 26))
    return all(mallopt(ctypes.c_int(what), ctypes.c_int(value)) == 1 for what, value in wishes)
