"""The layout of tables for a run: options, or else the layout of its training files."""

from pathlib import Path
from typing import Any

from regard.data.example import Layout
from regard.data.settings import DataSettings
from regard.settings import read_toml

FIELDS = ("source_language", "target_language", "source_column", "target_column")


def resolve_layout(run: Path | None, *arguments: str | None) -> Layout:
    """The layout of a file with sources and targets: as in `arguments` (languages, then columns, by name or
    by number from 1), or else that of the run's training files."""
    languages, columns = arguments[:2], [int(each) if each and each.isdigit() else each for each in arguments[2:]]
    options: dict[str, Any] = dict(zip(FIELDS, (*languages, *columns), strict=True))
    if run is None or not (run / "settings.toml").exists():
        return Layout(**options)
    data = DataSettings.parse(read_toml(run / "settings.toml").get("data", {}))
    from_run = {name: getattr(data, name) for name in FIELDS}
    merged = {name: from_run[name] if value is None else value for name, value in options.items()}
    return Layout(**merged, question_column=data.question_column)
