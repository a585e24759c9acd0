"""Settings, values and options that were renamed: older files are migrated, typed old names get an error.

A pattern is a dotted path; `*` stands for one part of it. Imports no PyTorch.
"""

from typing import Any

# Settings, in settings.toml, model.toml and configuration files: the old path, and the new one. Where the new path
# begins with a dot, only the last part changes.
SETTINGS: dict[str, str] = {
    "model.*.normalise": ".normalize",
    "model.*.initialisation": ".initialization",
    "training.judge": ".metric",
    "training.agreement": ".rdrop_weight",
    "training.guidance": ".alignment_weight",
    "training.attend_everywhere": ".doubly_stochastic",
    "training.attend_once": ".coverage_loss",
}

# Values of settings: the new path of the setting, and each old value with the new one.
VALUES: dict[str, dict[Any, Any]] = {
    "training.metric": {"names": "entity_f1"},
    "task": {
        "translate": "translation",
        "classify": "classification",
        "caption": "captioning",
        "summarise": "summarization",
        "answer": "story_qa",
        "span": "span_qa",
        "tag": "tagging",
        "language": "causal_lm",
        "mask": "masked_lm",
    },
}

# Decoding options, and options of the command line with their dashes.
OPTIONS: dict[str, str] = {
    "--symmetrise": "--symmetrize",
    "no_repeat": "no_repeat_ngram",
    "groups": "beam_groups",
    "diversity": "diversity_penalty",
    "most": "max_length_ratio",
    "--no-repeat": "--no-repeat-ngram",
    "--groups": "--beam-groups",
    "--diversity": "--diversity-penalty",
    "--most": "--max-length-ratio",
    "--forbid": "--forbidden",
    "--require": "--required",
    "--tokens": "--max-tokens",
    "--greedy": "--search greedy",
    "--best": "--nbest",
}


def migrated(content: dict[str, Any]) -> dict[str, Any]:
    """Plain settings with old names and values replaced by new ones."""
    found: dict[str, Any] = {}
    for path, value in _leaves(content, ()):
        new = _renamed(path)
        old_values = next((values for pattern, values in VALUES.items() if _matches(pattern, new)), {})
        inner = found
        for part in new[:-1]:
            inner = inner.setdefault(part, {})
        inner[new[-1]] = old_values.get(value, value) if isinstance(value, str | bool | int) else value
    return found


def new_name(path: str) -> str | None:
    """What a setting is called now, if it was renamed."""
    parts = tuple(path.split("."))
    renamed = _renamed(parts)
    return ".".join(renamed) if renamed != parts else None


def _renamed(path: tuple[str, ...]) -> tuple[str, ...]:
    for pattern, new in SETTINGS.items():
        if _matches(pattern, path):
            return (*path[:-1], new[1:]) if new.startswith(".") else tuple(new.split("."))
    return path


def _matches(pattern: str, path: tuple[str, ...]) -> bool:
    parts = pattern.split(".")
    return len(parts) == len(path) and all(part in ("*", own) for part, own in zip(parts, path, strict=True))


def _leaves(value: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Every setting of nested tables, with its path; an empty table is a leaf, too."""
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, (*path, str(key)))]
    return [(path, value)] if path else []
