"""Cross-attention over one validation example, saved at each validation: how an alignment forms in training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from regard.alignment.alignment_head import AlignmentHead
from regard.data.corpus import Corpus
from regard.data.pair_dataset import PairDataset
from regard.errors import RegardError
from regard.interpret.captured_attention import CapturedAttention
from regard.interpret.forced_pass import run_forced_pass
from regard.interpret.position_labels import build_captured_attention
from regard.runs.bundle import Bundle
from regard.runs.folder import write_durably
from regard.views.storage import load, to_safetensors

FOLDER = "attention"
MIN_TOKENS, MAX_TOKENS = 6, 30  # preferred tokens on each side of the example


def select_example(pairs: PairDataset) -> int:
    """The index of the first pair short enough to plot; 0 if there is none."""
    lengths = [pairs.target_lengths] + ([pairs.source_lengths] if pairs.medium is None else [])
    in_range = np.all([(each >= MIN_TOKENS) & (each <= MAX_TOKENS) for each in lengths], 0)
    return int(np.argmax(in_range))


def save_attention(run: Path, bundle: Bundle, corpus: Corpus, step: int) -> None:
    """Save the cross-attention of a forced pass over the example; does nothing for a model without cross-attention."""
    decoder = bundle.description.model.decoder
    if not corpus.kind.has_pairs or not decoder.has_output or decoder.per_position:
        return
    model = bundle.model
    tokens = corpus.valid.tokens(select_example(corpus.valid))
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            cross = run_forced_pass(bundle, [tokens[0]], [tokens[1]])[0].weights.get("cross")
    finally:
        model.train(training)
    if cross:
        attention = build_captured_attention(
            (bundle.source_processor, bundle.target_vocabulary), tokens, {"cross": cross}
        )
        (run / FOLDER).mkdir(exist_ok=True)
        write_durably(
            run / FOLDER / f"{step:08d}.safetensors",
            to_safetensors(replace(attention, alignment_head=None, alignment_weights=None)),
        )


def load_attention_history(run: Path, choice: AlignmentHead | None) -> list[tuple[int, CapturedAttention]]:
    """The saved attention by step, aligned by the head `choice`. Raises RegardError if none was saved."""
    paths = sorted(path for path in (run / FOLDER).glob("*.safetensors") if path.stem.isdigit())
    if not paths:
        raise RegardError(
            f"{run}: there is no attention of its training; it is kept at each validation, if it attends."
        )
    history = []
    for path in paths:
        attention = load(path)
        head = choice or AlignmentHead.default(attention.weights["cross"])
        weights = head.select(attention.weights["cross"])
        history.append((int(path.stem), replace(attention, alignment_head=head, alignment_weights=weights)))
    return history
