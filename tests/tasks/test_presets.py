"""Models with a name."""

import copy

import pytest

from regard.models.parameter_count import count_parameters
from regard.models.settings import ModelSettings, TransformerEncoder
from regard.tasks.presets import all_presets, preset_settings
from regard.training.settings import RunSettings, TrainingSettings


@pytest.mark.parametrize("name", all_presets())
def test_every_preset_is_a_whole_model_and_a_training(name: str) -> None:
    given = preset_settings(name)
    assert set(given) - {"data"} == {"model", "training"}
    RunSettings.parse(given)
    assert count_parameters(ModelSettings.parse(given["model"]), 1000) > 100_000
    TrainingSettings.parse(given["training"])


@pytest.mark.parametrize("name", ["transformer-tiny", "transformer-small", "transformer-base"])
def test_transformers_have_their_size_by_hand(name: str) -> None:
    """At width D, F inside, N + N layers: one table for V words, 4 D² + 2 D F in an encoder's layer, 8 D² + 2 D F."""
    model = ModelSettings.parse(preset_settings(name)["model"])
    assert isinstance(model.encoder, TransformerEncoder)
    D, F, N = model.encoder.width, model.encoder.feedforward, model.encoder.layers
    matrices = 37_000 * D + N * (4 * D * D + 2 * D * F) + N * (8 * D * D + 2 * D * F)
    found = count_parameters(model, 37_000)
    assert matrices < found < matrices * 1.01, "biases and norms are little"
    if name == "transformer-base":  # table 3 of the paper says 65 million
        assert found / 1e6 == pytest.approx(65, rel=0.04)


def test_presets_are_what_their_papers_say() -> None:
    vanilla = preset_settings("vanilla-rnn")["model"]
    assert vanilla["encoder"]["reverse"]
    assert vanilla["decoder"]["attend"] == "never"
    bahdanau, luong = preset_settings("bahdanau")["model"]["decoder"], preset_settings("luong")["model"]["decoder"]
    assert (bahdanau["attend"], bahdanau["score"]) == ("before", "additive")
    assert (luong["attend"], luong["score"], luong["input_feeding"]) == ("after", "bilinear", True)
    assert preset_settings("luong-local")["model"]["decoder"] == {**luong, "extent": "local-p"}
    assert preset_settings("hard")["model"]["decoder"] == {**bahdanau, "normalize": "hard"}
    deep = preset_settings("deep-shallow")["model"]
    assert (deep["encoder"]["layers"], deep["decoder"]["layers"]) == (12, 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bahdanaw", "did you mean bahdanau?"),
        ("Transformer_Tiny", "did you mean transformer-tiny?"),
        ("xyz", "the presets are show-attend-tell,"),
    ],
)
def test_an_unknown_name_is_refused_with_what_was_meant(name: str, said: str) -> None:
    with pytest.raises(ValueError, match="--preset: there is no") as caught:
        preset_settings(name)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", all_presets())
def test_parsing_leaves_the_preset_as_it_was(name: str) -> None:
    before = copy.deepcopy(all_presets()[name])
    ModelSettings.parse(preset_settings(name)["model"])
    assert all_presets()[name] == before
