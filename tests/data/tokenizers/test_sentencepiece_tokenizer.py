"""Any text can be encoded and decoded again, and random segmentations are a function of their key."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.data.settings import SubwordSettings
from regard.data.tokenizers import load_tokenizer
from regard.data.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer, train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.special_tokens import BOS, EOS, PAD, UNK

KINDS = ["bpe", "unigram", "character", "word"]
TEXT = [
    "the cat sat on the mat and looked at the other cats",
    "der Hund saß auf der Matte und sah die anderen Hunde an",
    "猫がマットの上に座った",
    "once upon a time there was a lonely house on the hill",
    "another time there were other houses on other hills",
]


def settings(kind: str, sampling: float = 0.0) -> SubwordSettings:
    return SubwordSettings.parse({"kind": kind, "sampling": sampling})


@pytest.fixture(scope="module")
def vocabularies() -> dict[str, SubwordTokenizer]:
    return {kind: train_tokenizer(TEXT, settings(kind), 400) for kind in KINDS}


# Any text but line ends and ▁, which sentencepiece uses for spaces.
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\t\u2028\u2029▁"), max_size=30
) | st.text(st.sampled_from("the cat  sß猫\u3000\u00a0<>/0x4unkpad"), max_size=30)


def normalize_spaces(text: str) -> str:
    return " ".join(word for word in text.split(" ") if word)


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
@example(text="<s> </s> <unk> <pad> <0x41> <0x0A>")
@example(text="never 見た Zürich 🦉 \x00 e\u0301 ﷽")
@example(text="\u3000猫\u3000")
def test_decoding_restores_the_text(kind: str, text: str, vocabularies: dict[str, SubwordTokenizer]) -> None:
    subwords = vocabularies[kind]
    (tokens,) = subwords.encode([text])
    assert not {PAD, UNK, BOS, EOS} & set(tokens)
    assert all(0 <= token < len(subwords) for token in tokens)
    assert subwords.decode([tokens]) == [normalize_spaces(text)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "lines", [["a"], ["a b"], ["日本"], ["1"], ["aaaa"] * 3, ["🦉"], ["the cat", "le chat"]], ids=str
)
def test_tiny_corpora_work(kind: str, lines: list[str]) -> None:
    subwords = train_tokenizer(lines, settings(kind), 8000)
    assert 260 <= len(subwords) <= 300
    assert subwords.decode(subwords.encode([*lines, "other wörds"])) == [*lines, "other wörds"]


@pytest.mark.parametrize("kind", KINDS)
def test_more_characters_than_tokens_work(kind: str) -> None:
    lines = [chr(0x4E00 + at) * 2 + chr(0x4E01 + at) for at in range(1500)]
    subwords = train_tokenizer(lines, settings(kind), 300)
    assert subwords.decode(subwords.encode(lines[:50])) == lines[:50]


def test_the_vocabulary_has_the_requested_size() -> None:
    assert len(train_tokenizer(TEXT * 3, settings("bpe"), 340)) == 340


def test_training_without_text_is_refused() -> None:
    for lines in ([], ["", ""]):
        with pytest.raises(ValueError, match=r"there is no text to learn subwords from\."):
            train_tokenizer(lines, settings("bpe"), 1000)


def test_special_tokens_are_left_out_when_decoding(vocabularies: dict[str, SubwordTokenizer]) -> None:
    subwords = vocabularies["bpe"]
    (tokens,) = subwords.encode(["the cat"])
    assert subwords.decode([[BOS, *tokens, EOS, PAD, PAD], [], [EOS]]) == ["the cat", "", ""]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_is_the_same(kind: str, vocabularies: dict[str, SubwordTokenizer], tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(vocabularies[kind].model)
    loaded = load_tokenizer(tmp_path / "s")
    assert len(loaded) == len(vocabularies[kind])
    assert loaded.encode([*TEXT, "else"]) == vocabularies[kind].encode([*TEXT, "else"])


def test_training_is_reproducible() -> None:
    assert train_tokenizer(TEXT, settings("bpe"), 350).model == train_tokenizer(TEXT, settings("bpe"), 350).model


def test_a_damaged_file_is_refused_naming_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"{tmp_path}/none: there is no such file\."):
        load_tokenizer(tmp_path / "none")
    (tmp_path / "broken").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=rf"{tmp_path}/broken: the subword model is damaged"):
        load_tokenizer(tmp_path / "broken")


# Subword sampling


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=texts, key=st.integers(-(2**70), 2**70), rate=st.sampled_from([0.1, 0.5, 0.9]))
def test_samples_decode_to_the_same_text(
    kind: str, text: str, key: int, rate: float, vocabularies: dict[str, SubwordTokenizer]
) -> None:
    subwords = SentencePieceTokenizer(vocabularies[kind].model)
    (tokens,) = subwords.sample([text], settings(kind, rate), key)
    assert not {PAD, UNK, BOS, EOS} & set(tokens)
    assert subwords.decode([tokens]) == [normalize_spaces(text)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_is_a_function_of_the_key(kind: str, vocabularies: dict[str, SubwordTokenizer]) -> None:
    sampling = settings(kind, 0.5)
    first = {key: vocabularies[kind].sample(TEXT, sampling, key) for key in (0, 1, -1, 2**32 - 1, 2**64 - 1)}
    fresh = SentencePieceTokenizer(vocabularies[kind].model)  # called in another order, after other texts
    fresh.sample(["something else", "altogether"], sampling, 77)
    for key, sample in reversed(first.items()):
        assert fresh.sample(TEXT, sampling, key) == sample
    assert first[0] != first[1]
    assert first[0] != vocabularies[kind].encode(TEXT)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_is_the_same_in_every_process(
    kind: str, vocabularies: dict[str, SubwordTokenizer], tmp_path: Path
) -> None:
    (tmp_path / "s").write_bytes(vocabularies[kind].model)
    program = (
        "import sys, pathlib; from regard.data.settings import SubwordSettings; "
        "from regard.data.tokenizers import load_tokenizer\n"
        f"settings = SubwordSettings(kind={kind!r}, sampling=0.5)\n"
        f"print(load_tokenizer(pathlib.Path(sys.argv[1])).sample(['the other houses'] * 4, settings, 5))"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "s"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert process.stdout.strip() == str(vocabularies[kind].sample(["the other houses"] * 4, settings(kind, 0.5), 5))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_follows_the_settings_of_each_call(kind: str, vocabularies: dict[str, SubwordTokenizer]) -> None:
    subwords = SentencePieceTokenizer(vocabularies[kind].model)
    some, many = settings(kind, 0.05), settings(kind, 0.9)
    after = [subwords.sample(TEXT, some, 3), subwords.sample(TEXT, many, 3)][1]
    assert after == SentencePieceTokenizer(vocabularies[kind].model).sample(TEXT, many, 3)


def test_more_dropout_gives_more_pieces(vocabularies: dict[str, SubwordTokenizer]) -> None:
    lengths = []
    for rate in (1e-12, 0.2, 0.5, 0.99):
        subwords = SentencePieceTokenizer(vocabularies["bpe"].model)
        lengths.append(
            sum(len(tokens) for key in range(9) for tokens in subwords.sample(TEXT, settings("bpe", rate), key))
        )
    assert lengths == sorted(set(lengths))


def test_bpe_dropout_of_zero_is_plain_bpe(vocabularies: dict[str, SubwordTokenizer]) -> None:
    text = [*TEXT, "hathouse matther unusual Zürich", ""]
    assert vocabularies["bpe"].encode(text) == SentencePieceTokenizer(vocabularies["bpe"].model).sample(
        text, settings("bpe", 1e-12), 1
    )


def test_unigram_samples_follow_their_probabilities() -> None:
    """With a small vocabulary: how often "ab" is one piece instead of two is given by p to the power of alpha."""
    from regard.data.tokenizers.subword_sampling import SubwordSampler

    pieces = {"▁": (0, -1.0), "a": (1, -1.0), "b": (2, -1.5), "ab": (3, -2.0)}
    sampler = SubwordSampler(pieces, range(10, 266), merges=False, rate=0.5)
    words = [f"ab{'ab' * (at % 7)}" for at in range(3000)]
    samples = [sampler._segment("▁" + word, at) for at, word in enumerate(words)]
    count = sum(len(word) // 2 for word in words)
    whole = sum(sample.count(3) for sample in samples)
    odds = math.exp(0.5 * -2.0) / (math.exp(0.5 * -2.0) + math.exp(0.5 * -2.5))
    assert abs(whole / count - odds) < 4 * (odds * (1 - odds) / count) ** 0.5


@pytest.mark.parametrize("kind", ["character", "word"])
def test_characters_and_words_have_only_one_segmentation(kind: str, vocabularies: dict[str, SubwordTokenizer]) -> None:
    assert vocabularies[kind].sample(TEXT, settings(kind, 0.5), 9) == vocabularies[kind].encode(TEXT)
