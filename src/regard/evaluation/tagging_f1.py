"""How well the words of texts are tagged: the share of tags, and F1 of whole names."""

from collections.abc import Sequence

Name = tuple[str, int, int]  # its kind, and its first and last word


def right_tags(outputs: Sequence[str], references: Sequence[str]) -> float:
    """The share of the references' tags that the outputs have in the same places."""
    right = total = 0
    for output, reference in zip(outputs, references, strict=True):
        expected = reference.split()
        said = output.split()
        right += sum(a == b for a, b in zip(said, expected, strict=False))
        total += max(len(expected), len(said))
    return right / max(1, total)


def names(tags: Sequence[str]) -> set[Name]:
    """The names in a sentence: B- begins one, I- of the same kind goes on, O is none; a tag without such a mark is a
    name of one word (Tjong Kim Sang and De Meulder 2003)."""
    found: set[Name] = set()
    first, kind = 0, ""
    for at, tag in enumerate([*tags, "O"]):
        mark, _, named = tag.partition("-") if tag[:2] in ("B-", "I-") else ("", "", tag)
        if kind and not (mark == "I" and named == kind):
            found.add((kind, first, at - 1))
            kind = ""
        if mark and not kind:
            first, kind = at, named
        elif not mark and tag != "O":
            found.add((tag, at, at))
    return found


def name_f1(outputs: Sequence[str], references: Sequence[str]) -> float:
    """F1 over all names: right only if its kind and both its ends are."""
    both = said = there = 0
    for output, reference in zip(outputs, references, strict=True):
        mine, theirs = names(output.split()), names(reference.split())
        both, said, there = both + len(mine & theirs), said + len(mine), there + len(theirs)
    return 2 * both / max(1, said + there)
