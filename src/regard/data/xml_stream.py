"""XML translation files, streamed: a translation memory may be larger than the machine's memory.

Parsed by defusedxml, which refuses entity bombs and files that reach outside.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from regard.data.input_files import DamagedFileError, open_file
from regard.errors import RegardError

# Elements that stand for codes of the translated document. The content of others, such as <hi> and <g>, is text.
CODES = {"bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec"}


def parse_elements(path: Path, units: tuple[str, ...]) -> Iterator[tuple[str, Element]]:
    """The start and the end of every element. A unit is dropped after its end, so files may be of any size."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    with open_file(path, allow_utf16=True) as file:
        parser: Any = iterparse(file, ("start", "end"), forbid_dtd=False)
        parents: list[Element] = []
        while True:
            try:
                event, element = next(parser)
            except StopIteration:
                return
            except ParseError as error:
                raise RegardError(f"{path}: this is not well-formed XML: {error}.") from None
            except DefusedXmlException:
                raise RegardError(f"{path}: it defines entities, which a translation file need not; refused.") from None
            except DamagedFileError:
                raise
            except (LookupError, ValueError) as error:
                raise RegardError(f"{path}: its encoding cannot be read ({error}); save it in UTF-8.") from None
            yield event, element
            if event == "start":
                parents.append(element)
                continue
            parents.pop()
            if parents and local_name(element) in units:
                parents[-1].remove(element)


def local_name(element: Element) -> str:
    """An element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def text_of(element: Element) -> str:
    """The text inside, without the codes of the translated document. Iterative, since markup may be of any depth."""
    texts = [element.text or ""]
    stack = [iter(element)]
    tails: list[str] = []
    while stack:
        child = next(stack[-1], None)
        if child is None:
            stack.pop()
            texts.append(tails.pop() if tails else "")
        elif local_name(child) in CODES:
            texts.append(child.tail or "")
        else:
            texts.append(child.text or "")
            tails.append(child.tail or "")
            stack.append(iter(child))
    return "".join(texts)
