"""A search: two greedy continuations, of which the better one wins."""

import torch

from regard.inference.results import Hypothesis
from regard.inference.search.base import SEARCHES, SearchAlgorithm, SearchInput
from regard.inference.search.stepwise import generate_stepwise


@SEARCHES.register("second-start")
class SecondStart(SearchAlgorithm):
    """Greedy search, and greedy search that begins with the second most likely token; the better one wins."""

    def search(self, search_input: SearchInput) -> list[list[Hypothesis]]:
        owners = range(len(search_input.constraints.limits))

        def start_with(rank: int) -> list[Hypothesis]:
            def pick(logits: torch.Tensor, rows: torch.Tensor, step: int) -> torch.Tensor:
                return logits.topk(rank + 1, -1).indices[:, rank if step == 0 else 0]

            return generate_stepwise(search_input, search_input.encoded, owners, pick)

        return [list(pair) for pair in zip(start_with(0), start_with(1), strict=True)]
