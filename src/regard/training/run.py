"""A training run from its settings to its folder.

settings.toml        everything it was made with
data/                the prepared corpus; data/rejected.jsonl has the examples that were not used, and why
checkpoints/         where it can be resumed from
log.jsonl            losses, speeds, validations
curves.png           the same as a picture
attention/           over one validation example, at each validation
alignment.json, shortlist.safetensors    made at the end: which head aligns, which words may come of which
model.toml, model.safetensors, source.subwords, target.subwords    the model (runs/bundle.py)
"""

import contextlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.alignment.lexicon import MAX_COOCCURRENCES, learn_lexicon
from regard.alignment.shortlist import build_shortlist
from regard.data.column_detection import describe_columns
from regard.data.dataset import Corpus, prepare, reopen
from regard.data.input_validation import layout_from_settings
from regard.data.pairs import PairDataset
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.inference.results import SMALL_VOCABULARY
from regard.interpret.capture import choose_alignment_head
from regard.models.settings import ModelSettings
from regard.plugins import required_by
from regard.runs.bundle import Bundle, new_model
from regard.runs.conversion import PRECISIONS, convert_to_ctranslate2, unsupported_by_ctranslate2
from regard.runs.devices import resolve_device
from regard.runs.folder import ALIGNMENT_FILE, RunDescription, open_run, write_durably
from regard.settings import read_toml
from regard.tasks.base import get_task
from regard.training.allocator import keep_memory
from regard.training.distributed import Distribution, distribution, leads
from regard.training.loop import Trainer, Where
from regard.training.objective import guided_head
from regard.training.reporting import Log, Reporter, read_log
from regard.training.run_lock import only_here
from regard.training.settings import RunSettings
from regard.training.threads import threads_for
from regard.training.warm_start import begin_with
from regard.views.training_curves import draw_curves


@dataclass(frozen=True)
class Trained:
    """What came out."""

    run: Path
    where: Where
    bundle: Bundle
    corpus: Corpus
    stopped_by: int  # the signal that asked it to stop, if it is not done

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        best = self.where.best[0] if self.where.best else {}
        return {
            "run": str(self.run),
            "finished": self.where.done,
            "step": self.where.step,
            "seconds": round(self.where.seconds, 1),
            "tokens": self.where.tokens,
            "parameters": self.bundle.model.size,
            "examples": len(self.corpus.train),
            "valid_examples": len(self.corpus.valid),
            "set_aside": self.corpus.rejected,
            "best_step": best.get("step"),
        }


def restarted() -> bool:
    """Whether torchrun has started this process anew, or it is not the one that makes the run's folder."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0 or not leads()


def begin(settings: RunSettings, run: Path, *, overwrite: bool = False) -> None:
    """Make the folder of a new run. Raises RegardError if something is there already."""
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        if not (run / "settings.toml").exists():
            raise RegardError(f"{run}: it exists and is not a run; choose another folder with -o.")
        begun = (run / "log.jsonl").exists() or (run / "checkpoints").exists()
        if begun and not overwrite:
            raise RegardError(
                f"{run}: there is a run already; go on with it by --resume {run}, or start anew with --overwrite."
            )
        with only_here(run):
            shutil.rmtree(_replaced(run), ignore_errors=True)
            run.rename(_replaced(run))
    run.mkdir(parents=True, exist_ok=True)
    write_durably(run / "settings.toml", settings.as_toml().encode())


def _replaced(run: Path) -> Path:
    """Where a run that is overwritten waits until the data of the new one are read."""
    return run.absolute().with_name(f".{run.absolute().name}.replaced")


def settings_of(run: Path, changes: dict[str, Any] | None = None) -> RunSettings:
    """The settings of a run that exists, with `changes` to its training, such as more steps."""
    if not (run / "settings.toml").exists():
        what = "this is not a run" if run.exists() else "there is no such folder"
        raise RegardError(f"{run}: {what}; a run has a settings.toml, made by regard train.")
    settings = RunSettings.parse(read_toml(run / "settings.toml"))
    if changes:
        settings = settings.model_copy(update={"training": settings.training.model_copy(update=changes)})
    return settings


def train(
    settings: RunSettings,
    run: Path,
    *,
    resume: bool = False,
    further: bool = False,
    quiet: bool = False,
    device: str = "auto",
    tensorboard: bool = False,
) -> Trained:
    """Train in a folder made by `begin`; with `resume`, from its newest whole checkpoint.

    `further`: plan the resumed run anew, since its steps or minutes are others now.
    """
    keep_memory()
    with (
        threads_for(settings.model),
        distribution() as place,
        only_here(run) if place.leads else contextlib.nullcontext(),
        Reporter(quiet=quiet or not place.leads) as reporter,
    ):
        try:
            corpus = _corpus(settings, run, place, reporter, again=resume or place.restarts > 0)
        except (ValueError, OSError):
            if place.leads and not resume and not place.restarts:  # nothing was learnt: as if it had never begun
                shutil.rmtree(run)
                if _replaced(run).exists():
                    _replaced(run).rename(run)
            raise
        if place.leads:
            shutil.rmtree(_replaced(run), ignore_errors=True)
        bundle = new_bundle(settings, corpus, resolve_device(device))
        trainer = Trainer(settings.training, corpus, bundle, run, reporter=reporter, place=place, data=settings.data)
        resumed = (resume or place.restarts > 0) and trainer.resume()
        if resumed:
            if further:
                _check_further(settings, trainer.where, run)
                trainer.go_further()
            reporter.tell(
                f"This run is finished, after {trainer.where.step:,} steps; give it more by --steps or --minutes."
                if trainer.where.done
                else f"Resuming at step {trainer.where.step:,}."
            )
        elif resume:
            _check_unfinished(run)
            reporter.tell("There is no checkpoint yet: starting from the beginning.")
        if further and place.leads:
            write_durably(run / "settings.toml", settings.as_toml().encode())
        for line in introduction(settings, bundle, corpus, run):
            reporter.tell(line)
        for sentence in _columns(settings):
            reporter.tell(sentence)
        log = Log(
            run / "log.jsonl" if place.leads else Path(os.devnull),
            after=trainer.where.step if resumed else None,
            tensorboard=run / "tensorboard" if tensorboard and place.leads else None,
        )
        try:
            where = trainer.train(log)
        finally:
            log.close()
        if place.leads:
            draw_curves(read_log(run / "log.jsonl"), run / "curves.png", str(settings.preset))
            if where.done:
                finish(run, bundle, corpus)
            else:
                reporter.stop_bar()
                reporter.tell(f"Stopped at step {where.step:,}; go on with: regard train --resume {run}")
        return Trained(run, where, bundle, corpus, trainer.stopped_by)


def finish(run: Path, bundle: Bundle, corpus: Corpus) -> None:
    """What a trained run is used with: where its alignment is seen best, its shortlist, and a copy for CTranslate2
    where that can run it."""
    about = bundle.description.model
    if not about.aligns or not isinstance(corpus.train, PairDataset):
        return  # what comes from where is for the words of two texts
    examples = (corpus.train.tokens(number) for number in range(len(corpus.train)))
    few = len(corpus.target_side) < SMALL_VOCABULARY  # letters, not words: what little they tell is told soon
    max_cooccurrences = MAX_COOCCURRENCES // 10 if few else MAX_COOCCURRENCES
    vocabulary = len(corpus.target_side)
    lexicon = learn_lexicon(examples, target_vocabulary=vocabulary, max_cooccurrences=max_cooccurrences)
    assert isinstance(corpus.valid, PairDataset)
    choice = (
        choose_alignment_head(bundle, corpus.valid, lexicon)
        if corpus.train.linked is None
        else guided_head(bundle.model.settings)
    )
    if choice is not None:
        record = {"layer": choice.layer, "head": choice.head, "shifted": choice.shifted}
        write_durably(run / ALIGNMENT_FILE, json.dumps(record).encode() + b"\n")
    if not few:
        side = in_text(corpus.source_side)
        joint = side.model == corpus.target_side.model
        found = build_shortlist(lexicon, source_vocabulary=len(side), joint=joint)
        write_durably(run / "shortlist.safetensors", found.to_bytes())
    if not unsupported_by_ctranslate2(bundle.description.model):
        for precision in PRECISIONS:
            convert_to_ctranslate2(open_run(run), precision)


def _check_unfinished(run: Path) -> None:
    """Raises RegardError if a run without checkpoints was trained to its end: that must not be done again unasked."""
    log = run / "log.jsonl"
    if log.exists() and any(record.get("kind") == "end" for record in read_log(log)):
        raise RegardError(
            f"{run}: its checkpoints are gone, so it cannot go on, though its model can be used; to train anew, say "
            f"the same as at first, with --overwrite."
        )


def _check_further(settings: RunSettings, where: Where, run: Path) -> None:
    training = settings.training
    if training.steps <= where.step:
        raise RegardError(f"--steps: {run} has {where.step:,} steps already; give it more than these.")
    if training.minutes is not None and 60 * training.minutes <= where.seconds:
        raise RegardError(
            f"--minutes: {run} has trained for {where.seconds / 60:.1f} already; give it more than these."
        )


def _corpus(settings: RunSettings, run: Path, place: Distribution, reporter: Reporter, *, again: bool) -> Corpus:
    """The run's data. A run that goes on has its own: its files may have changed since, or gone."""
    data = run / "data"
    what: dict[str, Any] = {"source": settings.model.source, "kind": get_task(settings.task).data()}
    if place.leads:
        own = reopen(data, **what) if again else None
        corpus = own or prepare(settings.data, data, **what, report=reporter.reading)
        if own is None and again:
            _check_same(run, corpus)
    if place.world > 1:
        torch.distributed.barrier()
    return corpus if place.leads else reopen(data, **what) or prepare(settings.data, data, **what)


def _check_same(run: Path, corpus: Corpus) -> None:
    """Raises RegardError if data that had to be prepared anew give other subwords than the run began with."""
    for before, side in (
        (run / "source.subwords", corpus.source_side),
        (run / corpus.target_side.target_file, corpus.target_side),
    ):
        if before.exists() and before.read_bytes() != getattr(side, "model", None):
            raise RegardError(
                f"{run}: its data folder is gone, and the files it was made from have changed since; put them back as "
                f"they were, or start anew with regard train."
            )


def new_bundle(settings: RunSettings, corpus: Corpus, device: torch.device) -> Bundle:
    """A new model for this corpus, its weights drawn from the run's seed."""
    torch.manual_seed(settings.training.seed)
    model = new_model(settings.model, corpus.source_side, corpus.target_side)
    begin_with(model, settings.training.init)
    per_token = 0.0  # where there is no source
    if isinstance(corpus.train, PairDataset):
        ratio = (corpus.train.target_lengths / (corpus.train.source_lengths + 10)).max()
        per_token = max(2.0, round(float(ratio) * 1.2, 2))
    description = RunDescription(
        task=settings.task,
        plugins=required_by(settings.model_dump(mode="json")),
        source_language=settings.data.source_language,
        target_language=settings.data.target_language,
        target_languages=settings.data.target_languages,
        lowercase=settings.data.lowercase,
        whole=settings.data.whole,
        longest=settings.data.longest,
        per_token=per_token,
        placeholders=corpus.treatments,
        model=settings.model,
    )
    return Bundle(description, model.to(device), corpus.source_side, corpus.target_side)


def _columns(settings: RunSettings) -> list[str]:
    """Of tables with more columns than two, which are read."""
    data = settings.data
    layout = layout_from_settings(data)
    there = [path for path in (*data.pairs, *data.valid_pairs) if path.exists()]
    return [sentence for sentence in (describe_columns(path, layout) for path in there) if sentence]


def made_of(model: ModelSettings) -> str:
    """A model's parts in words."""
    source, encoder, decoder = model.source, model.encoder, model.decoder
    parts = [source.summary] if source.summary else []
    if not encoder.is_identity:
        parts.append(f"{encoder.layers} {encoder.kind} encoder")
    if decoder.autoregressive:
        parts.append(f"{decoder.layers} {decoder.kind} decoder layers")
    elif parts and not decoder.per_position and decoder.has_output:
        parts.append(decoder.kind)
    else:
        parts[-1] += " layers"
    return " and ".join(parts)


def introduction(settings: RunSettings, bundle: Bundle, corpus: Corpus, run: Path) -> list[str]:
    """What will be trained, on how much."""
    predicts = get_task(settings.task).describe_target(corpus.target_side)
    lines = [
        f"{settings.preset}: {made_of(settings.model)}, {bundle.model.size:,} parameters, {predicts}",
        f"{len(corpus.train):,} examples to learn from ({int(np.sum(corpus.train.target_lengths)):,} target tokens), "
        f"{len(corpus.valid):,} to judge by; into {run}",
    ]
    if corpus.rejected:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(corpus.rejected.items()))
        lines.append(f"{sum(corpus.rejected.values()):,} examples set aside: {reasons}; see {run}/data/rejected.jsonl")
    return lines
