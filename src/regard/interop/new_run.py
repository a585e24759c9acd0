"""The end of every import: tensors take their places in a new model, which becomes a run."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from regard.data.labels import Ends, Labels, Tags
from regard.data.media import medium_of
from regard.data.tokenizers.imported_tokenizer import ImportedTokenizer
from regard.data.vocabulary import Vocabulary
from regard.errors import RegardError
from regard.interop.tensor_map import Family, taken
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle, check_tensors, new_model, put_tensors, save_bundle
from regard.runs.folder import Description
from regard.special_tokens import UNKNOWN

NEVER = -1e9  # added to what can never be said
Sides = tuple[ImportedTokenizer, ImportedTokenizer]  # what cuts sources and targets


def check_new(run: Path) -> None:
    """Raises RegardError if something is there already."""
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise RegardError(f"{run}: it exists; choose another folder with -o.")


def arrived(
    family: Family,
    theirs: Mapping[str, Tensor],
    sides: Sides,
    where: str,
    languages: tuple[str | None, str | None] = (None, None),
) -> tuple[Bundle, dict[str, Tensor]]:
    """A model of these tensors, and those that are only kept. Raises RegardError, naming what does not fit."""
    ours, kept = taken(family, theirs, sides, where)
    for name, tensor in ours.items():
        if not bool(torch.isfinite(tensor).all()):
            raise RegardError(f"{where}: {name} has numbers that are not finite; copy the model again.")
    settings, (source, target) = family.model, sides
    if settings.step_by_step and UNKNOWN in target.missing:
        # What stands for an unknown word there is nothing; here it must never be said.
        settings = settings.model_copy(update={"output_bias": True})
        ours["output.bias"] = torch.zeros(len(target))
        ours["output.bias"][target.missing] = NEVER
    says = _said(family, target)
    description = Description(
        source_language=languages[0],
        target_language=languages[1],
        longest=family.longest or _longest(settings),
        whole=not settings.step_by_step,
        per_token=0.0 if settings.source.kind == "nothing" else 2.0,
        model=settings,
    )
    side = medium_of(settings.source) or source
    with torch.device("meta"):  # before memory is spent: whether the tensors are those of such a model
        check_tensors(new_model(settings, side, says), ours, where)
    with torch.random.fork_rng(devices=[]):
        model = new_model(settings, side, says)
    put_tensors(model, {name: tensor.float() for name, tensor in ours.items()}, where)
    return Bundle(description, model.eval(), side, says), kept


def save(run: Path, bundle: Bundle) -> None:
    """As a run's folder, new."""
    run.mkdir(parents=True, exist_ok=True)
    save_bundle(run, bundle)


def _said(family: Family, words: Vocabulary) -> Vocabulary:
    """What a model says."""
    if family.model.says == "text":
        return words
    if family.model.says == "span":
        return Ends()
    return Tags(family.labels) if family.model.tags else Labels(family.labels)


def _longest(model: ModelSettings) -> int:
    """Tokens that it has places for."""
    parts = [part.most_tokens for part in (model.encoder, model.decoder)]
    return min((most for most in parts if most is not None), default=512)
