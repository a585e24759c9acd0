"""Predictors whose inputs are images and recordings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.settings import LANGUAGE_TOKEN
from regard.inference.options import Options
from regard.inference.predictor import Predictor
from regard.loading import load, predictor_from_bundle
from regard.runs.bundle import load_bundle, save_bundle
from tests.media import audio_bytes, image_bytes, media_bundle, sample_image, sample_speech


def media_predictor(kind: str, **fields: Any) -> Predictor:
    return predictor_from_bundle(media_bundle(kind, **fields))


def test_paths_bytes_and_python_objects_give_the_same_output(tmp_path: Path) -> None:
    predictor = media_predictor("images")
    path = tmp_path / "a.png"
    path.write_bytes(image_bytes())
    texts = {
        predictor.translate(given).text
        for given in (path, str(path), image_bytes(), sample_image(), np.asarray(sample_image()))
    }
    assert len(texts) == 1
    recognizer = media_predictor("speech")
    audio = tmp_path / "a.wav"
    audio.write_bytes(audio_bytes(subtype="FLOAT"))
    texts = {
        recognizer.translate(given).text
        for given in (audio, audio.read_bytes(), sample_speech(), (sample_speech(), 8000))
    }
    assert len(texts) == 1


@pytest.mark.parametrize("kind", ["images", "speech"])
@pytest.mark.parametrize("beam", [1, 4])
def test_media_outputs_are_batch_invariant(kind: str, beam: int) -> None:
    predictor = media_predictor(kind)
    inputs = [image_bytes(seed=n) if kind == "images" else audio_bytes(seed=n) for n in range(5)]
    together = [result.tokens for result in predictor.translate(inputs, beam=beam)]
    assert [predictor.translate(each, beam=beam).tokens for each in inputs] == together
    in_reverse_order = [result.tokens for result in predictor.translate(inputs[::-1], beam=beam)]
    assert in_reverse_order[::-1] == together


def test_an_invalid_file_is_reported_and_does_not_affect_the_others(tmp_path: Path) -> None:
    predictor = media_predictor("images")
    valid, *invalid = predictor.translate([image_bytes(), b"nothing", str(tmp_path / "none.png"), audio_bytes()])
    assert valid.text == predictor.translate(image_bytes()).text
    assert not valid.error
    assert "not a picture" in invalid[0].error
    assert "no such file" in invalid[1].error
    assert invalid[2].error
    assert all(result.text == "" for result in invalid)
    with pytest.raises(ValueError, match="not a picture"):
        predictor.attend(b"nothing")


def test_text_is_rejected_where_media_are_expected() -> None:
    predictor = media_predictor("images")
    assert "no such file" in predictor.translate("a sentence").error
    from regard.data.vocabulary import text_tokenizer

    with pytest.raises(ValueError, match="reads pictures, not text"):
        text_tokenizer(predictor.run.source_processor)


@pytest.mark.parametrize("kind", ["images", "speech"])
def test_classes_have_probabilities(kind: str) -> None:
    classifier = media_predictor(kind, labels=("cat", "dog", "emu"))
    given = image_bytes() if kind == "images" else audio_bytes()
    result = classifier.translate(given, nbest=3)
    ranked = [(result.text, result.score), *((other.text, other.score) for other in result.alternatives)]
    assert sorted(text for text, _ in ranked) == ["cat", "dog", "emu"]
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert np.isclose(sum(np.exp(score) for _, score in ranked), 1, atol=1e-5)
    assert classifier.translate(given).alternatives == []


def test_the_target_language_selects_the_first_tokens() -> None:
    captioner = media_predictor("images", languages=("en", "de"))
    tokens = {to: captioner.translate(image_bytes(), to=to).tokens for to in ("en", "de")}
    for language, output in tokens.items():  # as targets begin in training, with the blank
        encoded_target = captioner.run.target_vocabulary.encode([f"{LANGUAGE_TOKEN.format(language)} a"])[0]
        language_token = captioner.run.target_vocabulary.token(LANGUAGE_TOKEN.format(language))
        assert language_token in encoded_target
        length = encoded_target.index(language_token) + 1
        assert output[:length] == encoded_target[:length]
    assert captioner.translate(image_bytes()).tokens == tokens["en"]
    assert "\uf8f1" not in captioner.translate(image_bytes(), to="de").text
    with pytest.raises(ValueError, match="there is no 'fr'; the target languages of this model are en, de"):
        captioner.translate(image_bytes(), to="fr")
    captured = captioner.attend(image_bytes())
    position = captured.target.labels.index("<en>")
    assert all(captured.target.special[: position + 1])
    german = captioner.attend(image_bytes(), "ein hund", to="de")
    assert "<de>" in german.target.labels
    assert "<en>" not in german.target.labels


def test_captured_attention_includes_the_medium() -> None:
    predictor = media_predictor("images")
    captured = predictor.attend(image_bytes())
    assert captured.source_media is not None
    assert captured.source_media.values.shape == (3, 32, 32)
    assert len(captured.source) == 64
    assert captured.source.unit == "cells"
    recognizer = media_predictor("speech")
    captured_audio = recognizer.attend(audio_bytes(), "one two")
    assert captured_audio.source_media is not None
    assert captured_audio.source_media.kind == "spectrogram"
    assert captured_audio.source_media.audio.startswith(b"RIFF")
    assert captured_audio.source.unit == "frames"
    assert 0.5 < captured_audio.source_media.seconds < 2


@pytest.mark.parametrize("kind", ["images", "speech"])
@pytest.mark.parametrize("labels", [(), ("cat", "dog")])
def test_a_saved_run_restores_everything(tmp_path: Path, kind: str, labels: tuple[str, ...]) -> None:
    bundle = media_bundle(kind, labels=labels)
    save_bundle(tmp_path, bundle)
    assert not (tmp_path / "source.subwords").exists()
    loaded = load_bundle(tmp_path)
    assert loaded.description == bundle.description
    given = image_bytes() if kind == "images" else audio_bytes()
    predictor = load(tmp_path)
    assert (
        predictor.results([given], Options())[0].text
        == predictor_from_bundle(bundle).results([given], Options())[0].text
    )
    assert f"it reads {bundle.description.model.source.description}" in predictor.engine_reason
    for actual, expected in zip(loaded.model.parameters(), bundle.model.parameters(), strict=True):
        assert torch.equal(actual, expected)
