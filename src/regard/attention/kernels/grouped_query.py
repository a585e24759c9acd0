"""Matrix products where several query heads share one key-value head (grouped-query, multi-query attention)."""

from torch import Tensor


def repeat_heads(x: Tensor, heads: int) -> Tensor:
    """x [B, G, T, D] -> [B, heads, T, D], each of its heads repeated for those it serves."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def grouped_matmul(x: Tensor, y: Tensor) -> Tensor:
    """x [B, H, M, K] @ y [B, G, K, N] -> [B, H, M, N], each y serving H / G heads of x, none of them copied."""
    B, H, M, K = x.shape
    G = y.shape[1]
    if G == H:
        return x @ y
    return (x.reshape(B, G, H // G * M, K) @ y).reshape(B, H, M, y.shape[-1])
