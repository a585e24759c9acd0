"""Narrow recurrent models are trained on one thread."""

from collections.abc import Iterator

import pytest
import torch

from regard.models.settings import ModelSettings
from regard.settings import merge_settings
from regard.tasks.presets import preset_settings
from regard.training.threads import MAX_SINGLE_THREAD_WIDTH, limit_threads


def preset_model(name: str, width: int | None = None) -> ModelSettings:
    change = {"encoder": {"width": width}, "decoder": {"width": width}} if width else {}
    return ModelSettings.parse(merge_settings(preset_settings(name)["model"], change))


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("settings", "threads"),
    [
        (preset_model("bahdanau"), 1),
        (preset_model("bahdanau", MAX_SINGLE_THREAD_WIDTH + 8), 2),
        (preset_model("transformer-tiny"), 2),
        (preset_model("conv"), 2),
    ],
)
def test_narrow_recurrent_models_get_one_thread(settings: ModelSettings, threads: int) -> None:
    with limit_threads(settings):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


def test_omp_num_threads_takes_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with limit_threads(preset_model("bahdanau")):
        assert torch.get_num_threads() == 2
