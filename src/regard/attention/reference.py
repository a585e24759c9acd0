"""Every attention mechanism in plain tensor algebra, straight from its paper. This file is the specification.

Attention maps a query and a set of key-value pairs to an output in four stages:

    score(q, k)  ->  restrict (mask, extent)  ->  normalize  ->  sum(weights * v)

Each stage has its section below, and `attend` puts them together. Nothing here is clever or fast, everything runs in
float64, and the kernels are tested against these few lines.

Letters: B batch, H heads, Tq queries, Tk keys, D width, A hidden width. Tensors are [..., time, width];
scores and weights are [..., Tq, Tk].
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

# ------------------------------------------------------------------------------------------------------ 1. score


def dot(query: Tensor, key: Tensor) -> Tensor:
    """q·k (Luong et al. 2015, arXiv:1508.04025, "dot")."""
    return query @ key.transpose(-2, -1)


def scaled_dot(query: Tensor, key: Tensor) -> Tensor:
    """q·k / sqrt(D) (Vaswani et al. 2017, arXiv:1706.03762, equation 1)."""
    return dot(query, key) / math.sqrt(query.shape[-1])


def cosine(query: Tensor, key: Tensor) -> Tensor:
    """q·k / (|q| |k|) (Graves et al. 2014, arXiv:1410.5401, equation 6); a zero vector has similarity 0."""
    length_q = query.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    length_k = key.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return dot(query / length_q, key / length_k)


def bilinear(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """q' W k (Luong et al. 2015, "general"). weight [..., Dq, Dk]."""
    return query @ weight @ key.transpose(-2, -1)


def additive(query: Tensor, key: Tensor, w_query: Tensor, w_key: Tensor, bias: Tensor, v: Tensor) -> Tensor:
    """v' tanh(U q + W k + b) (Bahdanau et al. 2014, arXiv:1409.0473, appendix A.1.2).

    w_query [..., A, Dq], w_key [..., A, Dk], bias and v [..., A]. Luong's "concat", v' tanh(W [q; k]), is the same
    function: W's left columns are w_query, its right columns w_key.
    """
    projected_q = query @ w_query.transpose(-2, -1)  # [..., Tq, A]
    projected_k = key @ w_key.transpose(-2, -1)  # [..., Tk, A]
    summed = projected_q[..., :, None, :] + projected_k[..., None, :, :] + bias[..., None, None, :]  # [..., Tq, Tk, A]
    return (torch.tanh(summed) * v[..., None, None, :]).sum(-1)


def location(
    query: Tensor,
    key: Tensor,
    past_weights: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    bias: Tensor,
    v: Tensor,
    filters: Tensor,
    w_filter: Tensor,
) -> Tensor:
    """v' tanh(U q + W k + F f + b), f = the filters over the past weights (Chorowski et al. 2015,
    arXiv:1506.07503, section 2.2). With the sum of all past weights, not the last ones, and filters one key wide,
    it is the coverage of See et al. 2017 (arXiv:1704.04368, equation 11).

    One query at a time, query [..., 1, Dq]; past_weights [..., Tk]; filters [F, size], size odd; w_filter [..., A, F].
    """
    size = filters.shape[1]
    padded = torch.nn.functional.pad(past_weights, (size // 2, size // 2))
    f = padded.unfold(-1, size, 1) @ filters.T  # [..., Tk, F]
    projected_q = query @ w_query.transpose(-2, -1)  # [..., 1, A]
    projected_k = key @ w_key.transpose(-2, -1) + f @ w_filter.transpose(-2, -1)  # [..., Tk, A]
    summed = projected_q[..., :, None, :] + projected_k[..., None, :, :] + bias[..., None, None, :]
    return (torch.tanh(summed) * v[..., None, None, :]).sum(-1)


# --------------------------------------------------------------------------------------------------- 2. restrict
# Each extent gives the keys a query may attend to: True = may attend. Positions are integers, [Tq] and [Tk].


def causal(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """No key after the query (Vaswani et al. 2017, section 3.2.3)."""
    return key_positions[None, :] <= query_positions[:, None]


def window(
    query_positions: Tensor, key_positions: Tensor, radius: int, is_causal: bool = False, global_tokens: int = 0
) -> Tensor:
    """Keys at most `radius` positions away: restricted self-attention (Vaswani et al. 2017, section 4).

    The first `global_tokens` positions see everything and are seen by everything (Beltagy et al. 2020,
    arXiv:2004.05150). A causal window never attends ahead, global tokens included.
    """
    within = (query_positions[:, None] - key_positions[None, :]).abs() <= radius
    within = within | (key_positions[None, :] < global_tokens) | (query_positions[:, None] < global_tokens)
    return within & causal(query_positions, key_positions) if is_causal else within


def local_m(query_positions: Tensor, key_positions: Tensor, radius: int) -> Tensor:
    """Local monotonic attention: the window is centered at p_t = t (Luong et al. 2015, section 3.2)."""
    return window(query_positions, key_positions, radius)


def predicted_center(query: Tensor, w: Tensor, v: Tensor, length: Tensor) -> Tensor:
    """p_t = S sigmoid(v' tanh(W h_t)), the center that local-p predicts (Luong et al. 2015, equation 9).

    query [..., Tq, D], w [..., A, D], v [..., A], length S [..., Tq] -> [..., Tq].
    """
    hidden = torch.tanh(query @ w.transpose(-2, -1))  # [..., Tq, A]
    return length * torch.sigmoid((hidden * v[..., None, :]).sum(-1))


def local_p(center: Tensor, key_positions: Tensor, radius: float) -> Tensor:
    """Keys in [p_t - radius, p_t + radius] around a real-valued center [..., Tq]; the first key is at 0."""
    return (key_positions - center[..., None]).abs() <= radius


def gaussian(center: Tensor, key_positions: Tensor, radius: float) -> Tensor:
    """exp(-(s - p_t)^2 / 2 sigma^2), sigma = radius / 2 (Luong et al. 2015, equation 10).

    It multiplies the weights after they were normalized, and they are not normalized again.
    """
    return torch.exp(-((key_positions - center[..., None]) ** 2) / (2 * (radius / 2) ** 2))


# -------------------------------------------------------------------------------------------------- 3. normalize
# Each takes scores and the positions allowed, and gives weights that are zero elsewhere. A row with no allowed position
# is all zeros.


def softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """exp(s_j) / sum exp(s)."""
    return _ignoring_empty_rows(lambda s: torch.softmax(s, dim=-1), scores, allowed)


def sparsemax(scores: Tensor, allowed: Tensor) -> Tensor:
    """The point of the simplex nearest to the scores (Martins and Astudillo 2016, arXiv:1602.02068, algorithm 1)."""

    def project(s: Tensor) -> Tensor:
        ordered = s.sort(dim=-1, descending=True).values
        cumulative = ordered.masked_fill(ordered.isinf(), 0).cumsum(-1)
        rank = torch.arange(1, s.shape[-1] + 1, dtype=s.dtype, device=s.device)
        support = (1 + rank * ordered > cumulative).sum(-1, keepdim=True)
        threshold = (cumulative.gather(-1, support - 1) - 1) / support
        return (s - threshold).clamp_min(0)

    return _ignoring_empty_rows(project, scores, allowed)


def entmax(scores: Tensor, allowed: Tensor, alpha: float | Tensor) -> Tensor:
    """p_j = [(alpha - 1) s_j - tau]_+ ^ (1 / (alpha - 1)) (Peters et al. 2019, arXiv:1905.05702, equation 6).

    tau makes the weights sum to one. It is found by bisection; one Newton step taken with gradients then carries
    the implicit derivative of tau.
    """

    def project(s: Tensor) -> Tensor:
        power = 1 / (alpha - 1)
        z = torch.where(s > -torch.inf, torch.where(s > -torch.inf, s, 0) * (alpha - 1), -torch.inf)
        with torch.no_grad():
            low = z.amax(-1, keepdim=True) - 1
            high = low + 1
            for _ in range(100):
                tau = (low + high) / 2
                heavy = ((z - tau).clamp_min(0) ** power).sum(-1, keepdim=True) >= 1
                low, high = torch.where(heavy, tau, low), torch.where(heavy, high, tau)
        inside = z > low
        gap = torch.where(inside, z - low, 1)
        excess = (gap**power * inside).sum(-1, keepdim=True) - 1
        slope = (power * gap ** (power - 1) * inside).sum(-1, keepdim=True)
        tau = low + excess / slope.detach()
        return torch.where(inside, z - tau, 0).clamp_min(0) ** power

    return _ignoring_empty_rows(project, scores, allowed)


def sigmoid(scores: Tensor, allowed: Tensor) -> Tensor:
    """1 / (1 + exp(-s_j)), each position for itself (Ramapuram et al. 2024, arXiv:2409.04431)."""
    return torch.where(allowed, torch.sigmoid(scores), 0)


def none(scores: Tensor, allowed: Tensor) -> Tensor:
    """The scores themselves."""
    return torch.where(allowed, scores, 0)


def hard(scores: Tensor, allowed: Tensor) -> Tensor:
    """All weight on the best position: hard attention at evaluation (Xu et al. 2015, arXiv:1502.03044, section 4.1).

    In training a position is drawn from `softmax` instead; for its gradient see `normalizers.Hard`.
    """

    def best(s: Tensor) -> Tensor:
        return torch.zeros_like(s).scatter(-1, s.argmax(-1, keepdim=True), 1)

    return _ignoring_empty_rows(best, scores, allowed)


def _ignoring_empty_rows(normalize: Callable[[Tensor], Tensor], scores: Tensor, allowed: Tensor) -> Tensor:
    allowed = allowed.expand_as(scores)
    has_allowed = allowed.any(-1, keepdim=True)
    restricted = torch.where(allowed, scores, -torch.inf)
    return torch.where(allowed, normalize(torch.where(has_allowed, restricted, 0)), 0)


# ------------------------------------------------------------------------------------------- 4. sum, and all four


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Callable[[Tensor, Tensor], Tensor] = scaled_dot,
    allowed: Tensor | None = None,
    bias: Tensor | None = None,
    normalize: Callable[[Tensor, Tensor], Tensor] = softmax,
    gauss: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The four stages. query [B, H, Tq, Dq], key [B, G, Tk, Dk], value [B, G, Tk, Dv] -> [B, H, Tq, Dv] and weights.

    G divides H: each key-value head serves H / G query heads (Shazeer 2019, arXiv:1911.02150; Ainslie et al. 2023,
    arXiv:2305.13245). `bias` is added to the scores; `gauss` is local-p's Gaussian.
    """
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = score(query, key)
    if bias is not None:
        scores = scores + bias
    weights = normalize(scores, torch.ones_like(scores, dtype=torch.bool) if allowed is None else allowed)
    if gauss is not None:
        weights = weights * gauss
    return weights @ value, weights


# -------------------------------------------------------------------------------------------------- positions
# Attention itself is invariant to the order of its keys. These encode it: in the embeddings (sinusoid), by rotating
# queries and keys (rotary), or as a term of the score (ALiBi, Shaw, T5).


def sinusoid(positions: Tensor, width: int) -> Tensor:
    """sin and cos of p / 10000^(2i / width), interleaved (Vaswani et al. 2017, section 3.5): [T] -> [T, width]."""
    angle = positions[:, None] / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).reshape(len(positions), -1)[:, :width]


def rotary(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Rotate each pair (x_2i, x_2i+1) by p base^(-2i / D) (Su et al. 2021, arXiv:2104.09864, section 3.2.2)."""
    width = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # [T, D / 2]
    rotation = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation).reshape(x.shape).to(x.dtype)


def alibi(query_positions: Tensor, key_positions: Tensor, slopes: Tensor) -> Tensor:
    """-m |i - j| for each head's slope m (Press et al. 2021, arXiv:2108.12409): [H, Tq, Tk]."""
    return -slopes[:, None, None] * (query_positions[:, None] - key_positions[None, :]).abs()


def shaw_scores(query: Tensor, query_positions: Tensor, key_positions: Tensor, table: Tensor) -> Tensor:
    """q_i · a_clip(j - i) (Shaw et al. 2018, arXiv:1803.02155, equation 4, before the scale). table [2 clip + 1, D]."""
    clip = (len(table) - 1) // 2
    distance = (key_positions[None, :] - query_positions[:, None]).clamp(-clip, clip)
    return (query[..., :, None, :] * table[distance + clip]).sum(-1)


def shaw_values(weights: Tensor, query_positions: Tensor, key_positions: Tensor, table: Tensor) -> Tensor:
    """sum_j w_ij a_clip(j - i), which is added to the output (Shaw et al. 2018, equation 3)."""
    clip = (len(table) - 1) // 2
    distance = (key_positions[None, :] - query_positions[:, None]).clamp(-clip, clip)
    return (weights[..., None] * table[distance + clip]).sum(-2)


def t5_bucket(distance: int, buckets: int, max_distance: int, bidirectional: bool) -> int:
    """The bucket of j - i: exact when near, logarithmic when far (Raffel et al. 2020, arXiv:1910.10683)."""
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    far = exact + int(math.log(distance / exact) / math.log(max_distance / exact) * (buckets - exact))
    return first + min(far, buckets - 1)
