"""XLIFF 1.2 and 2, and TMX: targets that are missing or empty are filled in; every other byte stays.

The file is changed at the places where a parser found its elements, not written again from a tree.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from regard.documents import Layout
from regard.errors import RegardError

DECLARED = re.compile(rb"^\s*<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
TAG = re.compile(r"<[^<>]*>")
NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
# What a translator must not touch: codes of the program that a text is from, and what is marked so.
CODES = re.compile(
    r"""<((?:[\w.-]+:)?(?:bpt|ept|ph|it|ut))\b(?:[^<>]*[^<>/])?>.*?</\1\s*>
        |<((?:[\w.-]+:)?mrk)\b[^<>]*\b(?:translate\s*=\s*["']no["']|mtype\s*=\s*["']protected["'])[^<>]*(?<!/)>
         (?:(?!</?\2\b).)*</\2\s*>""",
    re.DOTALL | re.VERBOSE,
)
STATE = re.compile(r"""\sstate\s*=\s*("[^"]*"|'[^']*')""")
ESCAPE = re.compile(rf"&({'|'.join(NAMED)}|#\d+|#[xX][0-9A-Fa-f]+);")
LONGEST = 1 << 29


@dataclass
class _Element:
    """Where an element stands: <name ...>inside</name>."""

    name: str
    start: int
    inside: int
    end_tag: int = 0
    end: int = 0
    prefix: str = ""  # of its namespace, with the colon
    attributes: dict[str, str] = field(default_factory=dict)
    above: dict[str, str] = field(default_factory=dict)  # attributes of all that it is in, the nearest's last
    children: list["_Element"] = field(default_factory=list)

    def child(self, name: str) -> "_Element | None":
        return next((child for child in self.children if child.name == name), None)


class _Xml:
    """An XML file as UTF-8, with the elements of some names and those within them."""

    def __init__(self, content: bytes, name: str, wanted: frozenset[str]) -> None:
        self.name = name
        declared = DECLARED.match(content)
        self.encoding = declared[1].decode("ascii") if declared else "utf-8"
        self.mark = b""
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            self.encoding, self.mark = ("utf-16-le" if content[0] == 0xFF else "utf-16-be"), content[:2]
        elif content.startswith(b"\xef\xbb\xbf"):
            self.encoding, self.mark = "utf-8", content[:3]
        try:
            self.content = content[len(self.mark) :].decode(self.encoding).encode("utf-8")
        except (LookupError, UnicodeDecodeError) as error:
            raise RegardError(f"{name}: its encoding cannot be read ({error}); save it in UTF-8.") from None
        self.found: list[_Element] = []
        self.root: _Element | None = None
        self._open: list[_Element | None] = []
        self._above: list[dict[str, str]] = [{}]
        self._wanted = wanted
        self._parse()

    def _parse(self) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = lambda name, given: self._start(parser, name, given)
        parser.EndElementHandler = lambda _: self._finish(parser)
        try:
            parser.Parse(self.content, True)
        except expat.ExpatError as error:
            raise RegardError(f"{self.name}: this is not well-formed XML: {error}.") from None

    def _refuse(self, *_: object) -> None:
        raise RegardError(f"{self.name}: it defines entities, which a translation file need not; refused.")

    def _start(self, parser: expat.XMLParserType, name: str, given: dict[str, str]) -> None:
        prefix, colon, local = name.rpartition(":")
        at = parser.CurrentByteIndex
        above = next((element for element in reversed(self._open) if element is not None), None)
        self._above.append({**self._above[-1], **given})
        if self.root is not None and local not in self._wanted and above is None:
            self._open.append(None)
            return
        element = _Element(local, at, _tag_end(self.content, at), 0, 0, prefix + colon, dict(given), self._above[-1])
        if self.root is None:
            self.root = element
            self._open.append(None)  # what is in the file is in it; it is nobody's text
            return
        (above.children if above is not None else self.found).append(element)
        self._open.append(element)

    def _finish(self, parser: expat.XMLParserType) -> None:
        element = self._open.pop()
        self._above.pop()
        if element is None:
            return
        at = parser.CurrentByteIndex
        if self.content[element.inside - 2 : element.inside] == b"/>":
            element.end_tag = element.end = element.inside
        else:
            element.end_tag, element.end = at, _tag_end(self.content, at)

    def raw(self, element: _Element) -> str:
        """What is inside, as it is written."""
        return self.content[element.inside : element.end_tag].decode("utf-8")

    def filled(self, element: _Element, inside: str, state: str = "") -> tuple[int, int, str]:
        """The change that puts this inside an empty element, and says so in its tag."""
        tag = self.content[element.start : element.inside].decode("utf-8").rstrip(">").rstrip("/").rstrip()
        if state:
            tag = f'{STATE.sub("", tag)} state="{state}"'
        return element.start, element.end, f"{tag}>{inside}</{element.prefix}{element.name}>"

    def part(self, start: int, end: int, changes: list[tuple[int, int, str]]) -> str:
        """What is written between two places, with some of it replaced."""
        parts: list[bytes] = []
        for first, last, new in sorted(changes):
            parts += [self.content[start:first], new.encode("utf-8")]
            start = last
        return b"".join([*parts, self.content[start:end]]).decode("utf-8")

    def changed(self, changes: list[tuple[int, int, str]]) -> bytes:
        """The file with some of it replaced, in its own encoding."""
        text = self.part(0, len(self.content), changes)
        return self.mark + text.encode(self.encoding, "xmlcharrefreplace")

    def indent(self, at: int) -> str:
        """The white space before this place, from its line's beginning; nothing if something else is there."""
        before = self.content[self.content.rfind(b"\n", 0, at) : at].decode("utf-8", "replace")
        return before if before.startswith("\n") and not before.strip() else ""


def _tag_end(content: bytes, at: int) -> int:
    """Behind the > of the tag that begins here."""
    quote = 0
    for place in range(at, min(len(content), at + LONGEST)):
        byte = content[place]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in (0x22, 0x27):
            quote = byte
        elif byte == 0x3E:
            return place + 1
    return len(content)


class _Inside:
    """What is inside an element, for a translator: its markup as it is, its text without escapes.

    Codes become one tag each, so that nobody translates what is in them; CDATA is text; comments stay behind.
    """

    def __init__(self, raw: str) -> None:
        plain = COMMENT.sub("", CDATA.sub(lambda found: escape(found[1]), raw))
        self._codes: dict[str, str] = {}
        self._plain = CODES.sub(self._as_tag, plain)
        self.text = "".join(
            part if TAG.fullmatch(part) else ESCAPE.sub(_unescaped, part)
            for part in re.split(f"({TAG.pattern})", self._plain)
        )

    def _as_tag(self, found: re.Match[str]) -> str:
        tag = f"<x-{len(self._codes) + 1}/>"
        self._codes[tag] = found[0]
        return tag

    def markup(self, said: str) -> str:
        """A translation as markup: the source's own tags, all else escaped. Well-formed, whatever was said."""
        tags = TAG.findall(self._plain)
        if not tags:
            return escape(said)
        pattern = re.compile("|".join(re.escape(tag) for tag in sorted(set(tags), key=len, reverse=True)))
        parts: list[str] = []
        at = 0
        for found in pattern.finditer(said):
            parts += [escape(said[at : found.start()]), self._codes.get(found[0], found[0])]
            at = found.end()
        whole = "".join([*parts, escape(said[at:])])
        if Counter(pattern.findall(said)) == Counter(tags) and _well_formed(whole):
            return whole
        return escape(pattern.sub("", said)) + "".join(self._codes.get(tag, tag) for tag in tags)


def _unescaped(found: re.Match[str]) -> str:
    name = found[1]
    if name.startswith("#"):
        return chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))  # a parser has found it to be a character
    return NAMED[name]


def _well_formed(inside: str) -> bool:
    parser = expat.ParserCreate(namespace_separator=None)
    try:
        parser.Parse(f"<x>{inside}</x>", True)
    except expat.ExpatError:
        return False
    return True


LANGUAGES = (("source-language", "srcLang"), ("target-language", "trgLang"))  # in XLIFF 1.2, and in 2


def _fits(own: str | None, wanted: str | None) -> bool:
    """Whether a language is the wanted one, as far as both are told."""
    return not own or not wanted or _primary(own) == _primary(wanted)


def _primary(language: str) -> str:
    return language.lower().replace("_", "-").partition("-")[0]


@dataclass
class _Unit:
    """A unit without a target: what holds its texts, their elements in it, and the empty target, if there is one."""

    holder: _Element
    parts: list[_Element]
    target: _Element | None
    behind: _Element  # where the standard has a target


class Xliff:
    """Units that have a source and no target. Where a unit is segmented, each segment is a text."""

    notes: Sequence[str] = ()

    def __init__(self, content: bytes, name: str, layout: Layout) -> None:
        self._xml = _Xml(content, name, frozenset({"trans-unit", "segment"}))
        root = self._xml.root
        if root is None or root.name != "xliff":
            raise RegardError(f"{name}: this is XML, but not XLIFF.")
        self._units: list[_Unit] = []
        texts: list[str] = []
        others: set[str] = set()  # pairs of languages that are not wanted
        for unit in self._xml.found:
            source, target = unit.child("source"), unit.child("target")
            empty = target is None or not self._xml.raw(target).strip()
            if source is None or unit.above.get("translate") == "no" or not empty:
                continue
            ours = [unit.above.get(old) or unit.above.get(new) for old, new in LANGUAGES]
            if not all(map(_fits, ours, (layout.source_language, layout.target_language))):
                others.add(" → ".join(language or "?" for language in ours))
                continue
            behind = holder = unit.child("seg-source") or source
            segments = [part for part in holder.children if part.attributes.get("mtype") == "seg"]
            if not segments:
                holder, segments = source, [source]
            parts = [part for part in segments if self._inside(part).text.strip()]
            if parts:
                self._units.append(_Unit(holder, parts, target, behind))
                texts += [self._inside(part).text for part in parts]
        if others and not texts:
            raise RegardError(
                f"{name}: its languages are {', '.join(sorted(others))}, not {layout.source_language or '?'} → "
                f"{layout.target_language or '?'}; if they are right, name them with --from and --to."
            )
        self._state = "needs-review-translation" if (root.attributes.get("version") or "1.2").startswith("1") else ""
        self.texts: Sequence[str] = texts

    def _inside(self, element: _Element) -> _Inside:
        return _Inside(self._xml.raw(element))

    def written(self, translations: Sequence[str | None]) -> bytes:
        """What has no translation stays without a target."""
        state = f' state="{self._state}"' if self._state else ""
        waiting = iter(translations)
        changes: list[tuple[int, int, str]] = []
        for unit in self._units:
            said = [next(waiting) for _ in unit.parts]
            if not all(said):
                continue
            holder = unit.holder
            inside = self._xml.part(
                holder.inside,
                holder.end_tag,
                [
                    (part.inside, part.end_tag, self._inside(part).markup(text or ""))
                    for part, text in zip(unit.parts, said, strict=True)
                ],
            )
            if unit.target is None:
                name = f"{holder.prefix}target"
                new = f"{self._xml.indent(holder.start)}<{name}{state}>{inside}</{name}>"
                changes.append((unit.behind.end, unit.behind.end, new))
            else:
                changes.append(self._xml.filled(unit.target, inside, self._state))
        return self._xml.changed(changes)


class Tmx:
    """Units that have the source language and lack the target language."""

    notes: Sequence[str] = ()

    def __init__(self, content: bytes, name: str, layout: Layout) -> None:
        if not layout.source_language or not layout.target_language:
            raise RegardError(f"{name}: say from which language to which, with --from and --to.")
        self._xml = _Xml(content, name, frozenset({"tu"}))
        if self._xml.root is None or self._xml.root.name != "tmx":
            raise RegardError(f"{name}: this is XML, but not TMX.")
        self._target = layout.target_language
        self._units: list[tuple[_Element, _Element | None]] = []  # the source's variant, and an empty one of the target
        texts: list[str] = []
        languages: set[str] = set()
        for unit in self._xml.found:
            by_language = {_language(variant): variant for variant in unit.children if variant.name == "tuv"}
            languages |= set(by_language)
            source, target = _matching(by_language, layout.source_language), _matching(by_language, self._target)
            segments = [variant.child("seg") if variant is not None else None for variant in (source, target)]
            if source is None or segments[0] is None:
                continue
            if segments[1] is not None and self._xml.raw(segments[1]).strip():
                continue
            text = _Inside(self._xml.raw(segments[0])).text
            if text.strip():
                self._units.append((source, target))
                texts.append(text)
        if languages and _name_of(languages, layout.source_language) is None:
            raise RegardError(f"{name}: it has no {layout.source_language}; it has {', '.join(sorted(languages))}.")
        self.texts: Sequence[str] = texts

    def written(self, translations: Sequence[str | None]) -> bytes:
        """What has no translation stays as it was."""
        changes: list[tuple[int, int, str]] = []
        for (source, target), said in zip(self._units, translations, strict=True):
            segment = source.child("seg")
            if not said or segment is None:
                continue
            inside = _Inside(self._xml.raw(segment)).markup(said)
            place = target.child("seg") if target is not None else None
            if target is None:
                tuv, seg = f"{source.prefix}tuv", f"{segment.prefix}seg"
                new = f'<{tuv} xml:lang="{escape(self._target)}"><{seg}>{inside}</{seg}></{tuv}>'
                changes.append((source.end, source.end, self._xml.indent(source.start) + new))
            elif place is not None:
                changes.append(self._xml.filled(place, inside))
            elif target.end_tag == target.end:  # <tuv/>
                changes.append(self._xml.filled(target, f"<{segment.prefix}seg>{inside}</{segment.prefix}seg>"))
            else:
                changes.append((target.end_tag, target.end_tag, f"<{segment.prefix}seg>{inside}</{segment.prefix}seg>"))
        return self._xml.changed(changes)


def _language(variant: _Element) -> str:
    return (variant.attributes.get("xml:lang") or variant.attributes.get("lang") or "").lower()


def _matching(by_language: dict[str, _Element], language: str) -> _Element | None:
    name = _name_of(by_language, language)
    return None if name is None else by_language[name]


def _name_of(languages: Iterable[str], language: str) -> str | None:
    wanted = language.lower().replace("_", "-")
    for name in languages:
        own = name.replace("_", "-")
        if own == wanted or own.startswith(f"{wanted}-") or wanted.startswith(f"{own}-"):
            return name
    return None
