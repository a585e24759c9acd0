"""Generation that never revises a token: what greedy search and sampling share."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.inference.results import Hypothesis
from regard.inference.search.base import SearchInput
from regard.inference.search.prefill import prefill
from regard.inference.search_config import SearchConfig
from regard.models.logits import mask_reserved_tokens
from regard.models.outputs import EncoderOutput
from regard.special_tokens import BOS, EOS, PAD


def scored_hypothesis(tokens: list[int], log_probability: float, config: SearchConfig) -> Hypothesis:
    """A hypothesis with the score it is ranked by."""
    return Hypothesis(tokens, log_probability, log_probability / len(tokens) ** config.length_penalty)


def generate_stepwise(
    search_input: SearchInput,
    encoded: EncoderOutput,
    owners: Sequence[int],
    pick: Callable[[Tensor, Tensor, int], Tensor],
) -> list[Hypothesis]:
    """One hypothesis for each row of `encoded`, which belong to the sources `owners`.

    pick: from logits [N, V] of the unfinished rows [N], at a step from 0, to the next tokens [N].
    """
    model, constraints, config = search_input.model, search_input.constraints, search_input.config
    on_token = search_input.on_token
    count, max_length, device = len(owners), max(constraints.limits), encoded.states.device
    prompt_logits, state, prompt = prefill(model, encoded, constraints, owners)
    first = prompt.shape[1]
    unfinished = torch.arange(count, device=device)
    tokens = torch.full((count,), BOS, device=device)
    outputs = torch.full((count, max_length), PAD, device=device)
    outputs[:, :first] = prompt
    if on_token is not None:
        for column in prompt.unbind(1):
            on_token(unfinished.tolist(), column.tolist())
    totals = torch.zeros(count, dtype=torch.float64, device=device)
    for step in range(first, max_length):
        if prompt_logits is not None:
            logits, prompt_logits = prompt_logits, None
        else:
            logits, state = model.step(tokens, state)
        mask_reserved_tokens(logits)
        log_partition = logits.logsumexp(-1)
        history = outputs[unfinished, :step].tolist() if constraints.needs_history else []
        constraints.apply(logits, [owners[row] for row in unfinished.tolist()], history, step + 1)
        tokens = pick(logits, unfinished, step)
        totals[unfinished] += (logits.gather(1, tokens[:, None])[:, 0] - log_partition).double()
        outputs[unfinished, step] = tokens
        if on_token is not None:
            on_token(unfinished.tolist(), tokens.tolist())
        continuing = (tokens != EOS).nonzero()[:, 0]
        if not len(continuing):
            break
        if len(continuing) < len(unfinished):
            unfinished, tokens, state = unfinished[continuing], tokens[continuing], state.select(continuing)
    rows = [row[: row.index(EOS) + 1] for row in outputs.tolist()]
    return [scored_hypothesis(row, total, config) for row, total in zip(rows, totals.tolist(), strict=True)]
