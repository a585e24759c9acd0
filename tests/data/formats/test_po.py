"""gettext PO."""

from pathlib import Path

import polib
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.data.files import plain_text, read, refusal, text_pairs, write
from tests.data.formats.translation_files import translated_pairs


def test_translated_entries_are_read_and_others_are_rejected(tmp_path: Path) -> None:
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
    assert translated_pairs(examples) == [("Open", "Ouvrir"), ("long text\n", "texte long\n")]
    assert [(example.source, example.problem) for example in examples if example.problem] == [
        ("Close", "fuzzy"),
        ("Save", "not translated"),
    ]
    assert [example.line for example in examples] == sorted(example.line for example in examples)
    assert all(example.line > 5 for example in examples)


def test_each_plural_form_is_an_example(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pl.po",
        'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d plik"\nmsgstr[1] "%d pliki"\nmsgstr[2] "%d plików"\n',
    )
    assert text_pairs(read(path)) == [("%d file", "%d plik"), ("%d files", "%d pliki"), ("%d files", "%d plików")]


def test_an_entry_with_a_missing_plural_form_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "fr.po", 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "x"\nmsgstr[1] ""\n')
    assert [example.problem for example in read(path)] == ["not translated"]


@example(pairs=[("\uf8e0", "\uf8e01"), ("a\u2028\uf8e0b", "\x0b\uf8e7")])
@given(pairs=st.lists(st.tuples(plain_text.filter(bool), plain_text.filter(bool)), max_size=4))
def test_entries_written_by_polib_are_read_back(pairs: list[tuple[str, str]], tmp_path_factory) -> None:
    catalog = polib.POFile()
    for source, target in pairs:
        catalog.append(polib.POEntry(msgid=source, msgstr=target))
    path = write(tmp_path_factory.getbasetemp() / "written.po", str(catalog))
    assert text_pairs(read(path)) == pairs


@pytest.mark.parametrize("content", ["hello\n", 'msgid "a"\nmsgstr "b"\nnonsense\n', 'msgid "a\nmsgstr', "<tmx/>"])
def test_a_file_that_is_not_po_is_refused(content: str, tmp_path: Path) -> None:
    assert "not a PO file" in refusal(write(tmp_path / "a.po", content))


def test_an_empty_file_has_no_examples(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.po", "\n\n")) == []


def test_content_that_is_the_name_of_another_file_does_not_open_it(tmp_path: Path) -> None:
    other = write(tmp_path / "other.po", 'msgid "secret"\nmsgstr "geheim"\n')
    assert "not a PO file" in refusal(write(tmp_path / "a.po", str(other)))
