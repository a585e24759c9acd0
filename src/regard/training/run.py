"""A training run, from its settings to its folder.

settings.toml        all settings of the run
data/                the prepared dataset; data/rejected.jsonl has the examples that were not used, and why
checkpoints/         what it can be resumed from
log.jsonl            losses, speeds, validations
curves.png           a plot of the log
attention/           cross-attention over one validation example, at each validation
alignment.json, shortlist.safetensors    written at the end: the alignment head and the lexical shortlist
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
from regard.data.corpus import Corpus, prepare, reopen
from regard.data.input_validation import layout_from_settings
from regard.data.vocabulary import text_tokenizer
from regard.errors import RegardError
from regard.inference.search_config import SMALL_VOCABULARY
from regard.interpret.alignment_head_selection import choose_alignment_head
from regard.models.settings import ModelSettings
from regard.plugins import check_available, required_plugins
from regard.runs.bundle import Bundle, new_model
from regard.runs.ctranslate2_conversion import PRECISIONS, convert_to_ctranslate2, unsupported_by_ctranslate2
from regard.runs.devices import resolve_device
from regard.runs.folder import ALIGNMENT_FILE, RunDescription, open_run, write_durably
from regard.settings import read_toml
from regard.tasks.base import get_task
from regard.training.distributed import DistributedContext, distributed_context, is_main_process
from regard.training.malloc_tuning import raise_malloc_thresholds
from regard.training.objective import guided_head
from regard.training.reporting import Log, Reporter, read_log
from regard.training.run_lock import lock_run
from regard.training.settings import RunSettings
from regard.training.threads import limit_threads
from regard.training.trainer import Trainer, TrainingState
from regard.training.warm_start import warm_start_from
from regard.views.training_curves import plot_training_curves


@dataclass(frozen=True)
class TrainedRun:
    """The result of training. state: at its end."""

    run: Path
    state: TrainingState
    bundle: Bundle
    corpus: Corpus
    stopped_by: int  # the signal that stopped it, if it is not done

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        best = self.state.best[0] if self.state.best else {}
        return {
            "run": str(self.run),
            "finished": self.state.done,
            "step": self.state.step,
            "seconds": round(self.state.seconds, 1),
            "tokens": self.state.tokens,
            "parameters": self.bundle.model.size,
            "examples": len(self.corpus.train),
            "valid_examples": len(self.corpus.valid),
            "rejected": self.corpus.rejected,
            "best_step": best.get("step"),
        }


def is_restart_or_worker() -> bool:
    """Whether this process must not create the run's folder: torchrun restarted it, or its rank is not 0."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0 or not is_main_process()


def create_run(settings: RunSettings, run: Path, *, overwrite: bool = False) -> None:
    """Create the folder of a new run. Raises RegardError if it exists and may not be overwritten."""
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        if not (run / "settings.toml").exists():
            raise RegardError(f"{run}: it exists and is not a run; choose another folder with -o.")
        has_training = (run / "log.jsonl").exists() or (run / "checkpoints").exists()
        if has_training and not overwrite:
            raise RegardError(
                f"{run}: there is a run already; go on with it by --resume {run}, or start anew with --overwrite."
            )
        with lock_run(run):
            shutil.rmtree(_backup_folder(run), ignore_errors=True)
            run.rename(_backup_folder(run))
    run.mkdir(parents=True, exist_ok=True)
    write_durably(run / "settings.toml", settings.as_toml().encode())


def _backup_folder(run: Path) -> Path:
    """Where a run that will be overwritten is kept until the data of the new run has been prepared."""
    return run.absolute().with_name(f".{run.absolute().name}.replaced")


def read_run_settings(run: Path, changes: dict[str, Any] | None = None) -> RunSettings:
    """The settings of an existing run, with `changes` to its training settings, such as more steps."""
    if not (run / "settings.toml").exists():
        what = "this is not a run" if run.exists() else "there is no such folder"
        raise RegardError(f"{run}: {what}; a run has a settings.toml, written by regard train.")
    if (run / "model.toml").exists():
        check_available(read_toml(run / "model.toml").get("plugins", {}), str(run), training=True)
    settings = RunSettings.parse(read_toml(run / "settings.toml"))
    if changes:
        settings = settings.model_copy(update={"training": settings.training.model_copy(update=changes)})
    return settings


def train(
    settings: RunSettings,
    run: Path,
    *,
    resume: bool = False,
    extend: bool = False,
    quiet: bool = False,
    device: str = "auto",
    tensorboard: bool = False,
) -> TrainedRun:
    """Train in a folder created by `create_run`; with `resume`, from its newest undamaged checkpoint.

    extend: plan the resumed run anew, since its limit of steps or minutes was changed.
    """
    raise_malloc_thresholds()
    with (
        limit_threads(settings.model),
        distributed_context() as distributed,
        lock_run(run) if distributed.is_main_process else contextlib.nullcontext(),
        Reporter(quiet=quiet or not distributed.is_main_process) as reporter,
    ):
        try:
            corpus = _load_corpus(settings, run, distributed, reporter, resuming=resume or distributed.restarts > 0)
        except (ValueError, OSError):
            if distributed.is_main_process and not resume and not distributed.restarts:  # undo create_run
                shutil.rmtree(run)
                if _backup_folder(run).exists():
                    _backup_folder(run).rename(run)
            raise
        if distributed.is_main_process:
            shutil.rmtree(_backup_folder(run), ignore_errors=True)
        bundle = new_bundle(settings, corpus, resolve_device(device))
        trainer = Trainer(
            settings.training, corpus, bundle, run, reporter=reporter, distributed=distributed, data=settings.data
        )
        resumed = (resume or distributed.restarts > 0) and trainer.resume()
        if resumed:
            if extend:
                _check_extension(settings, trainer.state, run)
                trainer.extend()
            reporter.print_line(
                f"This run is finished, after {trainer.state.step:,} steps; give it more by --steps or --minutes."
                if trainer.state.done
                else f"Resuming at step {trainer.state.step:,}."
            )
        elif resume:
            _check_unfinished(run)
            reporter.print_line("There is no checkpoint yet: starting from the beginning.")
        if extend and distributed.is_main_process:
            write_durably(run / "settings.toml", settings.as_toml().encode())
        for line in describe_run(settings, bundle, corpus, run):
            reporter.print_line(line)
        for sentence in _describe_columns(settings):
            reporter.print_line(sentence)
        log = Log(
            run / "log.jsonl" if distributed.is_main_process else Path(os.devnull),
            after=trainer.state.step if resumed else None,
            tensorboard=run / "tensorboard" if tensorboard and distributed.is_main_process else None,
        )
        try:
            state = trainer.train(log)
        finally:
            log.close()
        if distributed.is_main_process:
            plot_training_curves(read_log(run / "log.jsonl"), run / "curves.png", str(settings.preset))
            if state.done:
                write_inference_files(run, bundle, corpus)
            else:
                reporter.stop_bar()
                reporter.print_line(f"Stopped at step {state.step:,}; go on with: regard train --resume {run}")
        return TrainedRun(run, state, bundle, corpus, trainer.interrupt_signal.number)


def write_inference_files(run: Path, bundle: Bundle, corpus: Corpus) -> None:
    """Write what inference with a trained run uses: its alignment head, a lexical shortlist, and a CTranslate2 model
    if CTranslate2 supports its architecture."""
    if not (bundle.description.model.aligns and corpus.kind.has_pairs):
        return  # alignments are between the words of two texts
    examples = (corpus.train.tokens(number) for number in range(len(corpus.train)))
    small_vocabulary = len(corpus.target_vocabulary) < SMALL_VOCABULARY  # characters: few examples suffice
    max_cooccurrences = MAX_COOCCURRENCES // 10 if small_vocabulary else MAX_COOCCURRENCES
    vocabulary = len(corpus.target_vocabulary)
    lexicon = learn_lexicon(examples, target_vocabulary_size=vocabulary, max_cooccurrences=max_cooccurrences)
    head = (
        choose_alignment_head(bundle, corpus.valid, lexicon)
        if corpus.train.word_links is None
        else guided_head(bundle.model.settings)
    )
    if head is not None:
        record = {"layer": head.layer, "head": head.head, "shifted": head.shifted}
        write_durably(run / ALIGNMENT_FILE, json.dumps(record).encode() + b"\n")
    if not small_vocabulary:
        tokenizer = text_tokenizer(corpus.source_processor)
        joint = tokenizer.model == corpus.target_vocabulary.model
        shortlist = build_shortlist(lexicon, source_vocabulary_size=len(tokenizer), joint=joint)
        write_durably(run / "shortlist.safetensors", shortlist.to_bytes())
    if not unsupported_by_ctranslate2(bundle.description.model):
        for precision in PRECISIONS:
            convert_to_ctranslate2(open_run(run), precision)


def _check_unfinished(run: Path) -> None:
    """Raise RegardError if a run without checkpoints was trained to its end: it must not be trained again."""
    log = run / "log.jsonl"
    if log.exists() and any(record.get("kind") == "end" for record in read_log(log)):
        raise RegardError(
            f"{run}: its checkpoints are gone, so it cannot continue, though its model can be used; to train from "
            f"scratch, repeat the first command with --overwrite."
        )


def _check_extension(settings: RunSettings, state: TrainingState, run: Path) -> None:
    training = settings.training
    if training.steps <= state.step:
        raise RegardError(f"--steps: {run} has {state.step:,} steps already; give it more than these.")
    if training.minutes is not None and 60 * training.minutes <= state.seconds:
        raise RegardError(
            f"--minutes: {run} has trained for {state.seconds / 60:.1f} already; give it more than these."
        )


def _load_corpus(
    settings: RunSettings, run: Path, distributed: DistributedContext, reporter: Reporter, *, resuming: bool
) -> Corpus:
    """The run's dataset. A resumed run uses its prepared data: the original files may have changed or be gone."""
    data = run / "data"
    options: dict[str, Any] = {"source": settings.model.source, "kind": get_task(settings.task).data()}
    if distributed.is_main_process:
        prepared = reopen(data, **options) if resuming else None
        corpus = prepared or prepare(settings.data, data, **options, report=reporter.report_preparation)
        if prepared is None and resuming:
            _check_vocabulary_unchanged(run, corpus)
    if distributed.world_size > 1:
        torch.distributed.barrier()
    return corpus if distributed.is_main_process else reopen(data, **options) or prepare(settings.data, data, **options)


def _check_vocabulary_unchanged(run: Path, corpus: Corpus) -> None:
    """Raise RegardError if data that was prepared again gives another vocabulary than the run started with."""
    for path, tokenizer in (
        (run / "source.subwords", corpus.source_processor),
        (run / corpus.target.target_file, corpus.target),
    ):
        if path.exists() and path.read_bytes() != getattr(tokenizer, "model", None):
            raise RegardError(
                f"{run}: its data folder is gone, and the files it was made from have changed since; put them back as "
                f"they were, or start anew with regard train."
            )


def new_bundle(settings: RunSettings, corpus: Corpus, device: torch.device) -> Bundle:
    """A new model for this dataset, initialized with the run's seed and by warm start."""
    torch.manual_seed(settings.training.seed)
    model = new_model(settings.model, corpus.source_processor, corpus.target)
    warm_start_from(model, settings.training.init)
    tokens_per_source_token = 0.0  # if there is no source
    if corpus.kind.has_pairs:
        ratio = (corpus.train.target_lengths / (corpus.train.source_lengths + 10)).max()
        tokens_per_source_token = max(2.0, round(float(ratio) * 1.2, 2))
    description = RunDescription(
        task=settings.task,
        plugins=required_plugins(settings.model_dump(mode="json")),
        source_language=settings.data.source_language,
        target_language=settings.data.target_language,
        target_languages=settings.data.target_languages,
        lowercase=settings.data.lowercase,
        truncate=settings.data.truncate,
        max_tokens=settings.data.max_tokens,
        tokens_per_source_token=tokens_per_source_token,
        placeholders=corpus.treatments,
        model=settings.model,
    )
    return Bundle(description, model.to(device), corpus.source_processor, corpus.target)


def _describe_columns(settings: RunSettings) -> list[str]:
    """Which columns are used of tables with more than two."""
    data = settings.data
    layout = layout_from_settings(data)
    existing = [path for path in (*data.pairs, *data.valid_pairs) if path.exists()]
    kind = get_task(settings.task).data()
    return [sentence for sentence in (kind.describe_columns(path, layout) for path in existing) if sentence]


def describe_model(model: ModelSettings) -> str:
    """A model's components in words."""
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


def describe_run(settings: RunSettings, bundle: Bundle, corpus: Corpus, run: Path) -> list[str]:
    """Lines that describe the model and its data."""
    target = get_task(settings.task).describe_target(corpus.target)
    lines = [
        f"{settings.preset}: {describe_model(settings.model)}, {bundle.model.size:,} parameters, {target}",
        f"{len(corpus.train):,} training examples ({int(np.sum(corpus.train.target_lengths)):,} target tokens), "
        f"{len(corpus.valid):,} validation examples; into {run}",
    ]
    lines += [f"Data: {note}." for note in corpus.notes]
    if corpus.rejected:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(corpus.rejected.items()))
        lines.append(f"{sum(corpus.rejected.values()):,} examples rejected: {reasons}; see {run}/data/rejected.jsonl")
    return lines
