"""What is held out to judge by.

It is chosen by a hash of the source: so it does not depend on the order of the files, and one source never stands on
both sides.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

LARGEST = 2_000


def source_hash(source: str) -> int:
    """Of a text, whatever its case."""
    return int.from_bytes(hashlib.blake2b(source.casefold().encode(), digest_size=8).digest(), "little")


def held_out(hashes: NDArray[np.uint64], wanted: int | None) -> NDArray[np.bool_]:
    """Which examples to judge by: those of the smallest hashes, whole groups of one source, about `wanted` in all."""
    wanted = min(LARGEST, max(1, len(hashes) // 20)) if wanted is None else wanted
    if len(np.unique(hashes)) < 2:
        raise RegardError(
            "the examples all have one source; there is nothing to hold out for validation: name other examples with "
            "--valid."
        )
    order = np.sort(hashes)
    edge = order[min(wanted, len(order)) - 1]
    held: NDArray[np.bool_] = hashes <= edge
    if held.all():
        raise RegardError(
            f"data.valid_size: {wanted:,} of {len(hashes):,} examples would leave none to learn from; hold out fewer."
        )
    return held
