"""Corpora of images, recordings and classes."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.batch import load_batch
from regard.data.corpus import Corpus, prepare, reopen
from regard.data.dataset_kinds.label_pairs import LabelPairs
from regard.data.dataset_kinds.text_pairs import TextPairs
from regard.data.settings import AugmentSettings, DataSettings, SubwordSettings
from regard.data.targets.labels import Labels
from regard.models.settings import AudioSource, ImageSource, SourceSettings, TextSource
from regard.special_tokens import BOS, PAD
from tests.media import audio_bytes, sample_image

IMAGES = ImageSource(size=32)
SPEECH = AudioSource(sample_rate=8000, mel_bins=16)
SMALL = SubwordSettings(kind="word", size=300)


def prepare_corpus(tmp_path: Path, files: Any, source: SourceSettings, *, labels: bool = False, **more: Any) -> Corpus:
    settings = DataSettings(pairs=files, subwords=SMALL, **more)
    return prepare(settings, tmp_path / "corpus", source=source, kind=LabelPairs() if labels else TextPairs())


def save_images(folder: Path, count: int) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number}.png" for number in range(count)]
    for number, name in enumerate(names):
        sample_image(number).save(folder / name)
    return names


def rejected_records(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "corpus" / "rejected.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_image_with_several_captions_is_stored_once_and_in_one_split(tmp_path: Path) -> None:
    names = save_images(tmp_path / "img", 8)
    table = tmp_path / "captions.jsonl"
    records = [{"image": name, "captions": [f"one {name}", f"two {name}", f"three {name}"]} for name in names]
    table.write_text("".join(json.dumps(record) + "\n" for record in records))
    corpus = prepare_corpus(tmp_path, table, IMAGES, media=tmp_path / "img", valid_size=3)
    assert len(corpus.train) + len(corpus.valid) == 24
    assert len(corpus.train.source) == 8
    splits = [{pairs.texts(n)[0] for n in range(len(pairs))} for pairs in (corpus.train, corpus.valid)]
    assert not splits[0] & splits[1]
    array, target = corpus.train.tokens(0)
    assert array.shape == (3, 32, 32)
    assert corpus.target_vocabulary.decode([target])[0] == corpus.train.texts(0)[1]


def test_two_files_with_the_same_image_are_one_source(tmp_path: Path) -> None:
    folder = tmp_path / "img"
    names = save_images(folder, 12)
    (folder / "copy.png").write_bytes((folder / "3.png").read_bytes())
    table = folder / "table.tsv"
    table.write_text("file\tcaption\n" + "".join(f"{name}\ta {name}\n" for name in [*names, "copy.png"]))
    corpus = prepare_corpus(tmp_path, table, IMAGES, valid_size=6)
    valid = {corpus.valid.texts(n)[0] for n in range(len(corpus.valid))}
    assert ("3.png" in valid) == ("copy.png" in valid)


def test_unreadable_images_are_rejected_with_their_reason(tmp_path: Path) -> None:
    folder = tmp_path / "img"
    names = save_images(folder, 6)
    (folder / "broken.png").write_bytes(b"no picture")
    (tmp_path / "secret.png").write_bytes((folder / "0.png").read_bytes())
    table = folder / "t.csv"
    more = ["broken.png", "gone.png", "../secret.png", str(tmp_path / "secret.png")]
    table.write_text("image,caption\n" + "".join(f"{name},something\n" for name in [*names, *more]))
    corpus = prepare_corpus(tmp_path, table, IMAGES, valid_size=1)
    assert len(corpus.train) + len(corpus.valid) == 6
    reasons = {record["source"]: record["reason"] for record in rejected_records(tmp_path)}
    assert "not a picture" in reasons["broken.png"]
    assert "no such file" in reasons["gone.png"]
    assert reasons["../secret.png"].startswith("it lies outside")
    assert reasons[str(tmp_path / "secret.png")].startswith("it lies outside")


def test_a_table_without_any_of_its_files_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("file\tcaption\n" + "".join(f"{number}.png\tsomething\n" for number in range(40)))
    with pytest.raises(ValueError, match=r"not one of its first sources can be read.*--media"):
        prepare_corpus(tmp_path, table, IMAGES)


def test_a_folder_with_one_folder_per_class(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        save_images(tmp_path / "set" / label, 6)
    save_images(tmp_path / "set" / ".hidden", 2)
    (tmp_path / "set" / "cat" / "notes.txt").write_text("nothing")
    for number, path in enumerate(sorted((tmp_path / "set").rglob("*.png"))):
        sample_image(100 + number).save(path)  # all different
    corpus = prepare_corpus(tmp_path, tmp_path / "set", IMAGES, labels=True, valid_size=2)
    assert isinstance(corpus.target_vocabulary, Labels)
    assert corpus.target_vocabulary.labels == ("cat", "dog")
    assert len(corpus.train) + len(corpus.valid) == 12
    batch = load_batch(corpus, corpus.train, np.arange(3))
    assert batch.labels.shape == (3, 1)
    assert (batch.decoder_input == BOS).all()
    assert batch.source.shape == (3, 3, 32, 32)


def test_a_folder_without_class_folders_is_refused(tmp_path: Path) -> None:
    save_images(tmp_path / "set", 2)
    with pytest.raises(ValueError, match="a folder for each class"):
        prepare_corpus(tmp_path, tmp_path / "set", IMAGES, labels=True)


def idx(values: Any) -> bytes:
    shape = values.shape
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + values.astype(np.uint8).tobytes()


@pytest.mark.parametrize("gzipped", [True, False])
def test_idx_files_such_as_mnist(tmp_path: Path, gzipped: bool) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 28, 28))
    ending, write = (".gz", gzip.compress) if gzipped else ("", bytes)
    images, labels = tmp_path / f"train-images-idx3-ubyte{ending}", tmp_path / f"train-labels-idx1-ubyte{ending}"
    images.write_bytes(write(idx(pixels)))
    labels.write_bytes(write(idx(np.arange(30) % 3)))
    settings = DataSettings(source=(images,), target=(labels,), valid_size=5)
    corpus = prepare(settings, tmp_path / "corpus", source=ImageSource(size=28, color=False), kind=LabelPairs())
    assert isinstance(corpus.target_vocabulary, Labels)
    assert corpus.target_vocabulary.labels == ("0", "1", "2")
    number = int(corpus.train.texts(0)[0].split("#")[1]) - 1
    assert np.array_equal(corpus.train.tokens(0)[0][0], pixels[number])
    images.write_bytes(write(idx(pixels)[:2000]))
    with pytest.raises(ValueError, match="cut short after"):
        prepare(settings, tmp_path / "again", source=ImageSource(size=28, color=False), kind=LabelPairs())
    images.write_bytes(write(b"nothing like it at all"))
    with pytest.raises(ValueError, match="not an IDX file of pictures"):
        prepare(settings, tmp_path / "again", source=ImageSource(size=28, color=False), kind=LabelPairs())


def test_recordings_are_batched_and_a_corpus_is_reopened(tmp_path: Path) -> None:
    rows = ["path\tsentence"]
    for number in range(6):
        (tmp_path / f"{number}.wav").write_bytes(audio_bytes(seed=number))
        rows.append(f"{number}.wav\tone two number {number}")
    table = tmp_path / "t.tsv"
    table.write_text("\n".join(rows) + "\n")
    corpus = prepare_corpus(tmp_path, table, SPEECH, valid_size=2)
    batch = load_batch(corpus, corpus.train, np.arange(3))
    assert batch.source.shape[::2] == (3, 16)
    assert batch.mask.shape == batch.source.shape[:2]
    again = reopen(tmp_path / "corpus", kind=TextPairs(), source=SPEECH)
    assert again is not None
    assert np.array_equal(again.train.tokens(1)[0], corpus.train.tokens(1)[0])


def test_augmentation_is_a_function_of_the_key_and_off_in_validation(tmp_path: Path) -> None:
    names = save_images(tmp_path / "img", 6)
    table = tmp_path / "img" / "t.tsv"
    table.write_text("file\tcaption\n" + "".join(f"{name}\ta {name}\n" for name in names))
    corpus = prepare_corpus(tmp_path, table, IMAGES, valid_size=1)
    numbers = np.arange(4)

    def batch(key: int, **options: Any) -> Any:
        augmented = DataSettings(augment=AugmentSettings(**options))
        return load_batch(corpus, corpus.train, numbers, settings=augmented, key=key).source.numpy()

    plain = load_batch(corpus, corpus.train, numbers).source.numpy()
    assert np.array_equal(batch(1), batch(1))
    assert not np.allclose(batch(1), batch(2))
    assert not np.allclose(batch(1), plain)
    nothing = {"shift": 0, "zoom": 0, "rotation": 0, "brightness": 0}
    assert np.array_equal(batch(1, **nothing), plain)
    flipped = [batch(key, **nothing, flip=True) for key in range(6)]
    assert any(np.allclose(one[0], plain[0][..., ::-1], atol=1e-5) for one in flipped)


def test_spec_augment_masks_at_most_the_set_share(tmp_path: Path) -> None:
    import torch

    from regard.data.augmentation import spec_augment

    frames = torch.ones(5, 50, 16)
    mask = torch.arange(50)[None] < torch.tensor([50, 40, 30, 20, 10])[:, None]
    augment_settings = AugmentSettings(time_masks=1, time_width=0.5, frequency_masks=1, frequency_width=0.5)
    found = spec_augment(frames, mask, augment_settings, 3)
    assert torch.equal(found, spec_augment(frames, mask, augment_settings, 3))
    masked = (found == 0).float().mean((1, 2))
    assert (masked <= 0.76).all()
    assert (masked > 0).any()
    assert (frames == 1).all()


def test_labels_keep_their_case_and_unknown_labels_are_rejected(tmp_path: Path) -> None:
    table, valid = tmp_path / "t.tsv", tmp_path / "v.tsv"
    table.write_text("label\ttext\n" + "".join(f"{'ABBR' if n % 2 else 'Num'}\tQuestion {n} ?\n" for n in range(12)))
    valid.write_text("label\ttext\nABBR\tAnother one ?\nOTHER\tWhat is this ?\n")
    corpus = prepare_corpus(tmp_path, table, TextSource(), labels=True, valid_pairs=valid, lowercase=True)
    assert isinstance(corpus.target_vocabulary, Labels)
    assert corpus.target_vocabulary.labels == ("ABBR", "Num")
    assert len(corpus.valid) == 1
    assert corpus.valid.texts(0) == ("another one ?", "ABBR")
    assert [record["reason"] for record in rejected_records(tmp_path)] == ["a label that training has not"]


def test_texts_given_as_labels_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("".join(f"source {n}\tx\n" for n in range(5)))
    with pytest.raises(ValueError, match="nothing can be learned"):
        prepare_corpus(tmp_path, table, TextSource(), labels=True)
    table.write_text("".join(f"source {n}\ttarget {n}\n" for n in range(10_050)))
    with pytest.raises(ValueError, match=r"10,050 different labels.*these are texts"):
        prepare_corpus(tmp_path, table, TextSource(), labels=True)


def test_a_long_source_is_truncated_if_set(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("".join(f"{'word ' * 400}{n}\tshort {n}\n" for n in range(6)))
    with pytest.raises(ValueError, match="no training example is left"):
        prepare_corpus(tmp_path, table, TextSource(), max_tokens=64, unusual_ratio=1e9)
    corpus = prepare_corpus(
        tmp_path, table, TextSource(), max_tokens=64, truncate=True, unusual_ratio=1e9, valid_size=1
    )
    assert len(corpus.train.tokens(0)[0]) == 64
    assert PAD not in corpus.train.tokens(0)[0]
