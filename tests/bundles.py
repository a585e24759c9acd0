"""A small random model with a trained tokenizer."""

import torch

from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.runs.folder import RunDescription
from regard.special_tokens import EOS
from tests.models.variants import DECODERS, ENCODERS

LINES = ["the cat sat on the mat", "a dog ran in the park", "the dog and the cat", "Katze und Hund im Park"] * 5


def random_bundle(
    subwords: SubwordTokenizer,
    encoder: str,
    decoder: str,
    *,
    tie: str = "none",
    source: object = None,
    **fields: object,
) -> Bundle:
    components = {"encoder": ENCODERS[encoder], "decoder": DECODERS[decoder], "tie": tie}
    settings = ModelSettings.parse(components if source is None else {**components, "source": source})
    torch.manual_seed(0)
    model = Seq2Seq(settings, source_vocabulary_size=len(subwords), target_vocabulary_size=len(subwords))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.4)
        if model.output.bias is not None:
            model.output.bias[EOS] += 3
    description = RunDescription.model_validate({"max_tokens": 12, "model": settings, **fields})
    return Bundle(description, model.eval(), subwords, subwords)
