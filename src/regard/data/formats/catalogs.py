"""Readers of translators' files: gettext PO, TMX, XLIFF 1.2 and 2.

XML is parsed by defusedxml, which refuses entity bombs and files that reach outside, and streamed: a translation
memory may be larger than this machine's.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ParseError

from regard.data.formats.readers import DamagedError, Example, Layout
from regard.errors import RegardError

# Markup that stands for codes of the translated document. What is inside others, such as <hi> and <g>, is words.
CODES = {"bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec"}
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


# polib ends a line at each of these, which gettext does not; while it reads, others stand in for them.
_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_OTHERS = "".join(chr(0xF8E0 + number) for number in range(len(_ENDS)))
STANDING_IN, STOOD_FOR = str.maketrans(_ENDS, _OTHERS), str.maketrans(_OTHERS, _ENDS)


def read_po(path: Path, file: IO[bytes]) -> Iterator[Example]:
    """Entries of a gettext catalogue that are translated and not fuzzy; plural forms are examples of their own."""
    import polib

    with file:
        content = file.read()
        try:
            text = content.decode("utf-8-sig")
            # polib takes its argument for a file's name if there is such a file.
            entries = polib.pofile(text.translate(STANDING_IN) + "\n# end\n") if text.strip() else []
        except UnicodeDecodeError:
            raise RegardError(f"{path}: this is not UTF-8; convert it: msgconv -t utf-8 {path} -o new.po.") from None
        except (OSError, ValueError, IndexError) as error:
            raise RegardError(f"{path}: this is not a PO file: {error}.") from None
    for entry in entries:
        if entry.obsolete:
            continue
        line = int(entry.linenum or 0)
        if not entry.translated():
            yield _restored(entry.msgid, entry.msgstr, path, line, "fuzzy" if entry.fuzzy else "not translated")
            continue
        if not entry.msgid_plural:
            yield _restored(entry.msgid, entry.msgstr, path, line)
            continue
        forms = sorted((int(number), form) for number, form in entry.msgstr_plural.items())
        for number, form in forms:
            yield _restored(entry.msgid_plural if number else entry.msgid, form, path, line)


def _restored(source: str, target: str, path: Path, line: int, wrong: str = "") -> Example:
    return Example(source.translate(STOOD_FOR), target.translate(STOOD_FOR), str(path), line, wrong)


def read_tmx(path: Path, file: IO[bytes], layout: Layout) -> Iterator[Example]:
    """Translation units with both languages. Languages match by their beginning: "en" is found in "en-US"."""
    wanted = layout.source_language, layout.target_language
    header: str | None = None
    seen: set[str] = set()
    number = found = 0
    known = False
    for event, element in _parsed(path, file, ("tu",)):
        name = _local(element)
        if event == "start":
            if not known and name != "tmx":
                raise RegardError(f"{path}: this is XML, but not TMX: its first element is <{name}>.")
            known = True
            if name == "header":
                header = element.get("srclang")
            continue
        if name != "tu":
            continue
        number += 1
        texts: dict[str, str] = {}
        for variant in element:
            language = (variant.get(LANGUAGE) or variant.get("lang") or "").lower()
            segment = next((child for child in variant if _local(child) == "seg"), None)
            if language and segment is not None:
                texts.setdefault(language, _words(segment))
        seen |= set(texts)
        source, target = _two_languages(path, texts, wanted, header)
        if source is None or target is None:
            have = ", ".join(texts) or "no language"
            yield Example(" ".join(texts.values()), "", str(path), number, f"not both languages ({have})")
        else:
            found += 1
            yield Example(source, target, str(path), number)
    if number and not found:
        raise RegardError(
            f"{path}: none of its {number:,} units has {wanted[0] or 'a source'} and {wanted[1] or 'a target'}; its "
            f"languages are {', '.join(sorted(seen))}: name two with --from and --to."
        )


def _two_languages(
    path: Path, texts: dict[str, str], wanted: tuple[str | None, str | None], header: str | None
) -> tuple[str | None, str | None]:
    """The source's and the target's text, by the languages asked for, or by the file's own source language."""
    source, target = wanted
    if source is None and header and header.lower() != "*all*":
        source = header
    if source is None or (target is None and len(texts) > 2):
        raise RegardError(f"{path}: it has the languages {', '.join(texts)}; say which are meant with --from and --to.")
    first = _matching(texts, source)
    if target is None:
        others = [language for language in texts if language != first]
        second = others[0] if len(others) == 1 else None
    else:
        second = _matching(texts, target)
    return texts.get(first or ""), texts.get(second or "")


def _matching(texts: dict[str, str], language: str) -> str | None:
    """The very language, or one with a region where none was asked for, or one without where one was."""
    plain = language.lower().replace("_", "-")
    names = {name.replace("_", "-"): name for name in texts}
    if plain in names:
        return names[plain]
    near = [name for name in names if name.startswith(f"{plain}-") or plain.startswith(f"{name}-")]
    return names[near[0]] if near else None


def read_xliff(path: Path, file: IO[bytes], layout: Layout) -> Iterator[Example]:
    """XLIFF 1.2 (trans-unit) and 2.x (segment): pairs with a target that is not empty.

    Where languages are asked for, the file must have them, in this order or in the other.
    """
    number = 0
    known = turned = False
    for event, element in _parsed(path, file, ("trans-unit", "unit", "segment")):
        name = _local(element)
        if event == "start":
            known = known or name == "xliff"
            if not known:
                raise RegardError(f"{path}: this is XML, but not XLIFF: its first element is <{name}>.")
            if name in ("xliff", "file"):
                own = [
                    element.get(one) or element.get(other)
                    for one, other in (("srcLang", "source-language"), ("trgLang", "target-language"))
                ]
                turned = _turned(path, own[0], own[1], layout) if any(own) else turned
            continue
        if name not in ("trans-unit", "segment"):
            continue
        number += 1
        sides = {_local(child): child for child in element if _local(child) in ("source", "target")}
        source = _words(sides["source"]) if "source" in sides else ""
        if "target" not in sides or not (target := _words(sides["target"])).strip():
            yield Example(source, "", str(path), number, "not translated")
        else:
            yield Example(target, source, str(path), number) if turned else Example(source, target, str(path), number)


def _turned(path: Path, source: str | None, target: str | None, layout: Layout) -> bool:
    """Whether the sides must change places. Raises RegardError if the file has other languages than those asked for."""

    def fits(wanted: str | None, own: str | None) -> bool:
        return wanted is None or own is None or _matching({own.lower(): ""}, wanted) is not None

    if fits(layout.source_language, source) and fits(layout.target_language, target):
        return False
    if fits(layout.source_language, target) and fits(layout.target_language, source):
        return True
    raise RegardError(
        f"{path}: it goes from {source or 'unknown'} to {target or 'unknown'}, not from "
        f"{layout.source_language or 'any'} to {layout.target_language or 'any'}; say so with --from and --to."
    )


def _parsed(path: Path, file: IO[bytes], unit: tuple[str, ...]) -> Iterator[tuple[str, Element]]:
    """Start and end of every element. A unit is forgotten once its end was dealt with: files may be of any size."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    with file:
        parser: Any = iterparse(file, ("start", "end"), forbid_dtd=False)
        above: list[Element] = []
        while True:
            try:
                event, element = next(parser)
            except StopIteration:
                return
            except ParseError as error:
                raise RegardError(f"{path}: this is not well-formed XML: {error}.") from None
            except DefusedXmlException:
                raise RegardError(f"{path}: it defines entities, which a translation file need not; refused.") from None
            except DamagedError:
                raise
            except (LookupError, ValueError) as error:
                raise RegardError(f"{path}: its encoding cannot be read ({error}); save it in UTF-8.") from None
            yield event, element
            if event == "start":
                above.append(element)
                continue
            above.pop()
            if above and _local(element) in unit:
                above[-1].remove(element)


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _words(element: Element) -> str:
    """The text inside, without the codes of the document it came from. A loop, since markup may be any depth."""
    parts = [element.text or ""]
    waiting = [iter(element)]
    tails: list[str] = []
    while waiting:
        child = next(waiting[-1], None)
        if child is None:
            waiting.pop()
            parts.append(tails.pop() if tails else "")
        elif _local(child) in CODES:
            parts.append(child.tail or "")
        else:
            parts.append(child.text or "")
            tails.append(child.tail or "")
            waiting.append(iter(child))
    return "".join(parts)
