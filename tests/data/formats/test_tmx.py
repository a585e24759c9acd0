"""TMX."""

import re
from pathlib import Path

import pytest

from tests.data.files import read, refusal, text_pairs, write
from tests.data.formats.translation_files import (
    tmx,
    trans_unit,
    translated_pairs,
    unit,
    xliff12,
)


def test_languages_match_by_their_beginning(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en_US="one", pt_BR="um"), unit(pt_BR="dois", EN_us="two")))
    for source, target in [("en", "pt"), ("en-US", "pt-BR"), ("EN", "PT_br"), ("en-us", "pt")]:
        assert text_pairs(read(path, source_language=source, target_language=target)) == [
            ("one", "um"),
            ("two", "dois"),
        ]
    assert text_pairs(read(path, source_language="pt", target_language="en")) == [("um", "one"), ("dois", "two")]


def test_the_exact_language_is_preferred(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en="bus", pt_PT="autocarro", pt_BR="ônibus")))
    assert text_pairs(read(path, source_language="en", target_language="pt-BR")) == [("bus", "ônibus")]
    assert text_pairs(read(path, source_language="en", target_language="pt-PT")) == [("bus", "autocarro")]


def test_a_region_is_not_replaced_by_another(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en="bus", pt_PT="autocarro")))
    assert "pt-pt" in refusal(path, source_language="en", target_language="pt-BR")


def test_missing_languages_are_refused_naming_those_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", tmx(unit(en_US="one", pt_BR="um"), unit(en_US="two", de="zwei")))
    message = refusal(path, source_language="en", target_language="fr")
    assert "none of its 2 units has en and fr" in message
    assert "de, en-us, pt-br" in message
    assert "--from and --to" in message


def test_the_header_names_the_source_language(tmp_path: Path) -> None:
    content = tmx(unit(fr="un", en_GB="one"), unit(en_GB="two", fr="deux"), srclang="en-GB")
    assert text_pairs(read(write(tmp_path / "a.tmx", content))) == [("one", "un"), ("two", "deux")]


@pytest.mark.parametrize(
    "content",
    [
        tmx(unit(en="one", fr="un"), srclang="*all*"),
        tmx(unit(en="one", fr="un")).replace('srclang="en"', ""),
        tmx(unit(en="one", fr="un", de="eins")),
    ],
    ids=["no source language", "no srclang", "three languages"],
)
def test_ambiguous_languages_are_refused(content: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", content)
    assert re.search("languages en, fr.*--from and --to", refusal(path))
    assert text_pairs(read(path, source_language="fr", target_language="en")) == [("un", "one")]


@pytest.mark.parametrize("extension", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_read(encoding: str, extension: str, tmp_path: Path) -> None:
    written = "\ufeff" + tmx(unit(en="naïve", zh="天真"))
    path = write(tmp_path / f"memory.tmx{extension}", written.encode(encoding))
    assert text_pairs(read(path)) == [("naïve", "天真")]


def test_a_unit_without_both_languages_is_rejected(tmp_path: Path) -> None:
    content = tmx(unit(en="one", fr="un"), unit(en="two", de="zwei"), unit(en="three"), "<tu/>", unit(en="4", fr="4"))
    examples = read(write(tmp_path / "a.tmx", content), source_language="en", target_language="fr")
    assert translated_pairs(examples) == [("one", "un"), ("4", "4")]
    assert [(example.line, example.problem) for example in examples if example.problem] == [
        (2, "not both languages (en, de)"),
        (3, "not both languages (en)"),
        (4, "not both languages (no language)"),
    ]


def test_the_old_lang_attribute_and_a_doctype_are_accepted(tmp_path: Path) -> None:
    content = tmx(unit(en="one", fr="un"), before='<!DOCTYPE tmx SYSTEM "tmx14.dtd">').replace("xml:lang", "lang")
    assert text_pairs(read(write(tmp_path / "a.tmx", content))) == [("one", "un")]


def test_codes_are_removed_and_text_inside_markup_is_kept(tmp_path: Path) -> None:
    text = 'Press <bpt i="1">&lt;b&gt;</bpt><hi>the <ph x="1"/>red</hi><ept i="1">&lt;/b&gt;</ept> button<it>x</it>!'
    assert text_pairs(read(write(tmp_path / "a.tmx", tmx(unit(en=text, fr="R &amp; D"))))) == [
        ("Press the red button!", "R & D")
    ]


def test_other_xml_is_refused(tmp_path: Path) -> None:
    assert "not TMX" in refusal(write(tmp_path / "a.tmx", xliff12(trans_unit("one", "un"))))
