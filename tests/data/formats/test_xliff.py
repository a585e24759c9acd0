"""XLIFF 1.2 and 2."""

from pathlib import Path

import pytest

from tests.data.files import read, refusal, text_pairs, write
from tests.data.formats.translation_files import segment, tmx, trans_unit, translated_pairs, unit, xliff2, xliff12


@pytest.mark.parametrize(("xml_file", "pair"), [(xliff12, trans_unit), (xliff2, segment)])
def test_both_versions_are_read(xml_file, pair, tmp_path: Path) -> None:
    content = xml_file(pair("one", "un"), pair("two", None), pair("three", " "), pair("four", "quatre"))
    examples = read(write(tmp_path / "a.xlf", content))
    assert translated_pairs(examples) == [("one", "un"), ("four", "quatre")]
    assert [(e.source, e.line, e.problem) for e in examples if e.problem] == [
        ("two", 2, "not translated"),
        ("three", 3, "not translated"),
    ]


def test_suggestions_are_not_translations(tmp_path: Path) -> None:
    suggestion = "<alt-trans><source>two</source><target>zwei</target></alt-trans>"
    one = f"<trans-unit><source>one</source><seg-source>x</seg-source><target>un</target>{suggestion}</trans-unit>"
    assert text_pairs(read(write(tmp_path / "a.xliff", xliff12(one)))) == [("one", "un")]


def test_codes_are_removed_and_text_inside_markup_is_kept(tmp_path: Path) -> None:
    old = trans_unit('a <g id="1">red <x id="2"/><mrk mtype="x">big</mrk></g> dog<ph id="3">%s</ph>', "x<bx/>y<ex/>")
    new = segment('a <pc id="1">red <ph id="2"/><mrk id="3">big</mrk></pc> dog<sc id="4"/>', "x<ec/>y")
    for content in (xliff12(old), xliff2(new)):
        assert text_pairs(read(write(tmp_path / "a.xlf", content))) == [("a red big dog", "xy")]


@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_sides_are_swapped_if_the_languages_are_reversed(version: str, tmp_path: Path) -> None:
    if version == "1.2":
        inner = f'<file source-language="en" target-language="de-DE"><body>{trans_unit("one", "eins")}</body></file>'
        written = f'<xliff version="1.2">{inner}</xliff>'
    else:
        inner = f"<file id='f'><unit id='u'>{segment('one', 'eins')}</unit></file>"
        written = f'<xliff version="2.0" srcLang="en" trgLang="de-DE">{inner}</xliff>'
    path = write(tmp_path / "a.xlf", written)
    for source, target in ((None, None), ("en", "de"), ("en", None), (None, "de")):
        assert text_pairs(read(path, source_language=source, target_language=target)) == [("one", "eins")]
    for source, target in (("de", "en"), ("de", None), (None, "en")):
        assert text_pairs(read(path, source_language=source, target_language=target)) == [("eins", "one")]
    with pytest.raises(ValueError, match="it goes from en to de-DE, not from fr to it"):
        read(path, source_language="fr", target_language="it")


def test_other_xml_is_refused(tmp_path: Path) -> None:
    assert "not XLIFF" in refusal(write(tmp_path / "a.xlf", tmx(unit(en="one", fr="un"))))
