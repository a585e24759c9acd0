"""A source on its way to a result, and whether a result has what was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regard.data.vocabulary import Given
from regard.inference.results import Result, Wish


@dataclass(frozen=True)
class Asked:
    """A source on its way."""

    text: str  # as it came in; of a file its name
    tokens: Given  # with their end; of a file an array
    wish: Wish = field(default_factory=Wish)  # what a person asked for
    terms: Mapping[tuple[int, ...], int] = field(default_factory=dict)  # of a glossary, and how often to say each
    originals: tuple[str, ...] = ()  # the placeholders that the symbols among its tokens stand for
    counted: Mapping[int, int] = field(default_factory=dict)  # how often the output must say each of them
    wrong: str = ""


def says(result: Result, terms: Mapping[tuple[int, ...], int]) -> bool:
    """Whether the outputs say every term of a glossary as often as they must."""
    outputs = [result.tokens, *(other.tokens for other in result.others)]
    return all(times(phrase, tokens) >= count for tokens in outputs for phrase, count in terms.items())


def keeps(result: Result, source: Asked) -> bool:
    """Whether the outputs say every placeholder as often as the source does."""
    outputs = [result.tokens, *(other.tokens for other in result.others)]
    return all(tokens.count(token) == count for tokens in outputs for token, count in source.counted.items())


def times(phrase: Sequence[int], tokens: Sequence[int]) -> int:
    """How often a phrase is said."""
    return sum(tuple(tokens[at : at + len(phrase)]) == tuple(phrase) for at in range(len(tokens)))
