"""XML files edited in place, for XLIFF and TMX: everything that is not replaced stays, byte for byte.

A parser finds where the elements are; the file is changed there, not written again from a tree.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from regard.errors import RegardError

ENCODING_DECLARATION = re.compile(rb"^\s*<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
TAG = re.compile(r"<[^<>]*>")
NAMED_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
# Not to be translated: inline codes, and text that is marked as such.
CODE_ELEMENTS = re.compile(
    r"""<((?:[\w.-]+:)?(?:bpt|ept|ph|it|ut))\b(?:[^<>]*[^<>/])?>.*?</\1\s*>
        |<((?:[\w.-]+:)?mrk)\b[^<>]*\b(?:translate\s*=\s*["']no["']|mtype\s*=\s*["']protected["'])[^<>]*(?<!/)>
         (?:(?!</?\2\b).)*</\2\s*>""",
    re.DOTALL | re.VERBOSE,
)
STATE_ATTRIBUTE = re.compile(r"""\sstate\s*=\s*("[^"]*"|'[^']*')""")
ENTITY = re.compile(rf"&({'|'.join(NAMED_ENTITIES)}|#\d+|#[xX][0-9A-Fa-f]+);")
MAX_TAG = 1 << 29


@dataclass
class XmlElement:
    """An element and its byte offsets: <name ...>inside</name>."""

    name: str
    start: int
    inside: int
    end_tag: int = 0
    end: int = 0
    prefix: str = ""  # of its namespace, with the colon
    attributes: dict[str, str] = field(default_factory=dict)
    inherited: dict[str, str] = field(default_factory=dict)  # its attributes and those of all elements around it
    children: list["XmlElement"] = field(default_factory=list)

    def child(self, name: str) -> "XmlElement | None":
        return next((child for child in self.children if child.name == name), None)


class XmlFile:
    """An XML file. elements: those of the given names, with all elements inside them."""

    def __init__(self, content: bytes, name: str, names: frozenset[str]) -> None:
        self.name = name
        declared = ENCODING_DECLARATION.match(content)
        self._encoding = declared[1].decode("ascii") if declared else "utf-8"
        self._bom = b""
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            self._encoding, self._bom = ("utf-16-le" if content[0] == 0xFF else "utf-16-be"), content[:2]
        elif content.startswith(b"\xef\xbb\xbf"):
            self._encoding, self._bom = "utf-8", content[:3]
        try:
            self.content = content[len(self._bom) :].decode(self._encoding).encode("utf-8")
        except (LookupError, UnicodeDecodeError) as error:
            raise RegardError(f"{name}: its encoding cannot be read ({error}); save it in UTF-8.") from None
        self.elements: list[XmlElement] = []
        self.root: XmlElement | None = None
        self._open: list[XmlElement | None] = []
        self._inherited: list[dict[str, str]] = [{}]
        self._names = names
        self._parse()

    def _parse(self) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.EntityDeclHandler = self._refuse_entity
        parser.StartElementHandler = lambda name, attributes: self._start(parser, name, attributes)
        parser.EndElementHandler = lambda _: self._finish(parser)
        try:
            parser.Parse(self.content, True)
        except expat.ExpatError as error:
            raise RegardError(f"{self.name}: this is not well-formed XML: {error}.") from None

    def _refuse_entity(self, *_: object) -> None:
        raise RegardError(f"{self.name}: it defines entities, which a translation file need not; refused.")

    def _start(self, parser: expat.XMLParserType, name: str, attributes: dict[str, str]) -> None:
        prefix, colon, local = name.rpartition(":")
        at = parser.CurrentByteIndex
        parent = next((element for element in reversed(self._open) if element is not None), None)
        self._inherited.append({**self._inherited[-1], **attributes})
        if self.root is not None and local not in self._names and parent is None:
            self._open.append(None)
            return
        element = XmlElement(
            local, at, _tag_end(self.content, at), 0, 0, prefix + colon, dict(attributes), self._inherited[-1]
        )
        if self.root is None:
            self.root = element
            self._open.append(None)  # everything is inside the root, which is not a unit
            return
        (parent.children if parent is not None else self.elements).append(element)
        self._open.append(element)

    def _finish(self, parser: expat.XMLParserType) -> None:
        element = self._open.pop()
        self._inherited.pop()
        if element is None:
            return
        at = parser.CurrentByteIndex
        if self.content[element.inside - 2 : element.inside] == b"/>":
            element.end_tag = element.end = element.inside
        else:
            element.end_tag, element.end = at, _tag_end(self.content, at)

    def raw(self, element: XmlElement) -> str:
        """The content of an element, as it is written."""
        return self.content[element.inside : element.end_tag].decode("utf-8")

    def fill(self, element: XmlElement, inside: str, state: str = "") -> tuple[int, int, str]:
        """The replacement that puts content into an empty element, and a state into its tag."""
        tag = self.content[element.start : element.inside].decode("utf-8").rstrip(">").rstrip("/").rstrip()
        if state:
            tag = f'{STATE_ATTRIBUTE.sub("", tag)} state="{state}"'
        return element.start, element.end, f"{tag}>{inside}</{element.prefix}{element.name}>"

    def replace_within(self, start: int, end: int, replacements: list[tuple[int, int, str]]) -> str:
        """The content between two positions, with replacements (start, end, new content)."""
        parts: list[bytes] = []
        for first, last, new in sorted(replacements):
            parts += [self.content[start:first], new.encode("utf-8")]
            start = last
        return b"".join([*parts, self.content[start:end]]).decode("utf-8")

    def replace(self, replacements: list[tuple[int, int, str]]) -> bytes:
        """The file with replacements, in its own encoding."""
        text = self.replace_within(0, len(self.content), replacements)
        return self._bom + text.encode(self._encoding, "xmlcharrefreplace")

    def indent(self, at: int) -> str:
        """The line end and white space before a position; nothing if something else is on its line."""
        before = self.content[self.content.rfind(b"\n", 0, at) : at].decode("utf-8", "replace")
        return before if before.startswith("\n") and not before.strip() else ""


def _tag_end(content: bytes, at: int) -> int:
    """The position after the > of the tag that begins here."""
    quote = 0
    for position in range(at, min(len(content), at + MAX_TAG)):
        byte = content[position]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in (0x22, 0x27):
            quote = byte
        elif byte == 0x3E:
            return position + 1
    return len(content)


class MarkedUpText:
    """The content of an element, for a translator: its tags as they are, its text unescaped.

    Codes become one tag each, so that their content is not translated; CDATA is text; comments are left out.
    """

    def __init__(self, raw: str) -> None:
        plain = COMMENT.sub("", CDATA.sub(lambda found: escape(found[1]), raw))
        self._codes: dict[str, str] = {}
        self._plain = CODE_ELEMENTS.sub(self._replace_code, plain)
        self.text = "".join(
            part if TAG.fullmatch(part) else ENTITY.sub(_unescape_entity, part)
            for part in re.split(f"({TAG.pattern})", self._plain)
        )

    def _replace_code(self, found: re.Match[str]) -> str:
        tag = f"<x-{len(self._codes) + 1}/>"
        self._codes[tag] = found[0]
        return tag

    def to_markup(self, translation: str) -> str:
        """A translation as XML: the source's tags stay, all else is escaped. Well-formed, whatever the translation."""
        tags = TAG.findall(self._plain)
        if not tags:
            return escape(translation)
        pattern = re.compile("|".join(re.escape(tag) for tag in sorted(set(tags), key=len, reverse=True)))
        parts: list[str] = []
        at = 0
        for found in pattern.finditer(translation):
            parts += [escape(translation[at : found.start()]), self._codes.get(found[0], found[0])]
            at = found.end()
        markup = "".join([*parts, escape(translation[at:])])
        if Counter(pattern.findall(translation)) == Counter(tags) and _is_well_formed(markup):
            return markup
        return escape(pattern.sub("", translation)) + "".join(self._codes.get(tag, tag) for tag in tags)


def _unescape_entity(found: re.Match[str]) -> str:
    name = found[1]
    if name.startswith("#"):
        return chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))  # the parser has accepted it
    return NAMED_ENTITIES[name]


def _is_well_formed(inside: str) -> bool:
    parser = expat.ParserCreate(namespace_separator=None)
    try:
        parser.Parse(f"<x>{inside}</x>", True)
    except expat.ExpatError:
        return False
    return True
