"""Runs that begin with what others have learnt."""

from pathlib import Path

import pytest
import torch

from regard.data.corpus import prepare
from regard.runs.bundle import Bundle, load_bundle, save_bundle
from regard.tasks.base import get_task
from regard.training.run import new_bundle
from regard.training.settings import RunSettings, run_settings

TINY = [
    *("model.encoder.width=16", "model.encoder.heads=2", "model.encoder.layers=1", "model.encoder.feedforward=20"),
    "model.decoder.width=16",
]
ALONE = [each.replace("encoder", "decoder") for each in TINY[:4]] + ["model.encoder.width=16"]
LINES = [f"the {what} runs to house {n}" for n in range(20) for what in ("dog", "cat", "bird")]


def made(folder: Path, settings: RunSettings) -> Bundle:
    corpus = prepare(settings.data, folder / "data", source=settings.model.source, kind=get_task(settings.task).data())
    return new_bundle(settings, corpus, torch.device("cpu"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of both kinds."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "text.txt").write_text("\n".join(LINES))
    (folder / "pairs.tsv").write_text("\n".join(f"{line}\t{line[::-1]}" for line in LINES))
    rows = [f"{line}\t{'even' if number % 2 else 'odd'}" for number, line in enumerate(LINES)]
    (folder / "classes.tsv").write_text("text\tlabel\n" + "\n".join(rows))
    for task, assignments in (("masked_lm", TINY), ("causal_lm", ALONE)):
        settings = run_settings(
            None, {}, [*assignments, "data.longest=40"], {"data": {"text": [folder / "text.txt"]}}, task=task
        )
        bundle = made(folder / task, settings)
        (folder / f"{task}-run").mkdir()
        save_bundle(folder / f"{task}-run", bundle)
    return folder


def test_a_classifier_begins_with_an_encoder(begun: Path, tmp_path: Path) -> None:
    given = {"data": {"pairs": [begun / "classes.tsv"]}}
    settings = run_settings(None, {}, [], given, task="classification", init=[begun / "masked_lm-run"])
    assert settings.model.encoder.kind == "transformer"
    assert settings.model.decoder.width == settings.model.encoder.width == 16
    assert settings.model.source.starts_with_bos
    bundle = made(tmp_path, settings)
    theirs = load_bundle(begun / "masked_lm-run")
    assert bundle.source_side.model == theirs.source_side.model
    for name, tensor in bundle.model.encoder.state_dict().items():
        assert torch.equal(tensor, theirs.model.encoder.state_dict()[name]), name


def test_a_translator_begins_with_both(begun: Path, tmp_path: Path) -> None:
    given = {"data": {"pairs": [begun / "pairs.tsv"]}}
    runs = [begun / "masked_lm-run", begun / "causal_lm-run"]
    settings = run_settings("transformer-tiny", {}, [], given, init=runs)
    assert settings.model.tie == "target"
    bundle = made(tmp_path, settings)
    theirs = load_bundle(begun / "causal_lm-run").model.decoder.state_dict()
    own = bundle.model.decoder.state_dict()
    assert all(torch.equal(own[name], tensor) for name, tensor in theirs.items())
    assert any(".memory." in name for name in own.keys() - theirs.keys())
    reader = load_bundle(begun / "masked_lm-run").model.encoder.state_dict()
    assert all(torch.equal(tensor, reader[name]) for name, tensor in bundle.model.encoder.state_dict().items())


def test_two_parts_get_vectors_that_the_other_run_had_not(begun: Path, tmp_path: Path) -> None:
    rows = [f"{line}\t{line}\t{'same' if number % 2 else 'other'}" for number, line in enumerate(LINES)]
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tlabel\n" + "\n".join(rows))
    given = {"data": {"pairs": [tmp_path / "pairs.tsv"]}}
    settings = run_settings(None, {}, [], given, task="classification", init=[begun / "masked_lm-run"])
    assert settings.data.question_column == "sentence2"
    assert settings.data.target_column == "label"
    assert getattr(settings.model.source, "segments", 1) == 2
    assert made(tmp_path, settings).model.encoder.embedding.segment.shape == (2, 16)


def test_what_does_not_fit_is_said(begun: Path, tmp_path: Path) -> None:
    given = {"data": {"pairs": [begun / "classes.tsv"]}}
    settings = run_settings(
        None, {}, ["model.encoder.layers=2"], given, task="classification", init=[begun / "masked_lm-run"]
    )
    with pytest.raises(ValueError, match=r"encoder\.layers\.1\..* is missing"):
        made(tmp_path, settings)
    with pytest.raises(ValueError, match="there is one encoder"):
        run_settings(None, {}, [], given, task="classification", init=[begun / "masked_lm-run"] * 2)
    with pytest.raises(ValueError, match="there is no such folder"):
        run_settings(None, {}, [], given, task="classification", init=[begun / "none"])
