"""A text as one vector: the mean of what an encoder makes of its places.

Reimers and Gurevych 2019 (arXiv:1908.10084) found the mean better than the vector of the mark that begins a text.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batching import given
from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.translator import Translator

AT_ONCE = 8192  # tokens, padding counted, that are read together


@torch.inference_mode()
def vectors(
    model: Translator,
    texts: Sequence[str],
    *,
    normalised: bool = True,
    done: Callable[[int], None] = lambda count: None,
) -> NDArray[np.float32]:
    """[N, width] of each text, of length 1 if normalised. What is too long is cut at its end. Raises RegardError for a
    text that cannot be read, and for a model that reads none."""
    if model.description.model.source.kind != "text":
        raise RegardError("embed: this model does not read texts.")
    model.check_given(texts)
    asked = model._sources(texts, Options())
    for each in asked:
        if each.wrong:
            raise RegardError(f"{each.text[:60]!r}: {each.wrong}.")
    encoder = model.bundle.model
    device = next(encoder.parameters()).device
    found = np.zeros((len(texts), encoder.encoder.memory_width), np.float32)
    order = sorted(range(len(asked)), key=lambda number: -len(asked[number].tokens))
    while order:
        some = order[: max(1, AT_ONCE // len(asked[order[0]].tokens))]
        order = order[len(some) :]
        read, mask = (part.to(device) for part in given(model.source_side, [asked[n].tokens for n in some]))
        found[some] = encoder.encode(read, mask).mean().float().cpu().numpy()
        done(len(some))
    if normalised:
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return found
