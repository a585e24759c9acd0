"""How large a step is, over time: warm-up, then falling by the inverse square root or along a cosine.

Vaswani et al. 2017 (arXiv:1706.03762, section 5.3); Loshchilov and Hutter 2017 (arXiv:1608.03983).
"""

import math

from regard.training.settings import TrainingSettings


def learning_rate(settings: TrainingSettings, step: int, steps: int) -> float:
    """The rate of step number `step` (from 1) of `steps` in all."""
    highest, warmup = settings.learning_rate, min(settings.warmup, max(1, steps // 2))
    if step < warmup:
        return highest * step / warmup
    if settings.schedule == "constant":
        return highest
    if settings.schedule == "inverse-sqrt":
        return highest * math.sqrt(max(1, warmup) / max(1, step))
    share = (step - warmup) / max(1, steps - warmup)
    return highest * 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
