"""A label for every word of a text: named entities, parts of speech."""

from collections.abc import Sequence

from torch import Tensor

from regard.data.input_validation import normalize_whitespace
from regard.data.segments import add_special_tokens, encode_words
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.token_level import EncodedText, TokenLevelPipeline
from regard.inference.results import Result
from regard.special_tokens import BOS


class TagDecoder:
    """The most likely tag at the first token of every word; words are separated by blanks."""

    what = "tags"

    def __init__(self, run: LoadedRun) -> None:
        self.run = run

    def encode(self, text: str) -> EncodedText:
        run = self.run
        (tokens,), (first_tokens,) = encode_words(
            [run.normalize_case(normalize_whitespace(text))], text_tokenizer(run.source_processor)
        )
        row = add_special_tokens(tokens, run.description.model.source)
        if not tokens:
            return EncodedText(text, error="it is empty")
        if len(row) > run.max_source_tokens:
            return EncodedText(
                text, error=f"it is longer than the {run.max_source_tokens:,} tokens that this model reads"
            )
        return EncodedText(text, [row], [position + int(row[0] == BOS) for position in first_tokens])

    def decode(self, encoded: EncodedText, logits: Sequence[Tensor]) -> Result:
        """The tags, separated by blanks."""
        best = logits[0][encoded.context].log_softmax(-1).max(-1)
        tokens, score = best.indices.tolist(), float(best.values.mean())
        (text,) = self.run.target_vocabulary.decode([tokens])
        return Result(encoded.text, text, score, encoded.rows[0], tokens)


def tag(pipeline: TokenLevelPipeline, text: str) -> list[tuple[str, str]]:
    """Each word and its tag. Raises RegardError for an invalid text."""
    (result,) = pipeline.results([text], Options())
    if result.error:
        raise RegardError(f"{text[:60]!r}: {result.error}.")
    return list(zip(normalize_whitespace(text).split(), result.text.split(), strict=True))
