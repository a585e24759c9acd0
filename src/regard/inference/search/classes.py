"""A single token and nothing after it: the most likely classes first."""

import torch

from regard.inference.results import Hypothesis
from regard.inference.search_algorithm import SEARCHES, SearchAlgorithm, SearchInput
from regard.special_tokens import BEGIN, END


@SEARCHES.register("classes")
class ClassSearch(SearchAlgorithm):
    """The `nbest` most likely classes of each source, with their log-probabilities."""

    def search(self, given: SearchInput) -> list[list[Hypothesis]]:
        states = given.encoded.states
        tokens = torch.full((len(states),), BEGIN, device=states.device)
        logits, _ = given.model.step(tokens, given.model.start(given.encoded))
        logs, classes = logits.log_softmax(-1).topk(min(given.config.nbest, logits.shape[1] - END - 1), -1)
        return [
            [Hypothesis([token], log, log) for token, log in zip(*each, strict=True)]
            for each in zip(classes.tolist(), logs.tolist(), strict=True)
        ]
