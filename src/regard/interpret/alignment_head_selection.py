"""Selection of the alignment head of a trained model, by one forced pass over examples of a dataset."""

from collections.abc import Iterable, Sequence

from regard.alignment.aligner import find_alignment_head
from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.lexicon import Lexicon
from regard.data.pair_dataset import PairDataset
from regard.interpret.captured_attention import Weights
from regard.interpret.forced_pass import MAX_BATCH_SIZE, run_forced_pass
from regard.runs.bundle import Bundle

MAX_EXAMPLES = 500


def choose_alignment_head(bundle: Bundle, pairs: PairDataset, lexicon: Lexicon) -> AlignmentHead | None:
    """The layer and head that align best on the first examples of a dataset; None for a model without attention."""

    def examples_with_weights() -> Iterable[tuple[Sequence[int], Sequence[int], Sequence[Weights]]]:
        examples = [pairs.tokens(number) for number in range(min(MAX_EXAMPLES, len(pairs)))]
        for start in range(0, len(examples), MAX_BATCH_SIZE):
            batch = examples[start : start + MAX_BATCH_SIZE]
            passes = run_forced_pass(bundle, [source for source, _ in batch], [target for _, target in batch])
            yield from ((*pair, each.weights.get("cross", [])) for pair, each in zip(batch, passes, strict=True))

    return find_alignment_head(examples_with_weights(), lexicon)[0]
