"""Judging a model while it learns: loss over the held-out examples, and a score of what it says about them."""

import math
from dataclasses import dataclass

import torch

from regard.data.batching import load_batch, validation_batches
from regard.data.dataset import Corpus
from regard.data.kinds.base import Prompt
from regard.evaluation.bleu_tokenizers import tokenizer_for
from regard.evaluation.metrics import METRICS, LossMetric, corpus_score
from regard.inference.predictor import Predictor
from regard.training.objective import Objective, batch_loss
from regard.training.settings import TrainingSettings

AT_ONCE = 4096  # tokens of a batch whose loss is taken
MOST = 1000  # examples that are translated at a validation
SHOWN = 3  # of them shown with their reference


@dataclass(frozen=True)
class Sample:
    """What the model makes of one source."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True)
class Judgement:
    """A validation's result. `merit` is what is compared: higher is better, whatever was measured."""

    loss: float
    perplexity: float
    measure: str
    value: float
    samples: list[Sample]

    @property
    def merit(self) -> tuple[float, float]:
        """Higher is better: the measure, then the loss, since BLEU is 0 for all outputs of fewer than four words."""
        value = METRICS.get(self.measure).merit(self.value)
        return (value if math.isfinite(value) else -1e30, -self.loss if math.isfinite(self.loss) else -1e30)


def _predictions(predictor: Predictor, prompts: list[Prompt]) -> list[str]:
    """The greedy output for each."""
    outputs: dict[int, str] = {}
    for language in dict.fromkeys(each.language for each in prompts):
        numbers = [number for number, each in enumerate(prompts) if each.language == language]
        options = predictor.greedy()
        options = options.with_(to=language) if language else options
        results = predictor.results([prompts[n].given for n in numbers], options)
        outputs |= {number: result.text for number, result in zip(numbers, results, strict=True)}
    return [outputs[number] for number in range(len(prompts))]


@torch.inference_mode()
def judge(objective: Objective, predictor: Predictor, corpus: Corpus, settings: TrainingSettings) -> Judgement:
    """Loss over all of the validation set, and the score of greedy translations of its first thousand."""
    training = objective.training
    objective.eval()
    try:
        entropy = tokens = 0.0
        for numbers in validation_batches(corpus, corpus.valid, tokens=AT_ONCE):
            batch = load_batch(corpus, corpus.valid, numbers)
            entropy += float(batch_loss(objective, batch).cross_entropy)
            tokens += batch.tokens
        loss = entropy / tokens
        metric = METRICS.get(settings.metric)
        count = SHOWN if issubclass(metric, LossMetric) else MOST
        prompts = [corpus.kind.prompt(corpus.valid, number) for number in range(min(count, len(corpus.valid)))]
        outputs = _predictions(predictor, prompts)
    finally:
        objective.train(training)
    samples = [Sample(each.source, each.reference, text) for each, text in zip(prompts, outputs, strict=True)]
    if issubclass(metric, LossMetric):
        value = metric.from_loss(loss)
    else:
        references = [sample.reference for sample in samples]
        value = corpus_score(metric.name, outputs, [references], tokenizer_for(references)).value
    perplexity = math.exp(loss) if loss < 700 else math.inf
    return Judgement(loss, perplexity, metric.name, value, samples[:SHOWN])
