"""TMX: the units of a translation memory that have both languages."""

from collections.abc import Iterator
from pathlib import Path

from regard.data.example import Example, Layout
from regard.data.languages import find_language
from regard.data.readers import READERS, Reader
from regard.data.xml_stream import local_name, parse_elements, text_of
from regard.errors import RegardError

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@READERS.register("tmx")
class TmxReader(Reader):
    """Languages match by their beginning: "en" is found in "en-US"."""

    suffixes = (".tmx",)

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        header: str | None = None
        languages: set[str] = set()
        number = complete = 0
        is_tmx = False
        for event, element in parse_elements(path, ("tu",)):
            name = local_name(element)
            if event == "start":
                if not is_tmx and name != "tmx":
                    raise RegardError(f"{path}: this is XML, but not TMX: its first element is <{name}>.")
                is_tmx = True
                if name == "header":
                    header = element.get("srclang")
                continue
            if name != "tu":
                continue
            number += 1
            texts: dict[str, str] = {}
            for variant in element:
                language = (variant.get(LANGUAGE) or variant.get("lang") or "").lower()
                segment = next((child for child in variant if local_name(child) == "seg"), None)
                if language and segment is not None:
                    texts.setdefault(language, text_of(segment))
            languages |= set(texts)
            source, target = _source_and_target(path, texts, layout, header)
            if source is None or target is None:
                have = ", ".join(texts) or "no language"
                yield Example(" ".join(texts.values()), "", str(path), number, f"not both languages ({have})")
            else:
                complete += 1
                yield Example(source, target, str(path), number)
        if number and not complete:
            raise RegardError(
                f"{path}: none of its {number:,} units has {layout.source_language or 'a source'} and "
                f"{layout.target_language or 'a target'}; its languages are {', '.join(sorted(languages))}: name two "
                f"with --from and --to."
            )


def _source_and_target(
    path: Path, texts: dict[str, str], layout: Layout, header: str | None
) -> tuple[str | None, str | None]:
    """The texts of a unit, by the layout's languages, or by the source language that the file's header names."""
    source, target = layout.source_language, layout.target_language
    if source is None and header and header.lower() != "*all*":
        source = header
    if source is None or (target is None and len(texts) > 2):
        raise RegardError(f"{path}: it has the languages {', '.join(texts)}; choose two with --from and --to.")
    first = find_language(texts, source)
    if target is None:
        remaining = [language for language in texts if language != first]
        second = remaining[0] if len(remaining) == 1 else None
    else:
        second = find_language(texts, target)
    return texts.get(first or ""), texts.get(second or "")
