"""Placeholders and tags: text that a translation must contain exactly as often as its source.

%s and %(name)d, {name} and ${name}, <b> and </b>, &amp; and &#39;. In training data where both sides have the same
ones, each becomes one symbol of the vocabulary, the same on both sides; search counts the symbols, and they are
replaced by the original text in the output. Which kinds are treated like this depends on the data: where &apos; is on
one side only, as in tokenized text, it is text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Treatment = Literal["symbol", "text"]
TEXT: Treatment = "text"

FIRST_SYMBOL = 0xE000  # symbols are private-use characters, in the order of their first occurrence in the source
MAX_PLACEHOLDERS = 24  # distinct placeholders in one source
MIN_AGREEMENT = 0.9  # of the pairs with a kind on either side, the share with the same placeholders on both

PATTERNS = {
    "printf": r"%(?:%|(?:\d+\$)?(?:\([\w.\- ]{1,60}\))?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?"
    r"(?:hh?|ll?|[qjzt])?[diouxXeEfFgGcrsa@])(?![a-zA-Z])",
    "brace": r"\$?\{\{[^{}\n]{1,80}\}\}|\$?\{[^{}\n]{0,80}\}",
    "tag": r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,400})?/?>",
    "entity": r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});",
    "reserved": f"[{chr(FIRST_SYMBOL)}-{chr(FIRST_SYMBOL + MAX_PLACEHOLDERS - 1)}]",  # the symbols
}
KINDS = tuple(PATTERNS)
PLACEHOLDER_START = re.compile("[%{<&]")  # a text without one of these has no placeholder
SYMBOLS = tuple(chr(FIRST_SYMBOL + number) for number in range(MAX_PLACEHOLDERS))


@dataclass(frozen=True)
class Protected:
    """A text with symbols in place of its placeholders."""

    text: str
    originals: tuple[str, ...]  # the placeholder of each symbol, in order

    @property
    def counts(self) -> dict[str, int]:
        """How often each symbol occurs."""
        return {symbol: self.text.count(symbol) for symbol in SYMBOLS[: len(self.originals)]}


def compile_kinds(kinds: Iterable[str]) -> re.Pattern[str]:
    """A pattern for placeholders of these kinds."""
    return re.compile("|".join(f"(?:{PATTERNS[kind]})" for kind in kinds) or r"(?!)")


class Protection:
    """Replaces placeholders by symbols. treatments: how each kind in the training data is treated."""

    def __init__(self, treatments: Mapping[str, Treatment]) -> None:
        symbols = [kind for kind in KINDS if treatments.get(kind) == "symbol"]
        self.uses_symbols = bool(symbols)
        self._symbols = compile_kinds([*symbols, "reserved"] if symbols else [])
        self._unknown = compile_kinds(kind for kind in KINDS if kind not in treatments and kind not in symbols)

    def protect(self, text: str) -> Protected | None:
        """A source with symbols; None if it has more distinct placeholders than there are symbols."""
        if not self.uses_symbols or not self._symbols.search(text):
            return Protected(text, ())
        numbers: dict[str, int] = {}
        fragments: list[str] = []
        at = 0
        for match in self._symbols.finditer(text):
            number = numbers.setdefault(match[0], len(numbers))
            if number >= MAX_PLACEHOLDERS:
                return None
            fragments += [text[at : match.start()], SYMBOLS[number]]
            at = match.end()
        return Protected("".join([*fragments, text[at:]]), tuple(numbers))

    def protect_target(self, text: str, originals: tuple[str, ...]) -> str | None:
        """A target with the symbols of its source; None if it has placeholders that the source does not have."""
        numbers = {original: number for number, original in enumerate(originals)}
        fragments: list[str] = []
        at = 0
        for match in self._symbols.finditer(text):
            if match[0] not in numbers:
                return None
            fragments += [text[at : match.start()], SYMBOLS[numbers[match[0]]]]
            at = match.end()
        return "".join([*fragments, text[at:]])

    def protect_pair(self, source: str, target: str) -> tuple[str, str] | None:
        """Both sides with symbols; None if their placeholders differ, or are too many."""
        if not self.uses_symbols:
            return source, target
        first = self.protect(source)
        second = None if first is None else self.protect_target(target, first.originals)
        if first is None or second is None:
            return None
        target_counts = Counter(second)
        if any(target_counts[symbol] != count for symbol, count in first.counts.items()):
            return None
        return first.text, second

    def split_unknown(self, text: str) -> list[tuple[str, bool]]:
        """The fragments of a text, and whether each is a placeholder of a kind that the training data do not have."""
        return _split(self._unknown, text)

    def split_all(self, text: str) -> list[tuple[str, bool]]:
        """The fragments of a text, and whether each is a placeholder of a kind that is not treated as text."""
        return _split(re.compile(f"{self._symbols.pattern}|{self._unknown.pattern}"), text)


def restore(text: str, originals: tuple[str, ...]) -> str:
    """A text with its placeholders instead of the symbols."""
    if not originals:
        return text
    return "".join(
        originals[ord(letter) - FIRST_SYMBOL] if 0 <= ord(letter) - FIRST_SYMBOL < len(originals) else letter
        for letter in text
    )


def _split(pattern: re.Pattern[str], text: str) -> list[tuple[str, bool]]:
    fragments: list[tuple[str, bool]] = []
    at = 0
    for match in pattern.finditer(text):
        if match.start() > at:
            fragments.append((text[at : match.start()], False))
        fragments.append((match[0], True))
        at = match.end()
    if at < len(text):
        fragments.append((text[at:], False))
    return fragments


class PlaceholderStatistics:
    """Counts of the kinds in the training pairs, and of pairs with the same placeholders on both sides."""

    def __init__(self) -> None:
        self._patterns = {kind: re.compile(PATTERNS[kind]) for kind in KINDS if kind != "reserved"}
        self._pairs: Counter[str] = Counter()
        self._equal: Counter[str] = Counter()

    def add(self, source: str, target: str) -> None:
        """Count one pair."""
        if not PLACEHOLDER_START.search(source) and not PLACEHOLDER_START.search(target):
            return
        for kind, pattern in self._patterns.items():
            in_source, in_target = Counter(pattern.findall(source)), Counter(pattern.findall(target))
            if in_source or in_target:
                self._pairs[kind] += 1
                self._equal[kind] += in_source == in_target

    def treatments(self) -> dict[str, Treatment]:
        """How each kind that occurs is treated."""
        return {
            kind: "symbol" if self._equal[kind] >= MIN_AGREEMENT * count else "text"
            for kind, count in self._pairs.items()
        }
