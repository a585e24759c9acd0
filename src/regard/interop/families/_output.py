"""Export of the output layer and of sinusoidal positions, for several families."""

from typing import Any

import torch
from torch import Tensor

from regard.interop.transforms import Sinusoids
from regard.special_tokens import BOS, EOS, PAD

SPECIAL_TOKEN_IDS = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}


@torch.no_grad()
def untie_output(tensors: dict[str, Tensor], side: str, component: Any) -> None:
    """Give the output layer its own weight and a bias, and multiply the embedding by its scale if there is one: not
    every architecture scales embeddings."""
    embedding = tensors[f"{side}.embedding.weight"]
    tensors.setdefault("output.weight", embedding.clone())
    tensors.setdefault("output.bias", torch.zeros(len(embedding)))
    if component.scale_embedding:
        embedding *= component.width**0.5


def write_sinusoids(tensors: dict[str, Tensor], side: str, component: Any, length: int) -> None:
    """Add a table of position embeddings, if the model computes them."""
    if component.position == "sinusoidal":
        tensors[f"{side}.embedding.position.table.weight"] = Sinusoids(length, component.width).value()
