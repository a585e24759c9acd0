"""Settings: errors are one sentence with the setting, TOML round-trips, precedence."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.models.settings import (
    ModelSettings,
    RecurrentDecoderSettings,
    RecurrentEncoderSettings,
    TransformerEncoderSettings,
)
from regard.settings import apply_assignments, merge_settings, read_toml
from regard.tasks.base import infer_task
from regard.tasks.presets import all_presets, preset_settings
from regard.training.settings import RunSettings, run_settings
from tests.data.files import is_one_sentence

names = st.text("abc", min_size=1, max_size=2)
values = st.integers() | st.booleans() | st.text("xyz ", max_size=4) | st.lists(st.integers(), max_size=2)
tables = st.recursive(
    st.dictionaries(names, values, max_size=3), lambda t: st.dictionaries(names, values | t, max_size=3)
)


def error_message(*assignments: str, file: dict[str, Any] | None = None) -> str:
    with pytest.raises(ValueError, match=r"\w") as caught:
        run_settings(None, file or {}, list(assignments), {})
    message = str(caught.value)
    assert is_one_sentence(message), message
    return message


# Errors


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({"model": 1}, "model: 1 is not possible: it is a table of settings"),
        ({"data": 1}, "data: 1 is not possible: it is a table of settings"),
        ({"model": {"decoder": 1}}, "model.decoder: 1 is not possible: it is a table of settings"),
        ({"model": {"source": "text"}}, "model.source: 'text' is not possible: it is a table of settings"),
        ({"model": {"encoder": {"kind": ["a"]}}}, "model.encoder.kind: ['a'] is not possible: it is a name"),
        ({"task": 3}, "task: 3 is not possible: it is the name of a task"),
        ({"task": ["translation"]}, "task: ['translation'] is not possible"),
    ],
)
def test_values_and_tables_in_each_others_place_are_refused(file: dict[str, Any], message: str) -> None:
    assert message in error_message(file={"preset": "bahdanau", **file})


@pytest.mark.parametrize("path", ["model", "model.decoder", "training"])
def test_set_refuses_a_value_for_a_table(path: str) -> None:
    assert f"{path}: 1 is not possible" in error_message(f"{path}=1", file={"preset": "bahdanau"})


def test_a_task_is_not_chosen_with_set() -> None:
    assert error_message("task=tagging") == "--set: a task is chosen with --task."


def test_a_head_is_refused_where_a_decoder_is_needed() -> None:
    with pytest.raises(RegardError, match="translation needs a decoder that generates tokens"):
        RunSettings.parse({**preset_settings("classifier"), "preset": "classifier", "task": "translation"})


@pytest.mark.parametrize(
    ("assignment", "name", "suggestion"),
    [
        ("trainin.steps=3", "trainin", "training"),
        ("training.step=3", "training.step", "steps"),
        ("model.encoder.layrs=3", "model.encoder.layrs", "layers"),
        ("model.decoder.head=3", "model.decoder.head", "heads"),
        ("data.subwords.sise=3", "data.subwords.sise", "size"),
        ("data.pair=a.tsv", "data.pair", "pairs"),
    ],
)
def test_an_unknown_setting_suggests_the_nearest_name(assignment: str, name: str, suggestion: str) -> None:
    assert error_message(assignment) == f"{name}: there is no such setting; did you mean {suggestion}?"


@pytest.mark.parametrize("kind", ["recurrent", "convolutional", "transformer"])
@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_suggestions_are_of_the_selected_kind(part: str, kind: str) -> None:
    own = {
        "recurrent": ("cel", "cell"),
        "convolutional": ("kernl", "kernel"),
        "transformer": ("norm_frist", "norm_first"),
    }
    misspelled, correct = own[kind]
    message = error_message(f"model.{part}.kind={kind}", f"model.{part}.{misspelled}=1", "model.tie=none")
    assert message == f"model.{part}.{misspelled}: there is no such setting; did you mean {correct}?"


def test_an_unknown_setting_without_a_near_name_lists_all() -> None:
    message = error_message("data.subwords.zzzzz=1")
    assert message == "data.subwords.zzzzz: there is no such setting; there are kind, size, joint, coverage, sampling."


def test_an_unknown_kind_suggests_the_nearest_kind() -> None:
    message = error_message("model.encoder.kind=recurent")
    assert message.startswith("model.encoder")
    assert "there is no encoder 'recurent'; did you mean 'recurrent'?" in message
    assert "{" not in message


@pytest.mark.parametrize(
    ("assignment", "parts"),
    [
        ("training.metric=blue", ["training.metric: there is no metric 'blue'; did you mean 'bleu'?"]),
        ("training.judge=bleu", ["training.judge: this setting is now called training.metric."]),
        ("training.steps=0", ["training.steps: 0 is not possible: ", "greater than or equal to 1"]),
        ("training.steps=many", ["training.steps: 'many' is not possible: "]),
        ("training.betas=[0.9, 1.0]", ["training: betas must be at least 0 and below 1"]),
        ("model.encoder.heads=3", ["model.encoder: 3 heads do not divide the width 128"]),
        ("model.encoder.width=64", ["model: tie is all", "64 wide", "128"]),
        ("model.encoder=5", ["model.encoder: 5 is not possible"]),
        ("data.subwords.joint=false", ["model.tie is all, which needs data.subwords.joint"]),
    ],
)
def test_an_invalid_value_is_one_sentence_with_the_setting(assignment: str, parts: list[str]) -> None:
    message = error_message(assignment)
    assert all(part in message for part in parts), message


def test_a_column_of_another_type_is_named_as_in_the_file() -> None:
    assert error_message("data.source_column=[1]").startswith("data.source_column: ")


def test_a_component_without_its_kind_is_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^model\.encoder: kind is missing; choose "):
        RunSettings.parse({"model": {"encoder": {"layers": 3}}})


def test_an_unknown_preset_suggests_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"there is no 'bahdanou'; did you mean bahdanau\?"):
        run_settings("bahdanou", {}, [], {})
    with pytest.raises(ValueError, match=r"there is no 'zzz'; the presets are show-attend-tell"):
        run_settings(None, {"preset": "zzz"}, [], {})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        RunSettings().training.steps = 5


# TOML


@pytest.mark.parametrize("name", all_presets())
def test_every_preset_round_trips_through_toml(name: str) -> None:
    files = "text" if name.startswith(("gpt", "bert")) else "pairs"
    settings = run_settings(name, {}, [f"data.{files}=['a b.tsv', 'ü.csv']", "data.source_column=2"], {})
    again = RunSettings.parse(tomllib.loads(settings.as_toml()))
    assert again == settings
    assert run_settings(None, tomllib.loads(settings.as_toml()), [], {}) == settings


@given(
    data=st.fixed_dictionaries(
        {
            "pairs": st.lists(st.text(min_size=1, max_size=9).filter(lambda t: "\0" not in t), max_size=2),
            "source_column": st.none() | st.integers() | st.text(max_size=9),
            "valid_size": st.none() | st.integers(1, 2**62),
        }
    ),
    training=st.fixed_dictionaries(
        {
            "seed": st.integers(-(2**63), 2**63 - 1),
            "learning_rate": st.floats(1e-300, 1e300),
            "minutes": st.none() | st.floats(1e-3, 1e9),
            "betas": st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)),
        }
    ),
)
def test_any_settings_round_trip_through_toml(data: dict[str, Any], training: dict[str, Any]) -> None:
    settings = RunSettings.parse({"data": data, "training": training})
    assert RunSettings.parse(tomllib.loads(settings.as_toml())) == settings


@pytest.mark.parametrize(
    ("content", "message"), [(b"a = ", "this is not TOML"), (b"a = '\xe9'", "UTF-8"), (b"\x00", "this is not TOML")]
)
def test_a_file_that_is_not_toml_is_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_toml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert is_one_sentence(str(caught.value))


def test_a_settings_file_that_is_missing_or_a_folder_is_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(ValueError, match=str(path)):
            read_toml(path)


def test_a_settings_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('preset = "luong"\n[training]\nsteps = 7\n[data]\npairs = "ü.tsv"\n', "utf-8")
    settings = run_settings(None, read_toml(path), [], {})
    assert (settings.preset, settings.training.steps, settings.data.pairs) == ("luong", 7, (Path("ü.tsv"),))


# --set


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6", 6),
        ("-1", -1),
        ("1e-3", 1e-3),
        ("0.5", 0.5),
        ("true", True),
        ("false", False),
        ("bleu", "bleu"),
        ('"6"', "6"),
        ("'a b'", "a b"),
        ("a=b", "a=b"),
        ("", ""),
        ("my file.tsv", "my file.tsv"),
        ("['a', 'b']", ["a", "b"]),
        ("{kind = 'recurrent'}", {"kind": "recurrent"}),
        ("True", "True"),
    ],
)
def test_assigned_values_are_toml_or_else_text(text: str, value: object) -> None:
    result = apply_assignments({}, [f"a.b={text}"])["a"]["b"]
    assert result == value
    assert type(result) is type(value)


@given(given=tables, path=st.lists(names, min_size=1, max_size=3), value=st.integers())
def test_an_assignment_changes_one_value_of_a_copy(given: dict[str, Any], path: list[str], value: int) -> None:
    before = copy.deepcopy(given)
    try:
        result = apply_assignments(given, [f"{'.'.join(path)}={value}"])
    except ValueError as error:
        assert is_one_sentence(str(error))
        table: Any = given
        for part in path[:-1]:
            table = table[part]
            if not isinstance(table, dict):
                return
        raise
    assert given == before
    table = result
    for part in path[:-1]:
        table = table[part]
    assert table.pop(path[-1]) == value
    expected: Any = before
    for part in path[:-1]:
        expected = expected.setdefault(part, {})
    expected.pop(path[-1], None)
    assert result == before


@pytest.mark.parametrize("assignment", ["steps", "=3", "a..b=3", ".a=3", "a.=3", ""])
def test_an_invalid_assignment_is_one_sentence(assignment: str) -> None:
    with pytest.raises(ValueError, match=r"^--set: .* is not name=value") as caught:
        apply_assignments({}, [assignment])
    assert is_one_sentence(str(caught.value))


def test_a_value_has_no_nested_settings() -> None:
    assert error_message("model.encoder.layers.x=1") == (
        "--set: model.encoder.layers.x does not exist, because layers is a single value."
    )
    assert error_message("training.steps.more=3").startswith("training.steps: ")  # no preset has steps


def test_the_last_assignment_takes_precedence() -> None:
    assert run_settings(None, {}, ["training.seed=1", "training.seed=2"], {}).training.seed == 2


# Precedence


@given(base=tables, override=tables)
def test_merging_prefers_the_second_table_and_keeps_the_rest(base: dict[str, Any], override: dict[str, Any]) -> None:
    before = copy.deepcopy((base, override))
    result = merge_settings(base, override)
    assert (base, override) == before
    assert merge_settings(result, override) == result
    for key in base.keys() | override.keys():
        if key not in override:
            assert result[key] == base[key]
        elif not (isinstance(override[key], dict) and isinstance(base.get(key), dict)):
            assert result[key] == override[key]
        else:
            assert result[key] == merge_settings(base[key], override[key])


def test_precedence_is_preset_file_command_set() -> None:
    file = {"preset": "bahdanau", "training": {"steps": 1, "warmup_steps": 2, "seed": 3}}
    settings = run_settings(None, file, ["training.seed=9"], {"training": {"warmup_steps": 8, "seed": 8}})
    assert settings.preset == "bahdanau"
    assert settings.training.schedule == "cosine"  # of the preset
    assert (settings.training.steps, settings.training.warmup_steps, settings.training.seed) == (1, 8, 9)
    assert run_settings("luong", file, [], {}).preset == "luong"
    assert run_settings(None, {}, [], {}).preset == "transformer-tiny"


def test_another_kind_replaces_the_whole_table() -> None:
    base = {"part": {"kind": "a", "x": 1, "y": 2}, "other": 5}
    assert merge_settings(base, {"part": {"kind": "b", "y": 3}}) == {"part": {"kind": "b", "y": 3}, "other": 5}
    assert merge_settings(base, {"part": {"kind": "a", "y": 3}}) == {"part": {"kind": "a", "x": 1, "y": 3}, "other": 5}
    assert merge_settings(base, {"part": {"y": 3}}) == {"part": {"kind": "a", "x": 1, "y": 3}, "other": 5}


@pytest.mark.parametrize("reverse_order", [False, True])
def test_another_kind_by_set_replaces_the_whole_table_in_any_order(reverse_order: bool) -> None:
    assignments = ["model.encoder.kind=recurrent", "model.encoder.layers=3", "model.tie=target"]
    settings = run_settings("transformer-tiny", {}, assignments[::-1] if reverse_order else assignments, {})
    assert settings.model.encoder == RecurrentEncoderSettings(layers=3)
    assert settings.model.decoder.kind == "transformer"


def test_the_same_kind_by_set_keeps_the_table() -> None:
    settings = run_settings("transformer-tiny", {}, ["model.encoder.kind=transformer", "model.encoder.layers=3"], {})
    assert isinstance(settings.model.encoder, TransformerEncoderSettings)
    assert (settings.model.encoder.width, settings.model.encoder.layers) == (128, 3)


def test_another_kind_in_a_file_replaces_the_whole_table() -> None:
    file = {"model": {"decoder": {"kind": "recurrent", "score": "dot"}, "tie": "none"}}
    assert run_settings("transformer-tiny", file, [], {}).model.decoder == RecurrentDecoderSettings(score="dot")


@pytest.mark.parametrize("name", all_presets())
def test_presets_are_not_changed_by_use(name: str) -> None:
    before = copy.deepcopy(all_presets()[name])
    run_settings(name, {"training": {"seed": 5}}, ["training.steps=3", "model.encoder.dropout=0.5"], {})
    assert all_presets()[name] == before


def test_settings_need_no_torch() -> None:
    import subprocess
    import sys

    program = "import sys, regard.training.settings; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- metrics and tasks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "metric"),
    [("bahdanau", "bleu"), ("tagger", "entity_f1"), ("gpt-tiny", "loss"), ("pointer-generator", "rougeL")],
)
def test_the_first_metric_of_the_task_selects_checkpoints(preset: str, metric: str) -> None:
    assert run_settings(preset, {}, [], {}).training.metric == metric
    settings = run_settings(preset, {}, [], {}).model_dump(mode="json", exclude_none=True)
    settings["training"].pop("metric")
    assert RunSettings.parse(settings).training.metric == metric


@pytest.mark.parametrize(
    ("preset", "metric", "inputs"),
    [
        ("bahdanau", "mse", "forecasts"),
        ("bahdanau", "entity_f1", "tags"),
        ("gpt-tiny", "bleu", "text"),
        ("linear-forecast", "bleu", "text"),
    ],
)
def test_a_metric_that_a_task_has_no_inputs_for_is_rejected(preset: str, metric: str, inputs: str) -> None:
    with pytest.raises(RegardError, match=rf"training.metric: {metric} is computed from {inputs}, which .* choose "):
        run_settings(preset, {}, [f"training.metric={metric}"], {})


def test_a_model_that_no_task_claims_is_rejected_with_its_kinds() -> None:
    model = ModelSettings.parse({"source": {"kind": "series"}})
    with pytest.raises(RegardError, match="no task is known for a model with a source of the kind series"):
        infer_task(model, truncate=False)


@pytest.mark.parametrize("name", ["doubly_stochastic", "coverage_loss"])
def test_losses_of_attention_to_the_source_need_a_source(name: str) -> None:
    with pytest.raises(RegardError, match="decoders that attend to a source"):
        run_settings("gpt-tiny", {}, [f"training.{name}=0.5"], {})
