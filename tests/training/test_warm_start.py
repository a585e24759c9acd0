"""Warm starts from other runs."""

from pathlib import Path

import pytest
import torch

from regard.data.corpus import prepare
from regard.runs.bundle import Bundle, load_bundle, save_bundle
from regard.tasks.base import get_task
from regard.training.run import new_bundle
from regard.training.settings import RunSettings, run_settings

TINY_ENCODER = [
    *("model.encoder.width=16", "model.encoder.heads=2", "model.encoder.layers=1", "model.encoder.feedforward=20"),
    "model.decoder.width=16",
]
TINY_DECODER = [each.replace("encoder", "decoder") for each in TINY_ENCODER[:4]] + ["model.encoder.width=16"]
LINES = [f"the {animal} runs to house {n}" for n in range(20) for animal in ("dog", "cat", "bird")]


def build_bundle(folder: Path, settings: RunSettings) -> Bundle:
    corpus = prepare(settings.data, folder / "data", source=settings.model.source, kind=get_task(settings.task).data())
    return new_bundle(settings, corpus, torch.device("cpu"))


@pytest.fixture(scope="module")
def pretrained_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked and a causal language model, and files of other tasks."""
    folder = tmp_path_factory.mktemp("pretrained")
    (folder / "text.txt").write_text("\n".join(LINES))
    (folder / "pairs.tsv").write_text("\n".join(f"{line}\t{line[::-1]}" for line in LINES))
    rows = [f"{line}\t{'even' if number % 2 else 'odd'}" for number, line in enumerate(LINES)]
    (folder / "classes.tsv").write_text("text\tlabel\n" + "\n".join(rows))
    for task, assignments in (("masked_lm", TINY_ENCODER), ("causal_lm", TINY_DECODER)):
        settings = run_settings(
            None, {}, [*assignments, "data.max_tokens=40"], {"data": {"text": [folder / "text.txt"]}}, task=task
        )
        bundle = build_bundle(folder / task, settings)
        (folder / f"{task}-run").mkdir()
        save_bundle(folder / f"{task}-run", bundle)
    return folder


def test_a_classifier_starts_with_a_pretrained_encoder(pretrained_runs: Path, tmp_path: Path) -> None:
    options = {"data": {"pairs": [pretrained_runs / "classes.tsv"]}}
    settings = run_settings(None, {}, [], options, task="classification", init=[pretrained_runs / "masked_lm-run"])
    assert settings.model.encoder.kind == "transformer"
    assert settings.model.decoder.width == settings.model.encoder.width == 16
    assert settings.model.source.starts_with_bos
    bundle = build_bundle(tmp_path, settings)
    pretrained = load_bundle(pretrained_runs / "masked_lm-run")
    assert bundle.source_processor.model == pretrained.source_processor.model
    for name, tensor in bundle.model.encoder.state_dict().items():
        assert torch.equal(tensor, pretrained.model.encoder.state_dict()[name]), name


def test_a_translation_model_starts_with_a_pretrained_encoder_and_decoder(
    pretrained_runs: Path, tmp_path: Path
) -> None:
    options = {"data": {"pairs": [pretrained_runs / "pairs.tsv"]}}
    runs = [pretrained_runs / "masked_lm-run", pretrained_runs / "causal_lm-run"]
    settings = run_settings("transformer-tiny", {}, [], options, init=runs)
    assert settings.model.tie == "target"
    bundle = build_bundle(tmp_path, settings)
    pretrained = load_bundle(pretrained_runs / "causal_lm-run").model.decoder.state_dict()
    parameters = bundle.model.decoder.state_dict()
    assert all(torch.equal(parameters[name], tensor) for name, tensor in pretrained.items())
    assert any(".cross_attention." in name for name in parameters.keys() - pretrained.keys())
    encoder = load_bundle(pretrained_runs / "masked_lm-run").model.encoder.state_dict()
    assert all(torch.equal(tensor, encoder[name]) for name, tensor in bundle.model.encoder.state_dict().items())


def test_two_segments_get_new_segment_embeddings(pretrained_runs: Path, tmp_path: Path) -> None:
    rows = [f"{line}\t{line}\t{'same' if number % 2 else 'other'}" for number, line in enumerate(LINES)]
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tlabel\n" + "\n".join(rows))
    options = {"data": {"pairs": [tmp_path / "pairs.tsv"]}}
    settings = run_settings(None, {}, [], options, task="classification", init=[pretrained_runs / "masked_lm-run"])
    assert settings.data.question_column == "sentence2"
    assert settings.data.target_column == "label"
    assert getattr(settings.model.source, "segments", 1) == 2
    assert build_bundle(tmp_path, settings).model.encoder.embedding.segment.shape == (2, 16)


def test_runs_that_do_not_match_are_refused(pretrained_runs: Path, tmp_path: Path) -> None:
    options = {"data": {"pairs": [pretrained_runs / "classes.tsv"]}}
    settings = run_settings(
        None, {}, ["model.encoder.layers=2"], options, task="classification", init=[pretrained_runs / "masked_lm-run"]
    )
    with pytest.raises(ValueError, match=r"encoder\.layers\.1\..* is missing"):
        build_bundle(tmp_path, settings)
    with pytest.raises(ValueError, match="there is one encoder"):
        run_settings(None, {}, [], options, task="classification", init=[pretrained_runs / "masked_lm-run"] * 2)
    with pytest.raises(ValueError, match="there is no such folder"):
        run_settings(None, {}, [], options, task="classification", init=[pretrained_runs / "none"])
