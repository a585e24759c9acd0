"""Sampling: words drawn by their probabilities, each draw a pure function of the seed, the source and the place."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.inference.results import Hypothesis, Sampling, Search
from regard.inference.search.constraints import Rules
from regard.inference.search.greedy import Heard, word_by_word
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq


def sample(
    model: Seq2Seq, memory: EncoderOutput, rules: Rules, how: Search, keys: Sequence[bytes], heard: Heard | None = None
) -> list[list[Hypothesis]]:
    """`how.nbest` draws for each source, in the order they were drawn."""
    sampling, n, device = how.sampling, how.nbest, memory.states.device
    assert sampling is not None
    owners = [source for source in range(len(keys)) for _ in range(n)]
    numbers = [_dice(sampling.seed, key, draw, max(rules.limits)) for key in keys for draw in range(n)]
    dice = torch.from_numpy(np.stack(numbers)).to(device)
    many = memory.select(torch.tensor(owners, device=device))

    def pick(logits: Tensor, rows: Tensor, step: int) -> Tensor:
        return _drawn(logits.double(), sampling, dice[rows, step])

    found = word_by_word(model, many, rules, how, owners, pick, heard)
    return [found[source * n : (source + 1) * n] for source in range(len(keys))]


def _dice(seed: int, key: bytes, draw: int, count: int) -> np.ndarray:
    """Numbers in [0, 1), one for each step."""
    mixed = hashlib.blake2b(f"{seed} {draw} ".encode() + key, digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(mixed, "little"))).random(count)


def _drawn(logits: Tensor, how: Sampling, dice: Tensor) -> Tensor:
    """A token [N] for each row of logits [N, V] and number in [0, 1)."""
    count = min(how.top_k or logits.shape[-1], logits.shape[-1])
    values, words = (logits / how.temperature).topk(count, -1)
    chances = values.softmax(-1)
    if how.top_p < 1:
        before = chances.cumsum(-1) - chances
        chances = torch.where(before < how.top_p, chances, 0.0)
    edges = chances.cumsum(-1)
    picked = torch.searchsorted(edges, (dice * edges[:, -1])[:, None], right=True)
    return words.gather(1, picked.clamp_max(count - 1))[:, 0]
