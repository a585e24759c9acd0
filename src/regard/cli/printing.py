"""Printing the results of predictions."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from regard.inference.results import Result


@dataclass
class ResultPrinter:
    """Prints results: a line for each output with tabs between its cells, or a JSON object for each result.

    scores, alignment: cells of their own. numbered: the number of the input before each output. named: its name
    instead. files: inputs are names of files. failed: how many inputs have no output.
    """

    as_json: bool
    scores: bool = False
    alignment: bool = False
    numbered: bool = False
    named: bool = False
    files: bool = False
    failed: int = 0
    _count: int = 0

    def __call__(self, result: "Result") -> None:
        """Print one result."""
        self._count += 1
        self.failed += bool(result.error)
        if self.as_json:
            typer.echo(json.dumps(result_record(result), ensure_ascii=False))
            return
        if result.error:
            subject = f"{result.source}: " if self.files else f"text {self._count:,} has no translation: "
            typer.echo(f"regard: {subject}{result.error}", err=True)
        outputs = [(result.text, result.score), *((other.text, other.score) for other in result.alternatives)]
        for rank, (text, score) in enumerate(outputs):
            cells = [result.source] * self.named + [str(self._count)] * self.numbered
            cells += [f"{score:.4f}"] * self.scores + [text]
            if self.alignment:
                cells.append(_links(result) if rank == 0 else "")
            typer.echo("\t".join(cells))
        if result.missing:
            typer.echo(f"regard: text {self._count:,} could not keep: {', '.join(result.missing)}", err=True)

    def exit(self) -> None:
        """Exit with status 1 if an input has no output."""
        exit_if_failed(self.failed)


def exit_if_failed(failed: int) -> None:
    """Exit with status 1 if something has failed."""
    if failed:
        raise typer.Exit(1)


def _links(result: "Result") -> str:
    from regard.alignment.aligner import pharaoh

    return "" if result.alignment is None else pharaoh(result.alignment)


def result_record(result: "Result") -> dict[str, Any]:
    """A result as a JSON object."""
    record: dict[str, Any] = {"source": result.source, "text": result.text, "score": round(result.score, 6)}
    if result.alternatives:
        record["alternatives"] = [{"text": other.text, "score": round(other.score, 6)} for other in result.alternatives]
    if result.token_scores is not None:
        record["token_scores"] = [round(score, 6) for score in result.token_scores]
    if result.alignment is not None:
        record["alignment"] = result.alignment
    for name, value in (("missing", result.missing), ("error", result.error)):
        if value:
            record[name] = value
    return record
