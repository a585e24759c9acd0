"""Placeholders and tags: what a translation must contain exactly as often as its source.

%s and %(name)d, {name} and ${name}, <b> and </b>, &amp; and &#39;. In training data where both sides have the same
ones, each becomes one symbol of the vocabulary, the same on both sides; search counts the symbols, and they become
again what they were. Which kinds are treated like this is decided by the data: in text where &apos; comes and goes
with the language, as tokenisers leave it, it is text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Treatment = Literal["symbol", "text"]
TEXT: Treatment = "text"

FIRST = 0xE000  # symbols are characters for private use, in the order of their first appearance in the source
MOST = 24  # different placeholders in one source
OFTEN = 0.9  # the share of pairs that have a kind on either side and have the same ones on both

PATTERNS = {
    "printf": r"%(?:%|(?:\d+\$)?(?:\([\w.\- ]{1,60}\))?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?"
    r"(?:hh?|ll?|[qjzt])?[diouxXeEfFgGcrsa@])(?![a-zA-Z])",
    "brace": r"\$?\{\{[^{}\n]{1,80}\}\}|\$?\{[^{}\n]{0,80}\}",
    "tag": r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,400})?/?>",
    "entity": r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});",
    "reserved": f"[{chr(FIRST)}-{chr(FIRST + MOST - 1)}]",  # what would be taken for a symbol
}
KINDS = tuple(PATTERNS)
SIGNS = re.compile("[%{<&]")  # without one of these there is no placeholder
SYMBOLS = tuple(chr(FIRST + number) for number in range(MOST))


@dataclass(frozen=True)
class Protected:
    """A text with symbols in place of its placeholders."""

    text: str
    originals: tuple[str, ...]  # what the first symbol stands for, and the second, ...

    @property
    def counts(self) -> dict[str, int]:
        """How often each symbol is there."""
        return {symbol: self.text.count(symbol) for symbol in SYMBOLS[: len(self.originals)]}


def pattern_of(kinds: Iterable[str]) -> re.Pattern[str]:
    """Anything of these kinds."""
    return re.compile("|".join(f"(?:{PATTERNS[kind]})" for kind in kinds) or r"(?!)")


class Protection:
    """Kinds that become symbols, and kinds that a model has never seen."""

    def __init__(self, treatments: Mapping[str, Treatment]) -> None:
        symbols = [kind for kind in KINDS if treatments.get(kind) == "symbol"]
        self.uses_symbols = bool(symbols)
        self._symbols = pattern_of([*symbols, "reserved"] if symbols else [])
        self._unknown = pattern_of(kind for kind in KINDS if kind not in treatments and kind not in symbols)

    def protect(self, text: str) -> Protected | None:
        """With symbols; None if it has more of them than there are."""
        if not self.uses_symbols or not self._symbols.search(text):
            return Protected(text, ())
        numbers: dict[str, int] = {}
        parts: list[str] = []
        at = 0
        for found in self._symbols.finditer(text):
            number = numbers.setdefault(found[0], len(numbers))
            if number >= MOST:
                return None
            parts += [text[at : found.start()], SYMBOLS[number]]
            at = found.end()
        return Protected("".join([*parts, text[at:]]), tuple(numbers))

    def protect_like(self, text: str, originals: tuple[str, ...]) -> str | None:
        """A target with the symbols of its source; None if it has not the same placeholders."""
        numbers = {original: number for number, original in enumerate(originals)}
        parts: list[str] = []
        at = 0
        for found in self._symbols.finditer(text):
            if found[0] not in numbers:
                return None
            parts += [text[at : found.start()], SYMBOLS[numbers[found[0]]]]
            at = found.end()
        return "".join([*parts, text[at:]])

    def protect_pair(self, source: str, target: str) -> tuple[str, str] | None:
        """Both sides with symbols; None if their placeholders differ, or are too many."""
        if not self.uses_symbols:
            return source, target
        first = self.protect(source)
        second = None if first is None else self.protect_like(target, first.originals)
        if first is None or second is None:
            return None
        found = Counter(second)
        if any(found[symbol] != count for symbol, count in first.counts.items()):
            return None
        return first.text, second

    def fragments(self, text: str) -> list[tuple[str, bool]]:
        """The text in parts, and whether each is a placeholder of a kind that the model does not know."""
        return _parts(self._unknown, text)

    def all_parts(self, text: str) -> list[tuple[str, bool]]:
        """The same for every kind that is kept."""
        return _parts(re.compile(f"{self._symbols.pattern}|{self._unknown.pattern}"), text)


def restore(text: str, originals: tuple[str, ...]) -> str:
    """What the symbols stand for, in their places."""
    if not originals:
        return text
    return "".join(
        originals[ord(letter) - FIRST] if 0 <= ord(letter) - FIRST < len(originals) else letter for letter in text
    )


def _parts(pattern: re.Pattern[str], text: str) -> list[tuple[str, bool]]:
    parts: list[tuple[str, bool]] = []
    at = 0
    for found in pattern.finditer(text):
        if found.start() > at:
            parts.append((text[at : found.start()], False))
        parts.append((found[0], True))
        at = found.end()
    if at < len(text):
        parts.append((text[at:], False))
    return parts


class Census:
    """Which kinds training pairs have, and whether both sides have the same."""

    def __init__(self) -> None:
        self._patterns = {kind: re.compile(PATTERNS[kind]) for kind in KINDS if kind != "reserved"}
        self._there: Counter[str] = Counter()
        self._same: Counter[str] = Counter()

    def add(self, source: str, target: str) -> None:
        """One pair."""
        if not SIGNS.search(source) and not SIGNS.search(target):
            return
        for kind, pattern in self._patterns.items():
            ours, theirs = Counter(pattern.findall(source)), Counter(pattern.findall(target))
            if ours or theirs:
                self._there[kind] += 1
                self._same[kind] += ours == theirs

    def treatments(self) -> dict[str, Treatment]:
        """What becomes of each kind that was seen."""
        return {kind: "symbol" if self._same[kind] >= OFTEN * count else "text" for kind, count in self._there.items()}
