"""The loop: batches in, steps, validations, checkpoints; the same bits whether it was interrupted or not.

Nothing random is kept between steps. Batches come from (seed, epoch), and before each of a step's batches PyTorch's
generator is seeded from (seed, step, batch, process), so dropout, draws and subword sampling follow from where the run
is.
"""

import hashlib
import math
import resource
import signal
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch_plan import tokens_for
from regard.data.batching import Batch, load_batch, plan_batches
from regard.data.dataset import Corpus
from regard.data.settings import DataSettings
from regard.errors import RegardError
from regard.loading import predictor_of
from regard.runs.bundle import Bundle, copy_tensors_into, module_tensors, save_bundle
from regard.training.attention_history import keep
from regard.training.checkpoints import Checkpoint, Checkpoints
from regard.training.distributed import Distribution
from regard.training.objective import Objective, batch_loss
from regard.training.reporting import Log, Reporter, readable_time
from regard.training.schedule import learning_rate
from regard.training.settings import TrainingSettings
from regard.training.validation import Judgement, judge
from regard.training.weight_averaging import MovingAverage, mean, wearing

MEASURED = 20  # steps after which the first estimate of time and memory is made
RECENT = 50  # steps that the speed is averaged over
FITTED_EVERY = 50  # steps between plans that fit the minutes


@dataclass
class Where:
    """Where a run is: all of it but tensors, saved with every checkpoint."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    steps: int = 0  # in all, as planned
    estimated: bool = False  # whether the first estimate was told
    tokens: int = 0
    seconds: float = 0.0
    since_best: int = 0
    best: list[dict[str, Any]] = field(default_factory=list)  # candidates: step, merit, hash; best first
    done: bool = False


class Trainer:
    """Trains one bundle on one corpus into one folder."""

    def __init__(
        self,
        settings: TrainingSettings,
        corpus: Corpus,
        bundle: Bundle,
        run: Path,
        *,
        reporter: Reporter,
        place: Distribution | None = None,
        data: DataSettings | None = None,
    ) -> None:
        self.settings, self.corpus, self.bundle, self.run = settings, corpus, bundle, run
        self.reporter, self.place = reporter, place or Distribution()
        self.data = data or DataSettings()
        self.predictor = predictor_of(bundle)
        self.objective = Objective(bundle.model, settings, self.predictor.task.loss)
        self.device = next(bundle.model.parameters()).device
        self.optimiser = self._optimiser()
        self.average = MovingAverage(bundle.model, settings.average) if settings.average else None
        self.checkpoints = Checkpoints(run)
        self.where = Where()
        self._plan: tuple[int, list[NDArray[np.int64]]] | None = None
        self.tokens = settings.tokens or tokens_for(int(corpus.train.target_lengths.sum()))
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)
        self._validation_seconds = 0.0
        self._stop_asked = False
        self.stopped_by = signal.SIGINT.value  # the signal, if one did

    def _optimiser(self) -> torch.optim.AdamW:
        named = dict(self.objective.named_parameters())
        matrices = [parameter for parameter in named.values() if parameter.ndim > 1]
        vectors = [parameter for parameter in named.values() if parameter.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": self.settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},  # biases and norms are not pulled towards zero
        ]
        return torch.optim.AdamW(groups, lr=0.0, betas=self.settings.betas, eps=1e-9, fused=True)

    # --- saving and resuming -----------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Go back to the newest whole checkpoint; whether there is one."""
        checkpoint = self.checkpoints.newest(self.reporter.tell)
        if checkpoint is None:
            return False
        try:
            copy_tensors_into(self.objective, checkpoint.groups["weights"], "its checkpoint")
        except ValueError as error:
            raise RegardError(f"{self.run}: settings.toml is no longer the one it was trained with: {error}") from None
        named = dict(self.objective.named_parameters())
        for name, parameter in named.items():
            moments = checkpoint.groups["optimiser"]
            self.optimiser.state[parameter] = {
                "step": moments[f"{name}.step"].clone(),
                "exp_avg": moments[f"{name}.exp_avg"].to(parameter.device),
                "exp_avg_sq": moments[f"{name}.exp_avg_sq"].to(parameter.device),
            }
        if self.average is not None:
            self.average.tensors = checkpoint.groups["average"]
        self.where = Where(**checkpoint.state)
        return True

    def go_further(self) -> None:
        """Plan the rest anew: the settings name other steps or minutes than when the run began."""
        self.where.steps, self.where.estimated, self.where.done, self.where.since_best = 0, False, False, 0

    def _save(self) -> None:
        if not self.place.leads:
            return
        named = dict(self.objective.named_parameters())
        moments = {
            f"{name}.{key}": value
            for name, parameter in named.items()
            for key, value in self.optimiser.state[parameter].items()
        }
        groups = {"weights": module_tensors(self.objective), "optimiser": moments}
        if self.average is not None:
            groups["average"] = self.average.tensors
        self.checkpoints.save(Checkpoint(self.where.step, groups, asdict(self.where)))

    # --- the loop ----------------------------------------------------------------------------------------------

    def train(self, log: Log) -> Where:
        """Until the steps, the epochs, the minutes or the patience are used up, or somebody asks to stop."""
        module = self.place.wrap(self.objective)
        self.objective.train()
        if not self.where.steps:
            self.where.steps = self._most_steps()
        every = self._validation_interval()
        start, before = time.monotonic(), self.where.seconds
        with _asked_to_stop(self):
            while not self.where.done and self.where.step < self.where.steps:
                began = time.monotonic()
                tokens = self._step(module, log)
                self._recent.append((time.monotonic() - began, tokens))
                self.where.seconds = before + time.monotonic() - start
                self._estimate()
                out_of_time = self.settings.minutes and self.where.seconds >= 60 * self.settings.minutes
                last = self.where.step >= self.where.steps or bool(out_of_time)
                if self.where.step % every == 0 or last:
                    self._validate(log)
                decision = self.place.agree(
                    {"stop": self._stop_asked, "done": self.where.done or last, "steps": self.where.steps}
                )
                self.where.steps, self.where.done = decision["steps"], decision["done"]
                save = self.settings.save_every and self.where.step % self.settings.save_every == 0
                if decision["stop"] or decision["done"] or self.where.step % every == 0 or save:
                    self.where.seconds = before + time.monotonic() - start
                    self._save()
                if decision["stop"] and not self.where.done:
                    break
        if self.where.done and self.place.leads:
            self._finish(log)
        return self.where

    def _steps_of_an_epoch(self) -> int:
        return max(1, math.ceil(len(self._epoch(self.where.epoch)) / self.settings.accumulate))

    def _validation_interval(self) -> int:
        return self.settings.validate_every or max(200, self._steps_of_an_epoch())

    def _epoch(self, epoch: int) -> list[NDArray[np.int64]]:
        if self._plan is None or self._plan[0] != epoch:
            plan = plan_batches(
                self.corpus, self.corpus.train, tokens=self.tokens, seed=self.settings.seed, epoch=epoch
            )
            self._plan = epoch, plan
        return self._plan[1]

    def _batches(self) -> list[tuple[Batch, bool]]:
        """This process's share of the next step's batches, and whether it counts."""
        plan = self._epoch(self.where.epoch)
        group = plan[self.where.position : self.where.position + self.settings.accumulate]
        batches = []
        for number, chosen in enumerate(group, self.where.position):
            key = _key(self.settings.seed, "subwords", self.where.epoch, number, self.place.rank)
            share = self.place.share(chosen)
            batch = load_batch(self.corpus, self.corpus.train, share, settings=self.data, key=key)
            batches.append((batch, self.place.counts(chosen)))
        self.where.position += len(group)
        if self.where.position >= len(plan):
            self.where.epoch, self.where.position = self.where.epoch + 1, 0
        return batches

    def _step(self, module: torch.nn.Module, log: Log) -> int:
        """One step; how many target tokens it had."""
        settings, step = self.settings, self.where.step + 1
        epoch, position = self.where.epoch, self.where.position
        batches = self._batches()
        (tokens,) = self.place.total(float(sum(batch.tokens for batch, counts in batches if counts)))
        rate = learning_rate(settings, step, self.where.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad(set_to_none=True)
        entropy = 0.0
        for number, (batch, counts) in enumerate(batches):
            torch.manual_seed(_key(settings.seed, "step", step, number, self.place.rank))
            with self.place.waiting(module, last=number == len(batches) - 1):
                loss = batch_loss(module, _to(batch, self.device), passes=2 if settings.rdrop_weight > 0 else 1)
                # Summed over processes by DDP, which divides by their number: multiplied back here.
                (loss.total * (self.place.world / tokens if counts else 0.0)).backward()  # type: ignore[no-untyped-call]
            entropy += float(loss.cross_entropy) if counts else 0.0
        (entropy,) = self.place.total(entropy)
        limit = settings.clip if settings.clip else math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.objective.parameters(), limit))
        if not (math.isfinite(norm) and math.isfinite(entropy)):
            raise FloatingPointError(self._poisoned(step, epoch, position, batches))
        self.optimiser.step()
        self.where.step = step
        self.where.tokens += int(tokens)
        if self.average is not None:
            self.average.update(self.bundle.model, step)
        self._tell(entropy / tokens, norm, rate, log)
        return int(tokens)

    def _poisoned(self, step: int, epoch: int, position: int, batches: list[tuple[Batch, bool]]) -> str:
        train = self.corpus.train
        numbers = [train.origin(int(number)) + 1 for batch, _ in batches for number in batch.indices]
        first = train.text(int(batches[0][0].indices[0]))[:80]
        return (
            f"the loss is no longer a finite number at step {step:,} (epoch {epoch + 1}, batch {position + 1}; "
            f"examples {', '.join(map(str, numbers[:8]))}{', …' if len(numbers) > 8 else ''}, the first: {first!r}). "
            f"The weights before it are kept: lower the learning_rate in {self.run / 'settings.toml'}, or look at "
            f"these examples, and resume."
        )

    def _tell(self, loss: float, norm: float, rate: float, log: Log) -> None:
        if not self.place.leads:
            return
        seconds = sum(pair[0] for pair in self._recent)
        speed = sum(pair[1] for pair in self._recent) / seconds if seconds else None
        step = self.where.step
        if step % 10 == 0 or step == 1:
            values = {"loss": round(loss, 5), "norm": round(norm, 4), "rate": rate, "tokens": self.where.tokens}
            known = {} if speed is None else {"speed": round(speed)}
            log.write("step", step, **values, **known, seconds=round(self.where.seconds, 2))
        self.reporter.step(step, self.where.steps, loss=loss, speed=speed, left=self._left())

    # --- time ----------------------------------------------------------------------------------------------------

    def _pace(self) -> float:
        """Seconds a step, lately."""
        return sum(pair[0] for pair in self._recent) / max(1, len(self._recent))

    def _left(self) -> float:
        """Seconds until the last step, validations included, or until the minutes are up."""
        remaining = self.where.steps - self.where.step
        left = remaining * self._pace() + remaining / self._validation_interval() * self._validation_seconds
        if self.settings.minutes:
            left = min(left, 60 * self.settings.minutes - self.where.seconds)
        return max(0.0, left)

    def _most_steps(self) -> int:
        epochs = self.settings.epochs
        return min(self.settings.steps, self._steps_of_an_epoch() * epochs if epochs else self.settings.steps)

    def _fit(self) -> None:
        """Plan as many steps as the minutes allow, at the pace of late and of all so far, validations included."""
        assert self.settings.minutes is not None
        lately = self._pace() + self._validation_seconds / self._validation_interval()
        pace = (lately + self.where.seconds / self.where.step) / 2
        room = 60 * self.settings.minutes - self.where.seconds - self._validation_seconds
        self.where.steps = max(self.where.step + 1, min(self._most_steps(), self.where.step + int(room / pace)))

    def _estimate(self) -> None:
        """After the first steps: how long and how much memory; and now and then a plan that fits the minutes."""
        measured = len(self._recent) >= MEASURED
        if self.settings.minutes and measured and (not self.where.estimated or self.where.step % FITTED_EVERY == 0):
            self._fit()
        if self.where.estimated or not measured:
            return
        self.where.estimated = True
        if self.place.leads:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
            self.reporter.tell(
                f"About {readable_time(self._left())} for {self.where.steps:,} steps at most, and "
                f"{memory / 2**30:.1f} GiB of memory at the peak so far."
            )

    # --- judging ---------------------------------------------------------------------------------------------------

    def _validate(self, log: Log) -> None:
        if not self.place.leads:
            return
        began = time.monotonic()
        weights = None if self.average is None else self.average.tensors
        with wearing(self.bundle.model, weights):
            judgement = judge(self.objective, self.predictor, self.corpus, self.settings)
            best = self._rank(judgement)
            keep(self.run, self.bundle, self.corpus, self.where.step)
        self._validation_seconds = time.monotonic() - began
        values = {"loss": round(judgement.loss, 5), "perplexity": round(judgement.perplexity, 4)}
        samples = [asdict(sample) for sample in judgement.samples]
        log.write(
            "validation", self.where.step, **values, measure=judgement.measure, value=judgement.value, samples=samples
        )
        self.reporter.validated(self.where.step, judgement, best=best)
        if self.where.since_best >= self.settings.patience:
            self.reporter.tell(f"{self.settings.patience} validations without a better one: stopping.")
            self.where.done = True

    def _rank(self, judgement: Judgement) -> bool:
        """Keep these weights if they are among the best; whether they are the best."""
        where, step = self.where, self.where.step
        others = [each for each in where.best if each["step"] != step]
        merit = list(judgement.merit)
        best = not others or merit > others[0]["merit"]
        where.since_best = 0 if best else where.since_best + 1
        if len(others) < self.settings.best or merit > others[-1]["merit"]:
            kept: dict[str, Any] = {"step": step, "merit": merit}
            kept["hash"] = self.checkpoints.keep_candidate(step, module_tensors(self.bundle.model))
            others.append(kept)
        where.best = sorted(others, key=lambda each: each["merit"], reverse=True)[: self.settings.best]
        if best:  # an interrupted run can be used as it is
            save_bundle(self.run, self.bundle)
        return best

    def _finish(self, log: Log) -> None:
        """The final model: the best candidate or the mean of the best, whichever validation prefers."""
        steps = [each["step"] for each in self.where.best]
        candidates = [("the best checkpoint", self.checkpoints.candidate(steps[0]))]
        if len(steps) > 1:
            sets = [self.checkpoints.candidate(step) for step in steps]
            candidates.append((f"the mean of the best {len(steps)} checkpoints", mean(sets)))
        judged = []
        for name, tensors in candidates:
            with wearing(self.bundle.model, tensors):
                judged.append((judge(self.objective, self.predictor, self.corpus, self.settings), name, tensors))
        judgement, name, tensors = max(judged, key=lambda each: each[0].merit)
        save_bundle(self.run, self.bundle, tensors)
        copy_tensors_into(self.bundle.model, tensors, "final")
        values = {"loss": round(judgement.loss, 5), "measure": judgement.measure, "value": judgement.value}
        log.write("end", self.where.step, chosen=name, seconds=round(self.where.seconds, 1), **values)
        self.reporter.stop_bar()
        self.reporter.tell(
            f"Kept {name}: validation loss {judgement.loss:.3f}, {judgement.measure} {judgement.value:.2f}."
        )


class _asked_to_stop:  # noqa: N801
    """Ctrl-C and SIGTERM end the run after the step at hand, with a checkpoint; a second one ends it at once."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._before[number] = signal.signal(number, self._ask)
            except ValueError:  # not in the main thread: whoever started it there decides
                continue

    def _ask(self, number: int, frame: Any) -> None:
        if self._trainer._stop_asked:
            raise KeyboardInterrupt
        self._trainer._stop_asked = True
        self._trainer.stopped_by = number

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _key(*parts: object) -> int:
    """63 bits from where the run is."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little") >> 1


def _to(batch: Batch, device: torch.device) -> Batch:
    if device.type == "cpu":
        return batch
    values: dict[str, Any] = {each.name: getattr(batch, each.name) for each in fields(batch)}
    moved: dict[str, Any] = {name: x.to(device) for name, x in values.items() if isinstance(x, torch.Tensor)}
    return Batch(**{**values, **moved})
