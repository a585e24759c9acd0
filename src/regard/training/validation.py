"""Judging a model while it learns: loss over the held-out examples, and a score of what it says about them."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from regard.data.batching import in_order, load_batch
from regard.data.dataset import Corpus, Pairs
from regard.data.masking import Masked
from regard.data.media import Prepared
from regard.data.packing import Passages
from regard.data.target_languages import language_of, strip_language_tag
from regard.evaluation.bleu_tokenizers import tokenizer_for
from regard.evaluation.metrics import METRICS, LossMetric, corpus_score
from regard.inference.options import Options
from regard.inference.translator import Translator
from regard.training.objective import Objective, loss_of
from regard.training.settings import TrainingSettings

AT_ONCE = 4096  # tokens of a batch whose loss is taken
MOST = 1000  # examples that are translated at a validation
BEGUN = 8  # words of a document that a language model is to go on from
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


class _Asked(NamedTuple):
    """One example, as it is put to the model."""

    source: str
    reference: str
    given: Any  # the source as the translator takes it
    language: str  # that is wanted, of a model of several


def _asked(pairs: Pairs | Passages, number: int) -> _Asked:
    if isinstance(pairs, Masked):
        words = pairs.text(number).split()[: 3 * BEGUN]
        gap = len(words) // 2
        hidden = " ".join([*words[:gap], "___", *words[gap + 1 :]])
        return _Asked(hidden, " ".join(words), hidden, "")
    if isinstance(pairs, Passages):
        words = pairs.text(number).split()
        begun = " ".join(words[: min(BEGUN, len(words) // 2)])
        return _Asked(begun, " ".join(words[: 3 * BEGUN]), begun, "")
    source, reference = pairs.texts(number)
    given = source if pairs.medium is None else Prepared(pairs.tokens(number)[0], source)
    return _Asked(source, strip_language_tag(reference), given, language_of(reference))


def _said(translator: Translator, asked: list[_Asked]) -> list[str]:
    """What the model says to each, greedily."""
    said: dict[int, str] = {}
    for language in dict.fromkeys(each.language for each in asked):
        numbers = [number for number, each in enumerate(asked) if each.language == language]
        results = translator.results([asked[n].given for n in numbers], Options(beam=1, to=language))
        said |= {number: result.text for number, result in zip(numbers, results, strict=True)}
    return [said[number] for number in range(len(asked))]


@torch.inference_mode()
def judge(objective: Objective, translator: Translator, corpus: Corpus, settings: TrainingSettings) -> Judgement:
    """Loss over all of the validation set, and the score of greedy translations of its first thousand."""
    training = objective.training
    objective.eval()
    try:
        entropy = tokens = 0.0
        for numbers in in_order(corpus.valid, tokens=AT_ONCE):
            batch = load_batch(corpus, corpus.valid, numbers)
            entropy += float(loss_of(objective, batch).entropy)
            tokens += batch.tokens
        loss = entropy / tokens
        metric = METRICS.get(settings.metric)
        count = SHOWN if issubclass(metric, LossMetric) else MOST
        asked = [_asked(corpus.valid, number) for number in range(min(count, len(corpus.valid)))]
        said = _said(translator, asked)
    finally:
        objective.train(training)
    samples = [Sample(each.source, each.reference, text) for each, text in zip(asked, said, strict=True)]
    if issubclass(metric, LossMetric):
        value = metric.from_loss(loss)
    else:
        references = [sample.reference for sample in samples]
        outputs = [sample.output for sample in samples]
        value = corpus_score(metric.name, outputs, [references], tokenizer_for(references)).value
    perplexity = math.exp(loss) if loss < 700 else math.inf
    return Judgement(loss, perplexity, metric.name, value, samples[:SHOWN])
