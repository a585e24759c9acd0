"""Greedy search: the most likely token at each step."""

from regard.inference.results import Hypothesis
from regard.inference.search_algorithm import SEARCHES, SearchAlgorithm, SearchInput
from regard.inference.stepwise import generate_stepwise


@SEARCHES.register("greedy")
class GreedySearch(SearchAlgorithm):
    """One hypothesis for each source."""

    streams = True

    def search(self, given: SearchInput) -> list[list[Hypothesis]]:
        owners = range(len(given.constraints.limits))
        found = generate_stepwise(given, given.encoded, owners, lambda logits, rows, step: logits.argmax(-1))
        return [[best] for best in found]
