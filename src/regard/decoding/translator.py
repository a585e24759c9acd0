"""Texts in, results out: cut into subwords, sorted into batches of like length, searched, put back in order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.data.batches import padded
from regard.data.door import tidy
from regard.decoding.bundle import Bundle
from regard.decoding.search import Hypothesis, Search, search
from regard.tokens import BEGIN, END, PAD

AT_ONCE = 8192  # source tokens, padding and beams counted, searched together
MOST = 256  # sentences searched together


@dataclass(frozen=True)
class Result:
    """What a model makes of one text; `others` are the next best, if asked for."""

    source: str
    text: str
    score: float
    source_tokens: list[int]
    tokens: list[int]
    others: list[str] = field(default_factory=list)
    left_out: int = 0  # source tokens at its end that the model has no room for


def new_search(
    bundle: Bundle, *, beam: int = 5, nbest: int = 1, length_penalty: float = 1.0, coverage_penalty: float = 0.0
) -> Search:
    """A search with the limits that suit this model."""
    about = bundle.description
    longest = min(about.longest, about.model.decoder.most_tokens or about.longest)
    return Search(beam, length_penalty, coverage_penalty, nbest, about.per_token, longest)


def translate(
    bundle: Bundle,
    texts: Sequence[str],
    how: Search,
    *,
    done: Callable[[int], None] = lambda count: None,
) -> list[Result]:
    """A result for each text, in order. `done` hears how many more are finished."""
    device = next(bundle.model.parameters()).device
    about = bundle.description
    given = [tidy(text.lower() if about.lowercase else text) for text in texts]
    longest = min(about.longest, about.model.encoder.most_tokens or about.longest)
    whole = bundle.source_subwords.encode(given)
    sources = [[*tokens[: longest - 1], END] for tokens in whole]
    order = sorted(range(len(texts)), key=lambda number: -len(sources[number]))
    results: dict[int, Result] = {}
    at = 0
    while at < len(order):
        room = AT_ONCE // (len(sources[order[at]]) * how.beam)
        some = order[at : at + max(1, min(MOST, room))]
        at += len(some)
        source = padded([sources[number] for number in some]).to(device)
        for number, found in zip(some, search(bundle.model, source, source != PAD, how), strict=True):
            left_out = max(0, len(whole[number]) + 1 - longest)
            results[number] = _result(bundle, texts[number], sources[number], found, left_out)
        done(len(some))
    return [results[number] for number in range(len(texts))]


def _result(bundle: Bundle, text: str, source: list[int], found: list[Hypothesis], left_out: int) -> Result:
    said = bundle.target_subwords.decode([hypothesis.tokens for hypothesis in found])
    return Result(text, said[0], found[0].score, source, found[0].tokens, said[1:], left_out)


@torch.inference_mode()
def cross_attention(bundle: Bundle, source: Iterable[int], target: Iterable[int]) -> list[Tensor]:
    """Weights [H, Tt, Ts] of each layer that attends, by one forced pass over the given tokens, each with its end."""
    device = next(bundle.model.parameters()).device
    words = torch.tensor([list(source)], device=device)
    before = torch.tensor([[BEGIN, *list(target)[:-1]]], device=device)
    decoded = bundle.model(words, torch.ones_like(words, dtype=torch.bool), before, need_weights=True)
    return [weights[0] for weights in decoded.cross]
