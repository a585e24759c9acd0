"""A class of every word: names, parts of speech."""

from collections.abc import Sequence

from torch import Tensor

from regard.data.input_validation import normalize_whitespace
from regard.data.segments import by_words, framed
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.inference.per_position import Placewise, Read
from regard.inference.results import Result
from regard.special_tokens import BEGIN


class Tagger(Placewise):
    """A model that says a tag of every word of a text; words are what blanks divide."""

    what = "tags"

    def tags(self, text: str) -> list[tuple[str, str]]:
        """Each word and its tag. Raises RegardError for a text that cannot be read."""
        result = self.translate(text)
        if result.wrong:
            raise RegardError(f"{text[:60]!r}: {result.wrong}.")
        return list(zip(normalize_whitespace(text).split(), result.text.split(), strict=True))

    def _read(self, text: str) -> Read:
        (tokens,), (firsts,) = by_words([self.cased(normalize_whitespace(text))], in_text(self.source_side))
        whole = framed(tokens, self.description.model.source)
        if not tokens:
            return Read(text, wrong="it is empty")
        if len(whole) > self.longest:
            return Read(text, wrong=f"it is longer than the {self.longest:,} tokens that this model reads")
        return Read(text, [whole], [place + int(whole[0] == BEGIN) for place in firsts])

    def _outcome(self, read: Read, logits: Sequence[Tensor]) -> Result:
        """The tags, with blanks between."""
        best = logits[0][read.about].log_softmax(-1).max(-1)
        tokens, score = best.indices.tolist(), float(best.values.mean())
        (text,) = self.target_side.decode([tokens])
        return Result(read.text, text, score, read.rows[0], tokens)
