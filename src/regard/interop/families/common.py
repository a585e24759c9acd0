"""What the descriptions of several families share."""

from typing import Any

from regard.errors import RegardError
from regard.interop.tensor_map import Place

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
Config = dict[str, Any]
BOTH = ("weight", "bias")


def only(config: Config, **usual: Any) -> None:
    """Raises RegardError if the configuration differs from the only values that are possible here."""
    for name, value in usual.items():
        if config.get(name, value) != value:
            raise RegardError(f"config.json: {name} = {config[name]!r} is not possible here, only {value!r}.")


def activation_of(name: str) -> str:
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise RegardError(f"config.json: the activation {name!r} is not known; known are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def linear(theirs: str, *ours: str, transposed: bool = False) -> list[Place]:
    weight = Place(
        f"{theirs}.weight", tuple(f"{name}.weight" for name in ours), "transposed" if transposed else "as it is"
    )
    return [weight, Place(f"{theirs}.bias", tuple(f"{name}.bias" for name in ours))]


def labels_of(config: Config) -> tuple[str, ...]:
    named = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    numbers = isinstance(named, dict) and all(str(at).isdecimal() for at in named)
    if not numbers or not all(isinstance(label, str) and label.isprintable() and label for label in named.values()):
        raise RegardError("config.json: id2label must give each class, by its number, a name of one line.")
    return tuple(named[at] for at in sorted(named, key=int))
