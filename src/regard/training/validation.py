"""Judging a model while it learns: loss over the held-out examples, and a score of what it says about them."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.batches import in_order, load_batch
from regard.data.corpus import Corpus
from regard.data.subwords import END
from regard.decoding.search import Search, search
from regard.evaluation.metrics import corpus_score
from regard.evaluation.tokenisers import bleu_tokeniser
from regard.models.seq2seq import Seq2Seq
from regard.training.objective import Objective, loss_of
from regard.training.settings import TrainingSettings

MOST = 1000  # examples that are translated at a validation
SHOWN = 3  # of them shown with their reference
WORSE_IF_HIGHER = ("loss", "wer", "cer")


@dataclass(frozen=True)
class Sample:
    """What the model makes of one source."""

    source: str
    output: str
    reference: str


@dataclass(frozen=True)
class Judgement:
    """A validation's result. `merit` is what is compared: higher is better, whatever was measured."""

    loss: float
    perplexity: float
    measure: str
    value: float
    samples: list[Sample]

    @property
    def merit(self) -> float:
        """Higher is better."""
        return -self.value if self.measure in WORSE_IF_HIGHER else self.value


@torch.inference_mode()
def judge(objective: Objective, corpus: Corpus, settings: TrainingSettings, how: Search) -> Judgement:
    """Loss over all of the validation set, and the score of greedy translations of its first thousand."""
    training = objective.training
    objective.eval()
    try:
        entropy = tokens = 0.0
        for numbers in in_order(corpus.valid, tokens=settings.tokens):
            batch = load_batch(corpus, corpus.valid, numbers)
            entropy += float(loss_of(objective, batch).entropy)
            tokens += batch.tokens
        loss = entropy / tokens
        count = SHOWN if settings.judge == "loss" else MOST
        samples = translate(objective.model, corpus, min(count, len(corpus.valid)), settings.tokens, how)
    finally:
        objective.train(training)
    value = loss
    if settings.judge != "loss":
        references = [sample.reference for sample in samples]
        outputs = [sample.output for sample in samples]
        value = corpus_score(settings.judge, outputs, [references], bleu_tokeniser(references)).value
    perplexity = math.exp(loss) if loss < 700 else math.inf
    return Judgement(loss, perplexity, settings.judge, value, samples[:SHOWN])


def translate(model: Seq2Seq, corpus: Corpus, count: int, tokens: int, how: Search) -> list[Sample]:
    """The first `count` validation examples, translated in batches of like length."""
    lengths = corpus.valid.source_lengths
    order = sorted(range(count), key=lambda number: -int(lengths[number]))  # the longest of a batch comes first
    outputs: dict[int, str] = {}
    at = 0
    while at < len(order):
        longest = int(lengths[order[at]])
        some = order[at : at + max(1, min(256, tokens // max(1, longest * how.beam)))]
        at += len(some)
        batch = load_batch(corpus, corpus.valid, np.array(some, np.int64))
        found = search(model, batch.source, batch.mask, how)
        said = [best[0].tokens for best in found]
        texts = corpus.target_subwords.decode([row[:-1] if row[-1] == END else row for row in said])
        outputs.update(zip(some, texts, strict=True))
    pairs = [corpus.valid.texts(number) for number in range(count)]
    return [Sample(source, outputs[number], target) for number, (source, target) in enumerate(pairs)]
