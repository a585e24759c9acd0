"""The grid: every score, extent and normalizer, made small, with learned weights drawn at random."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.attention import (
    Additive,
    Bilinear,
    Causal,
    Cosine,
    Dot,
    Entmax,
    Global,
    Hard,
    LocalMonotonic,
    LocalPredictive,
    Raw,
    ScaledDot,
    Sigmoid,
    Softmax,
    Sparsemax,
    Window,
)

HEADS, WIDTH = 4, 6


def distance_score(query: Tensor, key: Tensor) -> Tensor:
    """A score that is nobody's: minus the distance."""
    return -(query[..., :, None, :] - key[..., None, :, :]).abs().sum(-1)


def build_score(name: str, heads: int = HEADS, width: int = WIDTH) -> Any:
    choices = {
        "dot": Dot,
        "scaled-dot": ScaledDot,
        "cosine": Cosine,
        "bilinear": lambda: Bilinear(width, width, heads=heads),
        "additive": lambda: Additive(width, width, 9, heads=heads),
        "function": lambda: distance_score,
    }
    return choices[name]()


def build_extent(name: str, heads: int = HEADS, width: int = WIDTH) -> Any:
    choices = {
        "global": Global,
        "causal": Causal,
        "window": lambda: Window(2),
        "causal window": lambda: Window(2, causal=True),
        "window with global tokens": lambda: Window(1, global_tokens=2),
        "causal window with global tokens": lambda: Window(1, causal=True, global_tokens=2),
        "local-m": lambda: LocalMonotonic(3),
        "local-p": lambda: LocalPredictive(width, radius=2.5, heads=heads),
    }
    return choices[name]()


def build_normalizer(name: str, heads: int = HEADS) -> Any:
    choices = {
        "softmax": Softmax,
        "hard": lambda: Hard().eval(),
        "sparsemax": Sparsemax,
        "entmax-1.5": Entmax,
        "entmax-1.3": lambda: Entmax(1.3),
        "entmax-2.5": lambda: Entmax(2.5),
        "entmax learned": lambda: Entmax(1.4, learnable=True, heads=heads),
        "sigmoid": lambda: Sigmoid(-0.5),
        "none": Raw,
    }
    return choices[name]()


SCORES = ["dot", "scaled-dot", "cosine", "bilinear", "additive", "function"]
EXTENTS = [
    "global",
    "causal",
    "window",
    "causal window",
    "window with global tokens",
    "causal window with global tokens",
    "local-m",
    "local-p",
]
NORMALIZERS = [
    "softmax",
    "hard",
    "sparsemax",
    "entmax-1.5",
    "entmax-1.3",
    "entmax-2.5",
    "entmax learned",
    "sigmoid",
    "none",
]


@dataclass
class Cell:
    """One point of the grid with inputs for it."""

    query: Tensor
    key: Tensor
    value: Tensor
    options: dict[str, Any]

    @property
    def tensors(self) -> list[Tensor]:
        """All that gradients flow to."""
        components = [self.options[name] for name in ("score", "extent", "normalize")]
        learned = [
            p for component in components if isinstance(component, torch.nn.Module) for p in component.parameters()
        ]
        return [self.query, self.key, self.value, *learned]

    def to(self, dtype: torch.dtype) -> "Cell":
        """The same numbers in another type, apart from the original."""
        import copy

        options = copy.deepcopy({k: v for k, v in self.options.items() if k != "mask"})
        for component in options.values():
            if isinstance(component, torch.nn.Module):
                component.to(dtype)
        mask = self.options.get("mask")
        options["mask"] = mask.to(dtype) if mask is not None and mask.is_floating_point() else mask
        inputs = [x.detach().to(dtype).requires_grad_() for x in (self.query, self.key, self.value)]
        return Cell(inputs[0], inputs[1], inputs[2], options)


def cell(
    score_name: str,
    extent_name: str,
    normalizer_name: str,
    *,
    source: str = "cross",
    queries: int = 7,
    keys: int = 9,
    batch: int = 2,
    key_heads: int = HEADS,
    masked: str = "no",
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> Cell:
    """Random inputs for one cell; in float64 unless asked."""
    torch.manual_seed(seed)
    if source == "self":
        keys = queries
    query = torch.randn(batch, HEADS, queries, WIDTH, dtype=torch.float64)
    key = torch.randn(batch, key_heads, keys, WIDTH, dtype=torch.float64)
    if source == "self" and key_heads == HEADS:
        key = query.clone()
    value = torch.randn(batch, key_heads, keys, 5, dtype=torch.float64)
    options: dict[str, Any] = {
        "score": build_score(score_name)
        if score_name != "additive"
        else Additive(WIDTH, WIDTH, 9, heads=HEADS, key_heads=key_heads),
        "extent": build_extent(extent_name),
        "normalize": build_normalizer(normalizer_name),
        "mask": build_mask(masked, batch, queries, keys),
    }
    for component in options.values():
        if isinstance(component, torch.nn.Module):
            component.to(torch.float64)
    return Cell(query, key, value, options).to(dtype)


def build_mask(kind: str, batch: int, queries: int, keys: int) -> Tensor | None:
    """Masks people use. Every kind but "no" leaves at least one row with nothing to attend to or one key hidden."""
    if kind == "no":
        return None
    padding = torch.ones(batch, 1, 1, keys, dtype=torch.bool)
    padding[0, ..., keys // 2 + 1 :] = False
    if kind == "padding":
        return padding
    rows = torch.rand(batch, HEADS, queries, keys, generator=torch.Generator().manual_seed(1)) > 0.4
    rows[0, 0, -1] = False
    if kind == "rows":
        return rows
    additive = torch.randn(1, HEADS, queries, keys, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return additive.masked_fill(~rows[:1], -torch.inf)
