"""Opening a trained run: which engine runs it, and why. Imports no PyTorch unless it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING

from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.shortlist import Shortlist
from regard.errors import RegardError
from regard.inference.engines import NAMES, Engine
from regard.inference.engines import native_weights as weights
from regard.inference.translator import Translator
from regard.runs.conversion import PRECISIONS, unsupported_by_ctranslate2
from regard.runs.folder import Opened, open_folder

if TYPE_CHECKING:
    from regard.runs.bundle import Bundle


def load(
    path: Path | str,
    *,
    engine: str = "auto",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    shortlist: bool = False,
) -> Translator:
    """A trained run, ready to translate.

    engine: native, ctranslate2, torch, or auto for the fastest that can run this model here. device: cpu, cuda, mps or
    auto. precision: what weights are multiplied in, float32 or int8; auto is int8, but in PyTorch float32. threads: 0
    for one on each processor core. shortlist: choose words only from those that the run's shortlist has for a source;
    faster, and rarely worse.
    """
    if engine not in NAMES:
        raise RegardError(f"engine: there is no {engine!r}; there are {', '.join(NAMES)}.")
    if precision not in ("auto", *PRECISIONS):
        raise RegardError(f"precision: there is no {precision!r}; there are auto, {', '.join(PRECISIONS)}.")
    if threads < 0:
        raise RegardError(f"threads: {threads} is not possible; it must be at least 1, or 0 for one on each core.")
    opened = open_folder(Path(path))
    words = opened.shortlist() if shortlist else None
    if shortlist and words is None:
        raise RegardError(f"{path}: it has no shortlist; regard train makes one at its end.")
    reasons: dict[str, str] = {}
    for name in ("native", "ctranslate2"):
        if engine not in ("auto", name):
            continue
        reasons[name] = _against(name, opened, device)
        if not reasons[name]:
            return _on_the_processor(name, opened, "int8" if precision == "auto" else precision, threads, words)
        if engine == name:
            raise RegardError(
                f"{path}: {WHAT[name]} cannot run this model here, since {reasons[name]}; try another engine."
            )
    if threads:
        import torch

        torch.set_num_threads(threads)
    bundle = _bundle(opened, device)
    if low := precision == "int8":
        from regard.inference.engines.int8_quantization import unsupported_reason as against_int8

        if against := against_int8(next(bundle.model.parameters()).device):
            raise RegardError(f"precision: int8 cannot be had, since {against}; use float32.")
    about = f"PyTorch{', int8' if low else ''}{', with a shortlist' if words is not None else ''}"
    why = f"{about}, since {reasons['native']}" if reasons else about
    return in_torch(bundle, why, words, low=low, choice=opened.choice())


WHAT = {"native": "our own engine", "ctranslate2": "CTranslate2"}


def _on_the_processor(name: str, opened: Opened, precision: str, threads: int, words: Shortlist | None) -> Translator:
    engine: Engine
    if name == "native":
        from regard.inference.engines.native_engine import NativeEngine

        engine = NativeEngine(opened, kind=precision, threads=threads, shortlist=words)
    else:
        from regard.inference.engines.ctranslate2_engine import CTranslate2Engine

        engine = CTranslate2Engine(opened, kind=precision, threads=threads, shortlist=words is not None)
    about = f"{WHAT[name]}, {precision}{', with a shortlist' if words is not None else ''}"
    return Translator(
        opened.description,
        opened.source_side,
        opened.target_side,
        engine,
        lambda: _bundle(opened, "cpu"),
        about,
        opened.choice(),
    )


def _bundle(opened: Opened, device: str) -> "Bundle":
    from regard.runs.bundle import load_bundle
    from regard.runs.devices import device_named

    return load_bundle(opened.folder, str(device_named(device)))


def _against(name: str, opened: Opened, device: str) -> str:
    """Why a model does not run in our own C or in CTranslate2 here, in words; empty if it does."""
    model = opened.description.model
    if against := weights.unsupported_reason(model) if name == "native" else unsupported_by_ctranslate2(model):
        return against
    if device not in ("auto", "cpu"):
        return f"it is to run on {device}"
    try:
        import ctranslate2
    except ImportError:
        if name == "ctranslate2":
            return "the package ctranslate2 is not installed"
    else:
        if device == "auto" and ctranslate2.get_cuda_device_count():
            return "there is a graphics card, on which PyTorch is faster"
    if name == "native":
        from regard import native

        if native.library() is None:
            return native.why_not()
    return ""


def in_torch(
    bundle: "Bundle",
    why: str = "PyTorch",
    shortlist: Shortlist | None = None,
    *,
    low: bool = False,
    choice: AlignmentHead | None = None,
) -> Translator:
    """A model that is in PyTorch already."""
    from regard.inference.engines.torch_engine import TorchEngine

    engine = TorchEngine(bundle, shortlist, low=low)
    sides = bundle.source_side, bundle.target_side
    reads = bundle.description.model.source.kind
    if reads == "nothing":
        from regard.inference.generation import Continuer

        return Continuer(bundle.description, *sides, engine, lambda: bundle, why, choice)
    if bundle.description.model.tags:
        from regard.inference.tagger import Tagger

        return Tagger(bundle.description, *sides, engine, lambda: bundle, why, choice)
    if bundle.description.model.spans:
        from regard.inference.span_answers import Answerer

        return Answerer(bundle.description, *sides, engine, lambda: bundle, why, choice)
    if not bundle.description.model.step_by_step and not bundle.description.model.labels:
        from regard.inference.fill_mask import Reader

        return Reader(bundle.description, *sides, engine, lambda: bundle, why, choice)
    if reads == "text":
        return Translator(bundle.description, *sides, engine, lambda: bundle, why, choice)
    from regard.inference.media_inputs import MediaTranslator

    return MediaTranslator(bundle.description, *sides, engine, lambda: bundle, why, choice)
