"""Presets."""

import copy

import pytest

from regard.models.parameter_count import count_parameters
from regard.models.settings import ModelSettings, TransformerEncoderSettings
from regard.tasks.presets import all_presets, preset_settings
from regard.training.settings import RunSettings, TrainingSettings


@pytest.mark.parametrize("name", all_presets())
def test_every_preset_has_complete_model_and_training_settings(name: str) -> None:
    settings_values = preset_settings(name)
    assert set(settings_values) - {"data"} == {"model", "training"}
    RunSettings.parse(settings_values)
    assert count_parameters(ModelSettings.parse(settings_values["model"]), 1000) > 5_000
    TrainingSettings.parse(settings_values["training"])


@pytest.mark.parametrize("name", ["transformer-tiny", "transformer-small", "transformer-base"])
def test_parameter_counts_of_transformers_equal_their_formula(name: str) -> None:
    """Width D, feedforward width F, N + N layers: one embedding for V tokens, 4 D² + 2 D F in an encoder layer,
    8 D² + 2 D F in a decoder layer."""
    model = ModelSettings.parse(preset_settings(name)["model"])
    assert isinstance(model.encoder, TransformerEncoderSettings)
    D, F, N = model.encoder.width, model.encoder.feedforward, model.encoder.layers
    matrices = 37_000 * D + N * (4 * D * D + 2 * D * F) + N * (8 * D * D + 2 * D * F)
    found = count_parameters(model, 37_000)
    assert matrices < found < matrices * 1.01, "biases and norms are little"
    if name == "transformer-base":  # table 3 of the paper says 65 million
        assert found / 1e6 == pytest.approx(65, rel=0.04)


def test_presets_follow_their_papers() -> None:
    vanilla = preset_settings("vanilla-rnn")["model"]
    assert vanilla["encoder"]["reverse"]
    assert vanilla["decoder"]["attend"] == "never"
    bahdanau, luong = preset_settings("bahdanau")["model"]["decoder"], preset_settings("luong")["model"]["decoder"]
    assert (bahdanau["attend"], bahdanau["score"]) == ("before", "additive")
    assert (luong["attend"], luong["score"], luong["input_feeding"]) == ("after", "bilinear", True)
    assert preset_settings("luong-local")["model"]["decoder"] == {**luong, "extent": "local-p"}
    assert preset_settings("hard")["model"]["decoder"] == {**bahdanau, "normalize": "hard"}
    deep_shallow = preset_settings("deep-shallow")["model"]
    assert (deep_shallow["encoder"]["layers"], deep_shallow["decoder"]["layers"]) == (12, 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bahdanaw", "did you mean bahdanau?"),
        ("Transformer_Tiny", "did you mean transformer-tiny?"),
        ("xyz", "the presets are show-attend-tell,"),
    ],
)
def test_an_unknown_name_is_rejected_with_the_nearest_one(name: str, message: str) -> None:
    with pytest.raises(ValueError, match="--preset: there is no") as caught:
        preset_settings(name)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", all_presets())
def test_parsing_does_not_change_the_preset(name: str) -> None:
    before = copy.deepcopy(all_presets()[name])
    ModelSettings.parse(preset_settings(name)["model"])
    assert all_presets()[name] == before
