"""An input on its way to a result, and whether a result satisfies what was requested."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regard.data.vocabulary import SourceInput
from regard.inference.results import Constraints, Result


@dataclass(frozen=True)
class Request:
    """One input, encoded."""

    text: str  # as it came in; of a file its name
    tokens: SourceInput  # with the end of sequence; of a file an array
    constraints: Constraints = field(default_factory=Constraints)  # that the user set
    terms: Mapping[tuple[int, ...], int] = field(default_factory=dict)  # of a glossary, and how often each must come
    originals: tuple[str, ...] = ()  # the placeholders that the symbols among its tokens stand for
    symbol_counts: Mapping[int, int] = field(default_factory=dict)  # how often the output must have each symbol
    error: str = ""  # why there can be no result

    def empty_result(self) -> Result:
        """The result of an input that cannot be read, or is empty."""
        return Result(self.text, "", 0.0, [], [], error=self.error)


def contains_terms(result: Result, terms: Mapping[tuple[int, ...], int]) -> bool:
    """Whether the outputs contain every term of a glossary as often as they must."""
    outputs = [result.tokens, *(other.tokens for other in result.others)]
    return all(count_phrase(phrase, tokens) >= count for tokens in outputs for phrase, count in terms.items())


def keeps_placeholders(result: Result, request: Request) -> bool:
    """Whether the outputs contain every placeholder as often as the source does."""
    outputs = [result.tokens, *(other.tokens for other in result.others)]
    counts = request.symbol_counts.items()
    return all(tokens.count(token) == count for tokens in outputs for token, count in counts)


def count_phrase(phrase: Sequence[int], tokens: Sequence[int]) -> int:
    """How often a phrase occurs."""
    return sum(tuple(tokens[at : at + len(phrase)]) == tuple(phrase) for at in range(len(tokens)))
