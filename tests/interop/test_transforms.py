"""Transforms of tensors: what each does, and that `export` inverts `load` bit by bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.interop.transforms import (
    ClassRows,
    Compose,
    FlipRows,
    Identity,
    JoinRows,
    OursOnly,
    PerTensor,
    RemoveBatchAxis,
    RepeatRows,
    RotaryRows,
    Sinusoids,
    SplitFirstRows,
    SplitHeads,
    SplitRows,
    SplitSinusoids,
    TensorError,
    TheirsOnly,
    Transform,
    Transpose,
    VocabularyRows,
    Zeros,
)
from regard.special_tokens import BOS, EOS, PAD, UNK

SPECIAL: list[tuple[int | None, ...]] = [
    (0, 1, 2, 3),
    (11, 1, 11, 0),  # BOS is PAD, as in Marian
    (None, None, 4, 4),  # no padding and no unknown token; BOS is EOS, as in GPT-2
    (7, 5, 3, 9, 2),  # with a mask token
]


def tokenizer(special: tuple[int | None, ...], size: int = 12) -> ImportedTokenizer:
    pieces = [f"piece{number}" for number in range(size)]
    return ImportedTokenizer.from_description(
        {"kind": "words", "size": size, "special": list(special), "pieces": pieces}
    )


# A transform, and the shapes of their tensors.
CASES: dict[str, tuple[Transform, tuple[tuple[int, ...], ...]]] = {
    "identity": (Identity(), ((3, 4),)),
    "transpose": (Transpose(), ((3, 4),)),
    "flip rows": (FlipRows(), ((2, 4),)),
    "remove batch axis": (RemoveBatchAxis(), ((1, 5),)),
    "class rows": (ClassRows(), ((3, 4),)),
    "class rows of a bias": (ClassRows(), ((3,),)),
    "repeat rows": (RepeatRows(), ((1, 4),)),
    "rotary rows": (RotaryRows(3), ((12, 5),)),
    "rotary rows of a bias": (RotaryRows(2), ((8,),)),
    "split rows": (SplitRows(3), ((6, 4),)),
    "split rows of a bias": (SplitRows(2), ((6,),)),
    "join rows": (JoinRows(2), ((3, 4), (3, 4))),
    "split first rows": (SplitFirstRows(2), ((7, 4),)),
    "split heads": (SplitHeads(2), ((12, 5),)),
    "split heads of a bias": (SplitHeads(2), ((12,),)),
    "each": (PerTensor((Transpose(), FlipRows())), ((3, 4), (2, 5))),
    "compose": (Compose((Transpose(), SplitRows(2))), ((3, 4),)),
    "fused rotary attention": (
        Compose((SplitHeads(2), PerTensor((RotaryRows(2), RotaryRows(2), Identity())))),
        ((24, 5),),
    ),
    **{f"vocabulary rows {special}": (VocabularyRows(tokenizer(special)), ((12, 3),)) for special in SPECIAL},
    "vocabulary rows of a bias": (
        Compose((RemoveBatchAxis(), VocabularyRows(tokenizer(SPECIAL[1])))),
        ((1, 12),),
    ),
    "ours only": (OursOnly(Zeros((2, 3))), ()),
}


def random_tensors(shapes: tuple[tuple[int, ...], ...], seed: int) -> list[Tensor]:
    """Random bits, including NaN and both zeros."""
    generator = np.random.default_rng(seed)
    return [
        torch.from_numpy(generator.integers(-(2**31), 2**31, shape, dtype=np.int32).view(np.float32))
        for shape in shapes
    ]


def bits(tensors: tuple[Tensor, ...] | list[Tensor]) -> list[tuple[tuple[int, ...], bytes]]:
    return [(tuple(tensor.shape), tensor.contiguous().numpy().tobytes()) for tensor in tensors]


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 2**32 - 1))
def test_export_inverts_load(name: str, seed: int) -> None:
    transform, shapes = CASES[name]
    theirs = random_tensors(shapes, seed)
    assert bits(transform.export(*transform.load(*theirs))) == bits(theirs)


@pytest.mark.parametrize("name", CASES)
def test_load_and_export_do_not_change_their_arguments(name: str) -> None:
    transform, shapes = CASES[name]
    theirs = random_tensors(shapes, 1)
    before = bits(theirs)
    ours = transform.load(*theirs)
    loaded = bits(ours)
    transform.export(*ours)
    assert bits(theirs) == before
    assert bits(ours) == loaded


def test_vocabulary_rows_are_in_the_order_of_our_tokens() -> None:
    rows = torch.arange(12.0)[:, None]
    (ours,) = VocabularyRows(tokenizer((7, 5, 3, 9))).load(rows)
    assert ours[[PAD, UNK, BOS, EOS], 0].tolist() == [7, 5, 3, 9]
    assert ours[EOS + 1 :, 0].tolist() == [0, 1, 2, 4, 6, 8, 10, 11]


def test_where_two_tokens_share_an_entry_of_theirs_end_is_exported() -> None:
    transform = VocabularyRows(tokenizer((None, None, 4, 4)))
    ours = transform.load(torch.zeros(12, 1))[0]
    ours[BOS], ours[EOS] = 1, 2
    assert transform.export(ours)[0][4, 0] == 2


def test_rotary_pairs_are_neighbors_in_ours_and_halves_of_a_head_in_theirs() -> None:
    theirs = torch.tensor([0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112])  # two heads, three frequencies
    (ours,) = RotaryRows(2).load(theirs)
    assert ours.tolist() == [0, 10, 1, 11, 2, 12, 100, 110, 101, 111, 102, 112]


def test_heads_of_queries_keys_and_values_are_separated() -> None:
    theirs = torch.tensor([11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34])  # head after head
    assert [each.tolist() for each in SplitHeads(2).load(theirs)] == [
        [11, 12, 13, 14],
        [21, 22, 23, 24],
        [31, 32, 33, 34],
    ]


def test_classes_come_after_the_special_tokens() -> None:
    (ours,) = ClassRows().load(torch.tensor([5.0, 6.0]))
    assert ours.tolist() == [0, 0, 0, 0, 5, 6]


def test_both_kinds_of_sinusoids_have_the_same_columns() -> None:
    ours, theirs = Sinusoids(9, 8).value(), SplitSinusoids(9, 8).value()
    torch.testing.assert_close(torch.cat([ours[:, ::2], ours[:, 1::2]], 1), theirs, rtol=0, atol=1e-7)


def test_a_table_that_only_one_side_has_is_added_or_removed() -> None:
    table = Sinusoids(5, 4).value()
    assert torch.equal(OursOnly(Sinusoids(5, 4)).load()[0], table)
    assert TheirsOnly(Sinusoids(5, 4)).load(table) == ()
    assert torch.equal(TheirsOnly(Sinusoids(5, 4)).export()[0], table)


def test_a_trained_tensor_that_theirs_lacks_is_rejected() -> None:
    with pytest.raises(TensorError, match="was trained"):
        OursOnly(Zeros((3,))).export(torch.tensor([0.0, 1e-9, 0.0]))


@pytest.mark.parametrize(
    ("transform", "shape", "message"),
    [
        (Transpose(), (3,), r"is \(3,\); a matrix was expected"),
        (SplitRows(3), (7, 2), "has 7 rows; a multiple of 3 was expected"),
        (SplitHeads(2), (9,), "a multiple of 6"),
        (RotaryRows(3), (9,), "a multiple of 6"),
        (SplitFirstRows(2), (2, 4), "more than 2"),
        (VocabularyRows(tokenizer(SPECIAL[0])), (11, 3), r"has 11 entries.* 12"),
        (VocabularyRows(tokenizer(SPECIAL[0])), (), r"has 0 entries"),
    ],
)
def test_a_tensor_that_does_not_fit_is_an_error(transform: Transform, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(TensorError, match=message):
        transform.load(torch.zeros(shape))
