"""Transformers on the processor, by CTranslate2. PyTorch is never imported."""

import importlib.util
from collections import defaultdict
from collections.abc import Sequence

from regard.alignment.shortlist import Shortlist
from regard.data.vocabulary import text_tokenizer
from regard.inference.engines.base import ENGINES, Engine, available_cores, reason_not_on_cpu
from regard.inference.results import Hypothesis
from regard.inference.search_config import Constraints, SearchConfig
from regard.runs.ctranslate2_conversion import convert_to_ctranslate2, unsupported_by_ctranslate2
from regard.runs.folder import RunFolder
from regard.special_tokens import EOS


@ENGINES.register("ctranslate2")
class CTranslate2Engine(Engine):
    """A converted model."""

    name, title, priority = "ctranslate2", "CTranslate2", 20
    batch_tokens = 4096

    def __init__(
        self, opened: RunFolder, *, precision: str = "int8", threads: int = 0, shortlist: bool = False
    ) -> None:
        import ctranslate2

        self.precision, self._shortlist = precision, shortlist
        threads = threads or available_cores()
        self._translator = ctranslate2.Translator(
            str(convert_to_ctranslate2(opened, precision)),
            device="cpu",
            compute_type=precision,
            # With a shortlist, sentences are translated one by one, each on its own thread.
            inter_threads=threads if shortlist else 1,
            intra_threads=1 if shortlist else threads,
        )
        self._source_names = text_tokenizer(opened.source_processor).pieces(
            range(len(text_tokenizer(opened.source_processor)))
        )
        names = opened.target_vocabulary.pieces(range(len(opened.target_vocabulary)))
        self._tokens = {name: token for token, name in enumerate(names)}

    @classmethod
    def unsupported_model(cls, opened: RunFolder, device: str) -> str:
        if reason := unsupported_by_ctranslate2(opened.description.model) or reason_not_on_cpu(device):
            return reason
        installed = importlib.util.find_spec("ctranslate2") is not None
        return "" if installed else "the package ctranslate2 is not installed"

    @classmethod
    def open(
        cls, opened: RunFolder, *, device: str, precision: str, threads: int, shortlist: Shortlist | None
    ) -> "CTranslate2Engine":
        return cls(opened, precision=precision, threads=threads, shortlist=shortlist is not None)

    def unsupported_reason(self, config: SearchConfig) -> str:
        """All but greedy search and standard beam search."""
        if config.patient and config.beam > 1:
            return "its beam search ends with the first hypotheses that end"
        return f"it has no batch-invariant {config.beyond_beam_search}" if config.beyond_beam_search else ""

    def search(
        self, sources: Sequence[Sequence[int]], config: SearchConfig, constraints: Sequence[Constraints] | None = None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source; one call for all whose outputs may be equally long."""
        assert not any(constraints or ())
        groups: dict[int, list[int]] = defaultdict(list)
        for number, source in enumerate(sources):
            groups[config.limit(len(source))].append(number)
        found: dict[int, list[Hypothesis]] = {}
        for limit, numbers in groups.items():
            results = self._translator.translate_batch(
                [[self._source_names[token] for token in sources[number]] for number in numbers],
                beam_size=config.beam,
                num_hypotheses=config.nbest,
                length_penalty=config.length_penalty,
                max_input_length=0,
                max_decoding_length=limit,
                min_decoding_length=0,
                return_end_token=True,  # it counts for the length that scores are divided by
                return_scores=True,
                # CTranslate2 has one shortlist for a batch: a sentence's output would depend on its batch.
                use_vmap=self._shortlist,
                max_batch_size=1 if self._shortlist else 0,
            )
            for number, result in zip(numbers, results, strict=True):
                found[number] = [
                    self._hypothesis(names, score, config)
                    for names, score in zip(result.hypotheses, result.scores, strict=True)
                ]
        return [found[number] for number in range(len(sources))]

    def _hypothesis(self, names: list[str], score: float, config: SearchConfig) -> Hypothesis:
        tokens = [self._tokens[name] for name in names]
        total = score * len(tokens) ** config.length_penalty
        if tokens[-1:] != [EOS]:  # there was no room for the end
            tokens = [*tokens[:-1], EOS]
        return Hypothesis(tokens, total, score)
