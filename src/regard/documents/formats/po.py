"""gettext PO: entries without a translation get one and are marked fuzzy; every other byte stays.

The file is edited line by line, not parsed and serialized again, to preserve comments, order, wrapping and obsolete
entries.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from regard.documents.document import DOCUMENTS, Document, DocumentLayout
from regard.documents.text_encoding import decode_utf8
from regard.errors import RegardError

KEYWORD = re.compile(r'^(msgctxt|msgid|msgid_plural|msgstr)(?:\[(\d+)\])?\s+"(.*)"\s*$')
CHARSET = re.compile(rb"charset=([A-Za-z0-9_.:-]+)")
LANGUAGE = re.compile(r"^Language:[ \t]*(\S+)", re.MULTILINE)
HEADER_BYTES = 1 << 13  # in which the charset is looked for
CONTINUATION = re.compile(r'^"(.*)"\s*$')
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class _Field:
    """msgid, msgstr[1], ...: its first line, the line after its last, and its text."""

    start: int
    end: int
    text: str


@dataclass
class _Entry:
    first: int  # its first line that is not a comment
    fields: dict[str, _Field] = dataclass_field(default_factory=dict)
    flags: int | None = None  # the line of its flags


@DOCUMENTS.register("po")
class PoDocument(Document):
    """Entries whose msgstr is empty. A plural form is translated from msgid_plural, the first form from msgid."""

    suffixes = (".po", ".pot")

    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        charset = CHARSET.search(content[:HEADER_BYTES])
        if charset and charset[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii", b"charset"):
            raise RegardError(
                f"{name}: it is in {charset[1].decode('ascii')}; convert it first, as in: msgconv -t utf-8."
            )
        text, self._bom = decode_utf8(content, name)
        self._lines = text.splitlines(keepends=True)
        self._fields: list[tuple[_Entry, str]] = []
        texts: list[str] = []
        for entry in _parse_entries(self._lines, name):
            source = entry.fields.get("msgid")
            if source is None:
                continue
            if not source.text:  # the header
                _check_language(entry, name, layout)
                continue
            forms = {key: value for key, value in entry.fields.items() if key.startswith("msgstr")}
            if any(value.text for value in forms.values()):
                continue
            for key in forms:
                plural = entry.fields.get("msgid_plural")
                texts.append(plural.text if plural and key not in ("msgstr", "msgstr[0]") else source.text)
                self._fields.append((entry, key))
        self.texts = texts

    def write(self, translations: Sequence[str | None]) -> bytes:
        """An entry without a translation stays empty."""
        lines: list[str | None] = list(self._lines)
        end = "\r\n" if self._lines and self._lines[0].endswith("\r\n") else "\n"
        marked: set[int] = set()
        for (entry, key), text, translation in zip(self._fields, self.texts, translations, strict=True):
            if not translation:
                continue
            field = entry.fields[key]
            lines[field.start] = _quote_field(key, _copy_white_space(text, translation), end)
            for number in range(field.start + 1, field.end):
                lines[number] = None
            if id(entry) not in marked:
                marked.add(id(entry))
                if entry.flags is None:
                    lines[entry.first] = f"#, fuzzy{end}{lines[entry.first]}"
                elif "fuzzy" not in (lines[entry.flags] or ""):
                    lines[entry.flags] = (lines[entry.flags] or "").replace("#,", "#, fuzzy,", 1)
        return self._bom + "".join(line for line in lines if line is not None).encode("utf-8")


def _check_language(header: _Entry, name: str, layout: DocumentLayout) -> None:
    found = LANGUAGE.search(header.fields["msgstr"].text) if "msgstr" in header.fields else None
    expected = layout.target_language
    if found and expected and re.split("[-_@]", found[1].lower())[0] != re.split("[-_@]", expected.lower())[0]:
        raise RegardError(f"{name}: its language is {found[1]}, not {expected}; if that is right, change --to.")


def _parse_entries(lines: list[str], name: str) -> list[_Entry]:
    entries: list[_Entry] = []
    entry: _Entry | None = None
    current: _Field | None = None
    flags: int | None = None
    for number, raw in enumerate(lines):
        line = raw.strip("\r\n")
        if line.startswith("#,"):
            flags = number
        if not line.strip() or line.startswith("#"):
            current = None
            if not line.strip():
                flags = None
            continue
        if found := KEYWORD.match(line):
            keyword, index, text = found.groups()
            key = keyword if index is None else f"{keyword}[{index}]"
            if entry is None or keyword == "msgctxt" or (keyword == "msgid" and "msgid" in entry.fields):
                entry = _Entry(number, flags=flags)
                entries.append(entry)
                flags = None
            current = _Field(number, number + 1, _unescape(text))
            entry.fields[key] = current
        elif (found := CONTINUATION.match(line)) and current is not None:
            current.text += _unescape(found[1])
            current.end = number + 1
        else:
            raise RegardError(f"{name}, line {number + 1:,}: this is not PO: {line[:60]!r}.")
    return entries


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[0]), text)


def _escape(text: str) -> str:
    known = {value: f"\\{key}" for key, value in ESCAPES.items()}
    return "".join(known.get(letter, letter) for letter in text)


def _quote_field(key: str, text: str, end: str) -> str:
    """A field on one line, or with one line for each line of its text."""
    parts = text.split("\n")
    pieces = [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    if len(pieces) <= 1:
        return f'{key} "{_escape(text)}"{end}'
    return "".join([f'{key} ""{end}', *(f'"{_escape(piece)}"{end}' for piece in pieces)])


def _copy_white_space(source: str, translation: str) -> str:
    """A translation with the white space around it that its source has: msgfmt insists on equal line ends."""
    body = source.strip()
    start = source.index(body) if body else 0
    return source[:start] + translation.strip() + source[start + len(body) :]
