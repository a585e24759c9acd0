"""gettext PO."""

import polib
import pytest

from tests.documents.helpers import read

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
def test_empty_entries_are_filled_and_everything_else_stays(end: str) -> None:
    content = PO.replace("\n", end)
    document = read(content, "po")
    assert document.texts == ["Open", "%d file", "%d files", 'A long text\nof "two" lines\n']
    assert document.write([None] * 4) == content.encode(), "no translations, no changes"
    translation = ["Öffnen", "%d Datei", "%d Dateien", 'Ein "langer" Text\nvon zwei Zeilen']
    written = document.write(translation).decode()
    catalog = polib.pofile(written.replace("\r\n", "\n") + "\n# end\n")
    by_id = {entry.msgid: entry for entry in catalog if not entry.obsolete}
    assert by_id["Open"].msgstr == "Öffnen"
    assert by_id["%d file"].msgstr_plural == {0: "%d Datei", 1: "%d Dateien"}
    assert by_id['A long text\nof "two" lines\n'].msgstr == 'Ein "langer" Text\nvon zwei Zeilen\n'
    assert [entry.msgid for entry in catalog if entry.fuzzy and entry.msgid != "Close"] == [
        "Open",
        "%d file",
        'A long text\nof "two" lines\n',
    ]
    assert "#, fuzzy, c-format" in written
    assert by_id["Done"].msgstr == "Fertig"
    assert not by_id["Done"].fuzzy
    unchanged = [line for line in content.split(end) if not line.startswith(('msgstr ""', "msgstr[", "#, c-format"))]
    lines = iter(written.split(end))
    assert all(line in lines for line in unchanged), "all other lines are kept in order"
    again = read(written, "po")
    assert not again.texts, "filled entries are not translated again"


def test_a_file_that_is_not_po_is_refused() -> None:
    with pytest.raises(ValueError, match=r"file.po, line 2: this is not PO: 'nonsense'"):
        read('msgid "a"\nnonsense\n', "po")


def test_other_languages_and_encodings_are_refused() -> None:
    po = 'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid " a "\nmsgstr ""\n'
    assert read(po, "po", target_language="fr_CA").write(["b"]).decode().endswith('msgstr " b "\n')
    with pytest.raises(ValueError, match="its language is fr, not de"):
        read(po, "po", target_language="de")
    with pytest.raises(ValueError, match="it is in ISO-8859-1"):
        read('msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n', "po")
