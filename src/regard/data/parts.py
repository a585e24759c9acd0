"""The parts of a source, such as a story and a question, or sentence after sentence: marked where one ends."""

from regard.data.sentences import sentences
from regard.sources import Source, Text
from regard.tokens import SEPARATOR_SIGN

BETWEEN = f" {SEPARATOR_SIGN} "


def has_parts(source: Source) -> bool:
    """Whether a model tells the parts of what it reads apart."""
    return isinstance(source, Text) and source.segments > 1


def parted(text: str, source: Source) -> str:
    """With marks between its parts, which are divided by tabs where people write them; as it is where a model does not
    tell them apart."""
    if not (isinstance(source, Text) and has_parts(source)):
        return text
    parts = text.replace(SEPARATOR_SIGN, "\t").split("\t")
    if source.sentences:
        parts = [sentence for part in parts for sentence, _ in sentences(part.strip())]
    return BETWEEN.join(part.strip() for part in parts)
