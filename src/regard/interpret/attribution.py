"""Gradient times input: what each thing that was written depends on, to first order (Shrikumar et al. 2016,
arXiv:1605.01713).

The input is the vector of each place, before its position is added to it: a word's embedding, what convolutions make
of a cell of a picture or of some frames of a recording. So it is the same for all of them, and has the places that
attention has. Of pictures and recordings it is taken after their normalisation, which forgets the size of what it is
given: before it, the product would be nothing.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.data.batching import collate_sources
from regard.data.vocabulary import Given
from regard.interpret.captured import Weights
from regard.models.embedding import Embedding
from regard.models.logits import mask_reserved_tokens
from regard.models.stems import Stem
from regard.runs.bundle import Bundle
from regard.special_tokens import BEGIN

AT_ONCE = 64  # steps in one pass, each with a copy of the source
NUMBERS = 1 << 20  # of all these copies, at most: convolutions keep many times as much


def attributed(bundle: Bundle, source: Given, output: Sequence[int]) -> dict[str, Weights]:
    """How each target token's log-probability, by row, depends on each place of the "source" and on each token of what
    stood "before". All tokens with their ends."""
    model = bundle.model
    device = next(model.parameters()).device
    sides = {"source": model.encoder.embedding.attribution_point}
    if hasattr(model.decoder, "embedding"):  # a decoder of classes reads nothing that stood before
        sides["before"] = model.decoder.embedding.attribution_point
    read, mask = (each.to(device) for each in collate_sources(bundle.source_side, [source]))
    before = torch.tensor([[BEGIN, *output[:-1]]], device=device)
    said = torch.tensor(output, device=device)
    found: dict[str, list[Tensor]] = {"source": [], "before": []}
    at_once = max(1, min(AT_ONCE, NUMBERS // max(1, read.numel())))
    for at in range(0, len(output), at_once):
        steps = torch.arange(at, min(at + at_once, len(output)), device=device)
        copies, masks, texts = (each.expand(len(steps), *each.shape[1:]) for each in (read, mask, before))
        vectors: dict[str, Tensor] = {}
        handles = [side.register_forward_hook(_leaf(vectors, name)) for name, side in sides.items()]
        try:
            with torch.enable_grad():
                decoded = model(copies, masks, texts)
                scores = model.scores(decoded, copies)[torch.arange(len(steps), device=device), steps]
                logs = mask_reserved_tokens(scores).log_softmax(-1).gather(1, said[steps, None])
                gradients = torch.autograd.grad(logs.sum(), list(vectors.values()), allow_unused=True)
        finally:
            for handle in handles:
                handle.remove()
        for (name, values), gradient in zip(vectors.items(), gradients, strict=True):
            products = torch.zeros_like(values[..., 0]) if gradient is None else (gradient * values).sum(-1)
            if name == "source":
                products = _together(model.encoder.embedding, products, copies, int(decoded.source_lengths[0]))
            found[name].append(products)
    found = {name: rows or [torch.zeros(len(output), len(output))] for name, rows in found.items()}
    return {name: torch.cat(rows).float().detach().cpu().numpy() for name, rows in found.items()}


def _together(stem: Stem, products: Tensor, source: Tensor, places: int) -> Tensor:
    """[B, T] of vectors -> [B, places]: what is read as one, words of a sentence or frames of a pyramid, adds up."""
    if isinstance(stem, Embedding):
        products = stem.sum_by_position(products, source)
    while products.shape[1] > max(1, places):
        even = torch.nn.functional.pad(products, (0, products.shape[1] % 2))
        products = even[:, ::2] + even[:, 1::2]
    return products


def _leaf(vectors: dict[str, Tensor], name: str) -> Any:
    """A hook that lets gradients be taken of what passes."""

    def hook(module: torch.nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        vectors[name] = output.detach().requires_grad_()
        return vectors[name]

    return hook
