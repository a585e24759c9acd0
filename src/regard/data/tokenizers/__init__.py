"""Tokenizers: those trained here, with sentencepiece, and those imported from other projects."""

from pathlib import Path

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.data.tokenizers.sentencepiece_tokenizer import SentencePieceTokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError


def load_tokenizer(path: Path) -> SubwordTokenizer:
    """A tokenizer's file, read. Raises RegardError if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise RegardError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise RegardError(f"{path}: it cannot be read ({error.strerror}).") from None
    try:
        return ImportedTokenizer(content) if content.startswith(b"{") else SentencePieceTokenizer(content)
    except RegardError as error:
        raise RegardError(f"{path}: {error}") from None
