"""XLIFF 1.2 (trans-unit) and 2 (segment): pairs whose target is not empty."""

from collections.abc import Iterator
from pathlib import Path

from regard.data.example import Example, Layout
from regard.data.languages import find_language
from regard.data.readers import READERS, Reader
from regard.data.xml_stream import local_name, parse_elements, text_of
from regard.errors import RegardError


@READERS.register("xliff")
class XliffReader(Reader):
    """Where the layout names languages, the file must have them, in this order or in the other."""

    suffixes = (".xlf", ".xliff")

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        number = 0
        is_xliff = reverse = False
        for event, element in parse_elements(path, ("trans-unit", "unit", "segment")):
            name = local_name(element)
            if event == "start":
                is_xliff = is_xliff or name == "xliff"
                if not is_xliff:
                    raise RegardError(f"{path}: this is XML, but not XLIFF: its first element is <{name}>.")
                if name in ("xliff", "file"):
                    source_language = element.get("srcLang") or element.get("source-language")
                    target_language = element.get("trgLang") or element.get("target-language")
                    if source_language or target_language:
                        reverse = _is_reversed(path, source_language, target_language, layout)
                continue
            if name not in ("trans-unit", "segment"):
                continue
            number += 1
            children = {local_name(child): child for child in element if local_name(child) in ("source", "target")}
            source = text_of(children["source"]) if "source" in children else ""
            target = text_of(children["target"]) if "target" in children else ""
            if not target.strip():
                yield Example(source, "", str(path), number, "not translated")
            elif reverse:
                yield Example(target, source, str(path), number)
            else:
                yield Example(source, target, str(path), number)


def _is_reversed(path: Path, source: str | None, target: str | None, layout: Layout) -> bool:
    """Whether the file's target is the requested source. Raises RegardError if the file has other languages."""

    def matches(requested: str | None, language: str | None) -> bool:
        return requested is None or language is None or find_language([language], requested) is not None

    if matches(layout.source_language, source) and matches(layout.target_language, target):
        return False
    if matches(layout.source_language, target) and matches(layout.target_language, source):
        return True
    raise RegardError(
        f"{path}: it goes from {source or 'unknown'} to {target or 'unknown'}, not from "
        f"{layout.source_language or 'any'} to {layout.target_language or 'any'}; change --from and --to."
    )
