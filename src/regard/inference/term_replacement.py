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
    """Each result with the glossary's terms in all its outputs; None where it cannot be told where they belong."""
    outputs = [[result.tokens, *(other.tokens for other in result.others)] for result in results]
    flat = [(number, tokens) for number, some in enumerate(outputs) for tokens in some]
    sources = [results[number].source_tokens for number, _ in flat]
    told = run_forced_pass(run.bundle, sources, [tokens for _, tokens in flat])
    translations = {said: run.target_tokens(said) for said in options.glossary.values()}
    made: list[list[list[int] | None]] = [[] for _ in results]
    for (number, tokens), source, each in zip(flat, sources, told, strict=True):
        cross = each.weights.get("cross", [])
        pieces = text_tokenizer(run.source_side).pieces(source), run.target_side.pieces(tokens)
        aligned = (run.alignment_head or AlignmentHead.default(cross)).select(cross) if cross else None
        terms = options.glossary, translations
        made[number].append(None if aligned is None else replace_aligned_terms(tokens, aligned, pieces, *terms))
    found: list[Result | None] = []
    for result, outs, own in zip(results, made, originals, strict=True):
        whole = [tokens for tokens in outs if tokens is not None]
        found.append(_with_outputs(run, result, whole, own, options) if len(whole) == len(outs) else None)
    return found


def _with_outputs(
    run: LoadedRun, result: Result, outputs: list[list[int]], originals: tuple[str, ...], options: Options
) -> Result:
    """A result with these outputs, and what the model thinks of them."""
    passes = run_forced_pass(run.bundle, [result.source_tokens] * len(outputs), outputs, attention=False)
    scores = [
        sum(each.token_scores) / len(tokens) ** options.length_penalty
        for each, tokens in zip(passes, outputs, strict=True)
    ]
    texts = [restore(text, originals) for text in run.target_side.decode(outputs)]
    others = [Alternative(*each) for each in zip(texts[1:], scores[1:], outputs[1:], strict=True)]
    return replace(result, text=texts[0], score=scores[0], tokens=outputs[0], others=others)
