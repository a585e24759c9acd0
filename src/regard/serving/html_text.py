"""HTML in, HTML out: its tags and what is not text stay, its text is translated.

Text is found between tags by a pattern that no markup, however broken, can make fail. Inline tags within a sentence
stay where the model puts them if it has learnt to; otherwise the text around them is translated in parts.
"""

import html
import re
from collections.abc import Sequence
from functools import lru_cache

INLINE = "a|abbr|b|bdi|bdo|cite|code|data|dfn|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub|sup|time|u|var|wbr"
NO_TEXT = ("script", "style", "textarea", "pre", "code")
MOST_IGNORED = 50
NAME = re.compile(r"[A-Za-z_][\w.:-]{0,99}")
INLINE_TAG = re.compile(rf"</?(?:{INLINE})(?:\s[^<>]*)?/?>", re.IGNORECASE)


@lru_cache(64)
def _markup(ignored: tuple[str, ...]) -> re.Pattern[str]:
    """Tags and all that is not text; of some tags, all that is between them, too."""
    names = "|".join(map(re.escape, (*NO_TEXT, *ignored)))
    return re.compile(
        rf"<!--.*?(?:-->|$)|<!\[CDATA\[.*?(?:\]\]>|$)|<({names})(?=[\s>])[^<>]*(?<!/)>.*?(?:</\1\s*>|$)"
        r"|</?[a-zA-Z][^<>]*>|<[!?][^<>]*>",
        re.DOTALL | re.IGNORECASE,
    )


def split(markup: str, ignored: Sequence[str] = ()) -> list[tuple[str, bool]]:
    """Parts, and whether each is a text to translate; texts keep their inline tags, and have no entities.

    `ignored`: tags whose text stays as it is, too.
    """
    parts: list[tuple[str, bool]] = []
    text = ""
    at = 0
    for found in _markup(tuple(name for name in ignored[:MOST_IGNORED] if NAME.fullmatch(name))).finditer(markup):
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
    if any(map(str.isalpha, INLINE_TAG.sub("", text))):
        return [(text, True)]
    return [(_escaped(text), False)] if text else []


def join(parts: Sequence[tuple[str, bool]], translations: Sequence[str]) -> str:
    """The markup again, with a translation for each text, escaped but for its inline tags."""
    said = iter(translations)
    return "".join(_escaped(next(said)) if is_text else part for part, is_text in parts)


def _escaped(text: str) -> str:
    parts: list[str] = []
    at = 0
    for found in INLINE_TAG.finditer(text):
        parts += [html.escape(text[at : found.start()], quote=False), found[0]]
        at = found.end()
    return "".join([*parts, html.escape(text[at:], quote=False)])
