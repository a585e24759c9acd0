"""TMX."""

import pytest

from tests.documents.helpers import read

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


def test_other_elements_of_a_variant_are_kept() -> None:
    unit = '<tu><tuv xml:lang="en"><seg>One</seg></tuv><tuv xml:lang="de-AT"><prop>KEEP</prop>{}</tuv></tu>'
    for empty in ("<seg></seg>", "<seg/>", ""):
        document = read(
            f"<tmx><body>{unit.format(empty)}</body></tmx>", "tmx", source_language="en", target_language="de"
        )
        assert document.write(["Eins"]).decode() == f"<tmx><body>{unit.format('<seg>Eins</seg>')}</body></tmx>"


def test_a_missing_language_is_added() -> None:
    document = read(TMX, "tmx", source_language="en", target_language="de")
    assert document.texts == ["One", "Three"]
    assert document.write([None, None]) == TMX.encode()
    written = document.write(["Eins & mehr", "Drei"]).decode()
    assert '\n    <tuv xml:lang="de"><seg>Eins &amp; mehr</seg></tuv>\n    <tuv xml:lang="fr">' in written
    assert '<tuv lang="de-DE"><seg>Drei</seg></tuv></tu>' in written, "existing attributes are kept"
    assert not read(written, "tmx", source_language="en", target_language="de").texts
    with pytest.raises(ValueError, match="give the languages of source and target"):
        read(TMX, "tmx")


def test_a_missing_source_language_is_refused() -> None:
    with pytest.raises(ValueError, match="it has no zz; it has de"):
        read(TMX, "tmx", source_language="zz", target_language="de")
