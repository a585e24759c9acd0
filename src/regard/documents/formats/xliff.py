"""XLIFF 1.2 and 2: units without a target get one; every other byte stays."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.languages import normalize_language
from regard.documents.document import DOCUMENTS, Document, DocumentLayout
from regard.documents.xml_file import MarkedUpText, XmlElement, XmlFile
from regard.errors import RegardError

LANGUAGE_ATTRIBUTES = (("source-language", "srcLang"), ("target-language", "trgLang"))  # in XLIFF 1.2, and in 2


@dataclass(frozen=True)
class _Unit:
    """A unit without a target."""

    container: XmlElement  # the element that has the texts: <source>, or <seg-source> where it is segmented
    segments: list[XmlElement]  # the elements of the texts in it
    target: XmlElement | None  # the empty target, if there is one
    predecessor: XmlElement  # the element after which the standard puts a target


@DOCUMENTS.register("xliff")
class XliffDocument(Document):
    """Units that have a source and no target. Where a unit is segmented, each segment is a text."""

    suffixes = (".xlf", ".xliff")

    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        self._xml = XmlFile(content, name, frozenset({"trans-unit", "segment"}))
        root = self._xml.root
        if root is None or root.name != "xliff":
            raise RegardError(f"{name}: this is XML, but not XLIFF.")
        self._units: list[_Unit] = []
        texts: list[str] = []
        other_languages: set[str] = set()
        for unit in self._xml.elements:
            source, target = unit.child("source"), unit.child("target")
            is_empty = target is None or not self._xml.raw(target).strip()
            if source is None or unit.inherited.get("translate") == "no" or not is_empty:
                continue
            languages = [unit.inherited.get(old) or unit.inherited.get(new) for old, new in LANGUAGE_ATTRIBUTES]
            if not all(map(_same_language, languages, (layout.source_language, layout.target_language))):
                other_languages.add(" → ".join(language or "?" for language in languages))
                continue
            predecessor = container = unit.child("seg-source") or source
            segments = [child for child in container.children if child.attributes.get("mtype") == "seg"]
            if not segments:
                container, segments = source, [source]
            segments = [segment for segment in segments if self._text(segment).text.strip()]
            if segments:
                self._units.append(_Unit(container, segments, target, predecessor))
                texts += [self._text(segment).text for segment in segments]
        if other_languages and not texts:
            raise RegardError(
                f"{name}: its languages are {', '.join(sorted(other_languages))}, not "
                f"{layout.source_language or '?'} → {layout.target_language or '?'}; if they are right, name them with "
                f"--from and --to."
            )
        self._state = "needs-review-translation" if (root.attributes.get("version") or "1.2").startswith("1") else ""
        self.texts = texts

    def _text(self, element: XmlElement) -> MarkedUpText:
        return MarkedUpText(self._xml.raw(element))

    def write(self, translations: Sequence[str | None]) -> bytes:
        """A unit without a translation for each of its segments stays without a target."""
        state = f' state="{self._state}"' if self._state else ""
        rest = iter(translations)
        replacements: list[tuple[int, int, str]] = []
        for unit in self._units:
            translated = [next(rest) for _ in unit.segments]
            if not all(translated):
                continue
            container = unit.container
            inside = self._xml.replace_within(
                container.inside,
                container.end_tag,
                [
                    (segment.inside, segment.end_tag, self._text(segment).to_markup(text or ""))
                    for segment, text in zip(unit.segments, translated, strict=True)
                ],
            )
            if unit.target is None:
                name = f"{container.prefix}target"
                new = f"{self._xml.indent(container.start)}<{name}{state}>{inside}</{name}>"
                replacements.append((unit.predecessor.end, unit.predecessor.end, new))
            else:
                replacements.append(self._xml.fill(unit.target, inside, self._state))
        return self._xml.replace(replacements)


def _same_language(language: str | None, expected: str | None) -> bool:
    """Whether two codes are one language, whatever their regions; unknown ones are."""
    return not language or not expected or _primary(language) == _primary(expected)


def _primary(language: str) -> str:
    return normalize_language(language).partition("-")[0]
