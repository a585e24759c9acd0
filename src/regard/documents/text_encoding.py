"""UTF-8 text of documents."""

from regard.data.input_files import GZIP_MAGIC, UTF8_BYTE_ORDER_MARK, UTF16_BYTE_ORDER_MARKS
from regard.data.input_validation import LONE_SURROGATE
from regard.errors import RegardError


def decode_utf8(content: bytes, name: str, *, lenient: bool = False) -> tuple[str, bytes]:
    """The text, and the byte order mark before it, if any. Raises RegardError that names the line that is not UTF-8.

    lenient: bytes that are not UTF-8 become lone surrogates, which are not translated and are written back
    unchanged, unless more than half of all lines have some.
    """
    bom = UTF8_BYTE_ORDER_MARK if content.startswith(UTF8_BYTE_ORDER_MARK) else b""
    if content[:2] in UTF16_BYTE_ORDER_MARKS:
        raise RegardError(f"{name}: this is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8.")
    if content[:2] == GZIP_MAGIC:
        raise RegardError(f"{name}: this is gzipped; unpack it first.")
    try:
        return content[len(bom) :].decode("utf-8"), bom
    except UnicodeDecodeError as error:
        text = content[len(bom) :].decode("utf-8", "surrogateescape")
        lines = text.split("\n")
        if lenient and 2 * sum(LONE_SURROGATE.search(line) is not None for line in lines) <= len(lines):
            return text, bom
        line = content[: error.start + len(bom)].count(b"\n") + 1
        raise RegardError(
            f"{name}, line {line:,}: this is not UTF-8; convert the file first, as in: iconv -f latin1 -t utf-8."
        ) from None
