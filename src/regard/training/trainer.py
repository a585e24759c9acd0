"""The training loop: steps, validations, checkpoints. A resumed run ends with the same bits as an uninterrupted one.

No random state is kept between steps. The plan of batches depends on (seed, epoch), and before each of a step's
batches PyTorch's generator is seeded from (seed, step, batch, process), so dropout, sampled attention and subword
sampling depend only on the position in the run.
"""

import hashlib
import math
import resource
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import Batch, load_batch, plan_batches
from regard.data.batch_plan import default_batch_tokens
from regard.data.corpus import Corpus
from regard.data.settings import DataSettings
from regard.errors import RegardError
from regard.loading import predictor_from_bundle
from regard.runs.bundle import Bundle, copy_tensors_into, module_tensors, save_bundle
from regard.training.attention_history import save_attention
from regard.training.checkpoints import Checkpoint, Checkpoints
from regard.training.distributed import DistributedContext
from regard.training.early_stopping import EarlyStopping
from regard.training.interrupt_signal import InterruptSignal
from regard.training.objective import Objective, batch_loss
from regard.training.reporting import Log, Reporter, format_duration
from regard.training.schedule import learning_rate
from regard.training.settings import TrainingSettings
from regard.training.validation import ValidationResult, validate
from regard.training.weight_averaging import MovingAverage, mean_weights, temporary_weights

ESTIMATE_AFTER = 20  # steps after which the first estimate of time and memory is made
SPEED_WINDOW = 50  # steps that the speed is averaged over
REFIT_INTERVAL = 50  # steps between plans that fit the minutes


@dataclass
class TrainingState:
    """The state of a run but its tensors. Saved with every checkpoint, so the names of its fields are stored."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    steps: int = 0  # in total, as planned
    estimated: bool = False  # whether the first estimate was reported
    tokens: int = 0
    seconds: float = 0.0
    since_best: int = 0
    best: list[dict[str, Any]] = field(default_factory=list)  # best first: step, sort_key, hash
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
        distributed: DistributedContext | None = None,
        data: DataSettings | None = None,
    ) -> None:
        self.settings, self.corpus, self.bundle, self.run = settings, corpus, bundle, run
        self.reporter, self.distributed = reporter, distributed or DistributedContext()
        self.data = data or DataSettings()
        self.predictor = predictor_from_bundle(bundle)
        self.objective = Objective(bundle.model, settings, self.predictor.task.loss)
        self.device = next(bundle.model.parameters()).device
        self.optimizer = self._build_optimizer()
        self.average = MovingAverage(bundle.model, settings.ema_decay) if settings.ema_decay else None
        self.checkpoints = Checkpoints(run)
        self.state = TrainingState()
        self._plan: tuple[int, list[NDArray[np.int64]]] | None = None
        self.tokens = settings.batch_tokens or default_batch_tokens(int(corpus.train.target_lengths.sum()))
        self._recent: deque[tuple[float, int]] = deque(maxlen=SPEED_WINDOW)
        self._validation_seconds = 0.0
        self.early_stopping = EarlyStopping(settings.patience)
        self.interrupt_signal = InterruptSignal()

    def _build_optimizer(self) -> torch.optim.AdamW:
        parameters = dict(self.objective.named_parameters())
        matrices = [parameter for parameter in parameters.values() if parameter.ndim > 1]
        vectors = [parameter for parameter in parameters.values() if parameter.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": self.settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},  # no weight decay for biases and norms
        ]
        return torch.optim.AdamW(groups, lr=0.0, betas=self.settings.betas, eps=1e-9, fused=True)

    # --- saving and resuming -----------------------------------------------------------------------------------

    def resume(self) -> bool:
        """Load the newest undamaged checkpoint. Returns whether there is one."""
        checkpoint = self.checkpoints.load_newest(self.reporter.print_line)
        if checkpoint is None:
            return False
        try:
            copy_tensors_into(self.objective, checkpoint.groups["weights"], "its checkpoint")
        except RegardError as error:
            raise RegardError(f"{self.run}: settings.toml is no longer the one it was trained with: {error}") from None
        parameters = dict(self.objective.named_parameters())
        for name, parameter in parameters.items():
            moments = checkpoint.groups["optimizer"]
            self.optimizer.state[parameter] = {
                "step": moments[f"{name}.step"].clone(),
                "exp_avg": moments[f"{name}.exp_avg"].to(parameter.device),
                "exp_avg_sq": moments[f"{name}.exp_avg_sq"].to(parameter.device),
            }
        if self.average is not None:
            self.average.tensors = checkpoint.groups["average"]
        self.state = TrainingState(**checkpoint.state)
        return True

    def extend(self) -> None:
        """Continue a run with other settings of steps or minutes: they are planned anew."""
        self.state.steps, self.state.estimated, self.state.done, self.state.since_best = 0, False, False, 0

    def _save(self) -> None:
        if not self.distributed.is_main_process:
            return
        parameters = dict(self.objective.named_parameters())
        moments = {
            f"{name}.{key}": value
            for name, parameter in parameters.items()
            for key, value in self.optimizer.state[parameter].items()
        }
        groups = {"weights": module_tensors(self.objective), "optimizer": moments}
        if self.average is not None:
            groups["average"] = self.average.tensors
        self.checkpoints.save(Checkpoint(self.state.step, groups, asdict(self.state)))

    # --- the loop ----------------------------------------------------------------------------------------------

    def train(self, log: Log) -> TrainingState:
        """Train until the limit of steps, epochs, minutes or patience is reached, or a signal requests to stop."""
        module = self.distributed.wrap_ddp(self.objective)
        self.objective.train()
        if not self.state.steps:
            self.state.steps = self._max_steps()
        interval = self._validation_interval()
        start, seconds_before = time.monotonic(), self.state.seconds
        with self.interrupt_signal:
            while not self.state.done and self.state.step < self.state.steps:
                step_start = time.monotonic()
                tokens = self._step(module, log)
                self._recent.append((time.monotonic() - step_start, tokens))
                self.state.seconds = seconds_before + time.monotonic() - start
                self._update_estimate()
                out_of_time = self.settings.minutes and self.state.seconds >= 60 * self.settings.minutes
                last = self.state.step >= self.state.steps or bool(out_of_time)
                if self.state.step % interval == 0 or last:
                    self._validate(log)
                decision = self.distributed.broadcast(
                    {"stop": self.interrupt_signal.received, "done": self.state.done or last, "steps": self.state.steps}
                )
                self.state.steps, self.state.done = decision["steps"], decision["done"]
                save = self.settings.save_every and self.state.step % self.settings.save_every == 0
                if decision["stop"] or decision["done"] or self.state.step % interval == 0 or save:
                    self.state.seconds = seconds_before + time.monotonic() - start
                    self._save()
                if decision["stop"] and not self.state.done:
                    break
        if self.state.done and self.distributed.is_main_process:
            self._save_final_model(log)
        return self.state

    def _steps_per_epoch(self) -> int:
        return max(1, math.ceil(len(self._epoch_batches(self.state.epoch)) / self.settings.gradient_accumulation))

    def _validation_interval(self) -> int:
        return self.settings.validate_every or max(200, self._steps_per_epoch())

    def _epoch_batches(self, epoch: int) -> list[NDArray[np.int64]]:
        if self._plan is None or self._plan[0] != epoch:
            plan = plan_batches(
                self.corpus, self.corpus.train, tokens=self.tokens, seed=self.settings.seed, epoch=epoch
            )
            self._plan = epoch, plan
        return self._plan[1]

    def _next_batches(self) -> list[tuple[Batch, bool]]:
        """This process's shard of each batch of the next step, and whether the shard contributes to the loss."""
        plan = self._epoch_batches(self.state.epoch)
        group = plan[self.state.position : self.state.position + self.settings.gradient_accumulation]
        batches = []
        for number, indices in enumerate(group, self.state.position):
            seed = _derive_seed(self.settings.seed, "subwords", self.state.epoch, number, self.distributed.rank)
            shard = self.distributed.shard(indices)
            batch = load_batch(self.corpus, self.corpus.train, shard, settings=self.data, key=seed)
            batches.append((batch, self.distributed.has_own_examples(indices)))
        self.state.position += len(group)
        if self.state.position >= len(plan):
            self.state.epoch, self.state.position = self.state.epoch + 1, 0
        return batches

    def _step(self, module: torch.nn.Module, log: Log) -> int:
        """Take one step. Returns its number of target tokens."""
        settings, step = self.settings, self.state.step + 1
        epoch, position = self.state.epoch, self.state.position
        batches = self._next_batches()
        own_tokens = sum(batch.tokens for batch, contributes in batches if contributes)
        (tokens,) = self.distributed.all_reduce_sum(float(own_tokens))
        rate = learning_rate(settings, step, self.state.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        cross_entropy = 0.0
        for number, (batch, contributes) in enumerate(batches):
            torch.manual_seed(_derive_seed(settings.seed, "step", step, number, self.distributed.rank))
            with self.distributed.gradient_sync(module, last=number == len(batches) - 1):
                loss = batch_loss(module, _to_device(batch, self.device), passes=2 if settings.rdrop_weight > 0 else 1)
                # Summed over processes by DDP, which divides by their number: multiplied back here.
                scale = self.distributed.world_size / tokens if contributes else 0.0
                (loss.total * scale).backward()  # type: ignore[no-untyped-call]
            cross_entropy += float(loss.cross_entropy) if contributes else 0.0
        (cross_entropy,) = self.distributed.all_reduce_sum(cross_entropy)
        limit = settings.max_grad_norm if settings.max_grad_norm else math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.objective.parameters(), limit))
        if not (math.isfinite(norm) and math.isfinite(cross_entropy)):
            raise FloatingPointError(self._nonfinite_message(step, epoch, position, batches))
        self.optimizer.step()
        self.state.step = step
        self.state.tokens += int(tokens)
        if self.average is not None:
            self.average.update(self.bundle.model, step)
        self._report_step(cross_entropy / tokens, norm, rate, log)
        return int(tokens)

    def _nonfinite_message(self, step: int, epoch: int, position: int, batches: list[tuple[Batch, bool]]) -> str:
        train = self.corpus.train
        numbers = [train.origin(int(number)) + 1 for batch, _ in batches for number in batch.indices]
        first = train.text(int(batches[0][0].indices[0]))[:80]
        return (
            f"the loss is no longer a finite number at step {step:,} (epoch {epoch + 1}, batch {position + 1}; "
            f"examples {', '.join(map(str, numbers[:8]))}{', …' if len(numbers) > 8 else ''}, the first: {first!r}). "
            f"The weights before it are kept: lower the learning_rate in {self.run / 'settings.toml'}, or look at "
            f"these examples, and resume."
        )

    def _report_step(self, loss: float, norm: float, rate: float, log: Log) -> None:
        if not self.distributed.is_main_process:
            return
        seconds = sum(pair[0] for pair in self._recent)
        speed = sum(pair[1] for pair in self._recent) / seconds if seconds else None
        step = self.state.step
        if step % 10 == 0 or step == 1:
            values = {
                "loss": round(loss, 5),
                "grad_norm": round(norm, 4),
                "learning_rate": rate,
                "tokens": self.state.tokens,
            }
            known = {} if speed is None else {"tokens_per_second": round(speed)}
            log.write("step", step, **values, **known, seconds=round(self.state.seconds, 2))
        self.reporter.report_step(
            step, self.state.steps, loss=loss, speed=speed, remaining_seconds=self._remaining_seconds()
        )

    # --- time ----------------------------------------------------------------------------------------------------

    def _seconds_per_step(self) -> float:
        """The mean of recent steps."""
        return sum(pair[0] for pair in self._recent) / max(1, len(self._recent))

    def _remaining_seconds(self) -> float:
        """Until the last step, including validations, or until the limit of minutes."""
        remaining = self.state.steps - self.state.step
        validations = remaining / self._validation_interval()
        seconds = remaining * self._seconds_per_step() + validations * self._validation_seconds
        if self.settings.minutes:
            seconds = min(seconds, 60 * self.settings.minutes - self.state.seconds)
        return max(0.0, seconds)

    def _max_steps(self) -> int:
        epochs = self.settings.epochs
        return min(self.settings.steps, self._steps_per_epoch() * epochs if epochs else self.settings.steps)

    def _fit_steps_to_minutes(self) -> None:
        """Plan as many steps as fit into the minutes, at the mean of the recent and the overall speed."""
        assert self.settings.minutes is not None
        recent = self._seconds_per_step() + self._validation_seconds / self._validation_interval()
        per_step = (recent + self.state.seconds / self.state.step) / 2
        available = 60 * self.settings.minutes - self.state.seconds - self._validation_seconds
        self.state.steps = max(self.state.step + 1, min(self._max_steps(), self.state.step + int(available / per_step)))

    def _update_estimate(self) -> None:
        """Report time and memory after the first steps; fit the number of steps to the minutes from time to time."""
        measured = len(self._recent) >= ESTIMATE_AFTER
        if self.settings.minutes and measured and (not self.state.estimated or self.state.step % REFIT_INTERVAL == 0):
            self._fit_steps_to_minutes()
        if self.state.estimated or not measured:
            return
        self.state.estimated = True
        if self.distributed.is_main_process:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
            self.reporter.print_line(
                f"About {format_duration(self._remaining_seconds())} for {self.state.steps:,} steps at most, and "
                f"{memory / 2**30:.1f} GiB of memory at the peak so far."
            )

    # --- validation ------------------------------------------------------------------------------------------------

    def _validate(self, log: Log) -> None:
        if not self.distributed.is_main_process:
            return
        start = time.monotonic()
        weights = None if self.average is None else self.average.tensors
        with temporary_weights(self.bundle.model, weights):
            result = validate(self.objective, self.predictor, self.corpus, self.settings)
            best = self._update_best(result)
            save_attention(self.run, self.bundle, self.corpus, self.state.step)
        self._validation_seconds = time.monotonic() - start
        values = {"loss": round(result.loss, 5), "perplexity": round(result.perplexity, 4)}
        samples = [asdict(sample) for sample in result.samples]
        log.write("validation", self.state.step, **values, metric=result.metric, value=result.value, samples=samples)
        self.reporter.report_validation(self.state.step, result, best=best)
        if self.early_stopping.update(self.state, improved=best):
            self.reporter.print_line(f"{self.settings.patience} validations without a better one: stopping.")
            self.state.done = True

    def _update_best(self, result: ValidationResult) -> bool:
        """Save the weights if they are among the best. Returns whether they are the best."""
        state, step = self.state, self.state.step
        entries = [entry for entry in state.best if entry["step"] != step]
        sort_key = list(result.sort_key)
        is_best = not entries or sort_key > entries[0]["sort_key"]
        if len(entries) < self.settings.averaged_checkpoints or sort_key > entries[-1]["sort_key"]:
            digest = self.checkpoints.save_best_weights(step, module_tensors(self.bundle.model))
            entries.append({"step": step, "sort_key": sort_key, "hash": digest})
        state.best = sorted(entries, key=lambda entry: entry["sort_key"], reverse=True)[
            : self.settings.averaged_checkpoints
        ]
        if is_best:  # so that an interrupted run can be used
            save_bundle(self.run, self.bundle)
        return is_best

    def _save_final_model(self, log: Log) -> None:
        """Save the best weights or the mean of the best weights, whichever validates better."""
        steps = [each["step"] for each in self.state.best]
        candidates = [("the best checkpoint", self.checkpoints.load_best_weights(steps[0]))]
        if len(steps) > 1:
            weights = [self.checkpoints.load_best_weights(step) for step in steps]
            candidates.append((f"the mean of the best {len(steps)} checkpoints", mean_weights(weights)))
        results = []
        for name, tensors in candidates:
            with temporary_weights(self.bundle.model, tensors):
                results.append((validate(self.objective, self.predictor, self.corpus, self.settings), name, tensors))
        result, name, tensors = max(results, key=lambda each: each[0].sort_key)
        save_bundle(self.run, self.bundle, tensors)
        copy_tensors_into(self.bundle.model, tensors, "final")
        values = {"loss": round(result.loss, 5), "metric": result.metric, "value": result.value}
        log.write("end", self.state.step, selected_weights=name, seconds=round(self.state.seconds, 1), **values)
        self.reporter.stop_bar()
        self.reporter.print_line(f"Kept {name}: validation loss {result.loss:.3f}, {result.metric} {result.value:.2f}.")


def _derive_seed(*values: object) -> int:
    """A seed of 63 bits, the hash of these values."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=8).digest(), "little") >> 1


def _to_device(batch: Batch, device: torch.device) -> Batch:
    if device.type == "cpu":
        return batch
    values: dict[str, Any] = {each.name: getattr(batch, each.name) for each in fields(batch)}
    moved: dict[str, Any] = {name: x.to(device) for name, x in values.items() if isinstance(x, torch.Tensor)}
    return Batch(**{**values, **moved})
