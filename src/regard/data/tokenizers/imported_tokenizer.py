"""Tokenizers imported from other projects: their own segmentation, their vocabulary in regard's order.

Hugging Face's `tokenizers` segments for WordPiece and byte-level BPE, sentencepiece for Marian, whose pieces are
numbered by a list of their own. regard's special tokens come first; several of them may be one entry of the original
vocabulary: Marian begins with its padding, GPT-2 with its end token.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import sentencepiece

from regard.data.settings import SubwordSettings
from regard.data.tokenizers.tokenizer import SPACE, SubwordTokenizer
from regard.errors import RegardError
from regard.special_tokens import BOS, EOS, MASK, MASK_CHARACTER, PAD, UNK

SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
KINDS = ("wordpiece", "bytes", "metaspace", "sentencepiece", "words")
MAX_VOCABULARY = 1 << 20


class ImportedTokenizer(SubwordTokenizer):
    """A tokenizer described by a JSON object.

    `kind` is one of KINDS, `size` the size of the original vocabulary, `special` the original id of each of regard's
    special tokens, or null. Text is segmented by a `tokenizer` as Hugging Face writes it, by a sentencepiece `model`
    with its `pieces`, or at spaces. `missing`: special tokens without an original id.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        try:
            description = json.loads(model)
        except (ValueError, RecursionError):
            description = None
        self.description: dict[str, Any] = _validated(description)
        self._backend = _backend(self.description)
        self.keeps_whitespace = bool(self.description.get("keeps_whitespace", False))
        special: list[int | None] = self.description["special"]
        taken = {original for original in special if original is not None}
        rest = [original for original in range(self.description["size"]) if original not in taken]
        # The original id of each of our tokens: first the special ones, then the rest in their own order.
        self.original_ids = np.array([*(0 if original is None else original for original in special), *rest], np.int64)
        self.missing = [token for token, original in enumerate(special) if original is None]
        self._token_ids = np.full(self.description["size"], UNK, np.int64)  # by original id
        self._token_ids[rest] = np.arange(len(special), len(self.original_ids))
        for token in (PAD, BOS, MASK, UNK, EOS):  # where several share one original id, the last wins
            if token < len(special) and special[token] is not None:
                self._token_ids[special[token]] = token

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """A tokenizer from its description instead of from its file's content."""
        return cls(json.dumps(description, ensure_ascii=False).encode())

    def __len__(self) -> int:
        return len(self.original_ids)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        if self.description["mask"]:
            texts = [text.replace(MASK_CHARACTER, self.description["mask"]) for text in texts]
        return [self._tokens_of(each) for each in self._backend.encode(list(texts))]

    def _tokens_of(self, original_ids: list[int]) -> list[int]:
        return self._token_ids[np.array(original_ids, np.int64)].tolist() if original_ids else []

    def offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        original_ids, spans = self._backend.encode_with_offsets(text)
        trimmed = [(min(a + int(text[a:b].startswith(" ")), b), b) for a, b in spans]
        return self._tokens_of(original_ids), trimmed

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """The same as `encode`: there is only one segmentation."""
        return self.encode(texts)

    def to_original_ids(self, tokens: Iterable[int]) -> list[int]:
        """The ids of these tokens in the original vocabulary."""
        return [int(self.original_ids[token]) for token in tokens]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        left_out = (PAD, BOS, EOS)
        return [self._backend.decode(self.to_original_ids(t for t in each if t not in left_out)) for each in tokens]

    def token(self, piece: str) -> int | None:
        return self._tokens_by_piece.get(piece)

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        return [self._pieces[int(token)] for token in tokens]

    @cached_property
    def _pieces(self) -> list[str]:
        special = len(self.description["special"])
        rest = (self._backend.piece(int(original)) for original in self.original_ids[special:])
        return [*SPECIAL_PIECES[:special], *rest]

    @cached_property
    def _tokens_by_piece(self) -> dict[str, int]:
        return {piece: token for token, piece in reversed(list(enumerate(self._pieces)))}


def _validated(description: Any) -> dict[str, Any]:
    """Raises RegardError if this does not describe a tokenizer."""
    invalid = RegardError("it is no vocabulary of another project.")
    if not isinstance(description, dict) or description.get("kind") not in KINDS:
        raise invalid
    size, special = description.get("size"), description.get("special")
    if not isinstance(size, int) or not 0 < size <= MAX_VOCABULARY or not isinstance(special, list):
        raise invalid
    if len(special) not in (MASK, MASK + 1) or not all(
        original is None or (isinstance(original, int) and 0 <= original < size) for original in special
    ):
        raise invalid
    description.setdefault("mask", None)
    return description


class _Backend(Protocol):
    """What segments text, in original ids."""

    def encode(self, texts: list[str]) -> list[list[int]]: ...
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]: ...
    def decode(self, original_ids: list[int]) -> str: ...
    def piece(self, original_id: int) -> str:
        """With ▁ where a word begins."""
        ...


def _backend(description: dict[str, Any]) -> _Backend:
    if description["kind"] == "words":
        return _WhitespaceBackend(description)
    if description["kind"] == "sentencepiece":
        return _SentencePieceBackend(description)
    return _HuggingFaceBackend(description)


class _HuggingFaceBackend:
    """The package `tokenizers`."""

    def __init__(self, description: dict[str, Any]) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise RegardError(
                "this model's vocabulary needs the package tokenizers: pip install 'regard[interop]'."
            ) from None
        try:
            self._tokenizer = Tokenizer.from_str(json.dumps(description["tokenizer"]))
        except Exception as error:  # the package raises nothing more precise
            raise RegardError(f"the vocabulary is damaged: tokenizers cannot read it ({error}).") from None
        if self._tokenizer.get_vocab_size() > description["size"]:
            raise RegardError("the vocabulary has more entries than it declares.")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._kind = description["kind"]
        self._mask = description["mask"]
        added = self._tokenizer.get_added_tokens_decoder().values()
        self._special_pieces = [str(each.content) for each in added if each.special and each.content != self._mask]

    def encode(self, texts: list[str]) -> list[list[int]]:
        encoded = [each.ids for each in self._tokenizer.encode_batch(texts, add_special_tokens=False)]
        for number, text in enumerate(texts):
            if any(piece in text for piece in self._special_pieces):
                encoded[number] = self._encode_as_text(text)
        return encoded

    @cached_property
    def _plain_tokenizer(self) -> Any:
        """The same tokenizer, but no text is a special token. A copy, since other threads may use the original."""
        plain = type(self._tokenizer).from_str(self._tokenizer.to_str())
        plain.encode_special_tokens = True
        return plain

    def _encode_as_text(self, text: str) -> list[int]:
        """A text that contains the text of a special token: encoded as text, except for the mask."""
        fragments = text.split(self._mask) if self._mask else [text]
        encoded = [self._plain_tokenizer.encode(fragment, add_special_tokens=False).ids for fragment in fragments]
        mask: int | None = self._tokenizer.token_to_id(self._mask) if self._mask else None
        return [*encoded[0], *(each for ids in encoded[1:] for each in (mask, *ids) if each is not None)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoded = self._plain_tokenizer.encode(text, add_special_tokens=False)
        return encoded.ids, encoded.offsets

    def decode(self, original_ids: list[int]) -> str:
        text: str = self._tokenizer.decode(original_ids, skip_special_tokens=False)
        return text

    def piece(self, original_id: int) -> str:
        raw = self._tokenizer.id_to_token(original_id)
        if raw is None:  # a row of the embedding that no text uses
            return f"<{original_id}>"
        if self._kind == "metaspace":
            return str(raw)
        if self._kind == "wordpiece":
            return raw[2:] if raw.startswith("##") else SPACE + raw
        try:
            text = bytes(_BYTE_OF_LETTER[letter] for letter in raw).decode()
        except (KeyError, UnicodeDecodeError):
            return str(raw)
        return text.replace(" ", SPACE)


class _SentencePieceBackend:
    """sentencepiece, with pieces numbered by a list."""

    def __init__(self, description: dict[str, Any]) -> None:
        try:
            model = base64.b64decode(description["model"], validate=True)
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError, KeyError, TypeError):
            raise RegardError("the vocabulary is damaged: sentencepiece cannot read it.") from None
        if not len(model) or not self._processor.get_piece_size():
            raise RegardError("the vocabulary is damaged: its sentencepiece model is empty.")
        self._pieces = _listed_pieces(description)
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        self._unknown = description["special"][UNK]

    def encode(self, texts: list[str]) -> list[list[int]]:
        encoded = self._processor.encode(texts, out_type=str)
        return [[self._ids.get(piece, self._unknown) for piece in each] for each in encoded]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        raise RegardError("this tokenizer has no character offsets of its tokens, which answer spans need.")

    def decode(self, original_ids: list[int]) -> str:
        text: str = self._processor.decode_pieces([self._pieces[each] for each in original_ids])
        return text.replace(SPACE, " ").strip(" ")

    def piece(self, original_id: int) -> str:
        return self._pieces[original_id]


class _WhitespaceBackend:
    """Text that is segmented already, with spaces between its pieces. Pieces inside a word end in @@, as in subword-nmt
    (Sennrich et al. 2016)."""

    def __init__(self, description: dict[str, Any]) -> None:
        self._pieces = _listed_pieces(description)
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        self._unknown = description["special"][UNK]

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[self._ids.get(piece, self._unknown) for piece in text.split()] for text in texts]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        spans, at = [], 0
        for piece in text.split():
            start = text.index(piece, at)
            at = start + len(piece)
            spans.append((start, at))
        return self.encode([text])[0], spans

    def decode(self, original_ids: list[int]) -> str:
        pieces = (self._pieces[each] for each in original_ids)
        text = " ".join(piece for piece in pieces if piece not in ("<s>", "<pad>", "</s>"))
        return (text + " ").replace("@@ ", "").strip(" ")

    def piece(self, original_id: int) -> str:
        return SPACE + self._pieces[original_id]


def _listed_pieces(description: dict[str, Any]) -> list[str]:
    pieces = description.get("pieces")
    if not isinstance(pieces, list) or len(pieces) != description["size"]:
        raise RegardError("the vocabulary has other entries than it declares.")
    return [str(piece) for piece in pieces]


def _bytes_of_letters() -> dict[str, int]:
    """The byte that each letter of byte-level BPE stands for (Radford et al. 2019): printable ones stand for
    themselves, letters from 256 on for the others, in order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(unprintable)}


_BYTE_OF_LETTER = _bytes_of_letters()
