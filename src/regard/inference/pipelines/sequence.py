"""Autoregressive models and classifiers: encode, search, decode.

Inputs are sorted into batches of similar length, searched by an engine that supports the search, and put back in order.
Chunks of a text are joined, placeholders restored, glossary terms inserted. Imports PyTorch only where it is needed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.data.placeholders import restore
from regard.data.target_languages import strip_language_token
from regard.errors import RegardError
from regard.inference.engines.base import Engine
from regard.inference.inputs.base import Inputs
from regard.inference.inputs.chunked_text import ChunkedText
from regard.inference.inputs.request import Request, contains_terms, count_phrase, preserves_placeholders
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.base import OnDone, ignore_progress
from regard.inference.results import Alternative, Hypothesis, Result
from regard.inference.search_config import SearchConfig
from regard.special_tokens import EOS
from regard.views.notebook import AttentionView

MAX_BATCH = 256  # inputs searched together


class SequencePipeline:
    """Inputs of one kind, an engine, and text out."""

    def __init__(self, run: LoadedRun, inputs: Inputs) -> None:
        self.run, self.inputs = run, inputs

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for an input of another type."""
        self.inputs.check(inputs)

    @property
    def example(self) -> Any:
        """An input to warm up with."""
        return self.inputs.example

    def results(self, inputs: Sequence[Any], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """A result for each input, in order."""
        self.inputs.check(inputs)
        results: dict[int, Result] = {}
        chunked = {
            number: ChunkedText.from_chunks(text, chunks)
            for number, text in enumerate(inputs)
            if (chunks := self.inputs.split_into_chunks(text))
        }
        unsplit = [number for number in range(len(inputs)) if number not in chunked]
        for number, result in zip(
            unsplit, self._predict_unsplit([inputs[n] for n in unsplit], options, on_done), strict=True
        ):
            if not result.missing or options.required or options.glossary:
                results[number] = result
            else:  # there was no room for its placeholders
                chunks = self.inputs.split_at_placeholders(inputs[number])
                chunked[number] = ChunkedText.from_chunks(inputs[number], chunks)
        if chunked:
            results |= self._predict_chunked(chunked, options)
            on_done(len(inputs) - len(unsplit))
        return [results[number] for number in range(len(inputs))]

    def attend(
        self, source: Any, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """What the model attends to over a source and a target: a given one, a result, or its own prediction.

        attribution: with gradient times input. to: of several languages. Raises RegardError for what is too long.
        """
        from regard.inference.attention_outputs import attend

        return attend(self, source, target, attribution=attribution, to=to)

    def streams(self, options: Options) -> bool:
        """Whether outputs can be reported as they are generated: one for each input, by a search that never revises a
        token."""
        from regard.inference.search.base import SEARCHES

        return options.nbest == 1 and SEARCHES.get(self.run.search_config(options).search).streams

    def stream(self, text: Any, on_text: Callable[[str], None], options: Options) -> Result:
        """One input, its output reported incrementally as it is generated, the prompt first. Raises RegardError for a
        search that may revise what it has generated."""
        config = self.run.search_config(options)
        if not self.streams(options):
            raise RegardError(f"stream: {config.search} search may take tokens back; sample, or use beam=1.")
        self.inputs.check([text])
        (request,) = self.inputs.requests([text], options)
        if request.error:
            raise RegardError(f"{request.text[:60]!r}: {request.error}.")
        tokens: list[int] = []
        reported = 0

        def on_token(rows: list[int], new: list[int]) -> None:
            nonlocal reported
            tokens.extend(token for token in new if token != EOS)
            (text_so_far,) = self.run.target_vocabulary.decode([tokens])
            incomplete = text_so_far.endswith("\ufffd")  # ends within a character
            if len(tokens) >= len(request.constraints.prefix) and not incomplete:
                on_text(text_so_far[reported:])
                reported = len(text_so_far)

        (found,) = self.run.torch_engine.search([request.tokens], config, [request.constraints], on_token)
        result = self._result(request, found)
        on_text(result.text[reported:])
        return result

    # --- texts in chunks -------------------------------------------------------------------------------------------

    def _predict_chunked(self, chunked: Mapping[int, ChunkedText], options: Options) -> dict[int, Result]:
        """Results of chunked texts. The first chunk gets the prefix, the longest the required words."""
        groups: dict[tuple[bool, bool], list[tuple[int, int]]] = {}
        sources = {number: text.sources for number, text in chunked.items()}
        for number, own in sources.items():
            lengths = [len(source) for source in own]
            for index in range(len(own)):
                groups.setdefault((index == 0, index == lengths.index(max(lengths))), []).append((number, index))
        plain = options.with_changes(nbest=1, scores=False, alignment=False, attention=False)
        found: dict[tuple[int, int], Result] = {}
        for (is_first, is_longest), members in groups.items():
            own_options = plain.with_changes(prefix=plain.prefix * is_first, required=plain.required * is_longest)
            batch = [sources[number][index] for number, index in members]
            found |= zip(members, self._predict_unsplit(batch, own_options, ignore_progress), strict=True)
        return {
            number: text.join([found[number, index] for index in range(len(sources[number]))])
            for number, text in chunked.items()
        }

    # --- unsplit inputs --------------------------------------------------------------------------------------------

    def _predict_unsplit(self, inputs: Sequence[Any], options: Options, on_done: OnDone) -> list[Result]:
        """A result for each input, none of which is split; with placeholders restored and glossary terms inserted."""
        config = self.run.search_config(options)
        requests = self.inputs.requests(inputs, options)
        results = {
            number: request.empty_result()
            for number, request in enumerate(requests)
            if request.error or self.inputs.length(request.tokens) < 2
        }
        on_done(len(results))
        pending = [number for number in range(len(requests)) if number not in results]
        unsupported = self.run.engine.unsupported_reason(config)
        constrained = {number for number in pending if unsupported or requests[number].constraints}
        unconstrained = [number for number in pending if number not in constrained]
        if unconstrained:
            results |= self._search(self.run.engine, requests, unconstrained, config, on_done)
            # Most outputs preserve their placeholders anyway; the others are searched again with constraints.
            retried = [n for n in unconstrained if not preserves_placeholders(results[n], requests[n])]
            if retried:
                results |= self._search(
                    self.run.torch_engine, requests, retried, config, ignore_progress, constrained=True
                )
        if constrained:
            numbers = sorted(constrained)
            results |= self._search(self.run.torch_engine, requests, numbers, config, on_done, constrained=True)
        lacking = [number for number in pending if not contains_terms(results[number], requests[number].terms)]
        if lacking:
            results |= self._replace_terms(lacking, requests, results, options)
        in_order = [results[number] for number in range(len(inputs))]
        if options.scores or options.attention or options.alignment:
            from regard.inference.attention_outputs import with_forced_pass

            in_order = with_forced_pass(self, inputs, in_order, options)
        return in_order

    def _replace_terms(
        self, numbers: Sequence[int], requests: Sequence[Request], results: Mapping[int, Result], options: Options
    ) -> dict[int, Result]:
        """Results with the terms of a glossary in place of the model's own words; where alignment does not find these
        words, by a search that must generate the terms."""
        from regard.inference.pipelines.term_replacement import replace_terms

        found = replace_terms(
            self.run, [results[number] for number in numbers], [requests[n].originals for n in numbers], options
        )
        replaced = {number: result for number, result in zip(numbers, found, strict=True) if result is not None}
        rest = [number for number in numbers if number not in replaced]
        if rest:
            with_terms = list(requests)
            for number in rest:
                constraints = requests[number].constraints
                required = (*constraints.required, *requests[number].terms)
                with_terms[number] = replace(requests[number], constraints=replace(constraints, required=required))
            config = self.run.search_config(options)
            replaced |= self._search(self.run.torch_engine, with_terms, rest, config, ignore_progress, constrained=True)
        return replaced

    def _search(
        self,
        engine: Engine,
        requests: Sequence[Request],
        numbers: Sequence[int],
        config: SearchConfig,
        on_done: OnDone,
        *,
        constrained: bool = False,
    ) -> dict[int, Result]:
        """Results by number. constrained: with each request's constraints, and placeholders counted."""
        order = sorted(numbers, key=lambda number: -self.inputs.length(requests[number].tokens))
        results: dict[int, Result] = {}
        start = 0
        while start < len(order):
            size = engine.batch_tokens // (self.inputs.length(requests[order[start]].tokens) * config.width)
            batch = order[start : start + max(1, min(MAX_BATCH, size))]
            start += len(batch)
            constraints = (
                [replace(requests[n].constraints, counts=requests[n].symbol_counts) for n in batch]
                if constrained
                else []
            )
            sources = [requests[n].tokens for n in batch]
            found = engine.search(sources, config, constraints if any(constraints) else None)
            for number, hypotheses in zip(batch, found, strict=True):
                results[number] = self._result(requests[number], hypotheses)
            on_done(len(batch))
        return results

    def _result(self, request: Request, hypotheses: list[Hypothesis]) -> Result:
        target = self.run.target_vocabulary
        texts = [
            restore(strip_language_token(text), request.originals)
            for text in target.decode([hypothesis.tokens for hypothesis in hypotheses])
        ]
        alternatives = [Alternative(text, h.score, h.tokens) for text, h in zip(texts[1:], hypotheses[1:], strict=True)]
        best = hypotheses[0]
        tokens = best.tokens
        missing = target.decode([p for p in request.constraints.required if not count_phrase(p, tokens)])
        for token, count in request.symbol_counts.items():
            lost = count - tokens.count(token)
            if lost:
                (symbol,) = target.pieces([token])
                missing += [restore(symbol, request.originals)] * max(1, lost)
        return Result(request.text, texts[0], best.score, request.tokens, tokens, alternatives, missing=missing)
