"""Default training settings by kind of model, for the presets of tasks."""

from typing import Any

Values = dict[str, Any]

RECURRENT: Values = {
    "learning_rate": 1e-3,
    "warmup_steps": 200,
    "schedule": "cosine",
    "label_smoothing": 0.1,
    "max_grad_norm": 1.0,
}
TRANSFORMER: Values = {"warmup_steps": 1000, "schedule": "cosine", "label_smoothing": 0.1, "ema_decay": 0.999}


def transformer(width: int, **more: Any) -> Values:
    """For a Transformer of this width: wider ones need a lower learning rate."""
    return {**TRANSFORMER, "learning_rate": 3e-3 * (128 / width) ** 0.5, **more}
