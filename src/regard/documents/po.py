"""gettext PO: entries that are not translated are filled in and marked fuzzy; every other byte stays.

The file is changed line by line, not parsed and written again: comments, order, wrapping and obsolete entries are
somebody's work.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.documents import Layout, decoded
from regard.errors import RegardError

KEYWORD = re.compile(r'^(msgctxt|msgid|msgid_plural|msgstr)(?:\[(\d+)\])?\s+"(.*)"\s*$')
CHARSET = re.compile(rb"charset=([A-Za-z0-9_.:-]+)")
LANGUAGE = re.compile(r"^Language:[ \t]*(\S+)", re.MULTILINE)
HEADER = 1 << 13  # bytes in which the header is looked for
MORE = re.compile(r'^"(.*)"\s*$')
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class _Field:
    """msgid, msgstr[1], ...: where it stands, from its first line to behind its last, and what it says."""

    start: int
    end: int
    text: str


@dataclass
class _Entry:
    first: int  # its first line that is no comment
    fields: dict[str, _Field] = field(default_factory=dict)
    flags: int | None = None  # the line of its flags


class Catalogue:
    """Entries whose msgstr is empty. Plural forms are translated from the form that they are of."""

    notes: Sequence[str] = ()

    def __init__(self, content: bytes, name: str, layout: Layout) -> None:
        charset = CHARSET.search(content[:HEADER])
        if charset and charset[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii", b"charset"):
            raise RegardError(
                f"{name}: it is in {charset[1].decode('ascii')}; convert it first, as in: msgconv -t utf-8."
            )
        text, self._mark = decoded(content, name)
        self._lines = text.splitlines(keepends=True)
        self._places: list[tuple[_Entry, str]] = []
        texts: list[str] = []
        for entry in _entries(self._lines, name):
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
                self._places.append((entry, key))
        self.texts: Sequence[str] = texts

    def written(self, translations: Sequence[str | None]) -> bytes:
        """What has no translation stays empty."""
        lines: list[str | None] = list(self._lines)
        end = "\r\n" if self._lines and self._lines[0].endswith("\r\n") else "\n"
        marked: set[int] = set()
        for (entry, key), text, said in zip(self._places, self.texts, translations, strict=True):
            if not said:
                continue
            where = entry.fields[key]
            lines[where.start] = _quoted(key, _like(text, said), end)
            for place in range(where.start + 1, where.end):
                lines[place] = None
            if id(entry) not in marked:
                marked.add(id(entry))
                if entry.flags is None:
                    lines[entry.first] = f"#, fuzzy{end}{lines[entry.first]}"
                elif "fuzzy" not in (lines[entry.flags] or ""):
                    lines[entry.flags] = (lines[entry.flags] or "").replace("#,", "#, fuzzy,", 1)
        return self._mark + "".join(line for line in lines if line is not None).encode("utf-8")


def _check_language(header: _Entry, name: str, layout: Layout) -> None:
    found = LANGUAGE.search(header.fields["msgstr"].text) if "msgstr" in header.fields else None
    wanted = layout.target_language
    if found and wanted and re.split("[-_@]", found[1].lower())[0] != re.split("[-_@]", wanted.lower())[0]:
        raise RegardError(f"{name}: its language is {found[1]}, not {wanted}; if that is right, say so with --to.")


def _entries(lines: list[str], name: str) -> list[_Entry]:
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
            current = _Field(number, number + 1, _unescaped(text))
            entry.fields[key] = current
        elif (found := MORE.match(line)) and current is not None:
            current.text += _unescaped(found[1])
            current.end = number + 1
        else:
            raise RegardError(f"{name}, line {number + 1:,}: this is not PO: {line[:60]!r}.")
    return entries


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[0]), text)


def _escaped(text: str) -> str:
    known = {value: f"\\{key}" for key, value in ESCAPES.items()}
    return "".join(known.get(letter, letter) for letter in text)


def _quoted(key: str, text: str, end: str) -> str:
    """A field, on one line, or with a line for each line of its text."""
    parts = text.split("\n")
    pieces = [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    if len(pieces) <= 1:
        return f'{key} "{_escaped(text)}"{end}'
    return "".join([f'{key} ""{end}', *(f'"{_escaped(piece)}"{end}' for piece in pieces)])


def _like(source: str, said: str) -> str:
    """A translation with the blanks and line ends around it that its source has: gettext insists on the latter."""
    body = source.strip()
    start = source.index(body) if body else 0
    return source[:start] + said.strip() + source[start + len(body) :]
