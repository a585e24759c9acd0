"""TMX: units without the target language get it; every other byte stays."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from regard.data.languages import find_language
from regard.documents.document import DOCUMENTS, Document, DocumentLayout
from regard.documents.xml_file import MarkedUpText, XmlElement, XmlFile
from regard.errors import RegardError


@DOCUMENTS.register("tmx")
class TmxDocument(Document):
    """Units that have the source language and lack the target language."""

    suffixes = (".tmx",)

    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        if not layout.source_language or not layout.target_language:
            raise RegardError(f"{name}: give the languages of source and target with --from and --to.")
        self._xml = XmlFile(content, name, frozenset({"tu"}))
        if self._xml.root is None or self._xml.root.name != "tmx":
            raise RegardError(f"{name}: this is XML, but not TMX.")
        self._target = layout.target_language
        self._units: list[tuple[XmlElement, XmlElement | None]] = []  # variants: the source, and an empty target
        texts: list[str] = []
        languages: set[str] = set()
        for unit in self._xml.elements:
            variants = {_language(variant): variant for variant in unit.children if variant.name == "tuv"}
            languages |= set(variants)
            source, target = _variant(variants, layout.source_language), _variant(variants, self._target)
            segments = [variant.child("seg") if variant is not None else None for variant in (source, target)]
            if source is None or segments[0] is None:
                continue
            if segments[1] is not None and self._xml.raw(segments[1]).strip():
                continue
            text = MarkedUpText(self._xml.raw(segments[0])).text
            if text.strip():
                self._units.append((source, target))
                texts.append(text)
        if languages and find_language(sorted(languages), layout.source_language) is None:
            raise RegardError(f"{name}: it has no {layout.source_language}; it has {', '.join(sorted(languages))}.")
        self.texts = texts

    def write(self, translations: Sequence[str | None]) -> bytes:
        """A unit without a translation stays as it was."""
        replacements: list[tuple[int, int, str]] = []
        for (source, target), translation in zip(self._units, translations, strict=True):
            segment = source.child("seg")
            if not translation or segment is None:
                continue
            inside = MarkedUpText(self._xml.raw(segment)).to_markup(translation)
            new_segment = f"<{segment.prefix}seg>{inside}</{segment.prefix}seg>"
            empty_segment = target.child("seg") if target is not None else None
            if target is None:
                tuv = f"{source.prefix}tuv"
                new = f'<{tuv} xml:lang="{escape(self._target)}">{new_segment}</{tuv}>'
                replacements.append((source.end, source.end, self._xml.indent(source.start) + new))
            elif empty_segment is not None:
                replacements.append(self._xml.fill(empty_segment, inside))
            elif target.end_tag == target.end:  # <tuv/>
                replacements.append(self._xml.fill(target, new_segment))
            else:
                replacements.append((target.end_tag, target.end_tag, new_segment))
        return self._xml.replace(replacements)


def _language(variant: XmlElement) -> str:
    return (variant.attributes.get("xml:lang") or variant.attributes.get("lang") or "").lower()


def _variant(variants: dict[str, XmlElement], language: str) -> XmlElement | None:
    code = find_language(variants, language)
    return None if code is None else variants[code]
