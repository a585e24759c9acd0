"""Presets by name: a model shape with the data and training settings that suit a task. Imports no PyTorch."""

import difflib
from typing import Any

from regard.errors import RegardError
from regard.renames import VALUES
from regard.tasks.base import Preset, all_tasks


def all_presets() -> dict[str, Preset]:
    """Every task's presets, by name."""
    return {preset.name: preset for task in all_tasks() for preset in task.presets}


def preset_task(name: str) -> str | None:
    """The task that a preset belongs to; None if several have it."""
    owners = [task.name for task in all_tasks() if any(preset.name == name for preset in task.presets)]
    return owners[0] if len(owners) == 1 else None


def preset_settings(name: str) -> dict[str, Any]:
    """Plain data for `RunSettings.parse`. Raises RegardError for an unknown name, with the nearest one."""
    known = all_presets()
    if name not in known and name in VALUES["preset"]:
        raise RegardError(f"--preset: {name} is now called {VALUES['preset'][name]}.")
    if name not in known:
        near = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=1, cutoff=0.5)
        meant = f"did you mean {near[0]}?" if near else f"the presets are {', '.join(known)}."
        raise RegardError(f"--preset: there is no {name!r}; {meant}")
    return known[name].settings()
