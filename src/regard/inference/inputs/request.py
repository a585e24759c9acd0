"""Encoded inputs with their constraints, and checks that a result satisfies them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regard.data.vocabulary import SourceInput
from regard.inference.results import Result
from regard.inference.search_config import Constraints


@dataclass(frozen=True)
class Request:
    """One input, encoded."""

    text: str  # the original text; of a file its name
    tokens: SourceInput  # with the end of sequence; of a file an array
    constraints: Constraints = field(default_factory=Constraints)  # from the options
    terms: Mapping[tuple[int, ...], int] = field(default_factory=dict)  # glossary terms, and how often each must occur
    originals: tuple[str, ...] = ()  # the placeholders that the symbols among its tokens stand for
    symbol_counts: Mapping[int, int] = field(default_factory=dict)  # how often the output must have each symbol
    error: str = ""  # why there can be no result

    def empty_result(self) -> Result:
        """The result for an invalid or empty input."""
        return Result(self.text, "", 0.0, [], [], error=self.error)


def contains_terms(result: Result, terms: Mapping[tuple[int, ...], int]) -> bool:
    """Whether the outputs contain every term of a glossary as often as they must."""
    outputs = [result.tokens, *(other.tokens for other in result.alternatives)]
    return all(count_phrase(phrase, tokens) >= count for tokens in outputs for phrase, count in terms.items())


def preserves_placeholders(result: Result, request: Request) -> bool:
    """Whether the outputs contain every placeholder as often as the source does."""
    outputs = [result.tokens, *(other.tokens for other in result.alternatives)]
    counts = request.symbol_counts.items()
    return all(tokens.count(token) == count for tokens in outputs for token, count in counts)


def count_phrase(phrase: Sequence[int], tokens: Sequence[int]) -> int:
    """How often a phrase occurs."""
    return sum(tuple(tokens[at : at + len(phrase)]) == tuple(phrase) for at in range(len(tokens)))
