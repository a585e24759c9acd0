"""What a model attends to over a source and a target, and the word alignments of pairs, by one forced pass."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from regard.alignment.aligner import word_alignment
from regard.alignment.alignment_head import AlignmentHead
from regard.data.input_validation import LONE_SURROGATE
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.pipeline import Pipeline, PipelineWithInputs
from regard.inference.results import Result
from regard.inference.text_inputs import TextInputs
from regard.interpret.attribution import attributed
from regard.interpret.capture import axis, captured
from regard.interpret.captured import Branch
from regard.interpret.forced_pass import AT_ONCE, forced
from regard.views.notebook import CapturedView


def captured_view(*given: Any, **more: Any) -> CapturedView:
    """Captured attention, as `regard.interpret.capture.captured` builds it, that a notebook shows."""
    return CapturedView.of(captured(*given, **more))


def attend(
    pipeline: PipelineWithInputs,
    source: Any,
    target: str | Result | None = None,
    *,
    attribution: bool = False,
    to: str = "",
) -> CapturedView:
    """What a model attends to over a source and a target: a given one, a result of a search, or a new search's."""
    run = pipeline.run
    if attribution:
        pipeline.inputs.check_attribution()

    def predict(given: Any) -> Result:
        return pipeline.results([given], Options() if not to else Options(to=to))[0]

    tokens = pipeline.inputs.source_and_target(source, target, to, predict)
    result = forced(run.bundle, [tokens[0]], [tokens[1]])[0]
    gradients = attributed(run.bundle, *tokens) if attribution else None
    view = captured_view(
        (run.source_side, run.target_side),
        tokens,
        result.weights,
        choice=run.alignment_head,
        originals=pipeline.inputs.originals(source),
        attribution=gradients,
    )
    return pipeline.inputs.complete_view(view, source)


def with_forced_pass(
    pipeline: PipelineWithInputs, inputs: Sequence[Any], results: list[Result], options: Options
) -> list[Result]:
    """Results with token scores, alignment and attention, as the options request."""
    run = pipeline.run
    sides = run.source_side, run.target_side
    present = [number for number, result in enumerate(results) if result.tokens]
    passes = forced(
        run.bundle,
        [results[number].source_tokens for number in present],
        [results[number].tokens for number in present],
        attention=options.attention or options.alignment,
    )
    for number, found in zip(present, passes, strict=True):
        result = results[number]
        tokens = result.source_tokens, result.tokens
        if options.scores:
            result = replace(result, token_scores=found.token_scores)
        if options.alignment:
            pieces = in_text(run.source_side).pieces(tokens[0]), run.target_side.pieces(tokens[1])
            cross = found.weights.get("cross", [])
            result = replace(result, alignment=word_alignment(cross, *pieces, run.alignment_head))
        if options.attention:
            originals = pipeline.inputs.originals(inputs[number])
            view = captured_view(sides, tokens, found.weights, choice=run.alignment_head, originals=originals)
            result = replace(result, attention=pipeline.inputs.complete_view(view, inputs[number]))
        results[number] = result
    return results


def branches(pipeline: Pipeline, result: Result) -> tuple[Branch, ...]:
    """All outputs of a search with their attention, the best first."""
    if not (result.tokens and isinstance(pipeline, PipelineWithInputs)):
        return ()
    run = pipeline.run
    outputs = [(result.score, result.tokens), *((other.score, other.tokens) for other in result.others)]
    tokens = [each for _, each in outputs]
    passes = forced(run.bundle, [result.source_tokens] * len(tokens), tokens)
    originals = pipeline.inputs.originals(result.source)
    found = []
    for (score, output), each in zip(outputs, passes, strict=True):
        cross = each.weights.get("cross", [])
        if cross:
            weights = (run.alignment_head or AlignmentHead.default(cross)).select(cross)
            target = axis(run.target_side, output, originals)
            found.append(Branch(score, tuple(each.token_scores), target, weights))
    return tuple(found)


def align_pairs(
    pipeline: Pipeline,
    pairs: Sequence[tuple[str, str]],
    on_done: Callable[[int], None] = lambda count: None,
) -> list[list[tuple[int, int]] | None]:
    """Links (source word, target word), from 0, of each pair; words are separated by blanks. None for a pair that the
    model cannot read whole. on_done: called with how many more are finished."""
    run, inputs = pipeline.run, getattr(pipeline, "inputs", None)
    if not (run.description.model.aligns and isinstance(inputs, TextInputs)):
        raise RegardError("align: this model does not read and write word by word; there is nothing to align.")
    found: list[list[tuple[int, int]] | None] = [None] * len(pairs)
    tokens = {}
    limits = run.max_source_tokens, run.max_target_tokens
    for number, (source, target) in enumerate(pairs):
        if not (LONE_SURROGATE.search(source) or LONE_SURROGATE.search(target)):
            sides = inputs.encode_pair(source, target, inputs.originals(source))
            if all(1 <= len(side) <= limit for side, limit in zip(sides, limits, strict=True)):
                tokens[number] = sides
    on_done(len(pairs) - len(tokens))
    order = sorted(tokens, key=lambda number: max(map(len, tokens[number])))
    for at in range(0, len(order), AT_ONCE):
        some = order[at : at + AT_ONCE]
        passes = forced(run.bundle, [tokens[n][0] for n in some], [tokens[n][1] for n in some])
        for number, each in zip(some, passes, strict=True):
            source_tokens, target_tokens = tokens[number]
            pieces = in_text(run.source_side).pieces(source_tokens), run.target_side.pieces(target_tokens)
            found[number] = word_alignment(each.weights.get("cross", []), *pieces, run.alignment_head)
        on_done(len(some))
    return found
