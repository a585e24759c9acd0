"""Early stopping: training ends after `patience` validations in a row without a better one."""

from typing import Protocol


class StoppingState(Protocol):
    """The state of training that is saved in checkpoints. since_best: validations since the best one."""

    since_best: int


class EarlyStopping:
    """Counts validations without improvement in the state of training, so that a resumed run stops at the same one."""

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def update(self, state: StoppingState, *, improved: bool) -> bool:
        """Count one validation. Returns whether training should stop."""
        state.since_best = 0 if improved else state.since_best + 1
        return state.since_best >= self.patience
