"""How an alignment forms: the attention over one validation example, kept at each validation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from regard.alignment.alignment_head import AlignmentHead
from regard.data.dataset import Corpus
from regard.data.pairs import PairDataset
from regard.errors import RegardError
from regard.interpret.capture import build_captured_attention
from regard.interpret.captured_attention import CapturedAttention
from regard.interpret.forced_pass import run_forced_pass
from regard.runs.bundle import Bundle
from regard.runs.folder import write_durably
from regard.views.storage import as_bytes, load

FOLDER = "attention"
SHORTEST, LONGEST = 6, 30  # tokens on either side of the example, if there is such a one


def example(pairs: PairDataset) -> int:
    """The first of a length that fits a picture."""
    sizes = [pairs.target_lengths] + ([pairs.source_lengths] if pairs.medium is None else [])
    fits = np.all([(each >= SHORTEST) & (each <= LONGEST) for each in sizes], 0)
    return int(np.argmax(fits))


def keep(run: Path, bundle: Bundle, corpus: Corpus, step: int) -> None:
    """What the model attends to now, over the example's own target; nothing for a model that does not attend."""
    decoder = bundle.description.model.decoder
    if not isinstance(corpus.valid, PairDataset) or not decoder.has_output or decoder.per_position:
        return
    model = bundle.model
    tokens = corpus.valid.tokens(example(corpus.valid))
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            cross = run_forced_pass(bundle, [tokens[0]], [tokens[1]])[0].weights.get("cross")
    finally:
        model.train(training)
    if cross:
        seen = build_captured_attention((bundle.source_side, bundle.target_side), tokens, {"cross": cross})
        (run / FOLDER).mkdir(exist_ok=True)
        write_durably(
            run / FOLDER / f"{step:08d}.safetensors",
            as_bytes(replace(seen, alignment_head=None, alignment_weights=None)),
        )


def over_time(run: Path, choice: AlignmentHead | None) -> list[tuple[int, CapturedAttention]]:
    """What was kept, by step; aligned as `choice` says. Raises RegardError if nothing was."""
    paths = sorted(path for path in (run / FOLDER).glob("*.safetensors") if path.stem.isdigit())
    if not paths:
        raise RegardError(
            f"{run}: there is no attention of its training; it is kept at each validation, if it attends."
        )
    found = []
    for path in paths:
        seen = load(path)
        where = choice or AlignmentHead.default(seen.weights["cross"])
        found.append(
            (int(path.stem), replace(seen, alignment_head=where, alignment_weights=where.select(seen.weights["cross"])))
        )
    return found
