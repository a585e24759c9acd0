"""Which engine runs a model here, and why. Imports PyTorch only if it is needed."""

from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.inference.engines.base import ENGINES, Engine
from regard.inference.loaded_run import LoadedRun
from regard.runs.ctranslate2_conversion import PRECISIONS
from regard.runs.folder import RunFolder

if TYPE_CHECKING:
    from regard.alignment.alignment_head import AlignmentHead
    from regard.alignment.shortlist import Shortlist
    from regard.runs.bundle import Bundle


def open_loaded_run(
    opened: RunFolder,
    *,
    engine: str = "auto",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    shortlist: bool = False,
) -> LoadedRun:
    """A run with the engine of this name, or the fastest that can run it here. Raises RegardError."""
    if engine != "auto" and engine not in ENGINES:
        raise RegardError(f"engine: there is no {engine!r}; there are auto, {', '.join(by_priority())}.")
    if precision not in ("auto", *PRECISIONS):
        raise RegardError(f"precision: there is no {precision!r}; there are auto, {', '.join(PRECISIONS)}.")
    if threads < 0:
        raise RegardError(f"threads: {threads} is not possible; it must be at least 1, or 0 for one on each core.")
    candidates = opened.shortlist() if shortlist else None
    if shortlist and candidates is None:
        raise RegardError(f"{opened.folder}: it has no shortlist; regard train makes one at its end.")
    cls, reason = _choose(opened, engine, device)
    chosen = cls.default_precision if precision == "auto" else precision
    found = cls.open(opened, device=device, precision=chosen, threads=threads, shortlist=candidates)
    int8 = "" if chosen == "float32" and cls.default_precision == "float32" else f", {chosen}"
    engine_reason = f"{cls.title}{int8}{', with a shortlist' if candidates is not None else ''}{reason}"
    bundle = getattr(found, "bundle", None)

    def open_bundle() -> "Bundle":
        return bundle if bundle is not None else _open_bundle(opened)

    vocabularies = opened.source_processor, opened.target_vocabulary
    return LoadedRun(opened.description, *vocabularies, found, open_bundle, engine_reason, opened.alignment_head())


def by_priority() -> list[str]:
    """Names of engines, the preferred one first; none is imported."""
    return sorted(ENGINES, key=lambda name: -int(ENGINES.declaration(name).constants["priority"]))


def loaded_run_from_bundle(
    bundle: "Bundle",
    engine_reason: str = "PyTorch",
    shortlist: "Shortlist | None" = None,
    *,
    int8: bool = False,
    alignment_head: "AlignmentHead | None" = None,
) -> LoadedRun:
    """A run whose model is already open in PyTorch."""
    from regard.inference.engines.torch import TorchEngine

    engine = TorchEngine(bundle, shortlist, int8=int8)
    vocabularies = bundle.source_processor, bundle.target_vocabulary
    return LoadedRun(bundle.description, *vocabularies, engine, lambda: bundle, engine_reason, alignment_head)


def _choose(opened: RunFolder, engine: str, device: str) -> tuple[type[Engine], str]:
    """The engine to use, and why it is not the preferred one, as the end of a sentence. Raises RegardError."""
    first_reason = ""
    for name in by_priority() if engine == "auto" else [engine]:
        cls = ENGINES.get(name)
        reason = cls.unsupported_model(opened, device)
        if not reason:
            return cls, f", since {first_reason}" if first_reason and cls.default_precision == "float32" else ""
        if engine == name:
            raise RegardError(
                f"{opened.folder}: {cls.title} cannot run this model here, since {reason}; try another engine."
            )
        first_reason = first_reason or reason
    raise RegardError(f"{opened.folder}: no engine can run this model here, since {first_reason}.")


def _open_bundle(opened: RunFolder) -> "Bundle":
    from regard.runs.bundle import load_bundle

    return load_bundle(opened.folder, "cpu")
