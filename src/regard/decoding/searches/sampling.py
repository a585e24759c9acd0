"""Sampling: words drawn by their probabilities, each draw a pure function of the seed, the source and the place."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.decoding.results import Hypothesis, Sampling, Search
from regard.decoding.searches.greedy import scored
from regard.decoding.searches.rules import Rules, possible
from regard.models.memory import Memory
from regard.models.seq2seq import Seq2Seq
from regard.tokens import BEGIN, END, PAD


def sample(model: Seq2Seq, memory: Memory, rules: Rules, how: Search, keys: Sequence[bytes]) -> list[list[Hypothesis]]:
    """`how.nbest` draws for each source, in the order they were drawn."""
    assert how.sampling is not None
    n, device = how.nbest, memory.states.device
    owners = [source for source in range(len(keys)) for _ in range(n)]
    most = max(rules.limits)
    dice = torch.from_numpy(np.stack([_dice(how.sampling.seed, key, draw, most) for key in keys for draw in range(n)]))
    dice = dice.to(device)
    state = model.start(memory.select(torch.tensor(owners, device=device)))
    alive = torch.arange(len(owners), device=device)
    tokens = torch.full((len(owners),), BEGIN, device=device)
    said = torch.full((len(owners), most), PAD, device=device)
    totals = torch.zeros(len(owners), dtype=torch.float64, device=device)
    for step in range(most):
        logits, state = model.step(tokens, state)
        possible(logits)
        logs = logits.double().log_softmax(-1)
        past = said[alive, :step].tolist() if rules.looks_back else []
        rules.apply(logits, [owners[row] for row in alive.tolist()], past, step + 1)
        tokens = _drawn(logits.double(), how.sampling, dice[alive, step])
        totals[alive] += logs.gather(1, tokens[:, None])[:, 0]
        said[alive, step] = tokens
        going = (tokens != END).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(alive):
            alive, tokens, state = alive[going], tokens[going], state.select(going)
    rows = [row[: row.index(END) + 1] for row in said.tolist()]
    found = [scored(row, total, how) for row, total in zip(rows, totals.tolist(), strict=True)]
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
