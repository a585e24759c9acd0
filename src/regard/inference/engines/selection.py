"""Which engine runs a model here, and why. Imports PyTorch only if it is needed."""

from typing import TYPE_CHECKING

from regard.alignment.shortlist import Shortlist
from regard.errors import RegardError
from regard.inference.engines import NAMES, Engine, native_weights
from regard.inference.loaded_run import LoadedRun
from regard.runs import conversion
from regard.runs.conversion import PRECISIONS
from regard.runs.folder import Opened

if TYPE_CHECKING:
    from regard.alignment.alignment_head import AlignmentHead
    from regard.runs.bundle import Bundle

TITLES = {"native": "the native engine", "ctranslate2": "CTranslate2"}


def open_engine(
    opened: Opened,
    *,
    engine: str = "auto",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    shortlist: bool = False,
) -> LoadedRun:
    """A run with the engine of this name, or the fastest that can run it here. Raises RegardError."""
    if engine not in NAMES:
        raise RegardError(f"engine: there is no {engine!r}; there are {', '.join(NAMES)}.")
    if precision not in ("auto", *PRECISIONS):
        raise RegardError(f"precision: there is no {precision!r}; there are auto, {', '.join(PRECISIONS)}.")
    if threads < 0:
        raise RegardError(f"threads: {threads} is not possible; it must be at least 1, or 0 for one on each core.")
    words = opened.shortlist() if shortlist else None
    if shortlist and words is None:
        raise RegardError(f"{opened.folder}: it has no shortlist; regard train makes one at its end.")
    reasons: dict[str, str] = {}
    for name in ("native", "ctranslate2"):
        if engine not in ("auto", name):
            continue
        reasons[name] = _unsupported_reason(name, opened, device)
        if not reasons[name]:
            return _on_cpu(name, opened, "int8" if precision == "auto" else precision, threads, words)
        if engine == name:
            raise RegardError(
                f"{opened.folder}: {TITLES[name]} cannot run this model here, since {reasons[name]}; try another "
                f"engine."
            )
    return _in_pytorch(opened, device, precision, threads, words, reasons)


def run_in_pytorch(
    bundle: "Bundle",
    engine_reason: str = "PyTorch",
    shortlist: Shortlist | None = None,
    *,
    int8: bool = False,
    alignment_head: "AlignmentHead | None" = None,
) -> LoadedRun:
    """A model that is in PyTorch already."""
    from regard.inference.engines.torch_engine import TorchEngine

    engine = TorchEngine(bundle, shortlist, int8=int8)
    sides = bundle.source_side, bundle.target_side
    return LoadedRun(bundle.description, *sides, engine, lambda: bundle, engine_reason, alignment_head)


def _in_pytorch(
    opened: Opened, device: str, precision: str, threads: int, words: Shortlist | None, reasons: dict[str, str]
) -> LoadedRun:
    if threads:
        import torch

        torch.set_num_threads(threads)
    bundle = _open_bundle(opened, device)
    if int8 := precision == "int8":
        from regard.inference.engines.int8_quantization import unsupported_reason as unsupported_int8

        if reason := unsupported_int8(next(bundle.model.parameters()).device):
            raise RegardError(f"precision: int8 is not possible, since {reason}; use float32.")
    about = f"PyTorch{', int8' if int8 else ''}{', with a shortlist' if words is not None else ''}"
    why = f"{about}, since {reasons['native']}" if reasons else about
    return run_in_pytorch(bundle, why, words, int8=int8, alignment_head=opened.choice())


def _on_cpu(name: str, opened: Opened, precision: str, threads: int, words: Shortlist | None) -> LoadedRun:
    engine: Engine
    if name == "native":
        from regard.inference.engines.native_engine import NativeEngine

        engine = NativeEngine(opened, kind=precision, threads=threads, shortlist=words)
    else:
        from regard.inference.engines.ctranslate2_engine import CTranslate2Engine

        engine = CTranslate2Engine(opened, kind=precision, threads=threads, shortlist=words is not None)
    about = f"{TITLES[name]}, {precision}{', with a shortlist' if words is not None else ''}"
    return LoadedRun(
        opened.description,
        opened.source_side,
        opened.target_side,
        engine,
        lambda: _open_bundle(opened, "cpu"),
        about,
        opened.choice(),
    )


def _open_bundle(opened: Opened, device: str) -> "Bundle":
    from regard.runs.bundle import load_bundle
    from regard.runs.devices import device_named

    return load_bundle(opened.folder, str(device_named(device)))


def _unsupported_reason(name: str, opened: Opened, device: str) -> str:
    """Why a model does not run in the native engine or in CTranslate2 here, in words; empty if it does."""
    model = opened.description.model
    check = native_weights.unsupported_reason if name == "native" else conversion.unsupported_by_ctranslate2
    if reason := check(model):
        return reason
    if device not in ("auto", "cpu"):
        return f"it is to run on {device}"
    try:
        import ctranslate2
    except ImportError:
        if name == "ctranslate2":
            return "the package ctranslate2 is not installed"
    else:
        if device == "auto" and ctranslate2.get_cuda_device_count():
            return "there is a GPU, on which PyTorch is faster"
    if name == "native":
        from regard import native

        if native.library() is None:
            return native.why_not()
    return ""
