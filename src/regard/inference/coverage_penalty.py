"""The coverage penalty of Wu et al. 2016 (arXiv:1609.08144), over finished hypotheses."""

import torch

from regard.inference.results import Hypothesis, SearchConfig
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.special_tokens import BEGIN, PAD


def rescore_by_coverage(
    model: Seq2Seq, memory: EncoderOutput, found: list[list[Hypothesis]], config: SearchConfig
) -> list[list[Hypothesis]]:
    """Scores with the coverage penalty, from the attention of one forced pass over the finished outputs."""
    owners = torch.tensor([row for row, each in enumerate(found) for _ in each], device=memory.states.device)
    everything = [hypothesis for each in found for hypothesis in each]
    longest = max(len(h.tokens) for h in everything)
    before = owners.new_full((len(everything), longest), PAD)
    for row, hypothesis in enumerate(everything):
        before[row, : len(hypothesis.tokens)] = torch.tensor([BEGIN, *hypothesis.tokens[:-1]])
    chosen = memory.select(owners)
    cross = model.decoder(before, chosen, need_weights=True).cross_attention
    if not cross:
        return found
    weights = cross[-1].mean(1)  # [N, Tt, Ts], the last layer's heads together
    there = torch.tensor([len(h.tokens) for h in everything], device=weights.device)[:, None]
    weights = weights * (torch.arange(longest, device=weights.device) < there)[..., None]
    covered = weights.sum(1).clamp(1e-6, 1).log() * chosen.mask
    penalties = iter((config.coverage_penalty * covered.sum(1)).tolist())
    return [[Hypothesis(h.tokens, h.log_probability, h.score + next(penalties)) for h in each] for each in found]
