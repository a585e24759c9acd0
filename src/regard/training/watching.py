"""How an alignment forms: the attention over one validation example, kept at each validation."""

from dataclasses import replace
from pathlib import Path

import torch

from regard.data.corpus import Corpus, Pairs
from regard.decoding.bundle import Bundle
from regard.decoding.capturing import captured
from regard.decoding.folder import write_durably
from regard.decoding.forced import forced
from regard.seeing.captured import Captured, Choice
from regard.seeing.storing import as_bytes, load

FOLDER = "attention"
SHORTEST, LONGEST = 6, 30  # tokens on either side of the example, if there is such a one


def example(pairs: Pairs) -> int:
    """The first of a length that fits a picture."""
    for number in range(len(pairs)):
        if all(SHORTEST <= len(side) <= LONGEST for side in pairs.tokens(number)):
            return number
    return 0


def keep(run: Path, bundle: Bundle, corpus: Corpus, step: int) -> None:
    """What the model attends to now, over the example's own target; nothing for a model that does not attend."""
    model = bundle.model
    tokens = corpus.valid.tokens(example(corpus.valid))
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            cross = forced(bundle, [tokens[0]], [tokens[1]])[0].weights.get("cross")
    finally:
        model.train(training)
    if cross:
        seen = captured((bundle.source_subwords, bundle.target_subwords), tokens, {"cross": cross})
        (run / FOLDER).mkdir(exist_ok=True)
        write_durably(run / FOLDER / f"{step:08d}.safetensors", as_bytes(replace(seen, choice=None, aligned=None)))


def over_time(run: Path, choice: Choice | None) -> list[tuple[int, Captured]]:
    """What was kept, by step; aligned as `choice` says. Raises ValueError if nothing was."""
    paths = sorted(path for path in (run / FOLDER).glob("*.safetensors") if path.stem.isdigit())
    if not paths:
        raise ValueError(f"{run}: there is no attention of its training; it is kept at each validation, if it attends.")
    found = []
    for path in paths:
        seen = load(path)
        where = choice or Choice.usual(seen.weights["cross"])
        found.append((int(path.stem), replace(seen, choice=where, aligned=where.of(seen.weights["cross"]))))
    return found
