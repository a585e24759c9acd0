"""Arguments of attention, validated once and turned into a `Call`. Errors name the argument."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from regard.attention.call import Call
from regard.attention.extents.base import Extent, resolve_extent
from regard.attention.kernels.nan_guard import project_finite
from regard.attention.normalizers.base import Normalizer, resolve_normalizer
from regard.attention.positions.base import Position, resolve_position
from regard.attention.scores.base import PairwiseFunction, Score, resolve_score
from regard.attention.type_checks import is_integer, is_real
from regard.errors import RegardError

RENAMED_KEYWORDS = {"normalise": "normalize"}


def build_call(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: str | Score | PairwiseFunction,
    extent: str | Extent,
    normalize: str | Normalizer,
    mask: Tensor | None,
    scale: float | None,
    position: str | Position | None,
    dropout: float,
    offset: int,
) -> Call:
    """Validate the arguments of `attend` and compute the features."""
    _check_tensors(query, key, value)
    resolved_score = resolve_score(score)
    resolved_score.check(query, key)
    resolved_extent = resolve_extent(extent)
    queries, keys = resolved_score.queries, resolved_score.keys
    may_mask = mask is not None or resolved_extent.form != "all"
    query_features = project_finite(queries, query) if may_mask else queries(query)
    check_scale_and_dropout(scale, dropout)
    if not is_integer(offset) or offset < 0:
        raise RegardError(f"offset: {offset!r} is not a position; it must be a whole number, 0 or more.")
    if position is not None:
        position = resolve_position(position, heads=query_features.shape[1], width=query_features.shape[-1])
        check_position_fits_score(position, resolved_score)
    call = build_call_from_features(
        query,
        query_features,
        project_finite(keys, key) if may_mask else keys(key),
        value,
        score=resolved_score,
        extent=resolved_extent,
        normalizer=resolve_normalizer(normalize),
        mask=mask,
        scale=scale,
        position=position,
        dropout=dropout,
        offset=offset,
        transform_keys=True,
    )
    return replace(call, raw=(query, key))


def build_call_from_features(
    raw_query: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score,
    extent: Extent,
    normalizer: Normalizer,
    mask: Tensor | None,
    scale: float | None,
    position: Position | None,
    dropout: float,
    offset: int,
    transform_keys: bool,
) -> Call:
    """A call from features. `raw_query` is the query before the score projected it: local-p predicts from it."""
    if scale is None:
        scale = score.default_scale(query.shape[-1])
    if position is not None:
        position.check(query, value)
    normalizer.check(query)
    mask = _checked_mask(mask, (*query.shape[:3], key.shape[2]), query.dtype, query.device)
    centers = None
    if extent.form == "predicted":
        length = _source_length(mask, key)
        centers = project_finite(lambda x: extent.centers(x, length)[..., None], raw_query)[..., 0]
    if position is not None:
        query = position.transform(query, offset)
        key = position.transform(key, 0) if transform_keys else key
    return Call(
        query=query,
        key=key,
        value=value,
        score=score,
        extent=extent,
        normalizer=normalizer,
        scale=float(scale),
        mask=mask,
        position=position,
        dropout=dropout,
        offset=int(offset),
        centers=centers,
    )


def reject_unknown_keywords(function: str, unknown: Mapping[str, object]) -> None:
    """Raise TypeError, as Python does, for unknown keywords; a renamed one gets its new name."""
    for name in unknown:
        if name in RENAMED_KEYWORDS:
            raise TypeError(f"{function}: the argument {name!r} is now called {RENAMED_KEYWORDS[name]!r}.")
        raise TypeError(f"{function} got an unexpected keyword argument {name!r}")


def check_scale_and_dropout(scale: float | None, dropout: float) -> None:
    """Raise RegardError for an invalid scale or dropout."""
    if not is_real(dropout) or not 0 <= dropout < 1:
        raise RegardError(f"dropout: {dropout!r} is not a share; it must be at least 0 and below 1.")
    if scale is not None and not (is_real(scale) and -torch.inf < scale < torch.inf):
        raise RegardError(f"scale: {scale!r} is not a finite number.")


def check_position_fits_score(position: Position, score: Score) -> None:
    """Raise RegardError for a position that does not work with this score."""
    if position.scores is not None and score.name not in position.scores:
        raise RegardError(
            f"position: {position.name} has no meaning with the {score.name} score; "
            f"it needs {' or '.join(position.scores)}."
        )


def _source_length(mask: Tensor | None, key: Tensor) -> Tensor:
    """S of local-p: keys up to the last one allowed. [B or 1, H or 1, Tq or 1]."""
    Tk = key.shape[2]
    if mask is None:
        return key.new_full((1, 1, 1), Tk)
    allowed = mask if mask.dtype == torch.bool else mask != -torch.inf
    positions = allowed * torch.arange(1, Tk + 1, device=mask.device)
    return (positions.amax(-1) if Tk else positions.sum(-1)).to(key.dtype)


def _check_tensors(query: Tensor, key: Tensor, value: Tensor) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise RegardError(f"{name}: expected a tensor [batch, heads, time, width], not {type(tensor).__name__}.")
        if tensor.ndim != 4:
            raise RegardError(f"{name}: expected [batch, heads, time, width], got {tuple(tensor.shape)}.")
        if not tensor.is_floating_point():
            raise RegardError(f"{name}: expected floating-point numbers, got {tensor.dtype}.")
        if tensor.dtype != query.dtype:
            raise RegardError(f"{name}: {tensor.dtype} does not fit the query's {query.dtype}; convert one of them.")
        if tensor.device != query.device:
            raise RegardError(f"{name}: it is on {tensor.device}, the query on {query.device}; move one of them.")
    if key.shape[0] != query.shape[0]:
        raise RegardError(f"key: a batch of {key.shape[0]} does not fit the query's {query.shape[0]}.")
    if value.shape[:3] != key.shape[:3]:
        raise RegardError(
            f"value: {tuple(value.shape)} does not fit the key's {tuple(key.shape)}; batch, heads and time must agree."
        )
    if key.shape[1] == 0 or query.shape[1] % key.shape[1]:
        raise RegardError(
            f"key: {key.shape[1]} heads do not divide the query's {query.shape[1]}; each must serve equally many."
        )


def _checked_mask(
    mask: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Tensor | None:
    """The mask with four dimensions, in the queries' number type if it is not boolean."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or not (mask.dtype == torch.bool or mask.is_floating_point()):
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise RegardError(
            "mask: expected a boolean tensor (True = may attend) or a floating-point one (added to the scores), "
            f"not {kind}; for zeros and ones use mask.bool()."
        )
    if mask.device != device:
        raise RegardError(f"mask: it is on {mask.device}, the query on {device}; move one of them.")
    fits = mask.ndim <= 4 and all(m in (1, s) for m, s in zip(reversed(mask.shape), reversed(shape), strict=False))
    if not fits:
        hint = ""
        if tuple(mask.shape) == (shape[0], shape[3]):
            hint = "; for padding, [B, Tk], use mask[:, None, None, :]"
        elif tuple(mask.shape) == (shape[0], shape[2], shape[3]):
            hint = "; for [B, Tq, Tk] use mask[:, None]"
        raise RegardError(f"mask: {tuple(mask.shape)} does not fit [B, H, Tq, Tk] = {tuple(shape)}{hint}.")
    while mask.ndim < 4:
        mask = mask[None]
    if mask.shape[-1] != shape[-1]:
        mask = mask.expand(*mask.shape[:-1], shape[-1])
    return mask if mask.dtype == torch.bool else mask.to(dtype)
