"""Runs from imported tensors: the last step of every import."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from regard.data.media.base import media_processor
from regard.errors import RegardError
from regard.interop.tensor_map import ModelMapping, TokenizerPair, load_tensors
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle, check_tensors, copy_tensors_into, new_model, save_bundle
from regard.runs.ctranslate2_conversion import NEVER_PREDICTED
from regard.runs.folder import RunDescription
from regard.special_tokens import UNK
from regard.tasks.base import task_from_description

DEFAULT_MAX_LENGTH = 512  # tokens, for a model that does not define it


def check_is_new(folder: Path) -> None:
    """Raises RegardError if a folder exists and is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RegardError(f"{folder}: it exists; choose another folder with -o.")


def build_bundle(
    mapping: ModelMapping,
    theirs: Mapping[str, Tensor],
    tokenizers: TokenizerPair,
    where: str,
    languages: tuple[str | None, str | None] = (None, None),
) -> tuple[Bundle, dict[str, Tensor]]:
    """A model with their tensors, and the unused tensors. Raises RegardError, which names the tensor."""
    ours, unused = load_tensors(mapping, theirs, where)
    for name, value in ours.items():
        if not bool(torch.isfinite(value).all()):
            raise RegardError(f"{where}: {name} has numbers that are not finite; copy the model again.")
    settings, (source, target) = mapping.settings, tokenizers
    if settings.decoder.autoregressive and UNK in target.missing:
        # Their vocabulary has no unknown token; ours has one, which must never be predicted.
        settings = settings.model_copy(update={"output_bias": True})
        ours["output.bias"] = torch.zeros(len(target))
        ours["output.bias"][target.missing] = NEVER_PREDICTED
    description = RunDescription(
        source_language=languages[0],
        target_language=languages[1],
        max_tokens=mapping.max_length or _max_length(settings),
        truncate=not settings.decoder.autoregressive,
        tokens_per_source_token=0.0 if settings.source.is_empty else 2.0,
        model=settings,
    )
    source_processor = media_processor(settings.source) or source
    target_vocabulary = task_from_description(description).data().target_vocabulary_from_labels(mapping.labels, target)
    with torch.device("meta"):  # checks names and shapes before memory is allocated
        check_tensors(new_model(settings, source_processor, target_vocabulary), ours, where)
    with torch.random.fork_rng(devices=[]):
        model = new_model(settings, source_processor, target_vocabulary)
    copy_tensors_into(model, {name: value.float() for name, value in ours.items()}, where)
    return Bundle(description, model.eval(), source_processor, target_vocabulary), unused


def save_run(run: Path, bundle: Bundle) -> None:
    """Write the folder of a new run."""
    run.mkdir(parents=True, exist_ok=True)
    save_bundle(run, bundle)


def _max_length(model: ModelSettings) -> int:
    """The longest sequence, in tokens, that both encoder and decoder have positions for."""
    limits = [component.max_length for component in (model.encoder, model.decoder)]
    return min((limit for limit in limits if limit is not None), default=DEFAULT_MAX_LENGTH)
