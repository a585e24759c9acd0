"""Tokenizers trained here, by sentencepiece.

BPE: Sennrich et al. 2016 (arXiv:1508.07909); unigram and subword regularization: Kudo 2018 (arXiv:1804.10959);
BPE-dropout: Provilkov et al. 2020 (arXiv:1910.13267); byte fallback, so that no text is unknown.
"""

import io
import re
from collections.abc import Iterable, Sequence

import sentencepiece

from regard.data.settings import SubwordSettings
from regard.data.tokenizers.subword_sampling import SubwordSampler
from regard.data.tokenizers.tokenizer import SPACE, SubwordTokenizer
from regard.errors import RegardError
from regard.special_tokens import BOS, EOS, MASK, MASK_CHARACTER, PAD, UNK

MODEL_TYPES = {"bpe": "bpe", "unigram": "unigram", "character": "char", "word": "word"}
MIN_VOCABULARY = 300  # 256 bytes, the four special tokens, and some letters


class SentencePieceTokenizer(SubwordTokenizer):
    """A sentencepiece model with byte fallback and regard's special tokens."""

    def __init__(self, model: bytes) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise RegardError("the subword model is damaged: sentencepiece cannot read it.") from None
        self.model = model
        self._sampler: tuple[SubwordSettings, SubwordSampler] | None = None
        if self._processor.pad_id() != PAD or self._processor.eos_id() != EOS:
            raise RegardError("the subword model has other special tokens than regard's; train one here instead.")

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        if any(MASK_CHARACTER in text for text in texts):
            return [self._encode_masked(text) for text in texts]
        tokens: list[list[int]] = self._processor.encode(list(texts))
        return tokens

    def offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        plain = text.replace(SPACE, "_")
        tokens: list[int] = self._processor.encode(plain)
        pieces: list[str] = self._processor.encode(plain, out_type=str)
        characters = [at for at, letter in enumerate(plain) for _ in letter.encode("utf-8", "replace")]
        characters = [0, *characters, len(plain)]  # a space goes before the text
        offsets, at = [], 0
        for token, piece in zip(tokens, pieces, strict=True):
            size = 1 if self._processor.is_byte(token) else len(piece.replace(SPACE, " ").encode())
            after = min(at + size, len(characters) - 1)
            start, end = (
                characters[min(at + piece.startswith(SPACE), after)],
                characters[after - 1] + 1 if after > 1 else 0,
            )
            offsets.append((min(start, end), end))
            at = after
        if plain and at != len(characters) - 1:
            raise RegardError("this vocabulary changes texts, so that positions in them are unknown.")
        return tokens, offsets

    def _encode_masked(self, text: str) -> list[int]:
        """A text with mask characters, each of which replaces a word and the space before it."""
        first, *rest = self._processor.encode(text.split(MASK_CHARACTER))
        return [*first, *(token for tokens in rest for token in (MASK, *tokens))]

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """BPE-dropout with the rate `settings.sampling`, or unigram sampling with that exponent.

        Characters and whole words have only one segmentation.
        """
        if settings.kind not in ("bpe", "unigram") or not settings.sampling:
            return self.encode(texts)
        if self._sampler is None or self._sampler[0] != settings:
            self._sampler = settings, self._new_sampler(settings)
        return self._sampler[1].sample(texts, key)

    def _new_sampler(self, settings: SubwordSettings) -> SubwordSampler:
        processor = self._processor
        text_tokens = [
            token
            for token in range(len(self))
            if not (processor.is_byte(token) or processor.is_control(token) or processor.is_unknown(token))
        ]
        pieces = {processor.id_to_piece(token): (token, float(processor.get_score(token))) for token in text_tokens}
        bytes_at = [int(processor.piece_to_id(f"<0x{byte:02X}>")) for byte in range(256)]
        return SubwordSampler(pieces, bytes_at, merges=settings.kind == "bpe", rate=settings.sampling)

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        text_tokens = [[token for token in sequence if token not in (PAD, BOS, EOS)] for sequence in tokens]
        texts = [self._processor.decode(sequence) if sequence else "" for sequence in text_tokens]
        # An unknown word's bytes include the ▁ of the space before it.
        return [text.replace(SPACE, " ").strip(" ") for text in texts]

    def token(self, piece: str) -> int | None:
        token = int(self._processor.piece_to_id(piece))
        return None if token == UNK else token

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        return [self._processor.id_to_piece(int(token)) for token in tokens]


def train_tokenizer(
    lines: Iterable[str], settings: SubwordSettings, size: int, symbols: Sequence[str] = ()
) -> SentencePieceTokenizer:
    """A tokenizer with about `size` tokens, trained on these lines; smaller where the text has fewer subwords.

    symbols: characters that are tokens by themselves, never part of another.
    """
    texts = [line for line in lines if line]
    if not texts:
        raise RegardError("there is no text to learn subwords from.")
    size = max(size, MIN_VOCABULARY)
    for _ in range(8):
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=model,
                model_type=MODEL_TYPES[settings.kind],
                vocab_size=size,
                hard_vocab_limit=settings.kind not in ("unigram", "word", "character"),
                character_coverage=settings.coverage,
                byte_fallback=True,
                normalization_rule_name="identity",
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                user_defined_symbols=list(symbols),
                max_sentence_length=1 << 20,
                num_threads=1,
                minloglevel=2,
            )
            return SentencePieceTokenizer(model.getvalue())
        except RuntimeError as error:
            size = _feasible_size(str(error), size)
    raise RegardError(f"sentencepiece could not learn {settings.kind} subwords from this text; try another kind.")


def _feasible_size(message: str, size: int) -> int:
    """The size that sentencepiece's error asks for: smaller for little text, larger for many letters."""
    if limit := re.search(r"<= ?(\d+)", message):
        return int(limit[1])
    if needed := re.search(r"required_chars[^\d]*(\d+)|(\d+) ?<= ?vocab", message):
        return int(next(number for number in needed.groups() if number)) + 512
    if "smaller than required_chars" in message or "vocab_size" in message.lower():
        numbers = [int(number) for number in re.findall(r"\d+", message)]
        return max([*numbers, size]) + 512
    raise RegardError(f"sentencepiece failed: {message}")
