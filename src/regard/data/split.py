"""The validation set, where no files are named for it.

It is chosen by a hash of the source, so that it does not depend on the order of the files, and no source is in both
sets.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

MAX_EXAMPLES = 2_000


def source_hash(source: str) -> int:
    """A hash of a text, whatever its case."""
    return int.from_bytes(hashlib.blake2b(source.casefold().encode(), digest_size=8).digest(), "little")


def select_validation(hashes: NDArray[np.uint64], size: int | None) -> NDArray[np.bool_]:
    """Which examples are held out: those with the smallest hashes, all of a source or none, about `size`."""
    size = min(MAX_EXAMPLES, max(1, len(hashes) // 20)) if size is None else size
    if len(np.unique(hashes)) < 2:
        raise RegardError(
            "the examples all have one source; there is nothing to hold out for validation: name other examples with "
            "--valid."
        )
    order = np.sort(hashes)
    threshold = order[min(size, len(order)) - 1]
    selected: NDArray[np.bool_] = hashes <= threshold
    if selected.all():
        raise RegardError(
            f"data.valid_size: {size:,} of {len(hashes):,} examples would leave none to learn from; hold out fewer."
        )
    return selected
