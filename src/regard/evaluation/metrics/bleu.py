"""BLEU: precision of n-grams, with a penalty for brevity (Papineni et al. 2002), by sacrebleu."""

from typing import Any, ClassVar

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._sacrebleu import SacrebleuMetric


@METRICS.register("bleu")
class Bleu(SacrebleuMetric):
    """BLEU of n-grams of one to four words."""

    summary = "BLEU: n-grams of up to four words"
    task = "translation"
    higher_is_better = True
    max_ngram_order: ClassVar[int] = 4

    def build_scorer(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU

        # force: text that is tokenized already is scored as it is, without a warning for every sentence
        return BLEU(
            tokenize=self.tokenize,
            force=True,
            effective_order=self.effective_order,
            max_ngram_order=self.max_ngram_order,
        )


@METRICS.register("bleu1")
class Bleu1(Bleu):
    """BLEU-1."""

    summary = "BLEU of single words"
    task = "captioning"
    max_ngram_order = 1


@METRICS.register("bleu2")
class Bleu2(Bleu):
    """BLEU-2."""

    summary = "BLEU of up to two words"
    task = "captioning"
    max_ngram_order = 2


@METRICS.register("bleu3")
class Bleu3(Bleu):
    """BLEU-3."""

    summary = "BLEU of up to three words"
    task = "captioning"
    max_ngram_order = 3
