"""Search for a batch of sources: encode them, run the algorithm that the configuration names, select the best."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.inference.results import Hypothesis
from regard.inference.search.base import SEARCHES, OnToken, SearchInput
from regard.inference.search.constraints import OutputConstraints
from regard.inference.search.coverage_penalty import rescore_by_coverage
from regard.inference.search_config import Constraints, SearchConfig
from regard.models.seq2seq import Seq2Seq


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
        return _search_required_apart(model, source, mask, config, constraints or [], pieces)
    encoded = model.encode(source, mask)
    limits = [config.limit(int(length)) for length in encoded.mask.sum(1)]
    output_constraints = OutputConstraints(config, limits, constraints, pieces)
    keys = _sampling_keys(source, mask, constraints)
    search_input = SearchInput(model, encoded, output_constraints, config, keys, on_token)
    found = SEARCHES.get(config.search)().search(search_input)
    if not all(found):
        raise RegardError(
            "the model's outputs are not finite numbers: its weights are damaged; train or copy it again."
        )
    if config.coverage_penalty:
        found = rescore_by_coverage(model, encoded, best_hypotheses(found, config.beam), config)
    return found if config.sampling is not None else best_hypotheses(found, config.nbest)


def _search_required_apart(
    model: Seq2Seq,
    source: Tensor,
    mask: Tensor,
    config: SearchConfig,
    constraints: Sequence[Constraints],
    pieces: Sequence[str],
) -> list[list[Hypothesis]]:
    """Sources with required phrases are searched one by one, the others in a batch."""
    algorithm = SEARCHES.get("constrained-beam")()
    found: dict[int, list[Hypothesis]] = {}
    for row, own in enumerate(constraints):
        if own.required:
            length = int(mask[row].sum())
            own_source = source[row : row + 1, :length] if source.ndim < 4 else source[row : row + 1]
            encoded = model.encode(own_source, mask[row : row + 1, :length])
            output_constraints = OutputConstraints(config, [config.limit(length)], [own], pieces)
            (found[row],) = algorithm.search(SearchInput(model, encoded, output_constraints, config))
    rest = [row for row, own in enumerate(constraints) if not own.required]
    if rest:
        hypotheses = search(model, source[rest], mask[rest], config, [constraints[row] for row in rest], pieces)
        found |= dict(zip(rest, hypotheses, strict=True))
    return [found[row] for row in range(len(constraints))]


def best_hypotheses(found: list[list[Hypothesis]], count: int) -> list[list[Hypothesis]]:
    """The best hypotheses of each source, best first."""
    return [sorted(hypotheses, key=lambda h: -h.score)[:count] for hypotheses in found]


def _sampling_keys(source: Tensor, mask: Tensor, constraints: Sequence[Constraints] | None) -> list[bytes]:
    """Bytes that identify each source: its tokens, or without a source the prompt. Samples depend on them, never on the
    row in a batch."""
    if not mask.shape[1] and constraints is not None:
        return [repr(each.prefix).encode() for each in constraints]
    if source.ndim == 4:
        return [row.cpu().numpy().tobytes() for row in source]
    return [row[present].cpu().numpy().tobytes() for row, present in zip(source, mask, strict=True)]
