"""A translator whose sources are files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.settings import LANGUAGE_SIGN
from regard.inference.options import Options
from regard.inference.predictor import Predictor
from regard.loading import load, predictor_from_bundle
from regard.runs.bundle import load_bundle, save_bundle
from tests.media import audio_bytes, image_bytes, media_bundle, sample_image, sample_speech


def translator(kind: str, **about: Any) -> Predictor:
    return predictor_from_bundle(media_bundle(kind, **about))


def test_files_bytes_and_what_python_has_give_the_same(tmp_path: Path) -> None:
    reads = translator("images")
    path = tmp_path / "a.png"
    path.write_bytes(image_bytes())
    texts = {
        reads.translate(given).text
        for given in (path, str(path), image_bytes(), sample_image(), np.asarray(sample_image()))
    }
    assert len(texts) == 1
    hears = translator("speech")
    sound = tmp_path / "a.wav"
    sound.write_bytes(audio_bytes(subtype="FLOAT"))
    said = {
        hears.translate(given).text for given in (sound, sound.read_bytes(), sample_speech(), (sample_speech(), 8000))
    }
    assert len(said) == 1


@pytest.mark.parametrize("kind", ["images", "speech"])
@pytest.mark.parametrize("beam", [1, 4])
def test_company_changes_nothing(kind: str, beam: int) -> None:
    reads = translator(kind)
    given = [image_bytes(seed=n) if kind == "images" else audio_bytes(seed=n) for n in range(5)]
    together = [result.tokens for result in reads.translate(given, beam=beam)]
    assert [reads.translate(each, beam=beam).tokens for each in given] == together
    backwards = [result.tokens for result in reads.translate(given[::-1], beam=beam)]
    assert backwards[::-1] == together


def test_a_wrong_file_has_its_own_sentence_and_disturbs_nobody(tmp_path: Path) -> None:
    reads = translator("images")
    good, *wrong = reads.translate([image_bytes(), b"nothing", str(tmp_path / "none.png"), audio_bytes()])
    assert good.text == reads.translate(image_bytes()).text
    assert not good.error
    assert ["not a picture" in wrong[0].error, "no such file" in wrong[1].error, bool(wrong[2].error)] == [True] * 3
    assert all(result.text == "" for result in wrong)
    with pytest.raises(ValueError, match="not a picture"):
        reads.attend(b"nothing")


def test_text_is_refused_where_files_are_read_and_the_other_way_round() -> None:
    reads = translator("images")
    assert "no such file" in reads.translate("a sentence").error
    from regard.data.vocabulary import text_tokenizer

    with pytest.raises(ValueError, match="reads pictures, not text"):
        text_tokenizer(reads.run.source_side)


@pytest.mark.parametrize("kind", ["images", "speech"])
def test_classes_come_with_their_probabilities(kind: str) -> None:
    tells = translator(kind, labels=("cat", "dog", "emu"))
    given = image_bytes() if kind == "images" else audio_bytes()
    result = tells.translate(given, nbest=3)
    said = [(result.text, result.score), *((other.text, other.score) for other in result.alternatives)]
    assert sorted(text for text, _ in said) == ["cat", "dog", "emu"]
    assert [score for _, score in said] == sorted((score for _, score in said), reverse=True)
    assert np.isclose(sum(np.exp(score) for _, score in said), 1, atol=1e-5)
    assert tells.translate(given).alternatives == []


def test_each_language_has_its_own_beginning() -> None:
    says = translator("images", languages=("en", "de"))
    tokens = {to: says.translate(image_bytes(), to=to).tokens for to in ("en", "de")}
    for language, said in tokens.items():  # as training's targets begin, blank and all
        taught = says.run.target_side.encode([f"{LANGUAGE_SIGN.format(language)} a"])[0]
        sign = says.run.target_side.token(LANGUAGE_SIGN.format(language))
        assert sign in taught
        assert said[: taught.index(sign) + 1] == taught[: taught.index(sign) + 1]
    assert says.translate(image_bytes()).tokens == tokens["en"]
    assert "\uf8f1" not in says.translate(image_bytes(), to="de").text
    with pytest.raises(ValueError, match="there is no 'fr'; this model says it in en, de"):
        says.translate(image_bytes(), to="fr")
    seen = says.attend(image_bytes())
    sign = seen.target.labels.index("<en>")
    assert all(seen.target.special[: sign + 1])
    german = says.attend(image_bytes(), "ein hund", to="de")
    assert "<de>" in german.target.labels
    assert "<en>" not in german.target.labels


def test_what_was_looked_at_comes_with_what_it_was() -> None:
    reads = translator("images")
    seen = reads.attend(image_bytes())
    assert seen.source_media is not None
    assert seen.source_media.values.shape == (3, 32, 32)
    assert len(seen.source) == 64
    assert seen.source.unit == "cells"
    hears = translator("speech")
    heard = hears.attend(audio_bytes(), "one two")
    assert heard.source_media is not None
    assert heard.source_media.kind == "spectrogram"
    assert heard.source_media.audio.startswith(b"RIFF")
    assert heard.source.unit == "frames"
    assert 0.5 < heard.source_media.seconds < 2


@pytest.mark.parametrize("kind", ["images", "speech"])
@pytest.mark.parametrize("labels", [(), ("cat", "dog")])
def test_a_folder_keeps_all_of_it(tmp_path: Path, kind: str, labels: tuple[str, ...]) -> None:
    made = media_bundle(kind, labels=labels)
    save_bundle(tmp_path, made)
    assert not (tmp_path / "source.subwords").exists()
    again = load_bundle(tmp_path)
    assert again.description == made.description
    given = image_bytes() if kind == "images" else audio_bytes()
    opened = load(tmp_path)
    assert opened.results([given], Options())[0].text == predictor_from_bundle(made).results([given], Options())[0].text
    assert f"it reads {made.description.model.source.description}" in opened.engine_reason
    for mine, theirs in zip(again.model.parameters(), made.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
