"""The head that forecasts: shapes for every kind of source, and invariance to scale and batch."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.models.heads.forecast import forecast_values
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.models.shapes import SHAPES
from regard.settings import merge_settings
from regard.tasks.forecasting import Forecasting, _match_head

T, H, C = 40, 5, 3
PRESETS = [preset.name for preset in Forecasting.presets]


def build(name: str, *, covariates: int = 0, history: int = T, **changes: Any) -> Seq2Seq:
    torch.manual_seed(0)
    settings = merge_settings(merge_settings(SHAPES[name].model, {"source": {"history": history}}), changes)
    settings["source"] |= {"columns": C + covariates, "covariates": covariates}
    settings["decoder"]["horizon"] = H
    _match_head(settings["source"], settings["decoder"], C)
    model = Seq2Seq(ModelSettings.parse(settings), source_vocabulary_size=0, target_vocabulary_size=0)
    return model.double().eval()


def forecast(model: Seq2Seq, source: Tensor) -> Tensor:
    mask = torch.ones(source.shape[:2], dtype=torch.bool)
    features = model(source, mask, torch.zeros(len(source), 1, dtype=torch.int64)).features
    return forecast_values(model, source, mask, features)


def windows(covariates: int = 0, count: int = 4, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    return torch.randn(count, T, C + covariates, dtype=torch.float64).cumsum(1)


@pytest.mark.parametrize("covariates", [0, 2])
@pytest.mark.parametrize("quantiles", [[], [0.1, 0.5, 0.9]])
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_forecasts_every_target(name: str, quantiles: list[float], covariates: int) -> None:
    model = build(name, covariates=covariates, decoder={"quantiles": quantiles})
    assert forecast(model, windows(covariates)).shape == (4, H, C, max(1, len(quantiles)))


@pytest.mark.parametrize("name", PRESETS)
def test_a_forecast_does_not_depend_on_its_batch(name: str) -> None:
    model, source = build(name), windows()
    together = forecast(model, source)
    for row in range(len(source)):
        torch.testing.assert_close(forecast(model, source[row : row + 1])[0], together[row])


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "step-transformer"])
def test_a_shifted_series_has_a_shifted_forecast(name: str) -> None:
    model, source = build(name), windows()
    torch.testing.assert_close(forecast(model, source + 100), forecast(model, source) + 100)


def test_reversible_normalization_makes_forecasts_scale() -> None:
    model, source = build("patch-transformer"), windows()
    torch.testing.assert_close(forecast(model, 50 * source), 50 * forecast(model, source), rtol=1e-4, atol=1e-3)


def test_independent_columns_do_not_affect_each_other() -> None:
    model, source = build("patch-transformer"), windows()
    changed = source.clone()
    changed[..., 1] += torch.randn(T, dtype=torch.float64)
    before, after = forecast(model, source), forecast(model, changed)
    assert torch.equal(before[:, :, [0, 2]], after[:, :, [0, 2]])
    assert not torch.allclose(before[:, :, 1], after[:, :, 1])


@pytest.mark.parametrize("name", ["step-transformer", "series-rnn", "series-conv"])
def test_each_step_ahead_attends_to_the_history(name: str) -> None:
    model, source = build(name), windows()
    mask = torch.ones(source.shape[:2], dtype=torch.bool)
    decoded = model(source, mask, torch.zeros(4, 1, dtype=torch.int64), need_weights=True)
    (weights,) = decoded.cross_attention
    assert weights.shape[2:] == (H, T)
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3], dtype=torch.float64))


@pytest.mark.parametrize("name", PRESETS)
def test_gradients_reach_every_parameter(name: str) -> None:
    model = build(name).train()
    forecast(model, windows()).square().sum().backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert torch.isfinite(parameter.grad).all()


def test_the_linear_skip_is_added_to_the_forecast_in_the_units_of_each_window() -> None:
    model = build(
        "patch-transformer", decoder={"linear_skip": True, "quantiles": [0.1, 0.9]}, source={"instance_norm": "last"}
    )
    source = windows()
    without = forecast(model, source)
    skip = model.decoder.skip
    assert skip.weight.count_nonzero() == 0, "it begins as nothing"
    with torch.no_grad():
        skip.weight.normal_()
    last = source[:, -1:]
    linear = torch.nn.functional.linear((source - last).transpose(1, 2), skip.weight)  # [N, C, H Q]
    expected = linear.view(len(source), C, H, 2).transpose(1, 2)
    torch.testing.assert_close(forecast(model, source) - without, expected)
