"""Gradient times input: how much each output token depends on each input position, to first order (Shrikumar et al.
2016, arXiv:1605.01713).

The input is the vector of each position before its position embedding is added: a token's embedding, or the output of
the stem for a cell of an image or some frames of a recording. It is the same for all models, and has the positions that
attention has. For images and recordings it is taken after their normalization, which is invariant to the scale of its
input: before it, the product would be zero.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.data.batch import collate_sources
from regard.data.vocabulary import SourceInput
from regard.interpret.captured_attention import Weights
from regard.models.logits import mask_reserved_tokens
from regard.models.stems import Stem
from regard.models.token_embedding import Embedding
from regard.runs.bundle import Bundle
from regard.special_tokens import BOS

MAX_STEPS_PER_PASS = 64  # each step needs a copy of the source
MAX_SOURCE_VALUES = 1 << 20  # of all copies in one pass: the activations of convolutions take many times as much


def compute_attribution(bundle: Bundle, source: SourceInput, output: Sequence[int]) -> dict[str, Weights]:
    """Gradient times input of each output token's log-probability: "source" [T, S] over the positions of the source,
    "decoder_input" [T, T] over the decoder's input. All tokens with their end of sequence."""
    model = bundle.model
    device = next(model.parameters()).device
    embeddings = {"source": model.encoder.embedding.attribution_point}
    if hasattr(model.decoder, "embedding"):  # a classifier's decoder has no input tokens
        embeddings["decoder_input"] = model.decoder.embedding.attribution_point
    encoder_input, mask = (each.to(device) for each in collate_sources(bundle.source_processor, [source]))
    decoder_input = torch.tensor([[BOS, *output[:-1]]], device=device)
    targets = torch.tensor(output, device=device)
    found: dict[str, list[Tensor]] = {"source": [], "decoder_input": []}
    steps_per_pass = max(1, min(MAX_STEPS_PER_PASS, MAX_SOURCE_VALUES // max(1, encoder_input.numel())))
    for start in range(0, len(output), steps_per_pass):
        steps = torch.arange(start, min(start + steps_per_pass, len(output)), device=device)
        sources, masks, inputs = (
            each.expand(len(steps), *each.shape[1:]) for each in (encoder_input, mask, decoder_input)
        )
        vectors: dict[str, Tensor] = {}
        handles = [module.register_forward_hook(gradient_hook(vectors, name)) for name, module in embeddings.items()]
        try:
            with torch.enable_grad():
                decoded = model(sources, masks, inputs)
                logits = model.scores(decoded, sources)[torch.arange(len(steps), device=device), steps]
                log_probabilities = mask_reserved_tokens(logits).log_softmax(-1).gather(1, targets[steps, None])
                gradients = torch.autograd.grad(log_probabilities.sum(), list(vectors.values()), allow_unused=True)
        finally:
            for handle in handles:
                handle.remove()
        for (name, values), gradient in zip(vectors.items(), gradients, strict=True):
            products = torch.zeros_like(values[..., 0]) if gradient is None else (gradient * values).sum(-1)
            if name == "source":
                products = _sum_by_position(model.encoder.embedding, products, sources, int(decoded.source_lengths[0]))
            found[name].append(products)
    found = {name: rows or [torch.zeros(len(output), len(output))] for name, rows in found.items()}
    return {name: torch.cat(rows).float().detach().cpu().numpy() for name, rows in found.items()}


def _sum_by_position(stem: Stem, products: Tensor, source: Tensor, positions: int) -> Tensor:
    """[B, T] of vectors -> [B, positions]: sums over what the encoder makes one position, such as the tokens of a
    sentence or the frames that a pyramid joins."""
    if isinstance(stem, Embedding):
        products = stem.sum_by_position(products, source)
    while products.shape[1] > max(1, positions):
        even = torch.nn.functional.pad(products, (0, products.shape[1] % 2))
        products = even[:, ::2] + even[:, 1::2]
    return products


def gradient_hook(vectors: dict[str, Tensor], name: str) -> Any:
    """A forward hook that makes the module's output a leaf with a gradient, and keeps it in `vectors`."""

    def hook(module: torch.nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:
        vectors[name] = output.detach().requires_grad_()
        return vectors[name]

    return hook
