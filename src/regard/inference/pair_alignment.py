"""Word alignment of given pairs by a model's attention, by one forced pass over each."""

from collections.abc import Callable, Sequence

from regard.alignment.aligner import word_alignment
from regard.data.input_validation import LONE_SURROGATE
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.inputs.text import TextInputs
from regard.inference.pipelines.base import Pipeline
from regard.interpret.forced_pass import MAX_BATCH_SIZE, run_forced_pass


def align_pairs(
    pipeline: Pipeline,
    pairs: Sequence[tuple[str, str]],
    on_done: Callable[[int], None] = lambda count: None,
) -> list[list[tuple[int, int]] | None]:
    """Links (source word, target word), from 0, of each pair; words are separated by blanks. None for a pair that is
    invalid or longer than the model's maximum length. on_done: called with how many more are finished."""
    run, inputs = pipeline.run, getattr(pipeline, "inputs", None)
    if not (run.description.model.aligns and isinstance(inputs, TextInputs)):
        raise RegardError("align: this model does not have words as source and target; there is nothing to align.")
    found: list[list[tuple[int, int]] | None] = [None] * len(pairs)
    tokens = {}
    limits = run.max_source_tokens, run.max_target_tokens
    for number, (source, target) in enumerate(pairs):
        if not (LONE_SURROGATE.search(source) or LONE_SURROGATE.search(target)):
            pair = inputs.encode_pair(source, target, inputs.originals(source))
            if all(1 <= len(each) <= limit for each, limit in zip(pair, limits, strict=True)):
                tokens[number] = pair
    on_done(len(pairs) - len(tokens))
    order = sorted(tokens, key=lambda number: max(map(len, tokens[number])))
    for start in range(0, len(order), MAX_BATCH_SIZE):
        batch = order[start : start + MAX_BATCH_SIZE]
        passes = run_forced_pass(run.bundle, [tokens[n][0] for n in batch], [tokens[n][1] for n in batch])
        for number, forced_pass in zip(batch, passes, strict=True):
            source_tokens, target_tokens = tokens[number]
            pieces = (
                text_tokenizer(run.source_processor).pieces(source_tokens),
                run.target_vocabulary.pieces(target_tokens),
            )
            found[number] = word_alignment(forced_pass.weights.get("cross", []), *pieces, run.alignment_head)
        on_done(len(batch))
    return found
