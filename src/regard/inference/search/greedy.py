"""Greedy search: the most likely token at each step."""

from regard.inference.results import Hypothesis
from regard.inference.search.base import SEARCHES, SearchAlgorithm, SearchInput
from regard.inference.search.stepwise import generate_stepwise


@SEARCHES.register("greedy")
class GreedySearch(SearchAlgorithm):
    """One hypothesis for each source."""

    streams = True
    ignores = ("temperature", "top_k", "top_p", "seed", "beam", "nbest", "beam_groups", "diversity_penalty")

    def search(self, search_input: SearchInput) -> list[list[Hypothesis]]:
        owners = range(len(search_input.constraints.limits))
        encoded = search_input.encoded
        found = generate_stepwise(search_input, encoded, owners, lambda logits, rows, step: logits.argmax(-1))
        return [[best] for best in found]
