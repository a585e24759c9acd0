"""Another project's vocabulary: its own cutting of text, its entries in regard's order.

Hugging Face's `tokenizers` does the cutting for WordPiece and byte-level BPE; sentencepiece for Marian, whose pieces
are numbered by a list of their own. regard's special entries come first, and may be one and the same entry there:
Marian begins with its padding, GPT-2 with its end.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from regard.data.settings import SubwordSettings
from regard.data.tokenizers.subwords import SPACE, Subwords
from regard.errors import RegardError
from regard.special_tokens import BEGIN, END, MASK, MASK_SIGN, PAD, UNKNOWN

NAMES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")  # what the special entries look like here
LARGEST = 1 << 20  # entries


class Borrowed(Subwords):
    """A vocabulary in a JSON file: `kind`, `special` (which of their entries stand for ours), `size`, and how text is
    cut: a `tokenizer` as Hugging Face writes it, or a sentencepiece `model` with its `pieces`."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self.about: dict[str, Any] = _checked(json.loads(model))
        self._cutter = _cutter(self.about)
        self.keeps_blanks = bool(self.about.get("keeps_blanks", False))
        special: list[int | None] = self.about["special"]
        taken = {entry for entry in special if entry is not None}
        left = [at for at in range(self.about["size"]) if at not in taken]
        # Ours by place: first the special ones, then all that are left, in their own order.
        self.entries = np.array([*(0 if entry is None else entry for entry in special), *left], np.int64)
        self.missing = [ours for ours, entry in enumerate(special) if entry is None]
        self._ours = np.full(self.about["size"], UNKNOWN, np.int64)
        self._ours[left] = np.arange(len(special), len(self.entries))
        for ours in (PAD, BEGIN, MASK, UNKNOWN, END):  # of several that are one entry there the last
            if ours < len(special) and special[ours] is not None:
                self._ours[special[ours]] = ours

    def __len__(self) -> int:
        return len(self.entries)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text, without beginning and end."""
        if self.about["mask"]:
            texts = [text.replace(MASK_SIGN, self.about["mask"]) for text in texts]
        return [self._ours[np.array(each, np.int64)].tolist() if each else [] for each in self._cutter.cut(list(texts))]

    def offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokens of a text, and where each lies in it, the blank before a word left out. Raises RegardError."""
        entries, places = self._cutter.placed(text)
        trimmed = [(min(a + int(text[a:b].startswith(" ")), b), b) for a, b in places]
        return self._ours[np.array(entries, np.int64)].tolist() if entries else [], trimmed

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """The same: it is cut in one way only."""
        return self.encode(texts)

    def theirs(self, tokens: Iterable[int]) -> list[int]:
        """The numbers that these tokens have there."""
        return [int(self.entries[token]) for token in tokens]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Text of each sequence; padding, beginning and end are left out."""
        left_out = (PAD, BEGIN, END)
        return [self._cutter.text(self.theirs(t for t in each if t not in left_out)) for each in tokens]

    def token(self, piece: str) -> int | None:
        """The token that looks like this, if there is one."""
        return self._tokens.get(piece)

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """What each token looks like, ▁ at a word's beginning."""
        return [self._pieces[int(token)] for token in tokens]

    @cached_property
    def _pieces(self) -> list[str]:
        special = len(self.about["special"])
        return [*NAMES[:special], *(self._cutter.piece(int(entry)) for entry in self.entries[special:])]

    @cached_property
    def _tokens(self) -> dict[str, int]:
        return {piece: token for token, piece in reversed(list(enumerate(self._pieces)))}

    @cached_property
    def word_starts(self) -> NDArray[np.bool_]:
        """Which tokens begin a word."""
        return np.array([piece.startswith(SPACE) for piece in self._pieces])


def as_file(about: dict[str, Any]) -> bytes:
    """What a vocabulary is made from."""
    return json.dumps(about, ensure_ascii=False).encode()


def _checked(about: Any) -> dict[str, Any]:
    """Raises RegardError if this describes no vocabulary."""
    wrong = ValueError("it is no vocabulary of another project.")
    if not isinstance(about, dict) or about.get("kind") not in (
        "wordpiece",
        "bytes",
        "metaspace",
        "sentencepiece",
        "words",
    ):
        raise wrong
    size, special = about.get("size"), about.get("special")
    if not isinstance(size, int) or not 0 < size <= LARGEST or not isinstance(special, list):
        raise wrong
    if len(special) not in (MASK, MASK + 1) or not all(
        entry is None or (isinstance(entry, int) and 0 <= entry < size) for entry in special
    ):
        raise wrong
    about.setdefault("mask", None)
    return about


def _cutter(about: dict[str, Any]) -> "_Tokenizer | _Pieces | _Words":
    if about["kind"] == "words":
        return _Words(about)
    return _Pieces(about) if about["kind"] == "sentencepiece" else _Tokenizer(about)


class _Tokenizer:
    """Of Hugging Face's package."""

    def __init__(self, about: dict[str, Any]) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise RegardError(
                "this model's vocabulary needs the package tokenizers: pip install 'regard[interop]'."
            ) from None
        try:
            self._tokenizer = Tokenizer.from_str(json.dumps(about["tokenizer"]))
        except Exception as error:  # the package raises nothing more precise
            raise RegardError(f"the vocabulary is damaged: tokenizers cannot read it ({error}).") from None
        if self._tokenizer.get_vocab_size() > about["size"]:
            raise RegardError("the vocabulary has more entries than it says.")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._kind = about["kind"]
        self._mask = about["mask"]
        added = self._tokenizer.get_added_tokens_decoder().values()
        self._marks = [str(each.content) for each in added if each.special and each.content != self._mask]

    def cut(self, texts: list[str]) -> list[list[int]]:
        found = [each.ids for each in self._tokenizer.encode_batch(texts, add_special_tokens=False)]
        for number, text in enumerate(texts):
            if any(mark in text for mark in self._marks):
                found[number] = self._as_text(text)
        return found

    @cached_property
    def _unmarked(self) -> Any:
        """The same, to which nothing in a text is a mark. Another one, since others may be cutting just now."""
        other = type(self._tokenizer).from_str(self._tokenizer.to_str())
        other.encode_special_tokens = True
        return other

    def _as_text(self, text: str) -> list[int]:
        """Of a text in which somebody wrote what looks like a mark: it is text, and only a gap is one."""
        parts = text.split(self._mask) if self._mask else [text]
        cut = [self._unmarked.encode(part, add_special_tokens=False).ids for part in parts]
        gap: int | None = self._tokenizer.token_to_id(self._mask) if self._mask else None
        return [*cut[0], *(entry for part in cut[1:] for entry in (gap, *part) if entry is not None)]

    def placed(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        cut = self._unmarked.encode(text, add_special_tokens=False)
        return cut.ids, cut.offsets

    def text(self, entries: list[int]) -> str:
        text: str = self._tokenizer.decode(entries, skip_special_tokens=False)
        return text

    def piece(self, entry: int) -> str:
        raw = self._tokenizer.id_to_token(entry)
        if raw is None:  # a row of the table that no text can have
            return f"<{entry}>"
        if self._kind == "metaspace":
            return str(raw)
        if self._kind == "wordpiece":
            return raw[2:] if raw.startswith("##") else SPACE + raw
        try:
            said = bytes(_BYTE[letter] for letter in raw).decode()
        except (KeyError, UnicodeDecodeError):
            return str(raw)
        return said.replace(" ", SPACE)


class _Pieces:
    """Of sentencepiece, numbered by a list."""

    def __init__(self, about: dict[str, Any]) -> None:
        try:
            model = base64.b64decode(about["model"], validate=True)
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError, KeyError, TypeError):
            raise RegardError("the vocabulary is damaged: sentencepiece cannot read it.") from None
        if not len(model) or not self._processor.get_piece_size():
            raise RegardError("the vocabulary is damaged: its sentencepiece model is empty.")
        self._list = _listed(about)
        self._numbers = {piece: number for number, piece in enumerate(self._list)}
        self._unknown = about["special"][UNKNOWN]

    def cut(self, texts: list[str]) -> list[list[int]]:
        cut = self._processor.encode(texts, out_type=str)
        return [[self._numbers.get(piece, self._unknown) for piece in each] for each in cut]

    def placed(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        raise RegardError("this vocabulary does not tell where its pieces lie in a text, which spans of it need.")

    def text(self, entries: list[int]) -> str:
        said = [self._list[entry] for entry in entries]
        text: str = self._processor.decode_pieces(said)
        return text.replace(SPACE, " ").strip(" ")

    def piece(self, entry: int) -> str:
        return self._list[entry]


class _Words:
    """Texts that are cut already, with blanks between their pieces; a piece that goes on in the next ends in @@, as
    subword-nmt has it (Sennrich et al. 2016)."""

    def __init__(self, about: dict[str, Any]) -> None:
        self._list = _listed(about)
        self._numbers = {piece: number for number, piece in enumerate(self._list)}
        self._unknown = about["special"][UNKNOWN]

    def cut(self, texts: list[str]) -> list[list[int]]:
        return [[self._numbers.get(piece, self._unknown) for piece in text.split()] for text in texts]

    def placed(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        places, at = [], 0
        for piece in text.split():
            begin = text.index(piece, at)
            at = begin + len(piece)
            places.append((begin, at))
        return self.cut([text])[0], places

    def text(self, entries: list[int]) -> str:
        said = " ".join(
            piece for piece in (self._list[entry] for entry in entries) if piece not in ("<s>", "<pad>", "</s>")
        )
        return (said + " ").replace("@@ ", "").strip(" ")

    def piece(self, entry: int) -> str:
        return SPACE + self._list[entry]


def _listed(about: dict[str, Any]) -> list[str]:
    pieces = about.get("pieces")
    if not isinstance(pieces, list) or len(pieces) != about["size"]:
        raise RegardError("the vocabulary has other entries than it says.")
    return [str(piece) for piece in pieces]


def _letters() -> dict[str, int]:
    """The byte that each letter of byte-level BPE stands for (Radford et al. 2019): printable ones for themselves, the
    others, in order, for letters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}


_BYTE = _letters()
