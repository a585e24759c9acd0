"""Renamed settings, values, options and paths: older files are migrated, old names on the command line are errors.

A pattern is a dotted path; `*` stands for one component of it. Imports no PyTorch.
"""

from typing import Any

# Settings, in settings.toml, model.toml and configuration files: the old path, and the new one. Where the new path
# begins with a dot, only the last part changes.
SETTINGS: dict[str, str] = {
    "model.*.normalise": ".normalize",
    "model.*.initialisation": ".initialization",
    "model.source.places": ".unit",
    "model.source.sentences": ".sentence_segments",
    "model.source.begin": ".bos",
    "model.source.marks": ".separators",
    "model.source.colour": ".color",
    "model.source.cut": ".stem",
    "model.source.cut.kind": "model.source.stem.kind",
    "model.source.cut.patch": "model.source.stem.patch_size",
    "model.source.cut.widths": "model.source.stem.widths",
    "model.source.cut.blocks": "model.source.stem.blocks",
    "model.source.cut.stride": "model.source.stem.stride",
    "model.source.cut.attend": "model.source.stem.channel_attention",
    "model.source.cut.dropout": "model.source.stem.dropout",
    "model.source.rate": ".sample_rate",
    "model.source.mels": ".mel_bins",
    "model.source.longest": ".max_seconds",
    "model.source.subsample": ".subsampling",
    "model.*.norm_place": ".norm_first",
    "model.*.positions": ".max_positions",
    "model.*.shared": ".share_layers",
    "model.decoder.copy_words": ".copy_mechanism",
    "model.decoder.inner": ".dense",
    "model.decoder.follows": ".next_sentence",
    "model.decoder.state": ".encoder_state",
    "longest": "max_tokens",  # in model.toml, like the next two
    "whole": "truncate",
    "per_token": "tokens_per_source_token",
    "data.whole": ".truncate",
    "data.longest": ".max_tokens",
    "data.most_characters": ".max_characters",
    "data.augment.turn": ".rotation",
    "data.augment.light": ".brightness",
    "data.augment.band_masks": ".frequency_masks",
    "data.augment.band_width": ".frequency_width",
    "data.mask.share": ".probability",
    "training.judge": ".metric",
    "training.agreement": ".rdrop_weight",
    "training.guidance": ".alignment_weight",
    "training.attend_everywhere": ".doubly_stochastic",
    "training.attend_once": ".coverage_loss",
    "training.tokens": ".batch_tokens",
    "training.accumulate": ".gradient_accumulation",
    "training.warmup": ".warmup_steps",
    "training.clip": ".max_grad_norm",
    "training.smoothing": ".label_smoothing",
    "training.average": ".ema_decay",
    "training.best": ".averaged_checkpoints",
}

# Values of settings: the new path of the setting, and each old value with the new one.
VALUES: dict[str, dict[Any, Any]] = {
    "model.source.kind": {"images": "image", "speech": "audio", "nothing": "none"},
    "model.source.unit": {"subwords": "token", "sentences": "sentence"},
    "model.*.norm_first": {"pre": True, "post": False},
    "training.metric": {"names": "entity_f1", "tags": "tag_accuracy", "f1": "macro_f1"},
    "preset": {"answer": "story-qa", "memory": "memory-network", "span": "span-qa"},
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

# The decoder kinds that replace the kind "places", by its former setting `says`.
DECODER_KINDS = {"words": "masked-lm", "tags": "token-classification", "span": "span"}

# Names of weights, where a file does not say that it has the new ones: patterns of whole components, which are searched
# for in order.
TENSORS: tuple[tuple[str, str], ...] = (
    ("embedding.place", "embedding.position"),
    ("itself", "self_attention"),
    ("itself_norm", "self_attention_norm"),
    ("layers.*.memory", "layers.*.cross_attention"),
    ("layers.*.memory_norm", "layers.*.cross_attention_norm"),
    ("encoder.forth", "encoder.forward_cells"),
    ("encoder.back", "encoder.backward_cells"),
    ("decoder.first", "decoder.initial_state"),
    ("decoder.beside", "decoder.extra_input"),
    ("decoder.own", "decoder.copy_gate"),
    ("decoder.shown", "decoder.embedding_projection"),
    ("decoder.whole", "decoder.pooler"),
    ("decoder.follows", "decoder.next_sentence"),
    ("inward", "input_projection"),
    ("outward", "output_projection"),
    ("embedding.first", "embedding.conv1"),
    ("embedding.first_norm", "embedding.norm1"),
    ("blocks.*.first", "blocks.*.conv1"),
    ("blocks.*.first_norm", "blocks.*.norm1"),
    ("blocks.*.second", "blocks.*.conv2"),
    ("blocks.*.second_norm", "blocks.*.norm2"),
    ("blocks.*.around", "blocks.*.shortcut"),
)

# Files of a checkpoint.
CHECKPOINT_GROUPS = {"optimiser": "optimizer"}

# Keys of a line of log.jsonl.
LOG_KEYS = {
    "measure": "metric",
    "norm": "grad_norm",
    "rate": "learning_rate",
    "speed": "tokens_per_second",
    "chosen": "selected_weights",
}

# Keys of captured attention of format 1, which are also the first component of the names of its tensors.
ATTENTION_KEYS = {
    "before": "decoder_input",
    "hidden": "hidden_weights",
    "aligned": "alignment_weights",
    "choice": "alignment_head",
    "shown": "source_media",
}
ALIGNMENT_HEAD_KEYS = {"guessed": "is_default"}
SOURCE_MEDIA_KEYS = {"sound": "audio"}
SOURCE_MEDIA_KINDS = {"picture": "image"}

# Paths of the service.
PATHS = {"/v1/read": "/v1/predict-file", "/v1/look": "/v1/attend-file"}

# Decoding options, and options of the command line with their dashes.
OPTIONS: dict[str, str] = {
    "--symmetrise": "--symmetrize",
    "no_repeat": "no_repeat_ngram_size",
    "no_repeat_ngram": "no_repeat_ngram_size",
    "groups": "beam_groups",
    "diversity": "diversity_penalty",
    "most": "max_length_ratio",
    "--no-repeat": "--no-repeat-ngram-size",
    "--groups": "--beam-groups",
    "--diversity": "--diversity-penalty",
    "--most": "--max-length-ratio",
    "--forbid": "--forbidden",
    "--require": "--required",
    "--tokens": "--max-tokens",
    "--greedy": "--search greedy",
    "--best": "--nbest",
    "--raw": "--no-normalize",
    "--picture": "--plot",
    "--special": "--special-tokens",
    "--channels": "--channel-attention",
    "--folder": "--data-folder",
    "--kind": "--format",
    "--name": "--allowed-host",
    "--origin": "--cors-origin",
    "--keys": "--api-keys",
    "--log": "--access-log",
    "--no-repeat-ngram": "--no-repeat-ngram-size",
}


def migrate(content: dict[str, Any]) -> dict[str, Any]:
    """Plain settings with old names and values replaced by new ones."""
    found: dict[str, Any] = {}
    for path, value in _leaves(content, ()):
        new = _renamed(path)
        old_values = next((values for pattern, values in VALUES.items() if _matches(pattern, new)), {})
        inner = found
        for key in new[:-1]:
            inner = inner.setdefault(key, {})
        inner[new[-1]] = old_values.get(value, value) if isinstance(value, str | bool | int) else value
    model = found.get("model")
    decoder = model.get("decoder") if isinstance(model, dict) else None
    if isinstance(decoder, dict) and decoder.get("kind") == "places":
        decoder["kind"] = DECODER_KINDS.get(decoder.pop("says", "words"), "places")
        if decoder["kind"] != "masked-lm":
            decoder.pop("next_sentence", None)
    return found


def new_tensor_name(name: str) -> str:
    """The present name of a weight of an older file."""
    parts = name.split(".")
    for old, new in TENSORS:
        pattern, replacement = old.split("."), new.split(".")
        for start in range(len(parts) - len(pattern) + 1):
            found = parts[start : start + len(pattern)]
            if _matches(old, tuple(found)):
                kept = (own if part == "*" else part for own, part in zip(found, replacement, strict=True))
                parts[start : start + len(pattern)] = kept
    return ".".join(parts)


def migrate_training_state(state: dict[str, Any]) -> dict[str, Any]:
    """The state of training from a checkpoint, with the present names."""
    keys = {"merit": "sort_key"}
    best = [{keys.get(key, key): value for key, value in entry.items()} for entry in state.get("best", [])]
    return {**state, "best": best} if best else state


def migrate_log_line(line: dict[str, Any]) -> dict[str, Any]:
    """A line of log.jsonl with the present keys."""
    return {LOG_KEYS.get(key, key): value for key, value in line.items()}


def migrate_attention(record: dict[str, Any]) -> dict[str, Any]:
    """The JSON object of captured attention in the present format, if it is of format 1."""
    if record["format"] != "regard attention 1":
        return record
    migrated = {ATTENTION_KEYS.get(key, key): value for key, value in record.items()}
    if isinstance(head := migrated.get("alignment_head"), dict):
        migrated["alignment_head"] = {ALIGNMENT_HEAD_KEYS.get(key, key): value for key, value in head.items()}
    if isinstance(attribution := migrated.get("attribution"), dict):
        migrated["attribution"] = {ATTENTION_KEYS.get(key, key): value for key, value in attribution.items()}
    if migrated.get("source_media") is not None:
        media = {SOURCE_MEDIA_KEYS.get(key, key): value for key, value in migrated["source_media"].items()}
        migrated["source_media"] = {**media, "kind": SOURCE_MEDIA_KINDS.get(media["kind"], media["kind"])}
    return {**migrated, "format": "regard attention 2"}


def new_attention_tensor_name(name: str) -> str:
    """The present name of a tensor of captured attention."""
    return ".".join(ATTENTION_KEYS.get(part, part) for part in name.split("."))


def new_value(path: str, value: str) -> str | None:
    """The new name of a setting's value, if it was renamed."""
    if path == "model.decoder.kind" and value == "places":
        return " or ".join(DECODER_KINDS.values())
    new = VALUES.get(path, {}).get(value)
    return None if new is None else str(new)


def new_name(path: str) -> str | None:
    """The new name of a setting, if it was renamed."""
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
