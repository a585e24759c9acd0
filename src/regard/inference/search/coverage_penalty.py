"""The coverage penalty of Wu et al. 2016 (arXiv:1609.08144), over finished hypotheses."""

import torch

from regard.inference.results import Hypothesis
from regard.inference.search_config import SearchConfig
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BOS, PAD


def rescore_by_coverage(
    model: Seq2Seq, memory: EncoderOutput, hypotheses: list[list[Hypothesis]], config: SearchConfig
) -> list[list[Hypothesis]]:
    """Scores with the coverage penalty, from the attention of one forced pass over the finished outputs."""
    owners = torch.tensor([row for row, each in enumerate(hypotheses) for _ in each], device=memory.states.device)
    flat = [hypothesis for each in hypotheses for hypothesis in each]
    max_length = max(len(h.tokens) for h in flat)
    decoder_input = owners.new_full((len(flat), max_length), PAD)
    for row, hypothesis in enumerate(flat):
        decoder_input[row, : len(hypothesis.tokens)] = torch.tensor([BOS, *hypothesis.tokens[:-1]])
    repeated = memory.select(owners)
    cross = model.decoder(decoder_input, repeated, need_weights=True).cross_attention
    if not cross:
        return hypotheses
    weights = cross[-1].mean(1)  # [N, Tt, Ts], the mean of the last layer's heads
    lengths = torch.tensor([len(h.tokens) for h in flat], device=weights.device)[:, None]
    weights = weights * (torch.arange(max_length, device=weights.device) < lengths)[..., None]
    covered = weights.sum(1).clamp(1e-6, 1).log() * repeated.mask
    penalties = iter((config.coverage_penalty * covered.sum(1)).tolist())
    return [[Hypothesis(h.tokens, h.log_probability, h.score + next(penalties)) for h in each] for each in hypotheses]
