"""A file translated: with a journal, so that what was killed goes on where it was; bad texts never stop the rest."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from regard.documents import Document
from regard.inference.options import Options
from regard.inference.translator import Translator
from regard.runs.folder import write_durably

Record = tuple[str, list[str], str]  # a translation, what it could not keep, why there is none

AT_ONCE = 1024  # texts translated between two entries in the journal


@dataclass
class Outcome:
    """What became of a file's texts."""

    texts: list[str | None] = field(default_factory=list)
    wrong: list[tuple[int, str]] = field(default_factory=list)  # which have no translation, and why
    lost: list[tuple[int, list[str]]] = field(default_factory=list)  # which could not keep what
    resumed: int = 0  # texts that an earlier attempt had done

    def add(self, text: str, missing: list[str], wrong: str) -> None:
        """One more."""
        if wrong:
            self.wrong.append((len(self.texts), wrong))
        if missing:
            self.lost.append((len(self.texts), missing))
        self.texts.append(None if wrong else text)


def translate_document(
    translator: Translator,
    document: Document,
    options: Options,
    output: Path,
    *,
    mark: str,
    done: Callable[[int], None] = lambda count: None,
) -> Outcome:
    """Write a document's translation. `mark`: of the model, the options and the source, so that a journal fits."""
    journal = output.with_name(f".{output.name}.part")
    before = _read_journal(journal, mark)[: len(document.texts)]
    outcome = Outcome(resumed=len(before))
    for record in before:
        outcome.add(*record)
    done(len(before))
    # Written anew, beside: its last line may have been cut off, and what it has must not be lost by another kill.
    beside = journal.with_name(f"{journal.name}.new")
    with beside.open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(json.dumps({"mark": mark}) + "\n")
        _write_journal(file, before)
        beside.replace(journal)
        for at in range(len(before), len(document.texts), AT_ONCE):
            results = translator.results(document.texts[at : at + AT_ONCE], options, done=done)
            records = [(result.text, result.missing, result.wrong) for result in results]
            _write_journal(file, records)
            for record in records:
                outcome.add(*record)
    write_durably(output, document.written(outcome.texts))
    journal.unlink()
    return outcome


def mark_of(content: bytes, about: str) -> str:
    """Of a source and of all that decides what it becomes."""
    return hashlib.sha256(hashlib.sha256(content).digest() + about.encode()).hexdigest()


def _write_journal(file: IO[str], records: Sequence[Record]) -> None:
    file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    file.flush()


def _read_journal(path: Path, mark: str) -> list[Record]:
    """What an earlier attempt had done; a line that was cut off by its end does not count."""
    try:
        lines = path.read_text("utf-8", errors="surrogateescape").split("\n")[:-1]
        if not lines or json.loads(lines[0]) != {"mark": mark}:
            return []
    except (OSError, ValueError):
        return []
    records: list[Record] = []
    for line in lines[1:]:
        try:
            text, missing, wrong = json.loads(line)
            records.append((str(text), [str(each) for each in missing], str(wrong)))
        except (ValueError, TypeError):
            break
    return records
