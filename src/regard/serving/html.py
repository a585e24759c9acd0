"""HTML in, HTML out: its tags and what is not text stay, its text is translated.

Text is found between tags by a pattern that no markup, however broken, can make fail. Inline tags within a sentence
stay where the model puts them if it has learnt to; otherwise the text around them is translated in parts.
"""

import html
import re
from collections.abc import Sequence

INLINE = "a|abbr|b|bdi|bdo|cite|code|data|dfn|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub|sup|time|u|var|wbr"
MARKUP = re.compile(
    r"<!--.*?(?:-->|$)|<!\[CDATA\[.*?(?:\]\]>|$)|<(script|style|textarea|pre|code)\b.*?(?:</\1\s*>|$)"
    r"|</?[a-zA-Z][^<>]*>|<[!?][^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
INLINE_TAG = re.compile(rf"</?(?:{INLINE})(?:\s[^<>]*)?/?>", re.IGNORECASE)


def split(markup: str) -> list[tuple[str, bool]]:
    """Parts, and whether each is a text to translate; texts keep their inline tags, and have no entities."""
    parts: list[tuple[str, bool]] = []
    text = ""
    at = 0
    for found in MARKUP.finditer(markup):
        text += html.unescape(markup[at : found.start()])
        at = found.end()
        if INLINE_TAG.fullmatch(found[0]):
            text += found[0]
            continue
        parts += _text(text)
        text = ""
        parts.append((found[0], False))
    return parts + _text(text + html.unescape(markup[at:]))


def _text(text: str) -> list[tuple[str, bool]]:
    words = INLINE_TAG.sub("", text)
    return [(text, any(letter.isalpha() for letter in words))] if text else []


def join(parts: Sequence[tuple[str, bool]], translations: Sequence[str]) -> str:
    """The markup again, with a translation for each text, escaped but for its inline tags."""
    said = iter(translations)
    return "".join(_escaped(next(said)) if is_text else _kept(part) for part, is_text in parts)


def _kept(part: str) -> str:
    return part if MARKUP.fullmatch(part) else _escaped(part)


def _escaped(text: str) -> str:
    parts: list[str] = []
    at = 0
    for found in INLINE_TAG.finditer(text):
        parts += [html.escape(text[at : found.start()], quote=False), found[0]]
        at = found.end()
    return "".join([*parts, html.escape(text[at:], quote=False)])
