"""A text as one vector: the mean of the encoder's states.

Reimers and Gurevych 2019 (arXiv:1908.10084) found the mean better than the state of the first special token.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import collate_sources
from regard.errors import RegardError
from regard.inference.inputs.text import TextInputs
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.base import OnDone, ignore_progress
from regard.inference.pipelines.token_level import self_attention_view
from regard.inference.results import Result
from regard.views.notebook import AttentionView

BATCH_TOKENS = 1024  # padding counted
SHOWN_VALUES = 8  # of a vector, in the text of a result


@torch.inference_mode()
def embed_texts(
    run: LoadedRun, texts: Sequence[str], *, normalize: bool = True, on_done: OnDone = ignore_progress
) -> NDArray[np.float32]:
    """[N, width], a vector for each text, of length 1 if normalized. A text that is too long is truncated. Raises
    RegardError for an invalid text."""
    inputs = TextInputs(run)
    inputs.check(texts)
    requests = inputs.requests(texts, Options())
    for each in requests:
        if each.error:
            raise RegardError(f"{each.text[:60]!r}: {each.error}.")
    model = run.bundle.model
    device = next(model.parameters()).device
    vectors = np.zeros((len(texts), model.encoder.memory_width), np.float32)
    order = sorted(range(len(requests)), key=lambda number: -len(requests[number].tokens))
    while order:
        numbers = order[: max(1, BATCH_TOKENS // len(requests[order[0]].tokens))]
        order = order[len(numbers) :]
        batch = collate_sources(run.source_processor, [requests[n].tokens for n in numbers])
        source, mask = (each.to(device) for each in batch)
        vectors[numbers] = model.encode(source, mask).mean().float().cpu().numpy()
        on_done(len(numbers))
    if normalize:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors


class EmbeddingPipeline:
    """An encoder without a head: it embeds texts."""

    example = "a"

    def __init__(self, run: LoadedRun) -> None:
        self.run, self.inputs = run, TextInputs(run)

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for an input that is not a text."""
        self.inputs.check(inputs)

    def results(self, inputs: Sequence[str], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """The vector of each text, of length 1; its first values as text."""
        vectors = embed_texts(self.run, inputs, on_done=on_done)
        return [
            Result(source, " ".join(f"{value:.4f}" for value in vector[:SHOWN_VALUES]), 0.0, [], [], vector=vector)
            for source, vector in zip(inputs, vectors, strict=True)
        ]

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """Self-attention over a text. Raises RegardError for an invalid text."""
        if attribution or target is not None:
            raise RegardError("attend: this model has no target; give it one text.")
        self.check([source])
        (request,) = self.inputs.requests([source], Options())
        if request.error:
            raise RegardError(f"{source[:60]!r}: {request.error}.")
        return self_attention_view(self.run, request.tokens)


def count_truncated(run: LoadedRun, texts: Sequence[str]) -> int:
    """How many texts are truncated to the maximum length."""
    inputs = TextInputs(run)
    return sum(not inputs.within_max_length(text) for text in texts)
