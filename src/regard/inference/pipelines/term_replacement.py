"""Translations with the terms of a glossary in place of the model's own words for them."""

from collections.abc import Sequence
from dataclasses import replace

from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.glossary import replace_aligned_terms
from regard.data.placeholders import restore
from regard.data.vocabulary import text_tokenizer
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.results import Alternative, Result
from regard.interpret.forced_pass import run_forced_pass


def replace_terms(
    run: LoadedRun, results: Sequence[Result], originals: Sequence[tuple[str, ...]], options: Options
) -> list[Result | None]:
    """Each result with the glossary's terms in all its outputs; None where the alignment does not locate them."""
    outputs = [[result.tokens, *(other.tokens for other in result.alternatives)] for result in results]
    flat = [(number, tokens) for number, own in enumerate(outputs) for tokens in own]
    sources = [results[number].source_tokens for number, _ in flat]
    passes = run_forced_pass(run.bundle, sources, [tokens for _, tokens in flat])
    translations = {term: run.target_tokens(term) for term in options.glossary.values()}
    replaced: list[list[list[int] | None]] = [[] for _ in results]
    for (number, tokens), source, forced_pass in zip(flat, sources, passes, strict=True):
        cross = forced_pass.weights.get("cross", [])
        pieces = text_tokenizer(run.source_processor).pieces(source), run.target_vocabulary.pieces(tokens)
        aligned = (run.alignment_head or AlignmentHead.default(cross)).select(cross) if cross else None
        terms = options.glossary, translations
        replaced[number].append(None if aligned is None else replace_aligned_terms(tokens, aligned, pieces, *terms))
    found: list[Result | None] = []
    for result, own_outputs, own_originals in zip(results, replaced, originals, strict=True):
        complete = [tokens for tokens in own_outputs if tokens is not None]
        is_complete = len(complete) == len(own_outputs)
        found.append(_with_outputs(run, result, complete, own_originals, options) if is_complete else None)
    return found


def _with_outputs(
    run: LoadedRun, result: Result, outputs: list[list[int]], originals: tuple[str, ...], options: Options
) -> Result:
    """A result with these outputs, scored by the model."""
    passes = run_forced_pass(run.bundle, [result.source_tokens] * len(outputs), outputs, attention=False)
    scores = [
        sum(forced_pass.token_scores) / len(tokens) ** options.length_penalty
        for forced_pass, tokens in zip(passes, outputs, strict=True)
    ]
    texts = [restore(text, originals) for text in run.target_vocabulary.decode(outputs)]
    alternatives = [Alternative(*each) for each in zip(texts[1:], scores[1:], outputs[1:], strict=True)]
    return replace(result, text=texts[0], score=scores[0], tokens=outputs[0], alternatives=alternatives)
