"""Parts of an exported run that several families share: the output layer and tables of sinusoidal positions."""

from typing import Any

import torch
from torch import Tensor

from regard.interop.transforms import Sinusoids
from regard.special_tokens import BEGIN, END, PAD

SPECIAL_TOKEN_IDS = {"pad_token_id": PAD, "bos_token_id": BEGIN, "eos_token_id": END}


@torch.no_grad()
def untie_output(tensors: dict[str, Tensor], side: str, part: Any) -> None:
    """Give the output a weight of its own and a bias, and multiply a scaled embedding by its scale: not every
    architecture scales embeddings when they are read."""
    embedding = tensors[f"{side}.embedding.weight"]
    tensors.setdefault("output.weight", embedding.clone())
    tensors.setdefault("output.bias", torch.zeros(len(embedding)))
    if part.scale_embedding:
        embedding *= part.width**0.5


def write_sinusoids(tensors: dict[str, Tensor], side: str, part: Any, length: int) -> None:
    """A table of positions, if a model computes them."""
    if part.position == "sinusoidal":
        tensors[f"{side}.embedding.place.table.weight"] = Sinusoids(length, part.width).value()
