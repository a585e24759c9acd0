"""Runs in Hugging Face's format.

An imported run is exported with its original configuration and vocabulary files and its current weights. A trained run
is exported as the family with the same architecture:

| trained run | Hugging Face |
|---|---|
| translation, norms before each sublayer | Pegasus |
| translation, norms after each sublayer | Marian, its positions written as a table |
| language model, rotary positions | GPT-NeoX |
| language model, learned or sinusoidal positions | GPT-2 |
| masked language model, rotary positions, norms before each sublayer | ESM |
| masked language model, learned positions, norms after each sublayer | BERT |
"""

import json
from typing import Any

from torch import Tensor

from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError
from regard.interop.families._output import SPECIAL_TOKEN_IDS
from regard.interop.family import FAMILIES, THEIR_ACTIVATIONS, Family, family_of
from regard.interop.folder_import import IMPORTED, TENSOR_NAMES, UNUSED
from regard.interop.tensor_map import TokenizerPair, export_tensors
from regard.interop.tokenizer_export import tokenizer_files
from regard.interop.tokenizer_import import TOKENIZER_FILES, read_json
from regard.models.settings import (
    EncoderSettings,
    ModelSettings,
    TransformerDecoderSettings,
    TransformerEncoderSettings,
)
from regard.runs.bundle import Bundle, load_bundle, module_tensors, read_tensors, serialize_tensors
from regard.runs.ctranslate2_conversion import NEVER_PREDICTED
from regard.runs.folder import RunFolder
from regard.special_tokens import BOS, EOS, MASK, PAD, UNK


def export_huggingface(opened: RunFolder) -> dict[str, bytes]:
    """The files of a run in Hugging Face's format, by name. Raises RegardError."""
    if (opened.folder / IMPORTED / "config.json").exists():
        return _export_imported(opened)
    try:
        return export_trained(load_bundle(opened.folder))
    except RegardError as error:
        raise RegardError(f"{opened.folder}: {error}") from None


# --- imported runs ---------------------------------------------------------------------------------------------------


def _export_imported(opened: RunFolder) -> dict[str, bytes]:
    imported, where = opened.folder / IMPORTED, str(opened.folder)
    bundle = load_bundle(opened.folder)
    vocabulary = (
        bundle.target_vocabulary if isinstance(bundle.target_vocabulary, ImportedTokenizer) else bundle.source_processor
    )
    assert isinstance(vocabulary, ImportedTokenizer)
    family = family_of(read_json(imported / "config.json"))
    names = set(read_json(imported / TENSOR_NAMES))
    mapping = family.mapping(names, TokenizerPair(vocabulary, vocabulary))
    if _comparable(mapping.settings) != _comparable(bundle.description.model):
        raise RegardError(f"{where}: this is no longer the kind of model that was imported.")
    ours = module_tensors(bundle.model)
    if not mapping.settings.output_bias and mapping.settings.tie != "none":
        _drop_added_bias(ours, where)
    theirs = export_tensors(mapping, ours, read_tensors(imported / UNUSED), where)
    files = {"model.safetensors": serialize_tensors(theirs, {"format": "pt"})}
    for name in ("config.json", *TOKENIZER_FILES):
        if (imported / name).exists():
            files[name] = (imported / name).read_bytes()
    return files


def _drop_added_bias(tensors: dict[str, Tensor], where: str) -> None:
    """Remove the bias that an import adds for tokens that are never predicted."""
    bias = tensors.pop("output.bias", None)
    if bias is not None and not bool(((bias == 0) | (bias == NEVER_PREDICTED)).all()):
        raise RegardError(f"{where}: tensor output.bias was trained, and does not belong to such a model.")


def _comparable(model: ModelSettings) -> str:
    """The settings that an imported model and its family must agree on."""
    return json.dumps(model.model_dump(exclude={"output_bias"}), sort_keys=True, default=str)


# --- trained runs ----------------------------------------------------------------------------------------------------


def export_trained(bundle: Bundle) -> dict[str, bytes]:
    """Files by name. Raises RegardError with the reasons for a model that matches no family."""
    model, vocabulary = bundle.description.model, bundle.target_vocabulary
    if reason := _unsupported(model):
        raise RegardError(f"huggingface: no architecture there is this model, since {reason}.")
    if not isinstance(vocabulary, SubwordTokenizer) or isinstance(vocabulary, ImportedTokenizer):
        raise RegardError("huggingface: this model has the vocabulary of another project.")
    family = _family_for(bundle)
    masks, architecture = model.decoder.masked_lm, model.architecture
    files = tokenizer_files(
        vocabulary,
        architecture,
        lowercase=bundle.description.lowercase,
        masks=masks,
        max_length=family.max_positions,
    )
    tokenizer = _as_imported(vocabulary, files["tokenizer.json"], masks=masks)
    tensors = {name: tensor.clone() for name, tensor in module_tensors(bundle.model).items()}
    tensors = family.adapt(tensors, model)
    mapping = family.mapping(family.exported_names(), TokenizerPair(tokenizer, tokenizer))
    theirs = export_tensors(mapping, tensors, family.unused_tensors(), "huggingface")
    files["config.json"] = json.dumps(family.config, indent=2).encode()
    files["model.safetensors"] = serialize_tensors(theirs, {"format": "pt"})
    if model.decoder.autoregressive:
        start = {"decoder_start_token_id": BOS} if architecture == "encoder-decoder" else {}
        files["generation_config.json"] = json.dumps({**SPECIAL_TOKEN_IDS, **start}, indent=2).encode()
    return files


def _family_for(bundle: Bundle) -> Family:
    """The family that matches a run's model. Raises RegardError with how each family differs."""
    model, reasons = bundle.description.model, []
    for name, family in FAMILIES.items():
        if family.exports == model.architecture:
            reason = family.difference(model)
            if not reason:
                size, max_length = len(bundle.target_vocabulary), bundle.description.max_tokens
                return family_of(family.configuration(model, max_length=max_length, vocabulary_size=size))
            reasons.append(f"as {name}, {reason}")
    raise RegardError(f"huggingface: no architecture there is this model: {'; '.join(reasons)}.")


def _as_imported(vocabulary: SubwordTokenizer, tokenizer: bytes, *, masks: bool) -> ImportedTokenizer:
    """A run's vocabulary, as it is when its exported tokenizer is imported."""
    special = [PAD, UNK, BOS, EOS, *([MASK] if masks else [])]
    description = {"kind": "metaspace", "size": len(vocabulary), "special": special}
    return ImportedTokenizer.from_description({**description, "tokenizer": json.loads(tokenizer)})


def _unsupported(model: ModelSettings) -> str:
    """What no family supports, as a clause; empty if nothing."""
    if not (model.source.is_text or model.source.is_empty):
        return f"it reads {model.source.description}"
    if not model.decoder.predicts_tokens:
        return f"it predicts {model.decoder.predicts}"
    if model.decoder.copies:
        return "it copies tokens from its source"
    if model.source.segments_of_text > 1:
        return "its sources have segments"
    if model.architecture == "encoder-decoder" and model.tie != "all":
        return "its source and its target have embeddings of their own"
    for component in (model.encoder, model.decoder):
        is_stack = not component.is_identity if isinstance(component, EncoderSettings) else component.autoregressive
        if is_stack and (reason := _unsupported_component(component, masks=model.decoder.masked_lm)):
            return reason
    return ""


def _unsupported_component(component: Any, *, masks: bool) -> str:
    """The same for an encoder or a decoder."""
    if not isinstance(component, TransformerEncoderSettings | TransformerDecoderSettings):
        return f"it has a {component.kind} part"
    for name, supported in (("norm", "layer"), ("window", None), ("normalize", "softmax"), ("share_layers", False)):
        if getattr(component, name) != supported:
            return f"its {name} is {getattr(component, name)}"
    if component.activation not in THEIR_ACTIVATIONS:
        return f"its activation is {component.activation}"
    if component.embedding_width != component.width:
        return "its embeddings are not as wide as its layers"
    return "it normalizes its embeddings" if component.norm_embedding and not masks else ""
