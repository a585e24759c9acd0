"""Sampling: each token is a pure function of the distribution, the seed, the source and the step."""

import hashlib

import numpy as np
import torch
from torch import Tensor

from regard.inference.results import Hypothesis
from regard.inference.search.base import SEARCHES, SearchAlgorithm, SearchInput
from regard.inference.search.stepwise import generate_stepwise
from regard.inference.search_config import Sampling


@SEARCHES.register("sampling")
class SamplingSearch(SearchAlgorithm):
    """`nbest` samples for each source, in the order they were drawn."""

    streams = True
    ignores = ("beam", "beam_groups", "diversity_penalty")

    def search(self, search_input: SearchInput) -> list[list[Hypothesis]]:
        keys, n, device = search_input.keys, search_input.config.nbest, search_input.encoded.states.device
        sampling = search_input.config.sampling or Sampling()
        owners = [source for source in range(len(keys)) for _ in range(n)]
        steps = max(search_input.constraints.limits)
        numbers = [_random_numbers(sampling.seed, key, draw, steps) for key in keys for draw in range(n)]
        random_numbers = torch.from_numpy(np.stack(numbers)).to(device)
        repeated = search_input.encoded.select(torch.tensor(owners, device=device))

        def pick(logits: Tensor, rows: Tensor, step: int) -> Tensor:
            return _sample_tokens(logits.double(), sampling, random_numbers[rows, step])

        found = generate_stepwise(search_input, repeated, owners, pick)
        return [found[source * n : (source + 1) * n] for source in range(len(keys))]


def _random_numbers(seed: int, key: bytes, draw: int, count: int) -> np.ndarray:
    """Numbers in [0, 1), one for each step."""
    mixed = hashlib.blake2b(f"{seed} {draw} ".encode() + key, digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(mixed, "little"))).random(count)


def _sample_tokens(logits: Tensor, sampling: Sampling, random_numbers: Tensor) -> Tensor:
    """A token [N] for each row of logits [N, V] and number in [0, 1)."""
    count = min(sampling.top_k or logits.shape[-1], logits.shape[-1])
    values, tokens = (logits / sampling.temperature).topk(count, -1)
    probabilities = values.softmax(-1)
    if sampling.top_p < 1:
        before = probabilities.cumsum(-1) - probabilities
        probabilities = torch.where(before < sampling.top_p, probabilities, 0.0)
    edges = probabilities.cumsum(-1)
    picked = torch.searchsorted(edges, (random_numbers * edges[:, -1])[:, None], right=True)
    return tokens.gather(1, picked.clamp_max(count - 1))[:, 0]
