"""Classes, the most likely first: a single token for each."""

import torch

from regard.inference.results import Hypothesis
from regard.inference.search.base import SEARCHES, SearchAlgorithm, SearchInput
from regard.special_tokens import BOS, EOS


@SEARCHES.register("classification")
class ClassSearch(SearchAlgorithm):
    """The `nbest` most likely classes of each source, with their log-probabilities."""

    automatic = True

    def search(self, search_input: SearchInput) -> list[list[Hypothesis]]:
        states = search_input.encoded.states
        tokens = torch.full((len(states),), BOS, device=states.device)
        logits, _ = search_input.model.step(tokens, search_input.model.start(search_input.encoded))
        logs, classes = logits.log_softmax(-1).topk(min(search_input.config.nbest, logits.shape[1] - EOS - 1), -1)
        return [
            [Hypothesis([token], log, log) for token, log in zip(*each, strict=True)]
            for each in zip(classes.tolist(), logs.tolist(), strict=True)
        ]
