"""Learning rate schedules: linear warm-up, then inverse square root or cosine decay, or constant.

Vaswani et al. 2017 (arXiv:1706.03762, section 5.3); Loshchilov and Hutter 2017 (arXiv:1608.03983).
"""

import math

from regard.training.settings import TrainingSettings


def learning_rate(settings: TrainingSettings, step: int, steps: int) -> float:
    """The learning rate of step number `step` (from 1) of `steps` in total."""
    peak, warmup = settings.learning_rate, min(settings.warmup_steps, max(1, steps // 2))
    if step < warmup:
        return peak * step / warmup
    if settings.schedule == "constant":
        return peak
    if settings.schedule == "inverse-sqrt":
        return peak * math.sqrt(max(1, warmup) / max(1, step))
    progress = (step - warmup) / max(1, steps - warmup)
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
