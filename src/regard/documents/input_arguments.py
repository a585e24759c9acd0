"""Whether the inputs of a command are texts, standard input, or one file."""

from collections.abc import Sequence
from pathlib import Path

from regard.documents.document import has_known_suffix
from regard.errors import RegardError

STANDARD_INPUT = "-"
MAX_PATH_CHARACTERS = 1000  # a longer argument is a text


def document_path(inputs: Sequence[str], output: Path | None) -> Path | None:
    """The one file that is given, or None for texts and for standard input.

    output: where a file's translation goes. Raises RegardError where neither a text nor a file would be right.
    """
    if not inputs or not all(each.strip() for each in inputs):
        raise RegardError("there is nothing to translate; give a text, a file, or - for lines of input.")
    files = [path for each in inputs if (path := _named_file(each, output)) is not None]
    if len(inputs) > 1:
        if STANDARD_INPUT in inputs:
            raise RegardError("-: lines of input come alone; leave out the other inputs.")
        if len(files) == len(inputs):
            raise RegardError(f"{files[1]}: one file at a time; run the command once for each.")
        if files:
            raise RegardError(f"{files[0]}: this is a file among texts; give one file, or texts only.")
    if not files and output is not None:
        raise RegardError("--output: it is for files; other outputs are printed, so redirect them with >.")
    return files[0] if files else None


def _named_file(argument: str, output: Path | None) -> Path | None:
    """The file that an argument names, if it is not a text. Raises RegardError for a file that is not there."""
    if argument == STANDARD_INPUT or len(argument) > MAX_PATH_CHARACTERS or "\n" in argument or "\0" in argument:
        return None
    path = Path(argument)
    if path.is_file():
        return path
    if path.is_dir():
        raise RegardError(
            f"{argument}: this is a folder; name a file in it, or give it as input: echo {argument} | ... -"
        )
    one_word = not any(map(str.isspace, argument))
    looks_like_path = one_word and (has_known_suffix(path) or argument.startswith(("/", "./", "../", "~/")))
    if looks_like_path or (output is not None and path.suffix):
        raise RegardError(f"{argument}: there is no such file.")
    return None
