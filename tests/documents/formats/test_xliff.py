"""XLIFF 1.2 and 2."""

import re
import xml.etree.ElementTree as ET

import pytest

from tests.documents.helpers import read

BROKEN_TRANSLATIONS = ["kaputt", '</g>hier<g id="1"> <x id="2"/>', '<g id="1"> <g id="1"></g><x id="2"/>']


XLIFF = """<?xml version="1.0" encoding="{encoding}"?>
<!-- a comment with <source>nothing</source> -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file source-language="en" target-language="de" original="a" datatype="plaintext"><body>
  <trans-unit id="1">
    <source>Fish &amp; chips &lt;now&gt;</source>
  </trans-unit>
  <trans-unit id="2"><source>Click <g id="1">here</g> or <x id="2"/></source><target state='new'/></trans-unit>
  <trans-unit id="3"><source>Done</source><target>Fertig</target></trans-unit>
  <trans-unit id="4" translate="no"><source>NO</source></trans-unit>
  <trans-unit id="5"><source>Grüße</source><target a="1 > 0">  </target></trans-unit>
 </body></file>
</xliff>
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_missing_targets_are_added_and_everything_else_stays(encoding: str) -> None:
    content = XLIFF.format(encoding=encoding).encode(encoding)
    document = read(content, "xliff")
    assert document.texts == ["Fish & chips <now>", 'Click <g id="1">here</g> or <x id="2"/>', "Grüße"]
    assert document.write([None] * 3) == content
    written = document.write(["Fisch & Chips <jetzt> 字", '<x id="2"/> oder <g id="1">hier</g>', "Hallo"])
    text = written.decode(encoding)
    ET.fromstring(written)
    character = "&#23383;" if encoding == "iso-8859-1" else "字"
    assert (
        f'\n    <target state="needs-review-translation">Fisch &amp; Chips &lt;jetzt&gt; {character}</target>' in text
    )
    review = 'state="needs-review-translation"'
    filled = f'<target {review}><x id="2"/> oder <g id="1">hier</g></target>'
    left = re.sub(r'\n    <target state="needs-review.*?</target>', "", text)
    assert filled in left
    left = left.replace(filled, "<target state='new'/>")
    assert f'<target a="1 > 0" {review}>Hallo</target>' in left
    left = left.replace(f'<target a="1 > 0" {review}>Hallo</target>', '<target a="1 > 0">  </target>')
    assert left == XLIFF.format(encoding=encoding)


@pytest.mark.parametrize("translation", BROKEN_TRANSLATIONS)
def test_the_output_is_well_formed_whatever_the_translation(translation: str) -> None:
    document = read(XLIFF.format(encoding="utf-8"), "xliff")
    written = document.write([None, translation, None])
    unit = ET.fromstring(written).find(".//{*}trans-unit[@id='2']/{*}target")
    assert unit is not None
    assert [child.tag.rpartition("}")[2] for child in unit] == ["g", "x"]


def test_xliff_2_units_are_filled() -> None:
    content = (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de"><file id="f">'
        '<unit id="u"><segment><source>Hi</source></segment><segment><source>Yes</source><target>Ja</target></segment>'
        "</unit></file></xliff>"
    )
    document = read(content, "xliff")
    assert document.texts == ["Hi"]
    assert (
        document.write(["Hallo"])
        == content.replace("<source>Hi</source>", "<source>Hi</source><target>Hallo</target>").encode()
    )


def test_namespaces_order_and_untranslatable_units_are_kept() -> None:
    content = (
        '<x:xliff xmlns:x="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><x:file>'
        "<x:trans-unit id='1'><x:source>A &#8211; b &#x1F600;</x:source><x:seg-source>A</x:seg-source></x:trans-unit>"
        "<x:trans-unit id='2'><x:source>C</x:source><x:target/></x:trans-unit>"
        '<x:group translate="no"><x:trans-unit id="3"><x:source>D</x:source></x:trans-unit></x:group>'
        "</x:file></x:xliff>"
    )
    document = read(content, "xliff")
    assert document.texts == ["A – b 😀", "C"]
    written = document.write(["X – y", "Z"]).decode()
    ET.fromstring(written)
    assert '</x:seg-source><x:target state="needs-review-translation">X – y</x:target></x:trans-unit>' in written
    assert '<x:target state="needs-review-translation">Z</x:target>' in written


def in_unit(inside: str) -> str:
    return (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file><body><trans-unit id="1">'
        f"{inside}</trans-unit></body></file></xliff>"
    )


def target_of(content: str, *translation: str) -> str:
    """The content of the target element with these translations."""
    written = read(content, "xliff").write(translation).decode()
    ET.fromstring(written)
    found = re.search("<target[^>]*>(.*)</target>", written, re.DOTALL)
    assert found is not None
    return found[1]


def test_cdata_is_text_and_comments_are_removed() -> None:
    content = in_unit("<source><![CDATA[a cat<br>& a <b>dog</b>]]> runs<!-- soon <x> --></source>")
    assert read(content, "xliff").texts == ["a cat<br>& a <b>dog</b> runs"]
    assert target_of(content, "Katze<br>& <b>Hund</b>") == "Katze&lt;br&gt;&amp; &lt;b&gt;Hund&lt;/b&gt;"


@pytest.mark.parametrize(
    "code",
    [
        '<mrk id="m1" translate="no">Acme Dog</mrk>',
        "<mrk mtype='protected'>Acme <x id='9'/> Dog</mrk>",
        '<ph id="1">\\cf1 &lt;b></ph>',
        '<bpt id="1">bold</bpt>',
        "<it pos='open'/>",
    ],
)
def test_codes_are_not_translated(code: str) -> None:
    content = in_unit(f"<source>Buy {code} now</source>")
    (text,) = read(content, "xliff").texts
    assert text.startswith("Buy <")
    assert text.endswith("> now")
    assert not any(word in text for word in ("Acme", "cf1", "bold"))
    tag = text.removeprefix("Buy ").removesuffix(" now")
    assert target_of(content, f"Jetzt {tag} kaufen") == f"Jetzt {code} kaufen"
    assert target_of(content, "Jetzt kaufen") == f"Jetzt kaufen{code}"


def test_other_markers_are_tags() -> None:
    content = in_unit('<source>a <mrk mtype="term">dog</mrk> runs</source>')
    assert read(content, "xliff").texts == ['a <mrk mtype="term">dog</mrk> runs']


def test_each_segment_is_a_text() -> None:
    content = in_unit(
        "<source>One. Two.</source><seg-source><mrk mtype='seg' mid='1'>One.</mrk> <mrk mtype='seg' mid='2'>"
        "<g id='1'>Two.</g></mrk></seg-source><target/>"
    )
    assert read(content, "xliff").texts == ["One.", "<g id='1'>Two.</g>"]
    inside = "<mrk mtype='seg' mid='1'>Eins.</mrk> <mrk mtype='seg' mid='2'><g id='1'>Zwei.</g></mrk>"
    assert target_of(content, "Eins.", "<g id='1'>Zwei.</g>") == inside
    assert read(content, "xliff").write(["Eins.", None]) == content.encode()


def test_other_languages_are_refused() -> None:
    unit = "<unit id='1'><segment><source>A</source></segment></unit>"
    two = f'<xliff version="2.0" srcLang="en-US" trgLang="fr"><file id="f">{unit}</file></xliff>'
    assert read(two, "xliff", source_language="en", target_language="fr-CA").texts == ["A"]
    assert read(two, "xliff").texts == ["A"]
    with pytest.raises(ValueError, match="its languages are en-US → fr, not en → de"):
        read(two, "xliff", source_language="en", target_language="de")
    untranslatable = two.replace("<unit ", '<unit translate="no" ')
    assert read(untranslatable, "xliff").texts == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<xliff>", "not well-formed XML"),
        ("<html/>", "this is XML, but not XLIFF"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', "it defines entities"),
        ("", "not well-formed XML"),
    ],
)
def test_malformed_or_other_xml_is_refused(content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(content, "xliff")
