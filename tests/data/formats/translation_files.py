"""Small PO, TMX and XLIFF files."""

from collections.abc import Sequence

from regard.data.example import Example

BOMB = (
    '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)


OUTSIDE = '<!DOCTYPE x [<!ENTITY c SYSTEM "file:///etc/hostname">]>'


def unit(**texts: str) -> str:
    """A TMX unit: en_US="..." is a variant in en-US."""
    return f"<tu>{''.join(variant(name.replace('_', '-'), text) for name, text in texts.items())}</tu>"


def variant(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


def tmx(*units: str, srclang: str = "en", before: str = "") -> str:
    header = f'<header creationtool="hand" srclang="{srclang}"/>'
    return f'<?xml version="1.0"?>{before}<tmx version="1.4">{header}<body>{"".join(units)}</body></tmx>'


def xliff12(*units: str, before: str = "") -> str:
    return (
        f'<?xml version="1.0"?>{before}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:xml_file:1.2">'
        f'<file source-language="en" target-language="fr"><body><group>{"".join(units)}</group></body></file></xliff>'
    )


def xliff2(*segments: str, before: str = "") -> str:
    return (
        f'<?xml version="1.0"?>{before}<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:xml_file:2.0" srcLang="en">'
        f'<file id="f"><unit id="1"><notes><note>not this</note></notes>{"".join(segments)}'
        "<ignorable><source> </source></ignorable></unit></file></xliff>"
    )


def both(source: str, target: str | None) -> str:
    return f"<source>{source}</source>" + ("" if target is None else f"<target>{target}</target>")


def trans_unit(source: str, target: str | None) -> str:
    return f'<trans-unit id="1">{both(source, target)}</trans-unit>'


def segment(source: str, target: str | None) -> str:
    return f"<segment>{both(source, target)}</segment>"


def translated_pairs(examples: Sequence[Example]) -> list[tuple[str, str]]:
    return [(example.source, example.target) for example in examples if not example.problem]


FORMATS = ["tmx", "1.2.xlf", "2.0.xliff"]


def xml_file(format_name: str, source: str, target: str, before: str = "") -> str:
    if format_name == "tmx":
        return tmx(unit(en=source, fr=target), before=before)
    if format_name == "1.2.xlf":
        return xliff12(trans_unit(source, target), before=before)
    return xliff2(segment(source, target), before=before)
