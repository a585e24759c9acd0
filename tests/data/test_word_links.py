"""Word links: read, checked, and turned into alignment targets for pieces."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batch import load_batch
from regard.data.corpus import prepare
from regard.data.dataset_kinds.text_pairs import TextPairs
from regard.data.example import Example, Layout
from regard.data.input_validation import read_examples
from regard.data.readers import read_pairs
from regard.data.settings import DataSettings, SubwordSettings
from regard.data.word_links import alignment_targets, word_indices
from regard.models.settings import TextSource
from regard.special_tokens import PAD
from tests.data.files import write

pieces = st.lists(st.sampled_from(["▁a", "b", "▁", "▁cd", "e"]), min_size=1, max_size=12)


def read(folder: Path, links: str, source: str = "a b\nc d e\n", target: str = "x y\nz\n") -> list[Example]:
    paths = [(write(folder / name, text),) for name, text in (("s", source), ("t", target), ("links", links))]
    return list(read_examples(DataSettings(source=paths[0], target=paths[1], alignment=paths[2])))


@given(source=pieces, target=pieces, links=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_alignment_targets_are_spread_evenly_over_linked_pieces(
    source: list[str], target: list[str], links: set[tuple[int, int]]
) -> None:
    found = alignment_targets(np.array(sorted(links), np.int64).reshape(-1, 2), source, target)
    columns = word_indices(source)
    for row, word in zip(found, word_indices(target), strict=True):
        is_linked = [(column, word) in links for column in columns]
        assert row.tolist() == pytest.approx([one / max(1, sum(is_linked)) for one in is_linked])


def test_each_line_has_the_links_of_a_pair_and_may_be_empty(tmp_path: Path) -> None:
    assert [example.links for example in read(tmp_path, "0-0 1?1\n\n")] == [((0, 0), (1, 1)), ()]


def test_a_link_to_a_missing_word_is_a_problem_of_its_example(tmp_path: Path) -> None:
    assert [example.problem for example in read(tmp_path, "0-0 1-2\n2-0\n")] == [
        "a link to a word that is not there",
        "",
    ]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-0\n", "links has 1 lines, but .*s more: each pair needs a line of links"),
        ("0-0\n\n0-0\n", "links has 3 lines, but there are 2 pairs"),
        ("0-0\nx\n", "links, line 2: 'x' is no link, such as 3-5"),
        ("1-1 2-2\n1-1\n", "seems to count from 1; subtract 1"),
    ],
)
def test_a_malformed_file_is_refused(links: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, links)


def test_links_need_aligned_text_files(tmp_path: Path) -> None:
    pairs, links = write(tmp_path / "pairs.tsv", "a\tb\n"), write(tmp_path / "links", "0-0\n")
    assert list(read_pairs(pairs, Layout()))
    with pytest.raises(ValueError, match=r"data\.alignment: it goes with text files"):
        list(read_examples(DataSettings(pairs=(pairs,), alignment=(links,))))


@pytest.mark.parametrize("sampling", [0.0, 0.5])
def test_batches_have_alignment_targets_for_any_segmentation(sampling: float, tmp_path: Path) -> None:
    """Each target is the reversed source, linked accordingly; one pair is rejected, one has no links."""
    words = ["house", "garden", "water", "window", "yellow", "morning"]
    rng = np.random.default_rng(1)
    sentences = [[words[at] for at in rng.integers(0, 6, rng.integers(2, 6))] for _ in range(60)]
    links = [" ".join(f"{at}-{len(line) - 1 - at}" for at in range(len(line))) for line in sentences]
    sentences[3], links[3], links[5] = [], "0-0", ""
    subwords = SubwordSettings(size=320, sampling=sampling)
    settings = DataSettings(
        source=(write(tmp_path / "s", "".join(f"{' '.join(line)}\n" for line in sentences)),),
        target=(write(tmp_path / "t", "".join(f"{' '.join(line[::-1])}\n" for line in sentences)),),
        alignment=(write(tmp_path / "l", "".join(f"{line}\n" for line in links)),),
        subwords=subwords,
    )
    corpus = prepare(settings, tmp_path / "data", kind=TextPairs(), source=TextSource())
    assert sum(corpus.rejected.values()) == 1
    assert corpus.valid.word_links is None
    batch = load_batch(
        corpus, corpus.train, np.arange(len(corpus.train)), settings=DataSettings(subwords=subwords), key=7
    )
    assert batch.alignment is not None
    unlinked = 0
    for row, number in enumerate(batch.indices):
        source, target = (
            subwords_of.pieces(side[row][side[row] != PAD].tolist()[:-1])
            for side, subwords_of in ((batch.source, corpus.source_processor), (batch.labels, corpus.target_vocabulary))
        )
        target_words = corpus.train.texts(int(number))[1].split()
        found = batch.alignment[row].numpy()
        assert not found[len(target) :].any()
        assert not found[:, len(source) :].any()
        if not found.any():
            unlinked += 1
            continue
        for shares, word in zip(found, word_indices(target), strict=False):
            assert shares.sum() == pytest.approx(1)
            aligned = "".join(piece for piece, share in zip(source, shares, strict=False) if share)
            assert aligned == "▁" + target_words[word]
    assert unlinked == 1
