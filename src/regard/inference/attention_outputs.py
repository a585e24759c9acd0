"""Attention, alignment and token scores of outputs, or of a given source and target, by one forced pass."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.alignment.aligner import word_alignment
from regard.alignment.alignment_head import AlignmentHead
from regard.data.vocabulary import text_tokenizer
from regard.inference.options import Options
from regard.inference.pipelines.base import Pipeline, PipelineWithInputs
from regard.inference.results import Result
from regard.interpret.attribution import compute_attribution
from regard.interpret.captured_attention import BeamHypothesis
from regard.interpret.forced_pass import run_forced_pass
from regard.interpret.position_labels import build_captured_attention, token_axis
from regard.views.notebook import AttentionView


def captured_view(*args: Any, **kwargs: Any) -> AttentionView:
    """Captured attention that a notebook shows, from the arguments of `build_captured_attention`."""
    return AttentionView.from_captured(build_captured_attention(*args, **kwargs))


def attend(
    pipeline: PipelineWithInputs,
    source: Any,
    target: str | Result | None = None,
    *,
    attribution: bool = False,
    to: str = "",
) -> AttentionView:
    """What a model attends to over a source and a target: a given one, a result of a search, or a new search's."""
    run = pipeline.run
    if attribution:
        pipeline.inputs.check_attribution()

    def predict(item: Any) -> Result:
        return pipeline.results([item], Options() if not to else Options(to=to))[0]

    tokens = pipeline.inputs.source_and_target(source, target, to, predict)
    result = run_forced_pass(run.bundle, [tokens[0]], [tokens[1]])[0]
    gradients = compute_attribution(run.bundle, *tokens) if attribution else None
    view = captured_view(
        (run.source_processor, run.target_vocabulary),
        tokens,
        result.weights,
        alignment_head=run.alignment_head,
        originals=pipeline.inputs.originals(source),
        attribution=gradients,
    )
    return pipeline.inputs.add_source_media(view, source)


def with_forced_pass(
    pipeline: PipelineWithInputs, inputs: Sequence[Any], results: list[Result], options: Options
) -> list[Result]:
    """Results with token scores, alignment and attention, as the options request."""
    run = pipeline.run
    vocabularies = run.source_processor, run.target_vocabulary
    present = [number for number, result in enumerate(results) if result.tokens]
    passes = run_forced_pass(
        run.bundle,
        [results[number].source_tokens for number in present],
        [results[number].tokens for number in present],
        attention=options.attention or options.alignment,
    )
    for number, forced_pass in zip(present, passes, strict=True):
        result = results[number]
        tokens = result.source_tokens, result.tokens
        if options.scores:
            result = replace(result, token_scores=forced_pass.token_scores)
        if options.alignment:
            pieces = text_tokenizer(run.source_processor).pieces(tokens[0]), run.target_vocabulary.pieces(tokens[1])
            cross = forced_pass.weights.get("cross", [])
            result = replace(result, alignment=word_alignment(cross, *pieces, run.alignment_head))
        if options.attention:
            originals = pipeline.inputs.originals(inputs[number])
            view = captured_view(
                vocabularies, tokens, forced_pass.weights, alignment_head=run.alignment_head, originals=originals
            )
            result = replace(result, attention=pipeline.inputs.add_source_media(view, inputs[number]))
        results[number] = result
    return results


def beam_hypotheses(pipeline: Pipeline, result: Result) -> tuple[BeamHypothesis, ...]:
    """All hypotheses of a search with their attention, best first."""
    if not (result.tokens and isinstance(pipeline, PipelineWithInputs)):
        return ()
    run = pipeline.run
    outputs = [(result.score, result.tokens), *((other.score, other.tokens) for other in result.alternatives)]
    tokens = [output for _, output in outputs]
    passes = run_forced_pass(run.bundle, [result.source_tokens] * len(tokens), tokens)
    originals = pipeline.inputs.originals(result.source)
    found = []
    for (score, output), forced_pass in zip(outputs, passes, strict=True):
        cross = forced_pass.weights.get("cross", [])
        if cross:
            weights = (run.alignment_head or AlignmentHead.default(cross)).select(cross)
            target = token_axis(run.target_vocabulary, output, originals)
            found.append(BeamHypothesis(score, tuple(forced_pass.token_scores), target, weights))
    return tuple(found)
