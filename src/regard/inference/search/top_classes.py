"""One thing is said and nothing follows: classes, the likeliest first."""

import torch

from regard.inference.results import Hypothesis, Search
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN, END


def choose(model: Seq2Seq, memory: EncoderOutput, how: Search) -> list[list[Hypothesis]]:
    """The `how.nbest` likeliest classes of each source, with their log-probabilities."""
    tokens = torch.full((len(memory.states),), BEGIN, device=memory.states.device)
    logits, _ = model.step(tokens, model.start(memory))
    logs, classes = logits.log_softmax(-1).topk(min(how.nbest, logits.shape[1] - END - 1), -1)
    return [
        [Hypothesis([token], log, log) for token, log in zip(*each, strict=True)]
        for each in zip(classes.tolist(), logs.tolist(), strict=True)
    ]
