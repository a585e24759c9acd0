"""The number of CPU threads that a model is trained with."""

import contextlib
import os
from collections.abc import Iterator

import torch

from regard.models.settings import ModelSettings

MAX_SINGLE_THREAD_WIDTH = 384  # up to this width a recurrent layer's steps are too small for two threads


@contextlib.contextmanager
def limit_threads(model: ModelSettings) -> Iterator[None]:
    """Use one thread within this context for a narrow recurrent model, unless OMP_NUM_THREADS is set.

    Its steps are many and short: two threads that synchronize after each are no faster than one, and several times
    slower where another program needs the second core. Convolutions over images parallelize well.
    """
    width = max(model.encoder.recurrent_width, model.decoder.recurrent_width)
    wide = not width or width > MAX_SINGLE_THREAD_WIDTH or model.source.convolves
    if wide or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
