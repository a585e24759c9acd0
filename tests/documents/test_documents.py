"""Files come back as they were, byte for byte, but for their translations."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.documents.document import Document, DocumentLayout, kind_of, read_document

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")
WRONG = ["kaputt", '</g>hier<g id="1"> <x id="2"/>', '<g id="1"> <g id="1"></g><x id="2"/>']


def read(content: str | bytes, kind: str, **about: Any) -> Document:
    raw = content.encode() if isinstance(content, str) else content
    return read_document(raw, f"file.{kind}", kind, DocumentLayout(**about))


@given(
    lines=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12), max_size=8
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    last=st.booleans(),
    paragraphs=st.booleans(),
)
def test_text_comes_back_byte_for_byte(lines: list[str], end: str, mark: bool, last: bool, paragraphs: bool) -> None:
    content = b"\xef\xbb\xbf" * mark + (end.join(lines) + end * last).encode()
    document = read(content, "text", paragraphs=paragraphs)
    assert document.write(list(document.texts)) == content
    if not paragraphs:
        assert len(document.texts) == sum(bool(line.strip()) for line in lines)


def test_lines_stay_lines() -> None:
    document = read("one\n\n  two \r\nthree", "text")
    assert document.texts == ["one", "two", "three"]
    assert document.write(["1", None, "3"]) == b"1\n\n   \r\n3"


def test_paragraphs_are_put_back() -> None:
    document = read("One. Two!  Three?\nDr. Who met J. Smith on the 3. of May. 你好。再见！\n", "text", paragraphs=True)
    assert document.texts == [
        "One.",
        "Two!",
        "Three?",
        "Dr. Who met J. Smith on the 3. of May.",
        "你好。",
        "再见！",
    ]
    assert document.write(list("abcdef")) == b"a b  c\nd ef\n"


def test_a_line_that_is_not_utf8_does_not_stop_the_rest() -> None:
    document = read(b"good\nb\xe4d\ngood again\n", "text")
    assert document.texts == ["good", "b\udce4d", "good again"]
    assert document.write(["a", None, "c"]) == b"a\n\nc\n"
    with pytest.raises(ValueError, match=r"file.text, line 1: this is not UTF-8; convert the file first"):
        read("größe\nmüde".encode("latin1"), "text")
    with pytest.raises(ValueError, match="this is UTF-16"):
        read("größe".encode("utf-16"), "text")
    with pytest.raises(ValueError, match="this is gzipped"):
        read(b"\x1f\x8b\x08", "text")


def test_tables_get_a_column() -> None:
    document = read("a\tx\nb\ty\n", "tsv")
    assert document.texts == ["a", "b"]
    assert document.write(["A", None]) == b"a\tx\tA\nb\ty\t\n"
    document = read('id,source\r\n1,"one, two"\r\n2,three\r\n', "csv")
    assert document.texts == ["one, two", "three"]
    rows = list(csv.reader(io.StringIO(document.write(["eins, zwei", 'sag "drei"']).decode(), newline="")))
    assert rows == [["id", "source", "translation"], ["1", "one, two", "eins, zwei"], ["2", "three", 'sag "drei"']]
    assert read("a,b\nc,d\n", "csv", source_column=2).texts == ["b", "d"]
    assert read("name,words\nc,d\n", "csv", source_column="words").texts == ["d"]
    with pytest.raises(ValueError, match="there is no column 'word'; the first line has name, words"):
        read("name,words\nc,d\n", "csv", source_column="word")
    with pytest.raises(ValueError, match="there is no column 3; it has 2"):
        read("a,b\n", "csv", source_column=3)
    with pytest.raises(ValueError, match="this is not CSV"):
        read('a,"b\n', "csv")


def test_json_lines_get_a_field() -> None:
    document = read('{"id": 1, "text": "one"}\n{"id": 2}\nnonsense\n{"text": "vier", "x": [1]}\n', "jsonl")
    assert document.texts == ["one", "vier"]
    assert document.notes == ["line 3: this is not JSON"]
    written = document.write(["eins", "4"]).decode().splitlines()
    assert json.loads(written[0]) == {"id": 1, "text": "one", "translation": "eins"}
    assert json.loads(written[1]) == {"id": 2, "translation": None}
    assert written[2] == "nonsense"
    assert json.loads(written[3]) == {"text": "vier", "x": [1], "translation": "4"}
    with pytest.raises(ValueError, match="line 1: this is not JSON"):
        read("nonsense\n", "jsonl")
    with pytest.raises(ValueError, match="which field is the text"):
        read('{"a": "x", "b": "y"}\n', "jsonl")


def test_tables_keep_every_other_byte() -> None:
    content = 'id,text\r\n1,"a dog"\r\n\r\n2,"two\nlines",\r\n'
    document = read(content, "csv", source_column=2)
    assert document.texts == ["a dog", "two\nlines"], "a header is known by its names"
    written = document.write(["ein Hund", "zwei\nZeilen"]).decode()
    assert written == 'id,text,translation\r\n1,"a dog",ein Hund\r\n\r\n2,"two\nlines",,"zwei\nZeilen"\r\n'
    assert (
        read("id;text\n1;a, b\n", "csv", source_column="text").write(["x;y"]) == b'id;text;translation\n1;a, b;"x;y"\n'
    )
    document = read("source\ttranslation\none\t\ntwo\tzwei\n", "tsv")
    assert document.texts == ["one"]
    assert document.write(["eins"]) == b"source\ttranslation\none\teins\ntwo\tzwei\n"
    escaped = '{"text": "caf\\u00e9"}\n{"text": "b", "translation": "OLD"}\n{}\n{"text": 5}\n'
    document = read(escaped, "jsonl")
    assert document.texts == ["café"]
    first, *others = document.write(["Café"]).decode().splitlines()
    assert first == '{"text": "caf\\u00e9", "translation": "Café"}'
    assert others == [
        '{"text": "b", "translation": "OLD"}',
        '{"translation": null}',
        '{"text": 5, "translation": null}',
    ]


PO = r"""# A comment of a translator.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. For the menu
#: src/a.c:12
msgid "Open"
msgstr ""

#: src/a.c:13
#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "Close"
msgstr "Schliessen"

msgctxt "verb"
msgid ""
"A long text\n"
"of \"two\" lines\n"
msgstr ""

msgid "Done"
msgstr "Fertig"

#~ msgid "Old"
#~ msgstr "Alt"
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_catalogue_is_filled_in_and_nothing_else_is_touched(end: str) -> None:
    content = PO.replace("\n", end)
    document = read(content, "po")
    assert document.texts == ["Open", "%d file", "%d files", 'A long text\nof "two" lines\n']
    assert document.write([None] * 4) == content.encode(), "nothing said, nothing changed"
    said = ["Öffnen", "%d Datei", "%d Dateien", 'Ein "langer" Text\nvon zwei Zeilen']
    written = document.write(said).decode()
    catalogue = polib.pofile(written.replace("\r\n", "\n") + "\n# end\n")
    by_id = {entry.msgid: entry for entry in catalogue if not entry.obsolete}
    assert by_id["Open"].msgstr == "Öffnen"
    assert by_id["%d file"].msgstr_plural == {0: "%d Datei", 1: "%d Dateien"}
    assert by_id['A long text\nof "two" lines\n'].msgstr == 'Ein "langer" Text\nvon zwei Zeilen\n'
    assert [entry.msgid for entry in catalogue if entry.fuzzy and entry.msgid != "Close"] == [
        "Open",
        "%d file",
        'A long text\nof "two" lines\n',
    ]
    assert "#, fuzzy, c-format" in written
    assert by_id["Done"].msgstr == "Fertig"
    assert not by_id["Done"].fuzzy
    kept = [line for line in content.split(end) if not line.startswith(('msgstr ""', "msgstr[", "#, c-format"))]
    lines = iter(written.split(end))
    assert all(line in lines for line in kept), "every other line is there, in its order"
    again = read(written, "po")
    assert not again.texts, "what was filled in is not filled in again"


def test_what_is_no_catalogue_is_refused() -> None:
    with pytest.raises(ValueError, match=r"file.po, line 2: this is not PO: 'nonsense'"):
        read('msgid "a"\nnonsense\n', "po")


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
def test_xliff_is_filled_in_and_nothing_else_is_touched(encoding: str) -> None:
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


@pytest.mark.parametrize("said", WRONG)
def test_xliff_stays_well_formed_whatever_was_said(said: str) -> None:
    document = read(XLIFF.format(encoding="utf-8"), "xliff")
    written = document.write([None, said, None])
    unit = ET.fromstring(written).find(".//{*}trans-unit[@id='2']/{*}target")
    assert unit is not None
    assert [child.tag.rpartition("}")[2] for child in unit] == ["g", "x"]


def test_xliff_2() -> None:
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


TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
  <tu>
    <tuv xml:lang="en-US"><seg>One</seg></tuv>
    <tuv xml:lang="fr"><seg>Un</seg></tuv>
  </tu>
  <tu><tuv xml:lang="EN"><seg>Two</seg></tuv><tuv xml:lang="de"><seg>Zwei</seg></tuv></tu>
  <tu><tuv lang="en"><seg>Three</seg></tuv><tuv lang="de-DE"><seg/></tuv></tu>
</body></tmx>
"""


def test_xliff_keeps_namespaces_order_and_what_is_not_for_translation() -> None:
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


def told(content: str, *said: str) -> str:
    """The target that comes of these translations."""
    written = read(content, "xliff").write(said).decode()
    ET.fromstring(written)
    found = re.search("<target[^>]*>(.*)</target>", written, re.DOTALL)
    assert found is not None
    return found[1]


def test_cdata_is_text_and_comments_are_nobodys() -> None:
    content = in_unit("<source><![CDATA[a cat<br>& a <b>dog</b>]]> runs<!-- soon <x> --></source>")
    assert read(content, "xliff").texts == ["a cat<br>& a <b>dog</b> runs"]
    assert told(content, "Katze<br>& <b>Hund</b>") == "Katze&lt;br&gt;&amp; &lt;b&gt;Hund&lt;/b&gt;"


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
def test_what_is_marked_as_code_is_never_translated(code: str) -> None:
    content = in_unit(f"<source>Buy {code} now</source>")
    (text,) = read(content, "xliff").texts
    assert text.startswith("Buy <")
    assert text.endswith("> now")
    assert not any(word in text for word in ("Acme", "cf1", "bold"))
    tag = text.removeprefix("Buy ").removesuffix(" now")
    assert told(content, f"Jetzt {tag} kaufen") == f"Jetzt {code} kaufen"
    assert told(content, "Jetzt kaufen") == f"Jetzt kaufen{code}"


def test_other_marks_are_tags_like_any_other() -> None:
    content = in_unit('<source>a <mrk mtype="term">dog</mrk> runs</source>')
    assert read(content, "xliff").texts == ['a <mrk mtype="term">dog</mrk> runs']


def test_segments_are_texts_of_their_own() -> None:
    content = in_unit(
        "<source>One. Two.</source><seg-source><mrk mtype='seg' mid='1'>One.</mrk> <mrk mtype='seg' mid='2'>"
        "<g id='1'>Two.</g></mrk></seg-source><target/>"
    )
    assert read(content, "xliff").texts == ["One.", "<g id='1'>Two.</g>"]
    inside = "<mrk mtype='seg' mid='1'>Eins.</mrk> <mrk mtype='seg' mid='2'><g id='1'>Zwei.</g></mrk>"
    assert told(content, "Eins.", "<g id='1'>Zwei.</g>") == inside
    assert read(content, "xliff").write(["Eins.", None]) == content.encode()


def test_files_in_other_languages_are_refused() -> None:
    unit = "<unit id='1'><segment><source>A</source></segment></unit>"
    two = f'<xliff version="2.0" srcLang="en-US" trgLang="fr"><file id="f">{unit}</file></xliff>'
    assert read(two, "xliff", source_language="en", target_language="fr-CA").texts == ["A"]
    assert read(two, "xliff").texts == ["A"]
    with pytest.raises(ValueError, match="its languages are en-US → fr, not en → de"):
        read(two, "xliff", source_language="en", target_language="de")
    kept = two.replace("<unit ", '<unit translate="no" ')
    assert read(kept, "xliff").texts == []
    po = 'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid " a "\nmsgstr ""\n'
    assert read(po, "po", target_language="fr_CA").write(["b"]).decode().endswith('msgstr " b "\n')
    with pytest.raises(ValueError, match="its language is fr, not de"):
        read(po, "po", target_language="de")
    with pytest.raises(ValueError, match="it is in ISO-8859-1"):
        read('msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n', "po")
    with pytest.raises(ValueError, match="it has no zz; it has de"):
        read(TMX, "tmx", source_language="zz", target_language="de")


def test_tmx_keeps_what_is_in_a_variant() -> None:
    unit = '<tu><tuv xml:lang="en"><seg>One</seg></tuv><tuv xml:lang="de-AT"><prop>KEEP</prop>{}</tuv></tu>'
    for empty in ("<seg></seg>", "<seg/>", ""):
        document = read(
            f"<tmx><body>{unit.format(empty)}</body></tmx>", "tmx", source_language="en", target_language="de"
        )
        assert document.write(["Eins"]).decode() == f"<tmx><body>{unit.format('<seg>Eins</seg>')}</body></tmx>"


def test_tmx_gets_a_language() -> None:
    document = read(TMX, "tmx", source_language="en", target_language="de")
    assert document.texts == ["One", "Three"]
    assert document.write([None, None]) == TMX.encode()
    written = document.write(["Eins & mehr", "Drei"]).decode()
    assert '\n    <tuv xml:lang="de"><seg>Eins &amp; mehr</seg></tuv>\n    <tuv xml:lang="fr">' in written
    assert '<tuv lang="de-DE"><seg>Drei</seg></tuv></tu>' in written, "what is there is kept"
    assert not read(written, "tmx", source_language="en", target_language="de").texts
    with pytest.raises(ValueError, match="say from which language to which"):
        read(TMX, "tmx")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<xliff>", "not well-formed XML"),
        ("<html/>", "this is XML, but not XLIFF"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', "it defines entities"),
        ("", "not well-formed XML"),
    ],
)
def test_what_is_no_xliff_is_refused(content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(content, "xliff")


def test_kinds_are_told_by_names() -> None:
    assert kind_of(Path("a.PO"), DocumentLayout()) == "po"
    assert kind_of(Path("README"), DocumentLayout()) == "text"
    assert kind_of(Path("a.xlf"), DocumentLayout()) == "xliff"
    assert kind_of(Path("a.dat"), DocumentLayout(kind="csv")) == "csv"
    with pytest.raises(ValueError, match="'pdf' is not a kind of file; there are csv, jsonl"):
        kind_of(Path("a.pdf"), DocumentLayout(kind="pdf"))


def test_short_rows_get_their_translation_in_its_column() -> None:
    document = read("id,text,note\n4,a cat\n5,a dog,x\n", "csv", source_column="text")
    assert document.write(["A", "B"]) == b"id,text,note,translation\n4,a cat,,A\n5,a dog,x,B\n"


def test_a_cell_that_is_no_text_is_told() -> None:
    document = read('{"text": "a"}\n{"text": 5}\n{"text": null}\n', "jsonl")
    assert document.texts == ["a"]
    assert list(document.notes) == ["line 2: its text is no string"]
