"""Translators' files: what is translated is read, as words; what is not is set aside; what is hostile is refused."""

import re
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.example import Example, Layout
from regard.data.readers import read_pairs
from tests.data.files import plain_text, read, refusal, sides, write

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
        f'<?xml version="1.0"?>{before}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file source-language="en" target-language="fr"><body><group>{"".join(units)}</group></body></file></xliff>'
    )


def xliff2(*segments: str, before: str = "") -> str:
    return (
        f'<?xml version="1.0"?>{before}<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en">'
        f'<file id="f"><unit id="1"><notes><note>not this</note></notes>{"".join(segments)}'
        "<ignorable><source> </source></ignorable></unit></file></xliff>"
    )


def both(source: str, target: str | None) -> str:
    return f"<source>{source}</source>" + ("" if target is None else f"<target>{target}</target>")


def trans_unit(source: str, target: str | None) -> str:
    return f'<trans-unit id="1">{both(source, target)}</trans-unit>'


def segment(source: str, target: str | None) -> str:
    return f"<segment>{both(source, target)}</segment>"


def found(examples: Sequence[Example]) -> list[tuple[str, str]]:
    return [(example.source, example.target) for example in examples if not example.problem]


# PO


def test_a_catalogue_gives_what_is_translated_and_sets_the_rest_aside(tmp_path: Path) -> None:
    path = write(
        tmp_path / "fr.po",
        """
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"

#: main.c:7
msgctxt "menu"
msgid "Open"
msgstr "Ouvrir"

#, fuzzy
msgid "Close"
msgstr "Fermer ?"

msgid "Save"
msgstr ""

msgid "long "
"text\\n"
msgstr ""
"texte "
"long\\n"

#~ msgid "Old"
#~ msgstr "Vieux"
""",
    )
    examples = read(path)
    assert found(examples) == [("Open", "Ouvrir"), ("long text\n", "texte long\n")]
    assert [(example.source, example.problem) for example in examples if example.problem] == [
        ("Close", "fuzzy"),
        ("Save", "not translated"),
    ]
    assert [example.line for example in examples] == sorted(example.line for example in examples)
    assert all(example.line > 5 for example in examples)


def test_plural_forms_are_examples_of_their_own(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pl.po",
        'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d plik"\nmsgstr[1] "%d pliki"\nmsgstr[2] "%d plików"\n',
    )
    assert sides(read(path)) == [("%d file", "%d plik"), ("%d files", "%d pliki"), ("%d files", "%d plików")]


def test_a_plural_form_that_is_missing_sets_the_entry_aside(tmp_path: Path) -> None:
    path = write(tmp_path / "fr.po", 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] ""\n')
    assert [example.problem for example in read(path)] == ["not translated"]


@given(pairs=st.lists(st.tuples(plain_text.filter(bool), plain_text.filter(bool)), max_size=4))
def test_what_gettext_wrote_is_read_back(pairs: list[tuple[str, str]], tmp_path_factory) -> None:
    catalogue = polib.POFile()
    for source, target in pairs:
        catalogue.append(polib.POEntry(msgid=source, msgstr=target))
    path = write(tmp_path_factory.getbasetemp() / "written.po", str(catalogue))
    assert sides(read(path)) == pairs


@pytest.mark.parametrize("content", ["hello\n", 'msgid "a"\nmsgstr "b"\nnonsense\n', 'msgid "a\nmsgstr', "<tmx/>"])
def test_what_is_no_catalogue_is_a_sentence(content: str, tmp_path: Path) -> None:
    assert "not a PO file" in refusal(write(tmp_path / "a.po", content))


def test_an_empty_catalogue_has_no_examples(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.po", "\n\n")) == []


def test_a_catalogue_that_is_the_name_of_another_file_does_not_open_it(tmp_path: Path) -> None:
    other = write(tmp_path / "other.po", 'msgid "secret"\nmsgstr "geheim"\n')
    assert "not a PO file" in refusal(write(tmp_path / "a.po", str(other)))


# TMX


def test_languages_match_by_their_beginning(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en_US="one", pt_BR="um"), unit(pt_BR="dois", EN_us="two")))
    for source, target in [("en", "pt"), ("en-US", "pt-BR"), ("EN", "PT_br"), ("en-us", "pt")]:
        assert sides(read(path, source_language=source, target_language=target)) == [("one", "um"), ("two", "dois")]
    assert sides(read(path, source_language="pt", target_language="en")) == [("um", "one"), ("dois", "two")]


def test_the_very_language_is_preferred_to_one_that_begins_like_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en="bus", pt_PT="autocarro", pt_BR="ônibus")))
    assert sides(read(path, source_language="en", target_language="pt-BR")) == [("bus", "ônibus")]
    assert sides(read(path, source_language="en", target_language="pt-PT")) == [("bus", "autocarro")]


def test_a_region_that_was_asked_for_is_not_replaced_by_another(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en="bus", pt_PT="autocarro")))
    assert "pt-pt" in refusal(path, source_language="en", target_language="pt-BR")


def test_a_wrong_pair_of_languages_stops_with_those_that_are_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en_US="one", pt_BR="um"), unit(en_US="two", de="zwei")))
    message = refusal(path, source_language="en", target_language="fr")
    assert "none of its 2 units has en and fr" in message
    assert "de, en-us, pt-br" in message
    assert "--from and --to" in message


def test_the_file_itself_says_which_is_the_source(tmp_path: Path) -> None:
    content = tmx(unit(fr="un", en_GB="one"), unit(en_GB="two", fr="deux"), srclang="en-GB")
    assert sides(read(write(tmp_path / "a.tmx", content))) == [("one", "un"), ("two", "deux")]


@pytest.mark.parametrize(
    "content",
    [
        tmx(unit(en="one", fr="un"), srclang="*all*"),
        tmx(unit(en="one", fr="un")).replace('srclang="en"', ""),
        tmx(unit(en="one", fr="un", de="eins")),
    ],
    ids=["no source language", "no srclang", "three languages"],
)
def test_languages_that_could_be_either_are_asked_for(content: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", content)
    assert re.search("languages en, fr.*--from and --to", refusal(path))
    assert sides(read(path, source_language="fr", target_language="en")) == [("un", "one")]


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_memories_in_utf16_are_read(encoding: str, packed: str, tmp_path: Path) -> None:
    written = "\ufeff" + tmx(unit(en="naïve", zh="天真"))
    path = write(tmp_path / f"memory.tmx{packed}", written.encode(encoding))
    assert sides(read(path)) == [("naïve", "天真")]


def test_a_unit_without_both_languages_is_set_aside(tmp_path: Path) -> None:
    content = tmx(unit(en="one", fr="un"), unit(en="two", de="zwei"), unit(en="three"), "<tu/>", unit(en="4", fr="4"))
    examples = read(write(tmp_path / "a.tmx", content), source_language="en", target_language="fr")
    assert found(examples) == [("one", "un"), ("4", "4")]
    assert [(example.line, example.problem) for example in examples if example.problem] == [
        (2, "not both languages (en, de)"),
        (3, "not both languages (en)"),
        (4, "not both languages (no language)"),
    ]


def test_old_files_say_lang_and_have_a_document_type(tmp_path: Path) -> None:
    content = tmx(unit(en="one", fr="un"), before='<!DOCTYPE tmx SYSTEM "tmx14.dtd">').replace("xml:lang", "lang")
    assert sides(read(write(tmp_path / "a.tmx", content))) == [("one", "un")]


def test_codes_are_left_out_and_words_inside_markup_stay(tmp_path: Path) -> None:
    text = 'Press <bpt i="1">&lt;b&gt;</bpt><hi>the <ph x="1"/>red</hi><ept i="1">&lt;/b&gt;</ept> button<it>x</it>!'
    assert sides(read(write(tmp_path / "a.tmx", tmx(unit(en=text, fr="R &amp; D"))))) == [
        ("Press the red button!", "R & D")
    ]


# XLIFF


@pytest.mark.parametrize(("document", "pair"), [(xliff12, trans_unit), (xliff2, segment)])
def test_both_versions_of_xliff_are_read(document, pair, tmp_path: Path) -> None:
    content = document(pair("one", "un"), pair("two", None), pair("three", " "), pair("four", "quatre"))
    examples = read(write(tmp_path / "a.xlf", content))
    assert found(examples) == [("one", "un"), ("four", "quatre")]
    assert [(e.source, e.line, e.problem) for e in examples if e.problem] == [
        ("two", 2, "not translated"),
        ("three", 3, "not translated"),
    ]


def test_suggestions_beside_a_unit_are_no_translation(tmp_path: Path) -> None:
    suggestion = "<alt-trans><source>two</source><target>zwei</target></alt-trans>"
    one = f"<trans-unit><source>one</source><seg-source>x</seg-source><target>un</target>{suggestion}</trans-unit>"
    assert sides(read(write(tmp_path / "a.xliff", xliff12(one)))) == [("one", "un")]


def test_xliff_codes_are_left_out_and_words_inside_markup_stay(tmp_path: Path) -> None:
    old = trans_unit('a <g id="1">red <x id="2"/><mrk mtype="x">big</mrk></g> dog<ph id="3">%s</ph>', "x<bx/>y<ex/>")
    new = segment('a <pc id="1">red <ph id="2"/><mrk id="3">big</mrk></pc> dog<sc id="4"/>', "x<ec/>y")
    for content in (xliff12(old), xliff2(new)):
        assert sides(read(write(tmp_path / "a.xlf", content))) == [("a red big dog", "xy")]


@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_xliff_is_turned_to_the_languages_asked_for(version: str, tmp_path: Path) -> None:
    if version == "1.2":
        inner = f'<file source-language="en" target-language="de-DE"><body>{trans_unit("one", "eins")}</body></file>'
        written = f'<xliff version="1.2">{inner}</xliff>'
    else:
        inner = f"<file id='f'><unit id='u'>{segment('one', 'eins')}</unit></file>"
        written = f'<xliff version="2.0" srcLang="en" trgLang="de-DE">{inner}</xliff>'
    path = write(tmp_path / "a.xlf", written)
    for source, target in ((None, None), ("en", "de"), ("en", None), (None, "de")):
        assert sides(read(path, source_language=source, target_language=target)) == [("one", "eins")]
    for source, target in (("de", "en"), ("de", None), (None, "en")):
        assert sides(read(path, source_language=source, target_language=target)) == [("eins", "one")]
    with pytest.raises(ValueError, match="it goes from en to de-DE, not from fr to it"):
        read(path, source_language="fr", target_language="it")


def test_other_xml_is_no_xliff(tmp_path: Path) -> None:
    assert "not XLIFF" in refusal(write(tmp_path / "a.xlf", tmx(unit(en="one", fr="un"))))


# All XML


FORMATS = ["tmx", "1.2.xlf", "2.0.xliff"]


def document(format_name: str, source: str, target: str, before: str = "") -> str:
    if format_name == "tmx":
        return tmx(unit(en=source, fr=target), before=before)
    if format_name == "1.2.xlf":
        return xliff12(trans_unit(source, target), before=before)
    return xliff2(segment(source, target), before=before)


@pytest.mark.parametrize("format_name", FORMATS)
@given(source=plain_text, target=plain_text.filter(str.strip))
def test_any_text_is_read_back(format_name: str, source: str, target: str, tmp_path_factory) -> None:
    path = write(
        tmp_path_factory.getbasetemp() / f"any.{format_name}", document(format_name, escape(source), escape(target))
    )
    assert sides(read(path)) == [(source, target)]


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("before", [BOMB, OUTSIDE], ids=["bomb", "outside"])
def test_entities_are_refused(before: str, format_name: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{format_name}", document(format_name, "&c;", "un", before))
    assert "entities" in refusal(path)


@pytest.mark.parametrize("format_name", FORMATS)
def test_broken_xml_is_a_sentence(format_name: str, tmp_path: Path) -> None:
    whole = document(format_name, "one", "un")
    for broken in ("", "hello", whole[:-10], whole[: len(whole) // 2], whole.replace("</", "<", 1), whole + "<"):
        assert "not well-formed XML" in refusal(write(tmp_path / f"a.{format_name}", broken))


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("encoding", ["nonsense", "gb2312"])
def test_an_encoding_that_cannot_be_read_is_a_sentence(encoding: str, format_name: str, tmp_path: Path) -> None:
    content = document(format_name, "one", "un").replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
    refusal(write(tmp_path / f"a.{format_name}", content))


@pytest.mark.parametrize("format_name", FORMATS)
def test_another_encoding_that_xml_names_is_read(format_name: str, tmp_path: Path) -> None:
    content = document(format_name, "née", "né").replace('"1.0"', '"1.0" encoding="iso-8859-1"', 1)
    assert sides(read(write(tmp_path / f"a.{format_name}", content.encode("latin-1")))) == [("née", "né")]


@pytest.mark.parametrize("format_name", FORMATS)
def test_markup_thousands_deep_is_read_or_refused(format_name: str, tmp_path: Path) -> None:
    deep = "<hi>" * 5000 + "one" + "</hi>" * 5000
    path = write(tmp_path / f"a.{format_name}", document(format_name, deep, "un"))
    try:
        assert sides(read(path)) == [("one", "un")]
    except ValueError:
        refusal(path)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_memory_of_many_units_is_never_held_whole(format_name: str, tmp_path: Path) -> None:
    one = document(format_name, "one " * 250, "un " * 250)
    start, end = re.search(r"<(tu|trans-unit|segment)\b.*</\1>", one).span()
    path = write(tmp_path / f"a.{format_name}", one[:start] + one[start:end] * 2000 + one[end:])
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_pairs(path, Layout()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 2000
    assert peak < path.stat().st_size / 3


def test_other_xml_is_no_tmx(tmp_path: Path) -> None:
    assert "not TMX" in refusal(write(tmp_path / "a.tmx", xliff12(trans_unit("one", "un"))))
