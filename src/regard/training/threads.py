"""How many threads train a model on the processor."""

import contextlib
import os
from collections.abc import Iterator

import torch

from regard.models.settings import ModelSettings

NARROW = 384  # a recurrent layer up to this wide has steps too small to share


@contextlib.contextmanager
def threads_for(model: ModelSettings) -> Iterator[None]:
    """Within this context one thread for a narrow recurrent model, unless OMP_NUM_THREADS says how many.

    Its steps are many and short: two threads that meet after each are no faster than one, and several times slower
    where another program wants the second core. Pictures are read by convolutions, which share well.
    """
    width = max(model.encoder.recurrent_width, model.decoder.recurrent_width)
    wide = not width or width > NARROW or model.source.convolves
    if wide or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
