"""Attention of forecasts, and gradient times input of each step ahead."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.media.series import SeriesProcessor
from regard.data.targets.series import SeriesTarget
from regard.interpret.forecast_attention import capture_forecast_attention
from regard.models.settings import SeriesSource
from regard.runs.bundle import Bundle
from regard.runs.folder import RunDescription
from tests.models.heads.test_forecast import H, T, build

C = 3


def bundle(preset: str, **changes: Any) -> Bundle:
    model = build(preset, **changes).float()
    source = model.settings.source
    assert isinstance(source, SeriesSource)
    numbers = {"mean": (0.0,) * C, "scale": (1.0,) * C, "naive_error": (1.0,) * C}
    target = SeriesTarget(
        ("x", "y", "z"), (), False, "time", None, horizon=H, step_seconds=3600, step_months=0, season=24, **numbers
    )
    return Bundle(RunDescription(model=model.settings), model, SeriesProcessor(source), target)


def window() -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).normal(size=(T, C)).cumsum(0).astype(np.float32)


@pytest.mark.parametrize(
    ("preset", "kind", "unit", "positions"),
    [
        ("step-transformer", "cross", "steps", T),
        ("series-rnn", "cross", "steps", T),
        ("patch-transformer", "encoder", "patches", 4),
        ("column-transformer", "encoder", "columns", C),
    ],
)
def test_the_positions_are_those_of_the_model(preset: str, kind: Any, unit: str, positions: int) -> None:
    captured = capture_forecast_attention(bundle(preset), window(), bundle(preset).target)  # type: ignore[arg-type]
    weights = captured.matrix(kind)
    assert weights.shape == (H if kind == "cross" else positions, positions)
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
    assert captured.source.unit == unit
    assert captured.target.labels == tuple(f"+{step}" for step in range(1, H + 1))
    assert captured.source_media is not None
    assert captured.source_media.kind == "series"
    if unit == "columns":
        assert captured.source.labels == ("x", "y", "z")


def test_gradient_times_input_of_a_linear_model_adds_up_to_the_forecast() -> None:
    made = bundle("linear-forecast", source={"instance_norm": "none"})
    with torch.no_grad():
        for name, parameter in made.model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    values = window()
    captured = capture_forecast_attention(made, values, made.target, attribution=True)  # type: ignore[arg-type]
    source = torch.from_numpy(values)[None]
    features = made.model(source, torch.ones(1, T, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.int64)).features
    expected = features[0, :, :, 0].sum(1).detach().numpy()
    np.testing.assert_allclose(captured.attribution["source"].sum(1), expected, rtol=1e-4, atol=1e-4)


def test_captured_attention_is_written_and_read(tmp_path: Path) -> None:
    from regard.views.storage import load, save

    made = bundle("patch-transformer")
    captured = capture_forecast_attention(made, window(), made.target, attribution=True)  # type: ignore[arg-type]
    save(captured, tmp_path / "x.json")
    loaded = load(tmp_path / "x.json")
    assert loaded.source_media is not None
    assert captured.source_media is not None
    np.testing.assert_array_equal(loaded.source_media.values, captured.source_media.values)
