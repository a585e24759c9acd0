"""sacrebleu's tokenizers, and the detection of the one for a text: scripts without spaces need their own."""

import re
from collections.abc import Sequence

from regard.errors import RegardError

HAN = re.compile(r"[\u4e00-\u9fff]")
KANA = re.compile(r"[\u3040-\u30ff]")
SOUTHEAST_ASIAN = re.compile(r"[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff]")  # Thai, Lao, Burmese, Khmer

BLEU_TOKENIZERS = ("13a", "none", "zh", "char", "intl")  # those of sacrebleu that need no other package
SAMPLE_SIZE = 1000  # texts that the script is detected from


def check_tokenizer(name: str | None) -> None:
    """Raises RegardError if there is no such tokenizer here."""
    if name is not None and name not in BLEU_TOKENIZERS:
        raise RegardError(f"--tokenize: there is no {name!r}; there are {', '.join(BLEU_TOKENIZERS)}.")


def detect_tokenizer(texts: Sequence[str]) -> str:
    """ "zh" for Chinese, "char" for Japanese, Thai and other scripts without spaces, "13a" for the rest."""
    sample = "".join(texts[:SAMPLE_SIZE])
    letters = max(1, sum(1 for character in sample if character.isalnum()))
    if (len(KANA.findall(sample)) + len(SOUTHEAST_ASIAN.findall(sample))) / letters > 0.1:
        return "char"
    return "zh" if len(HAN.findall(sample)) / letters > 0.3 else "13a"


def is_written_without_spaces(texts: Sequence[str]) -> bool:
    """Whether most of the texts are in a script that does not separate words."""
    return detect_tokenizer(texts) in ("zh", "char")
