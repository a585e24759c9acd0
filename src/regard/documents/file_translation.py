"""Translation of a file, with a journal: a killed job resumes where it stopped, invalid texts are skipped."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from regard.documents.document import Document, DocumentLayout, document_format, read_document
from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.predictor import Predictor
from regard.runs.folder import model_fingerprint, write_durably

JournalRecord = tuple[str, list[str], str]  # a translation, its missing placeholders, and why there is none

TEXTS_PER_RECORD = 1024  # translated between two writes of the journal


@dataclass
class FileTranslation:
    """The translations of a file's texts, so far."""

    texts: list[str | None] = field(default_factory=list)
    failed: list[tuple[int, str]] = field(default_factory=list)  # texts without a translation, and why
    missing: list[tuple[int, list[str]]] = field(default_factory=list)  # texts that lost placeholders, and which
    resumed: int = 0  # texts that an earlier attempt had translated

    def add(self, text: str, missing: list[str], problem: str) -> None:
        """The next text's translation."""
        if problem:
            self.failed.append((len(self.texts), problem))
        if missing:
            self.missing.append((len(self.texts), missing))
        self.texts.append(None if problem else text)


def translate_document(
    predictor: Predictor,
    document: Document,
    options: Options,
    output: Path,
    *,
    fingerprint: str,
    done: Callable[[int], None] = lambda count: None,
) -> FileTranslation:
    """Write a document's translation. fingerprint: of the model, the options and the source; a journal with another one
    is discarded."""
    journal = output.with_name(f".{output.name}.part")
    earlier = _read_journal(journal, fingerprint)[: len(document.texts)]
    translation = FileTranslation(resumed=len(earlier))
    for record in earlier:
        translation.add(*record)
    done(len(earlier))
    # Copied to a new file: the last line may be incomplete, and another kill must not lose the rest.
    new_journal = journal.with_name(f"{journal.name}.new")
    with new_journal.open("w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(json.dumps({"fingerprint": fingerprint}) + "\n")
        _write_journal(file, earlier)
        new_journal.replace(journal)
        for start in range(len(earlier), len(document.texts), TEXTS_PER_RECORD):
            results = predictor.results(document.texts[start : start + TEXTS_PER_RECORD], options, on_done=done)
            records = [(result.text, result.missing, result.error) for result in results]
            _write_journal(file, records)
            for record in records:
                translation.add(*record)
    write_durably(output, document.write(translation.texts))
    journal.unlink()
    return translation


def open_document(path: Path, layout: DocumentLayout) -> tuple[Document, bytes]:
    """A file as a document, and its content. Raises RegardError."""
    content = path.read_bytes()
    return read_document(content, str(path), document_format(path, layout), layout), content


def check_output_path(output: Path, source: Path) -> Path:
    """The file to write, as an absolute path. Raises RegardError if it cannot be written: devices and pipes would be
    replaced by files."""
    if output.exists() and not output.is_file():
        raise RegardError(f"--output: {output} is not a file; name one, or leave it out and redirect with >.")
    output = output.resolve()
    if output.exists() and output.samefile(source):
        raise RegardError(f"--output: {output} is the file that is translated; name another one.")
    if not output.parent.is_dir():
        raise RegardError(f"--output: there is no folder {output.parent}; make it first.")
    if not os.access(output.parent, os.W_OK):
        raise RegardError(f"--output: {output.parent} may not be written to; check its permissions.")
    return output


def translation_conditions(run: Path, predictor: Predictor, options: Options, layout: DocumentLayout) -> str:
    """Everything besides the source that a file's translation depends on, as a text."""
    return f"{model_fingerprint(run)} {predictor.engine_reason} {options} {layout}"


def translation_fingerprint(content: bytes, conditions: str) -> str:
    """A hash of a source file and of everything that its translation depends on."""
    return hashlib.sha256(hashlib.sha256(content).digest() + conditions.encode()).hexdigest()


def _write_journal(file: IO[str], records: Sequence[JournalRecord]) -> None:
    file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    file.flush()


def _read_journal(path: Path, fingerprint: str) -> list[JournalRecord]:
    """What an earlier attempt translated; an incomplete last line is ignored."""
    try:
        lines = path.read_text("utf-8", errors="surrogateescape").split("\n")[:-1]
        if not lines or json.loads(lines[0]) != {"fingerprint": fingerprint}:
            return []
    except (OSError, ValueError):
        return []
    records: list[JournalRecord] = []
    for line in lines[1:]:
        try:
            text, missing, problem = json.loads(line)
            records.append((str(text), [str(each) for each in missing], str(problem)))
        except (ValueError, TypeError):
            break
    return records
