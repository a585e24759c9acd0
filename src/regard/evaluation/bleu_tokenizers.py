"""Which of sacrebleu's tokenisers suits a text: languages written without spaces need one of their own."""

import re
from collections.abc import Sequence

from regard.errors import RegardError

HAN = re.compile(r"[\u4e00-\u9fff]")
KANA = re.compile(r"[\u3040-\u30ff]")
OTHERS = re.compile(r"[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff]")  # Thai, Lao, Burmese, Khmer


NAMES = ("13a", "none", "zh", "char", "intl")  # those of sacrebleu's that need nothing more


def check_tokeniser(name: str | None) -> None:
    """Raises RegardError if there is no such tokeniser here."""
    if name is not None and name not in NAMES:
        raise RegardError(f"--tokenize: there is no {name!r}; there are {', '.join(NAMES)}.")


def bleu_tokeniser(texts: Sequence[str]) -> str:
    """ "zh" for Chinese, "char" for Japanese, Thai and their like, "13a" for the rest."""
    sample = "".join(texts[:1000])
    letters = max(1, sum(1 for character in sample if character.isalnum()))
    if (len(KANA.findall(sample)) + len(OTHERS.findall(sample))) / letters > 0.1:
        return "char"
    return "zh" if len(HAN.findall(sample)) / letters > 0.3 else "13a"
