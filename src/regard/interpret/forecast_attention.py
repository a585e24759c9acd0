"""Captured attention of forecasts: over the steps, patches or columns of a window, for each step ahead."""

from typing import Any

import torch
from torch import Tensor

from regard.data.batch import collate_sources
from regard.data.series.forecast import point_output
from regard.data.targets.series import SeriesTarget
from regard.interpret.attribution import gradient_hook
from regard.interpret.captured_attention import Axis, CapturedAttention, Kind, Weights
from regard.interpret.position_labels import source_axis
from regard.runs.bundle import Bundle

MAX_WINDOW_VALUES = 1 << 18  # of all copies of a window in one pass of gradients


def capture_forecast_attention(
    bundle: Bundle, window: Any, target: SeriesTarget, *, attribution: bool = False
) -> CapturedAttention:
    """Attention over a standardized window [T, C]; the mean over columns where each is a sequence of its own.

    attribution: with gradient times input of each step ahead, for the sum of the columns.
    """
    model = bundle.model
    device = next(model.parameters()).device
    source, mask = (each.to(device) for each in collate_sources(bundle.source_processor, [window]))
    with torch.inference_mode():
        decoded = model(source, mask, torch.zeros(1, 1, dtype=torch.int64, device=device), need_weights=True)
    weights: dict[Kind, list[Weights]] = {}
    if decoded.cross_attention:
        weights["cross"] = [_mean_over_columns(each) for each in decoded.cross_attention]
    if decoded.encoder_attention:
        weights["encoder"] = [_mean_over_columns(each) for each in decoded.encoder_attention]
    gradients = {"source": _attribution(bundle, source, mask, target)} if attribution else {}
    shapes = [each.shape[-1] for layers in weights.values() for each in layers]
    count = (shapes or [each.shape[-1] for each in gradients.values()] or [0])[0]
    axis, media = source_axis(bundle.source_processor, window, count, ())
    if axis.unit == "columns":
        names = (*target.targets, *target.known, *axis.labels[len(target.targets) + len(target.known) :])
        axis = Axis(names[:count], axis.special, axis.unit)
    steps = Axis(tuple(f"+{step}" for step in range(1, target.horizon + 1)), (False,) * target.horizon, "steps")
    return CapturedAttention(axis, steps, steps, weights, attribution=gradients, source_media=media)


def _mean_over_columns(weights: Tensor) -> Weights:
    """[sequences of one window, heads, rows, columns] -> [heads, rows, columns]."""
    mean: Weights = weights.float().mean(0).cpu().numpy()
    return mean


def _attribution(bundle: Bundle, source: Tensor, mask: Tensor, target: SeriesTarget) -> Weights:
    """Gradient times input [H, positions] of each step ahead, in normalized units, summed over columns."""
    model, horizon = bundle.model, target.horizon
    output = point_output(tuple(getattr(model.settings.decoder, "quantiles", ())))
    steps_per_pass = max(1, MAX_WINDOW_VALUES // max(1, source.numel()))
    found = []
    for start in range(0, horizon, steps_per_pass):
        steps = torch.arange(start, min(start + steps_per_pass, horizon), device=source.device)
        vectors: dict[str, Tensor] = {}
        handle = model.encoder.embedding.attribution_point.register_forward_hook(gradient_hook(vectors, "source"))
        try:
            with torch.enable_grad():
                windows = source.expand(len(steps), *source.shape[1:])
                inputs = torch.zeros(len(steps), 1, dtype=torch.int64, device=source.device)
                features = model(windows, mask.expand(len(steps), -1), inputs).features  # [N, H, V, Q]
                chosen = features[torch.arange(len(steps), device=source.device), steps, :, output]
                (gradient,) = torch.autograd.grad(chosen.sum(), [vectors["source"]])
        finally:
            handle.remove()
        products = (gradient * vectors["source"]).sum(-1)  # [N S, P], of S sequences for each window
        found.append(products.view(len(steps), -1, products.shape[-1]).sum(1))
    attribution: Weights = torch.cat(found).float().detach().cpu().numpy()
    return attribution
