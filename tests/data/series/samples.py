"""Tables of waves, for tests of forecasting."""

from pathlib import Path

import numpy as np


def write_waves(
    path: Path, rows: int = 400, *, start: int = 0, series: tuple[str, ...] = (), noise: float = 0.05
) -> Path:
    """Hourly rows of two columns with a daily cycle; several series in long form if they are named."""
    hours = np.arange(start, start + rows)
    times = (np.datetime64("2024-01-01T00", "h") + hours).astype(str)
    rng = np.random.default_rng(start + 1)
    lines = [",".join([*(["id"] if series else []), "date", "a", "b"])]
    for number, name in enumerate(series or ("",)):
        a = np.sin(2 * np.pi * hours / 24 + number) + 0.05 * rng.normal(size=rows)
        b = 100 + 10 * np.cos(2 * np.pi * hours / 24 + number) + 0.05 * rng.normal(size=rows)
        for time, x, y in zip(times, a, b, strict=True):
            lines.append(",".join([*([name] if name else []), time.replace("T", " ") + ":00", f"{x:.5f}", f"{y:.4f}"]))
    path.write_text("\n".join(lines) + "\n")
    return path
