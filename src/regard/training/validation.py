"""Validation in training: the loss of the validation set, and a metric of greedy outputs for it."""

import math
from dataclasses import dataclass

import torch

from regard.data.batch import load_batch, validation_batches
from regard.data.corpus import Corpus
from regard.data.dataset_kinds.base import Prompt
from regard.evaluation.bleu_tokenizers import detect_tokenizer
from regard.evaluation.evaluators.base import EVALUATORS
from regard.evaluation.metrics import METRICS, LossMetric, OutputMetric, corpus_score
from regard.inference.predictor import Predictor
from regard.training.objective import Objective, batch_loss
from regard.training.settings import TrainingSettings

BATCH_TOKENS = 4096  # tokens in a batch
MAX_EXAMPLES = 1000  # examples whose output is decoded and scored
SHOWN_SAMPLES = 3  # examples printed and logged with their reference


@dataclass(frozen=True)
class Sample:
    """The model's output for one source."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True)
class ValidationResult:
    """The result of a validation. value: of the metric."""

    loss: float
    perplexity: float
    metric: str
    value: float
    samples: list[Sample]

    @property
    def sort_key(self) -> tuple[float, float]:
        """Higher is better for any metric. The loss breaks ties, as BLEU is 0 for outputs of fewer than four words."""
        value = METRICS.get(self.metric).sort_key(self.value)
        return (value if math.isfinite(value) else -1e30, -self.loss if math.isfinite(self.loss) else -1e30)


def _greedy_outputs(predictor: Predictor, prompts: list[Prompt]) -> list[str]:
    """The greedy output for each prompt."""
    outputs: dict[int, str] = {}
    for language in dict.fromkeys(each.language for each in prompts):
        indices = [index for index, each in enumerate(prompts) if each.language == language]
        options = predictor.greedy_options()
        options = options.with_changes(to=language) if language else options
        results = predictor.results([prompts[n].predictor_input for n in indices], options)
        outputs |= {index: result.text for index, result in zip(indices, results, strict=True)}
    return [outputs[index] for index in range(len(prompts))]


@torch.inference_mode()
def validate(
    objective: Objective, predictor: Predictor, corpus: Corpus, settings: TrainingSettings
) -> ValidationResult:
    """The loss of the whole validation set, and the metric of greedy outputs for its first `MAX_EXAMPLES` examples."""
    training = objective.training
    objective.eval()
    try:
        cross_entropy = tokens = 0.0
        for indices in validation_batches(corpus, corpus.valid, tokens=BATCH_TOKENS):
            batch = load_batch(corpus, corpus.valid, indices)
            cross_entropy += float(batch_loss(objective, batch).cross_entropy)
            tokens += batch.tokens
        loss = cross_entropy / tokens
        metric = METRICS.get(settings.metric)
        count = MAX_EXAMPLES if issubclass(metric, OutputMetric) else SHOWN_SAMPLES
        prompts = [corpus.kind.prompt(corpus.valid, index) for index in range(min(count, len(corpus.valid)))]
        outputs = _greedy_outputs(predictor, prompts)
    finally:
        objective.train(training)
    samples = [Sample(each.source, each.reference, text) for each, text in zip(prompts, outputs, strict=True)]
    if issubclass(metric, LossMetric):
        value = metric.from_loss(loss)
    elif issubclass(metric, OutputMetric):
        references = [sample.reference for sample in samples]
        value = corpus_score(metric.name, outputs, [references], detect_tokenizer(references)).value
    else:
        value = EVALUATORS.get(predictor.task.evaluator)().validation_score(metric, predictor, corpus.valid)
    perplexity = math.exp(loss) if loss < 700 else math.inf
    return ValidationResult(loss, perplexity, metric.name, value, samples[:SHOWN_SAMPLES])
