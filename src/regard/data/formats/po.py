"""gettext PO: the entries that are translated and not fuzzy."""

import re
from collections.abc import Iterator
from pathlib import Path

from regard.data.example import Example, Layout
from regard.data.input_files import open_file
from regard.data.readers import READERS, Reader
from regard.errors import RegardError

# polib ends a line at each of these characters, which gettext does not. While it parses, each is two characters: an
# escape character and a digit. The escape character itself, the first one, is escaped, too.
_ESCAPED = "\uf8e0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_ESCAPES = str.maketrans({character: f"{_ESCAPED[0]}{digit}" for digit, character in enumerate(_ESCAPED)})
_ESCAPE_SEQUENCE = re.compile(rf"{_ESCAPED[0]}(\d)")


@READERS.register("po")
class PoReader(Reader):
    """A gettext catalog; each plural form is an example of its own."""

    suffixes = (".po", ".pot")

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        import polib

        with open_file(path) as file:
            content = file.read()
        try:
            text = content.decode("utf-8-sig")
            # polib takes its argument for a file's name if there is such a file.
            entries = polib.pofile(text.translate(_ESCAPES) + "\n# end\n") if text.strip() else []
        except UnicodeDecodeError:
            raise RegardError(f"{path}: this is not UTF-8; convert it: msgconv -t utf-8 {path} -o new.po.") from None
        except (OSError, ValueError, IndexError) as error:
            raise RegardError(f"{path}: this is not a PO file: {error}.") from None
        for entry in entries:
            if entry.obsolete:
                continue
            line = int(entry.linenum or 0)
            if not entry.translated():
                yield _example(entry.msgid, entry.msgstr, path, line, "fuzzy" if entry.fuzzy else "not translated")
                continue
            if not entry.msgid_plural:
                yield _example(entry.msgid, entry.msgstr, path, line)
                continue
            forms = sorted((int(number), form) for number, form in entry.msgstr_plural.items())
            for number, form in forms:
                yield _example(entry.msgid_plural if number else entry.msgid, form, path, line)


def _example(source: str, target: str, path: Path, line: int, problem: str = "") -> Example:
    return Example(_unescape(source), _unescape(target), str(path), line, problem)


def _unescape(text: str) -> str:
    return _ESCAPE_SEQUENCE.sub(lambda escape: _ESCAPED[int(escape[1])], text)
