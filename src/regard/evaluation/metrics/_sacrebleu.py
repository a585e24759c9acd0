"""Metrics that sacrebleu computes (Post 2018, arXiv:1804.08771)."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from regard.evaluation.metrics import OutputMetric, References, Statistics


class SacrebleuMetric(OutputMetric):
    """A metric whose statistics of sentences are summed."""

    @abstractmethod
    def build_scorer(self) -> Any:
        """sacrebleu's own metric."""

    @cached_property
    def _scorer(self) -> Any:
        return self.build_scorer()

    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        rows = self._scorer._extract_corpus_statistics(list(outputs), [list(each) for each in references])
        return np.array(rows, dtype=np.float64)

    def from_statistics(self, rows: Statistics) -> float:
        return float(self._scorer._compute_score_from_stats(rows.sum(0).tolist()).score)

    def signature(self, references: References) -> str:
        scorer = self.build_scorer()
        scorer.num_refs = len(references)
        return str(scorer.get_signature())
