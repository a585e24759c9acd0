"""Matrix products where several query heads share one key-value head (grouped-query, multi-query attention)."""

from torch import Tensor


def grouped_matmul(x: Tensor, y: Tensor) -> Tensor:
    """x [B, H, M, K] @ y [B, G, K, N] -> [B, H, M, N], each y serving H / G heads of x, none of them copied."""
    B, H, M, K = x.shape
    G = y.shape[1]
    if G == H:
        return x @ y
    return (x.reshape(B, G, H // G * M, K) @ y).reshape(B, H, M, y.shape[-1])
