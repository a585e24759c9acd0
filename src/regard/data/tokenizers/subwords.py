"""Text to tokens and back, by sentencepiece.

BPE: Sennrich et al. 2016 (arXiv:1508.07909); unigram and subword regularisation: Kudo 2018 (arXiv:1804.10959);
BPE-dropout: Provilkov et al. 2020 (arXiv:1910.13267); byte fallback, so that no text is unknown.
"""

import io
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from regard.data.settings import SubwordSettings
from regard.data.tokenizers.subword_sampling import Sampler
from regard.errors import RegardError
from regard.special_tokens import BEGIN, END, MASK, MASK_SIGN, PAD, UNKNOWN

TYPES = {"bpe": "bpe", "unigram": "unigram", "character": "char", "word": "word"}
SPACE = "▁"  # where a word begins
SMALLEST = 300  # 256 bytes, the four special entries, and some letters


class Subwords:
    """A trained vocabulary."""

    ends = True  # an end follows a text
    keeps_blanks = False  # white space is not part of a text but between words

    def __init__(self, model: bytes) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise RegardError("the subword model is damaged: sentencepiece cannot read it.") from None
        self.model = model
        self._sampler: tuple[SubwordSettings, Sampler] | None = None
        if self._processor.pad_id() != PAD or self._processor.eos_id() != END:
            raise RegardError("the subword model has other special entries than regard's; train one here instead.")

    @staticmethod
    def load(path: Path) -> "Subwords":
        """From a file. Raises RegardError if it is none."""
        try:
            content = path.read_bytes()
            if content.startswith(b"{"):
                from regard.data.tokenizers.imported import Borrowed

                return Borrowed(content)
            return Subwords(content)
        except FileNotFoundError:
            raise RegardError(f"{path}: there is no such file.") from None
        except OSError as error:
            raise RegardError(f"{path}: it cannot be read ({error.strerror}).") from None
        except ValueError as error:
            raise RegardError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Into a file."""
        path.write_bytes(self.model)

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text, without beginning and end."""
        if any(MASK_SIGN in text for text in texts):
            return [self._gapped(text) for text in texts]
        tokens: list[list[int]] = self._processor.encode(list(texts))
        return tokens

    def offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokens of a text, and where each lies in it, the blank before a word left out. Raises RegardError."""
        plain = text.replace(SPACE, "_")
        tokens: list[int] = self._processor.encode(plain)
        pieces: list[str] = self._processor.encode(plain, out_type=str)
        letters = [at for at, letter in enumerate(plain) for _ in letter.encode("utf-8", "replace")]
        letters = [0, *letters, len(plain)]  # a blank goes before the text
        found, at = [], 0
        for token, piece in zip(tokens, pieces, strict=True):
            size = 1 if self._processor.is_byte(token) else len(piece.replace(SPACE, " ").encode())
            after = min(at + size, len(letters) - 1)
            begin, end = letters[min(at + piece.startswith(SPACE), after)], letters[after - 1] + 1 if after > 1 else 0
            found.append((min(begin, end), end))
            at = after
        if plain and at != len(letters) - 1:
            raise RegardError("this vocabulary changes texts, so that places in them cannot be told.")
        return tokens, found

    def _gapped(self, text: str) -> list[int]:
        """A text in which what is to be guessed is marked: a mark stands for a word with the blank before it."""
        first, *others = self._processor.encode(text.split(MASK_SIGN))
        return [*first, *(token for other in others for token in (MASK, *other))]

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """The same, cut at random as `key` says: BPE-dropout at `settings.sampling`, or unigram with that exponent.

        Characters and whole words can be cut in one way only.
        """
        if settings.kind not in ("bpe", "unigram") or not settings.sampling:
            return self.encode(texts)
        if self._sampler is None or self._sampler[0] != settings:
            self._sampler = settings, self._new_sampler(settings)
        return self._sampler[1].sample(texts, key)

    def _new_sampler(self, settings: SubwordSettings) -> Sampler:
        processor = self._processor
        usual = [
            token
            for token in range(len(self))
            if not (processor.is_byte(token) or processor.is_control(token) or processor.is_unknown(token))
        ]
        pieces = {processor.id_to_piece(token): (token, float(processor.get_score(token))) for token in usual}
        bytes_at = [int(processor.piece_to_id(f"<0x{byte:02X}>")) for byte in range(256)]
        return Sampler(pieces, bytes_at, merges=settings.kind == "bpe", rate=settings.sampling)

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Text of each sequence; padding, beginning and end are left out."""
        kept = [[token for token in sequence if token not in (PAD, BEGIN, END)] for sequence in tokens]
        texts = [self._processor.decode(sequence) if sequence else "" for sequence in kept]
        # An unknown word's bytes include the mark of the space before it.
        return [text.replace(SPACE, " ").strip(" ") for text in texts]

    def token(self, piece: str) -> int | None:
        """The token that looks like this, if there is one."""
        found = int(self._processor.piece_to_id(piece))
        return None if found == UNKNOWN else found

    @cached_property
    def word_starts(self) -> NDArray[np.bool_]:
        """Which tokens begin a word."""
        return np.array([piece.startswith(SPACE) for piece in self.pieces(range(len(self)))])

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """What each token looks like, ▁ at a word's beginning."""
        return [self._processor.id_to_piece(int(token)) for token in tokens]


def train(lines: Iterable[str], settings: SubwordSettings, size: int, symbols: Sequence[str] = ()) -> Subwords:
    """A vocabulary of about `size` entries learnt from these lines; smaller where the text has less to offer.

    symbols: characters that are entries of their own, never part of another.
    """
    texts = [line for line in lines if line]
    if not texts:
        raise RegardError("there is no text to learn subwords from.")
    size = max(size, SMALLEST)
    for _ in range(8):
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=model,
                model_type=TYPES[settings.kind],
                vocab_size=size,
                hard_vocab_limit=settings.kind not in ("unigram", "word", "character"),
                character_coverage=settings.coverage,
                byte_fallback=True,
                normalization_rule_name="identity",
                pad_id=PAD,
                unk_id=UNKNOWN,
                bos_id=BEGIN,
                eos_id=END,
                user_defined_symbols=list(symbols),
                max_sentence_length=1 << 20,
                num_threads=1,
                minloglevel=2,
            )
            return Subwords(model.getvalue())
        except RuntimeError as error:
            size = _possible_size(str(error), size)
    raise RegardError(f"sentencepiece could not learn {settings.kind} subwords from this text; try another kind.")


def _possible_size(message: str, size: int) -> int:
    """What sentencepiece asks for instead: fewer entries for little text, more for many letters."""
    if limit := re.search(r"<= ?(\d+)", message):
        return int(limit[1])
    if needed := re.search(r"required_chars[^\d]*(\d+)|(\d+) ?<= ?vocab", message):
        return int(next(number for number in needed.groups() if number)) + 512
    if "smaller than required_chars" in message or "vocab_size" in message.lower():
        numbers = [int(number) for number in re.findall(r"\d+", message)]
        return max([*numbers, size]) + 512
    raise RegardError(f"sentencepiece failed: {message}")
