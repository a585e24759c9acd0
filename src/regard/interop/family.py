"""Families of imported models, by Hugging Face's `model_type`.

A family is one class in one file of `interop/families/`. It maps a configuration to settings and their tensors to ours,
and defines which runs trained with regard can be exported as such models. An unsupported configuration is an error,
never guessed.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from regard.errors import RegardError
from regard.interop.tensor_map import ModelMapping, TokenizerPair
from regard.interop.tokenizer_import import import_tokenizer
from regard.models.settings import Architecture, ModelSettings
from regard.registry import Registry

Config = dict[str, Any]  # a config.json
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
THEIR_ACTIVATIONS = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
MAX_LAYERS, MAX_WIDTH, MAX_ROWS = 1_000, 1 << 16, 1 << 20  # above those of any real model
LIMITS = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer", "encoder_layers", "decoder_layers"), MAX_LAYERS),
    **dict.fromkeys(("hidden_size", "dim", "n_embd", "d_model", "num_attention_heads", "n_heads", "n_head"), MAX_WIDTH),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "type_vocab_size"), MAX_WIDTH),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim"), MAX_ROWS),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "vocab_size"), MAX_ROWS),
}


class Family(ABC):
    """A model of one family, given its configuration."""

    # The special tokens, by their names in tokenizer_config.json, where a folder does not define them.
    special_tokens: ClassVar[Mapping[str, str | None]] = {}
    # The names of the tokens that begin and end a text.
    bos_and_eos: ClassVar[tuple[str, str]] = ("bos_token", "eos_token")
    # Whether an imported model can be exported again unchanged.
    exports_imported: ClassVar[bool] = True
    # The architecture of trained runs that can be exported as this family; None if none can be.
    exports: ClassVar[Architecture | None] = None

    def __init__(self, config: Config) -> None:
        self.config = config

    @abstractmethod
    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        """The mapping of the model. names: of their tensors. Raises RegardError for an unsupported configuration,
        KeyError for a missing setting."""

    def tokenizers(self, folder: Path) -> TokenizerPair:
        """The tokenizers, from the files in the model's folder. Raises RegardError."""
        tokenizer = import_tokenizer(folder, self.config, self.special_tokens, self.bos_and_eos)
        return TokenizerPair(tokenizer, tokenizer)

    def languages(self, folder: Path) -> tuple[str | None, str | None]:
        """Of source and target, where they are known."""
        return None, None

    # --- export of trained runs ------------------------------------------------------------------------------------

    @classmethod
    def difference(cls, model: ModelSettings) -> str:
        """Why a model with the architecture `exports` does not match this family; empty if it does."""
        raise NotImplementedError

    @classmethod
    def configuration(cls, model: ModelSettings, *, max_length: int, vocabulary_size: int) -> Config:
        """The config.json of a run's model."""
        raise NotImplementedError

    @property
    def max_positions(self) -> int:
        """The number of position embeddings, or the maximum length without them."""
        return int(self.config["max_position_embeddings"])

    def exported_names(self) -> set[str]:
        """The names that `mapping` needs for the export of a run."""
        return set()

    def adapt(self, tensors: dict[str, Tensor], model: ModelSettings) -> dict[str, Tensor]:
        """A run's tensors, adapted to what the family supports; may modify its argument."""
        return tensors

    def unused_tensors(self) -> dict[str, Tensor]:
        """Tensors of the family that a run does not have, for its export."""
        return {}


FAMILIES: Registry[type[Family]] = Registry("family", "regard.interop.families")


def family_of(config: Config) -> Family:
    """The family of a config.json. Raises RegardError for an unknown one."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise RegardError(f"config.json: model_type {kind!r} is not known; known are {', '.join(FAMILIES)}.")
    for name, value in config.items():
        limit = LIMITS.get(name)
        if limit and not (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= limit):
            raise RegardError(f"config.json: {name} = {value!r} is not possible; it must lie between 1 and {limit:,}.")
    return FAMILIES.get(kind)(config)


def require(config: Config, **supported: Any) -> None:
    """Raises RegardError if the configuration differs from the only values that are supported."""
    for name, value in supported.items():
        if config.get(name, value) != value:
            raise RegardError(f"config.json: {name} = {config[name]!r} is not supported, only {value!r}.")


def activation_of(name: object) -> str:
    """regard's name of an activation. Raises RegardError."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise RegardError(f"config.json: the activation {name!r} is not known; known are {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]


def labels_of(config: Config) -> tuple[str, ...]:
    """The classes of a classifier, in their order. Raises RegardError."""
    labels = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    numbered = isinstance(labels, dict) and all(str(number).isdecimal() for number in labels)
    if not numbered or not all(isinstance(label, str) and label.isprintable() and label for label in labels.values()):
        raise RegardError("config.json: id2label must give each class, by its number, a name of one line.")
    return tuple(labels[number] for number in sorted(labels, key=int))


def differing_setting(component: Any, **supported: tuple[object, ...]) -> str:
    """The first setting of an encoder or a decoder that has none of these values, as a clause; empty if none."""
    for name, values in supported.items():
        value = getattr(component, name)
        if value not in values:
            return f"its {name} is {value}, not {' or '.join(str(each) for each in values)}"
    return ""
