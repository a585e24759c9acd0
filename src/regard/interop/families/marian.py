"""Marian (Junczys-Dowmunt et al. 2018, arXiv:1804.00344): the Transformer as published, and the models of OPUS-MT."""

import base64
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.errors import RegardError
from regard.interop.families._encoder_decoder import layer_mapping
from regard.interop.families._output import SPECIAL_TOKEN_IDS, write_sinusoids
from regard.interop.family import (
    FAMILIES,
    THEIR_ACTIVATIONS,
    Config,
    Family,
    activation_of,
    differing_setting,
    require,
)
from regard.interop.tensor_map import ModelMapping, TensorMapping, TokenizerPair, layer, tensor
from regard.interop.tokenizer_import import read_bytes, read_json
from regard.interop.transforms import Compose, OursOnly, RemoveBatchAxis, SplitSinusoids, VocabularyRows
from regard.models.settings import ModelSettings
from regard.runs.ctranslate2_conversion import NEVER_PREDICTED
from regard.special_tokens import BOS, PAD

SIDES = ("encoder", "decoder")
MAX_TABLE = 1 << 28  # numbers in a computed table of position embeddings


@FAMILIES.register("marian")
class Marian(Family):
    exports = "encoder-decoder"

    model_type = "marian"
    class_name = "MarianMTModel"
    norm_first: ClassVar[bool] = False

    def mapping(self, names: set[str], tokenizers: TokenizerPair) -> ModelMapping:
        require(self.config, share_encoder_decoder_embeddings=True, tie_word_embeddings=True, is_decoder=False)
        embedding = "model.shared.weight"
        bias = Compose((RemoveBatchAxis(), VocabularyRows(tokenizers.target)))
        tensors = [
            tensor(embedding, "encoder.embedding.weight", VocabularyRows(tokenizers.source)),
            tensor("final_logits_bias", "output.bias", bias),
        ]
        for side in SIDES:
            tensors += self._side_mapping(side, names)
        duplicates = {f"model.{side}.embed_tokens.weight": embedding for side in SIDES}
        components = {side: self._side_settings(side) for side in SIDES}
        return ModelMapping(
            ModelSettings.parse({**components, "tie": "all", "output_bias": True}),
            tensors,
            duplicates={"lm_head.weight": embedding, **duplicates},
        )

    def _side_mapping(self, side: str, names: set[str]) -> list[TensorMapping]:
        positions, table = f"model.{side}.embed_positions.weight", f"{side}.embedding.position.table.weight"
        if positions in names:
            tensors = [tensor(positions, table)]
        else:
            length, width = self.config["max_position_embeddings"], self.config["d_model"]
            if length * width > MAX_TABLE:
                raise RegardError(
                    f"config.json: max_position_embeddings = {length:,} with d_model {width:,} is too large."
                )
            tensors = [TensorMapping((), (table,), OursOnly(SplitSinusoids(length, width)))]
        if self.norm_first:
            tensors += layer(f"model.{side}.layer_norm", f"{side}.norm")
        for number in range(self.config[f"{side}_layers"]):
            name = f"{side}.layers.{number}"
            tensors += layer_mapping(f"model.{name}", name, cross_attention=side == "decoder")
        return tensors

    def _side_settings(self, side: str) -> dict[str, Any]:
        config = self.config
        return {
            "kind": "transformer",
            "width": config["d_model"],
            "layers": config[f"{side}_layers"],
            "heads": config[f"{side}_attention_heads"],
            "feedforward": config[f"{side}_ffn_dim"],
            "activation": activation_of(config.get("activation_function", "gelu")),
            "norm_first": self.norm_first,
            "position": "learned",  # sines and cosines are in another order than ours, so they become a table
            "max_positions": config["max_position_embeddings"],
            "dropout": config.get("dropout", 0.1),
            "attention_dropout": config.get("attention_dropout", 0.0),
            "activation_dropout": config.get("activation_dropout", 0.0),
            "scale_embedding": bool(config.get("scale_embedding", False)),
        }

    def tokenizers(self, folder: Path) -> TokenizerPair:
        if (folder / "tokenizer.json").exists():
            return super().tokenizers(folder)
        source, target = (_load_sentencepiece(folder, self.config, side) for side in ("source", "target"))
        return TokenizerPair(source, target)

    def languages(self, folder: Path) -> tuple[str | None, str | None]:
        """From the tokenizer's configuration, or from the model's name: opus-mt-en-de."""
        path = folder / "tokenizer_config.json"
        content = read_json(path) if path.exists() else {}
        named = [content.get(f"{side}_lang") if isinstance(content, dict) else None for side in ("source", "target")]
        name = str(self.config.get("_name_or_path") or "")
        codes = name.rpartition("opus-mt-")[2].split("-") if "opus-mt-" in name else []
        from_name = codes if len(codes) == 2 else [None, None]
        source, target = (
            code if isinstance(code, str) and code.isascii() and 2 <= len(code) <= 12 else other
            for code, other in zip(named, from_name, strict=True)
        )
        return source, target

    @classmethod
    def difference(cls, model: ModelSettings) -> str:
        encoder, decoder = model.encoder, model.decoder
        for name in (
            "norm_first",
            "activation",
            "position",
            "scale_embedding",
            "norm_epsilon",
            "max_positions",
            "width",
        ):
            if getattr(encoder, name) != getattr(decoder, name):
                return f"encoder and decoder must have the same {name}"
        return differing_setting(
            encoder,
            position=("sinusoidal", "learned"),
            norm_epsilon=(None, 1e-5),
            norm_first=(cls.norm_first,),
        )

    @classmethod
    def configuration(cls, model: ModelSettings, *, max_length: int, vocabulary_size: int) -> Config:
        encoder: Any = model.encoder
        decoder: Any = model.decoder
        sizes = {}
        for side, component in (("encoder", encoder), ("decoder", decoder)):
            sizes[f"{side}_layers"] = component.layers
            sizes[f"{side}_attention_heads"] = component.heads
            sizes[f"{side}_ffn_dim"] = component.feedforward
        return {
            "model_type": cls.model_type,
            "architectures": [cls.class_name],
            "vocab_size": vocabulary_size,
            "d_model": encoder.width,
            **sizes,
            "activation_function": THEIR_ACTIVATIONS[encoder.activation],
            "scale_embedding": encoder.scale_embedding,
            "dropout": encoder.dropout,
            "attention_dropout": encoder.attention_dropout,
            "activation_dropout": encoder.activation_dropout,
            "max_position_embeddings": encoder.max_positions if encoder.position == "learned" else max_length + 1,
            "is_encoder_decoder": True,
            "decoder_start_token_id": BOS,
            "forced_eos_token_id": None,
            "tie_word_embeddings": True,
            "dtype": "float32",
            **SPECIAL_TOKEN_IDS,
        }

    def exported_names(self) -> set[str]:
        return {f"model.{side}.embed_positions.weight" for side in SIDES}

    @torch.no_grad()
    def adapt(self, tensors: dict[str, Tensor], model: ModelSettings) -> dict[str, Tensor]:
        for side, component in (("encoder", model.encoder), ("decoder", model.decoder)):
            write_sinusoids(tensors, side, component, self.max_positions)
        bias = tensors.setdefault("output.bias", torch.zeros(len(tensors["encoder.embedding.weight"])))
        bias[[PAD, BOS]] = NEVER_PREDICTED
        return tensors


def _load_sentencepiece(folder: Path, config: Config, side: str) -> ImportedTokenizer:
    """The SentencePiece tokenizer of a side, with token ids from vocab.json, which both sides share."""
    path = folder / "vocab.json"
    entries = read_json(path)
    size = int(config["vocab_size"])
    if not isinstance(entries, dict) or not all(isinstance(at, int) and 0 <= at < size for at in entries.values()):
        raise RegardError(f"{path}: its entries do not fit config.json's vocab_size of {size:,}.")
    unknown = entries.get("<unk>")
    if unknown is None:
        raise RegardError(f"{path}: it has no <unk>.")
    pieces = [f"<{entry}>" for entry in range(size)]
    for piece, entry in entries.items():
        pieces[entry] = piece
    pad, end = int(config["pad_token_id"]), int(config["eos_token_id"])
    description = {
        "kind": "sentencepiece",
        "size": size,
        "special": [pad, unknown, int(config.get("decoder_start_token_id", pad)), end],
        "mask": None,
        "model": base64.b64encode(read_bytes(folder / f"{side}.spm")).decode(),
        "pieces": pieces,
    }
    return ImportedTokenizer.from_description(description)
