"""The attention that `regard see` shows: over one source and target, on request with the hypotheses of the beam."""

from dataclasses import replace
from typing import Any

from regard.inference.attention_outputs import beam_hypotheses
from regard.inference.options import Options
from regard.inference.predictor import Predictor
from regard.views.notebook import AttentionView

TEXT_SEARCH_GROUPS = frozenset({"search", "alignment"})  # option groups of tasks that search outputs for texts


def build_attention_view(
    predictor: Predictor,
    source: Any,
    target: str | None,
    options: Options,
    *,
    name: str,
    attribution: bool = False,
    tree: bool = False,
) -> AttentionView:
    """Attention over a source and a target, or the model's own output if there is none. name: of the model.

    tree: with the other outputs of the beam, where outputs for texts are searched. Raises RegardError.
    """
    predictor.resolve_options(options)
    searches = predictor.task.options >= TEXT_SEARCH_GROUPS
    tree = tree and searches and options.search_name == "beam" and options.beam > 1
    result = None
    if searches and (tree or target is None):
        (result,) = predictor.results([source], options.with_changes(nbest=options.beam) if tree else options)
    view = predictor.attend(source, result if target is None else target, attribution=attribution, to=options.to)
    view = replace(view, model=name)
    return replace(view, beam=beam_hypotheses(predictor.pipeline, result)) if tree and result is not None else view
