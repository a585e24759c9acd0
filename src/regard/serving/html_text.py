"""Text in HTML: markup is split into tags and text, and joined again with translations of the text.

Text between tags is found with a regular expression, which cannot fail on broken markup. Inline tags stay within the
text to translate, for models that were trained to place them.
"""

import html
import re
from collections.abc import Sequence
from functools import lru_cache

INLINE = "a|abbr|b|bdi|bdo|cite|code|data|dfn|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub|sup|time|u|var|wbr"
NO_TEXT = ("script", "style", "textarea", "pre", "code")
MAX_IGNORED_TAGS = 50
NAME = re.compile(r"[A-Za-z_][\w.:-]{0,99}")
INLINE_TAG = re.compile(rf"</?(?:{INLINE})(?:\s[^<>]*)?/?>", re.IGNORECASE)


@lru_cache(64)
def _markup(ignored: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for tags and other markup that is not text; of some elements, their content, too."""
    names = "|".join(map(re.escape, (*NO_TEXT, *ignored)))
    return re.compile(
        rf"<!--.*?(?:-->|$)|<!\[CDATA\[.*?(?:\]\]>|$)|<({names})(?=[\s>])[^<>]*(?<!/)>.*?(?:</\1\s*>|$)"
        r"|</?[a-zA-Z][^<>]*>|<[!?][^<>]*>",
        re.DOTALL | re.IGNORECASE,
    )


def split(markup: str, ignored: Sequence[str] = ()) -> list[tuple[str, bool]]:
    """Segments, each with whether it is text to translate. Text keeps its inline tags; its entities are decoded.

    ignored: names of tags whose content is not translated.
    """
    segments: list[tuple[str, bool]] = []
    text = ""
    start = 0
    for match in _markup(tuple(name for name in ignored[:MAX_IGNORED_TAGS] if NAME.fullmatch(name))).finditer(markup):
        text += html.unescape(markup[start : match.start()])
        start = match.end()
        if INLINE_TAG.fullmatch(match[0]):
            text += match[0]
            continue
        segments += _text_segments(text)
        text = ""
        segments.append((match[0], False))
    return segments + _text_segments(text + html.unescape(markup[start:]))


def _text_segments(text: str) -> list[tuple[str, bool]]:
    if any(map(str.isalpha, INLINE_TAG.sub("", text))):
        return [(text, True)]
    return [(_escape(text), False)] if text else []


def join(segments: Sequence[tuple[str, bool]], translations: Sequence[str]) -> str:
    """The markup with a translation for each text, which is escaped except for its inline tags."""
    remaining = iter(translations)
    return "".join(_escape(next(remaining)) if is_text else segment for segment, is_text in segments)


def _escape(text: str) -> str:
    pieces: list[str] = []
    start = 0
    for tag in INLINE_TAG.finditer(text):
        pieces += [html.escape(text[start : tag.start()], quote=False), tag[0]]
        start = tag.end()
    return "".join([*pieces, html.escape(text[start:], quote=False)])
