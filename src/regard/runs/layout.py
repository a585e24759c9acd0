"""Where source and target are in tables, as a run's own training files had them."""

from pathlib import Path
from typing import Any

from regard.data.example import Layout
from regard.data.settings import DataSettings
from regard.settings import read_toml

FIELDS = ("source_language", "target_language", "source_column", "target_column")


def layout_of(run: Path | None, *given: str | None) -> Layout:
    """Where source and target are in a file with both: as given (languages, then columns by name or by number from 1),
    or else as in the run's own files."""
    languages, columns = given[:2], [int(each) if each and each.isdigit() else each for each in given[2:]]
    chosen: dict[str, Any] = dict(zip(FIELDS, (*languages, *columns), strict=True))
    if run is None or not (run / "settings.toml").exists():
        return Layout(**chosen)
    data = DataSettings.parse(read_toml(run / "settings.toml").get("data", {}))
    own = {name: getattr(data, name) for name in FIELDS}
    merged = {name: own[name] if value is None else value for name, value in chosen.items()}
    return Layout(**merged, question_column=data.question_column)
