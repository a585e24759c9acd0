"""How many numbers a model learns."""

import torch

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings


def count_parameters(settings: ModelSettings, vocabulary: int) -> int:
    """The model's size with such a vocabulary on each side, without making it."""
    with torch.device("meta"):
        return Seq2Seq(settings, source_vocabulary=vocabulary, target_vocabulary=vocabulary).size
