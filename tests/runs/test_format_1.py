"""Runs of format 1, saved before settings and tasks were renamed, are migrated when they are read."""

import shutil
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.loading import load
from regard.models.settings import RecurrentDecoder
from regard.runs.folder import open_run
from regard.settings import read_toml
from regard.tasks.base import task_from_description
from regard.training.run import read_run_settings
from regard.training.settings import run_settings

RUN = Path(__file__).parent / "format-1"
EXPECTED = [("number  number: dog red", -0.70773), ("number 1: cat big", -0.95924), ("number 1:: cat red", -0.87608)]


def test_settings_of_format_1_are_migrated() -> None:
    settings = read_run_settings(RUN)
    assert settings.task == "translation"
    assert settings.training.metric == "chrf"
    assert settings.training.coverage_loss == pytest.approx(0.1)
    assert isinstance(settings.model.decoder, RecurrentDecoder)
    assert settings.model.decoder.normalize == "sparsemax"
    description = open_run(RUN).description
    assert description.format == 1
    assert task_from_description(description).name == "translation"


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_a_run_of_format_1_translates_as_before(tmp_path: Path, engine: str) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    texts = ["the red dog number 3", "the big bird number 12", "the red cat number 7"]
    results = load(tmp_path / "run", engine=engine, device="cpu", precision="float32").translate(texts, beam=3)
    assert [result.text for result in results] == [text for text, _ in EXPECTED]
    assert [result.score for result in results] == pytest.approx([score for _, score in EXPECTED], abs=1e-4)


def test_an_old_setting_name_is_refused_with_its_new_name() -> None:
    with pytest.raises(RegardError, match=r"training\.judge: this setting is now called training\.metric"):
        run_settings("bahdanau", {}, ["training.judge=chrf"], {})
    assert "metric" in read_toml(RUN / "settings.toml")["training"]
