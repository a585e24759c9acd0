"""A document format in a plugin's file is found by its suffix and its name, like a built-in one."""

import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest
from typer.testing import CliRunner

from regard import plugins
from regard.cli import app
from regard.documents.document import DOCUMENTS, DocumentLayout, document_format, read_document
from regard.errors import RegardError
from regard.loading import predictor_from_bundle
from regard.runs.bundle import Bundle, save_bundle

PLUGIN = '''
"""SubRip subtitles."""
import re

from regard.documents.document import DOCUMENTS, Document
from regard.documents.text_encoding import decode_utf8

CUE = re.compile(r"(?m)^(\\d+\\n[\\d:,]+ --> [\\d:,]+\\n)(.+)$")


@DOCUMENTS.register("srt")
class Subtitles(Document):
    suffixes = (".srt",)

    def __init__(self, content, name, layout):
        self._text, self._bom = decode_utf8(content, name)
        self.texts = [text for _, text in CUE.findall(self._text)]

    def write(self, translations):
        rest = iter(translations)
        text = CUE.sub(lambda cue: cue[1] + (next(rest) or cue[2]), self._text)
        return self._bom + text.encode()
'''
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nthe cat\n\n2\n00:00:03,000 --> 00:00:04,500\na dog\n"


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "subtitles.py"
    path.write_text(PLUGIN)
    plugins.load_file(path)
    yield path
    DOCUMENTS._entries.pop("srt")
    for name in [name for name in sys.modules if name.startswith(f"{plugins.PREFIX}subtitles")]:
        del sys.modules[name]


def test_a_structured_file_is_refused_without_the_plugin() -> None:
    with pytest.raises(RegardError, match=r"a \.srt is not translated as such; there are csv, jsonl, po, text"):
        document_format(PurePath("film.srt"), DocumentLayout())


@pytest.mark.usefixtures("plugin")
def test_a_plugins_format_is_found_by_suffix_and_by_name() -> None:
    assert len(PLUGIN.splitlines()) <= 40
    assert document_format(PurePath("film.SRT"), DocumentLayout()) == "srt"
    assert document_format(PurePath("film"), DocumentLayout(format="srt")) == "srt"
    document = read_document(SUBTITLES.encode(), "film.srt", "srt", DocumentLayout())
    assert document.texts == ["the cat", "a dog"]
    assert document.write(["die Katze", None]).decode() == SUBTITLES.replace("the cat", "die Katze")


@pytest.mark.usefixtures("plugin")
def test_the_command_translates_a_plugins_format(bundle: Bundle, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    save_bundle(run, bundle)
    (tmp_path / "film.srt").write_text(SUBTITLES)
    arguments = ["translate", str(run), str(tmp_path / "film.srt"), "-o", str(tmp_path / "film.de.srt"), "--beam", "1"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    translated = [predictor_from_bundle(bundle).translate(text, beam=1).text for text in ("the cat", "a dog")]
    expected = SUBTITLES.replace("the cat", translated[0]).replace("a dog", translated[1])
    assert (tmp_path / "film.de.srt").read_text() == expected
