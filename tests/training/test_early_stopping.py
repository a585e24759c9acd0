"""Early stopping counts validations without improvement."""

from dataclasses import dataclass

import pytest

from regard.training.early_stopping import EarlyStopping


@dataclass
class State:
    since_best: int = 0


@pytest.mark.parametrize(
    ("improvements", "stops"),
    [
        ([True, False, False], [False, False, True]),
        ([False, True, False, False], [False, False, False, True]),
        ([True, False, True, False, True], [False] * 5),
    ],
)
def test_training_stops_after_two_validations_in_a_row_without_improvement(
    improvements: list[bool], stops: list[bool]
) -> None:
    state, stopping = State(), EarlyStopping(patience=2)
    assert [stopping.update(state, improved=each) for each in improvements] == stops


def test_the_count_is_part_of_the_state_so_that_a_resumed_run_stops_alike() -> None:
    state = State()
    EarlyStopping(patience=2).update(state, improved=False)
    assert EarlyStopping(patience=2).update(State(state.since_best), improved=False)
