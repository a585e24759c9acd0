"""Language codes, as they are written in files and options: en, en-US, pt_BR."""

from collections.abc import Iterable


def normalize_language(code: str) -> str:
    """In lower case, with hyphens."""
    return code.lower().replace("_", "-")


def find_language(languages: Iterable[str], code: str) -> str | None:
    """The one of these codes that is the same language: the same code, or with a region where the other has none."""
    code = normalize_language(code)
    known = {normalize_language(language): language for language in languages}
    if code in known:
        return known[code]
    return next((known[each] for each in known if each.startswith(f"{code}-") or code.startswith(f"{each}-")), None)
