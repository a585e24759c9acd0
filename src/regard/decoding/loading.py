"""Opening a trained run: which engine runs it, and why. Imports no PyTorch unless it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING

from regard.decoding.conversion import KINDS, refuses
from regard.decoding.engines import NAMES
from regard.decoding.folder import Opened, open_folder
from regard.decoding.shortlist import Shortlist
from regard.decoding.translator import Translator

if TYPE_CHECKING:
    from regard.decoding.bundle import Bundle


def load(
    path: Path | str,
    *,
    engine: str = "auto",
    device: str = "auto",
    precision: str = "int8",
    threads: int = 0,
    shortlist: bool = False,
) -> Translator:
    """A trained run, ready to translate.

    engine: ctranslate2, torch, or auto for the fastest that can run this model here. device: cpu, cuda, mps or auto.
    precision: of CTranslate2's weights, int8 or float32. threads: 0 for one on each processor core.
    shortlist: choose words only from those that the run's shortlist has for a source; faster, and rarely worse.
    """
    if engine not in NAMES:
        raise ValueError(f"engine: there is no {engine!r}; there are {', '.join(NAMES)}.")
    if precision not in KINDS:
        raise ValueError(f"precision: there is no {precision!r}; there are {', '.join(KINDS)}.")
    opened = open_folder(Path(path))
    if shortlist and opened.shortlist() is None:
        raise ValueError(f"{path}: it has no shortlist; regard train makes one at its end.")
    against = "" if engine == "torch" else _against_ctranslate2(opened, device)
    if engine == "ctranslate2" and against:
        raise ValueError(f"{path}: CTranslate2 cannot run this model here, since {against}; use the torch engine.")
    if engine == "torch" or against:
        if threads:
            import torch

            torch.set_num_threads(threads)
        words = opened.shortlist() if shortlist else None
        return in_torch(_bundle(opened, device), f"PyTorch, since {against}" if against else "PyTorch", words)
    from regard.decoding.engines.ctranslate import CTranslate2Engine

    return Translator(
        opened.description,
        opened.source_subwords,
        opened.target_subwords,
        CTranslate2Engine(opened, kind=precision, threads=threads, shortlist=shortlist),
        lambda: _bundle(opened, "cpu"),
        f"CTranslate2, {precision}{', with a shortlist' if shortlist else ''}",
    )


def in_torch(bundle: "Bundle", why: str = "PyTorch", shortlist: Shortlist | None = None) -> Translator:
    """A model that is in PyTorch already."""
    from regard.decoding.engines.pytorch import TorchEngine

    engine = TorchEngine(bundle, shortlist)
    return Translator(bundle.description, bundle.source_subwords, bundle.target_subwords, engine, lambda: bundle, why)


def _bundle(opened: Opened, device: str) -> "Bundle":
    from regard.decoding.bundle import load_bundle
    from regard.decoding.devices import device_named

    return load_bundle(opened.folder, str(device_named(device)))


def _against_ctranslate2(opened: Opened, device: str) -> str:
    """Why the model does not run in CTranslate2, in words; empty if it does."""
    if against := refuses(opened.description.model):
        return against
    if device not in ("auto", "cpu"):
        return f"it is to run on {device}"
    try:
        import ctranslate2
    except ImportError:
        return "the package ctranslate2 is not installed"
    if device == "auto" and ctranslate2.get_cuda_device_count():
        return "there is a graphics card, on which PyTorch is faster"
    return ""
