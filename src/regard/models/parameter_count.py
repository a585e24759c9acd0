"""The number of parameters of a model."""

import torch

from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings


def count_parameters(settings: ModelSettings, vocabulary: int) -> int:
    """The model's size with such a vocabulary on each side, without allocating its weights."""
    with torch.device("meta"):
        return Seq2Seq(settings, source_vocabulary_size=vocabulary, target_vocabulary_size=vocabulary).size
