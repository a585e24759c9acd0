"""Search over any decoder, through `start` and `step` alone; the algorithms are in `search/`, found by name.

Sentences whose search has ended leave the batch. Every algorithm is batch-invariant: the output for a source does not
depend on the other sources of its batch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.inference.constraints import OutputConstraints
from regard.inference.coverage_penalty import rescore_by_coverage
from regard.inference.results import Constraints, Hypothesis, SearchConfig
from regard.models.outputs import EncoderOutput
from regard.models.seq2seq import Seq2Seq
from regard.registry import Registry

OnToken = Callable[[list[int], list[int]], None]  # rows of the batch, and the token that each has just produced


@dataclass(frozen=True)
class SearchInput:
    """A batch of sources to search outputs for.

    keys: bytes that identify each source, which sampling is seeded by. on_token: called with every token as it is
    produced, by algorithms that never take one back.
    """

    model: Seq2Seq
    encoded: EncoderOutput
    constraints: OutputConstraints
    config: SearchConfig
    keys: Sequence[bytes] = field(default_factory=list)
    on_token: OnToken | None = None


class SearchAlgorithm(ABC):
    """One algorithm. streams: it never takes a token back, so tokens can be reported as they are produced."""

    streams: bool = False

    @abstractmethod
    def search(self, given: SearchInput) -> list[list[Hypothesis]]:
        """Hypotheses of each source, in any order."""


SEARCHES: Registry[type[SearchAlgorithm]] = Registry("search", "regard.inference.search", deferred=True)


@torch.inference_mode()
def search(
    model: Seq2Seq,
    source: Tensor,
    mask: Tensor,
    config: SearchConfig,
    constraints: Sequence[Constraints] | None = None,
    pieces: Sequence[str] = (),
    on_token: OnToken | None = None,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each source [B, Ts], best first, `config.nbest` of them or fewer.

    constraints: what each output must satisfy. pieces: the text of each target token, for forbidden words.
    """
    if any(each.required for each in constraints or ()):
        return _constrained_apart(model, source, mask, config, constraints or [], pieces)
    encoded = model.encode(source, mask)
    limits = [config.limit(int(length)) for length in encoded.mask.sum(1)]
    rules = OutputConstraints(config, limits, constraints, pieces)
    given = SearchInput(model, encoded, rules, config, _keys(source, mask, constraints), on_token)
    found = SEARCHES.get(config.search)().search(given)
    if not all(found):
        raise RegardError(
            "the model's outputs are not finite numbers: its weights are damaged; train or copy it again."
        )
    if config.coverage_penalty:
        found = rescore_by_coverage(model, encoded, best_hypotheses(found, config.beam), config)
    return found if config.sampling is not None else best_hypotheses(found, config.nbest)


def _constrained_apart(
    model: Seq2Seq,
    source: Tensor,
    mask: Tensor,
    config: SearchConfig,
    constraints: Sequence[Constraints],
    pieces: Sequence[str],
) -> list[list[Hypothesis]]:
    """Sources whose outputs must contain certain words are searched one by one, the others as usual."""
    algorithm = SEARCHES.get("constrained-beam")()
    found: dict[int, list[Hypothesis]] = {}
    for row, own in enumerate(constraints):
        if own.required:
            length = int(mask[row].sum())
            one = source[row : row + 1, :length] if source.ndim < 4 else source[row : row + 1]
            encoded = model.encode(one, mask[row : row + 1, :length])
            rules = OutputConstraints(config, [config.limit(length)], [own], pieces)
            (found[row],) = algorithm.search(SearchInput(model, encoded, rules, config))
    usual = [row for row, own in enumerate(constraints) if not own.required]
    if usual:
        others = search(model, source[usual], mask[usual], config, [constraints[row] for row in usual], pieces)
        found |= dict(zip(usual, others, strict=True))
    return [found[row] for row in range(len(constraints))]


def best_hypotheses(found: list[list[Hypothesis]], count: int) -> list[list[Hypothesis]]:
    """The best of each source, best first."""
    return [sorted(hypotheses, key=lambda h: -h.score)[:count] for hypotheses in found]


def _keys(source: Tensor, mask: Tensor, constraints: Sequence[Constraints] | None) -> list[bytes]:
    """What is sampled for a source depends on its tokens, never on its row in a batch; without a source, on the
    prompt."""
    if not mask.shape[1] and constraints is not None:
        return [repr(each.prefix).encode() for each in constraints]
    if source.ndim == 4:
        return [row.cpu().numpy().tobytes() for row in source]
    return [row[present].cpu().numpy().tobytes() for row, present in zip(source, mask, strict=True)]
