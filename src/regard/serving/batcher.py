"""Dynamic batching: requests of many clients share batches.

Each model has a queue. A batch takes texts in order of arrival, as many as have the same options and fit into
`max_batch_characters`; while one batch is predicted, the next one accumulates. A text that fails does not fail its
batch. Texts whose client has disconnected are dropped.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from regard.errors import RegardError
from regard.inference.options import Options
from regard.inference.results import Result

MAX_RETRY_AFTER = 30  # the longest Retry-After, in seconds
MEDIA_SIZE = 500  # what a picture, a recording or a table counts as, in characters
MAX_RUNNING_JOBS = 16  # jobs other than batches, running or waiting

LOGGER = logging.getLogger(__name__)
T = TypeVar("T")


class Overloaded(Exception):  # noqa: N818
    """The queue is full; the client should try again after `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests are waiting")
        self.retry_after = retry_after


class DeadlineExceeded(Exception):  # noqa: N818
    """A request was not finished within its time limit."""


class BatchPredictor(Protocol):
    """The part of a predictor that a batcher uses."""

    def results(self, inputs: Sequence[Any], options: Options) -> list[Result]: ...


def size_of(item: Any) -> int:
    """The size of an input in characters: a constant is added for each text; MEDIA_SIZE for other inputs."""
    return len(item) + 20 if isinstance(item, str) else MEDIA_SIZE


def _failed(text: Any, error: str) -> Result:
    return Result(str(text)[:100], "", 0.0, [], [], error=error)


@dataclass
class Item:
    """One input in the queue."""

    text: Any
    options: Options
    options_key: str  # inputs with the same key may share a batch
    future: "asyncio.Future[Result]"

    @property
    def size(self) -> int:
        """Its share of the max_batch_characters, in characters."""
        return size_of(self.text)


@dataclass
class Counters:
    """Totals since the start, for Prometheus."""

    texts: int = 0
    characters: int = 0
    batches: int = 0
    failed: int = 0
    refused: int = 0
    timed_out: int = 0
    abandoned: int = 0  # their client disconnected


class Batcher:
    """The queue of one model, and the tasks that predict it in batches."""

    def __init__(
        self,
        predictor: BatchPredictor,
        *,
        max_batch_characters: int = 6000,
        max_delay: float = 0.004,
        max_queued_characters: int = 200_000,
        workers: int = 1,
    ) -> None:
        """max_delay: seconds to wait for more texts when a batch is not full."""
        self._predictor = predictor
        self._max_batch_characters, self._max_delay, self._max_queued_characters = (
            max_batch_characters,
            max_delay,
            max_queued_characters,
        )
        self._queue: deque[Item] = deque()
        self._size = 0
        self._arrived = asyncio.Event()
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="predicting")
        self._workers = workers
        self._tasks: list[asyncio.Task[None]] = []
        self._speed = 20_000.0  # characters a second, a moving average
        self._running_jobs = 0  # jobs other than batches, running or waiting
        self.counters = Counters()

    @property
    def queue_length(self) -> int:
        """Texts in the queue."""
        return len(self._queue)

    def start(self) -> None:
        """Start the workers; an event loop must be running."""
        self._tasks = [asyncio.create_task(self._run_worker()) for _ in range(self._workers)]

    async def stop(self) -> None:
        """Stop the workers. Inputs that still wait raise DeadlineExceeded."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for item in self._queue:
            if not item.future.done():
                item.future.set_exception(DeadlineExceeded())
        self._queue.clear()
        self._executor.shutdown(wait=True)

    async def predict(self, texts: Sequence[Any], options: Options, *, seconds: float) -> list[Result]:
        """A result for each text. Raises Overloaded or DeadlineExceeded. Canceling removes the texts from the queue."""
        size = sum(map(size_of, texts))
        # A request larger than the whole queue is accepted if the queue is empty.
        if self._queue and self._size + size > self._max_queued_characters:
            self.counters.refused += len(texts)
            raise Overloaded(min(MAX_RETRY_AFTER, max(1, round(self._size / self._speed))))
        loop = asyncio.get_running_loop()
        options_key = repr(options)
        items = [Item(text, options, options_key, loop.create_future()) for text in texts]
        self._queue.extend(items)
        self._size += size
        self._arrived.set()
        try:
            async with asyncio.timeout(seconds):  # applies to inputs that are being translated, too
                return [await item.future for item in items]
        except TimeoutError:
            self.counters.timed_out += len(items)
            raise DeadlineExceeded from None
        finally:
            for item in items:
                if not item.future.done():
                    item.future.cancel()
                elif not item.future.cancelled():
                    item.future.exception()  # marks it as retrieved: asyncio logs exceptions that are not

    async def run(self, job: Callable[[], T], *, seconds: float) -> T:
        """Run another job with the model, between batches. Raises Overloaded or DeadlineExceeded."""
        if self._running_jobs >= MAX_RUNNING_JOBS:
            self.counters.refused += 1
            raise Overloaded(1)
        self._running_jobs += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, job)
        future.add_done_callback(self._on_job_done)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(future)
        except TimeoutError:
            self.counters.timed_out += 1
            future.cancel()
            raise DeadlineExceeded from None
        except asyncio.CancelledError:
            future.cancel()
            raise

    def _on_job_done(self, future: "asyncio.Future[T]") -> None:
        self._running_jobs -= 1
        if not future.cancelled():
            future.exception()  # marks it as retrieved: its client may have disconnected

    async def _run_worker(self) -> None:
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            if self._size < self._max_batch_characters and self._max_delay:
                await asyncio.sleep(self._max_delay)  # more texts may arrive
            batch = self._next_batch()
            if batch:
                await self._serve_batch(batch)

    def _next_batch(self) -> list[Item]:
        """The oldest input, and those after it that may share its batch."""
        batch: list[Item] = []
        skipped: list[Item] = []
        size = 0
        while self._queue:
            item = self._queue.popleft()
            if item.future.done():
                self.counters.abandoned += 1
                self._size -= item.size
            elif batch and (item.options_key != batch[0].options_key or size + item.size > self._max_batch_characters):
                skipped.append(item)
                if size + item.size > self._max_batch_characters:
                    break
            else:
                batch.append(item)
                size += item.size
        self._queue.extendleft(reversed(skipped))
        self._size -= size
        return batch

    async def _serve_batch(self, batch: list[Item]) -> None:
        loop = asyncio.get_running_loop()
        start = time.monotonic()
        try:
            results = await loop.run_in_executor(self._executor, self._predict_batch, batch)
        except asyncio.CancelledError:
            for item in batch:
                if not item.future.done():
                    item.future.set_exception(DeadlineExceeded())
            raise
        seconds = max(1e-4, time.monotonic() - start)
        self._speed += 0.1 * (sum(item.size for item in batch) / seconds - self._speed)
        self.counters.batches += 1
        for item, result in zip(batch, results, strict=True):
            self.counters.texts += 1
            self.counters.characters += len(item.text) if isinstance(item.text, str) else 0
            self.counters.failed += bool(result.error)
            if not item.future.done():
                item.future.set_result(result)

    def _predict_batch(self, batch: list[Item]) -> list[Result]:
        """Results of a batch, in a worker thread. If it fails, its inputs are predicted one by one."""
        texts, options = [item.text for item in batch], batch[0].options
        try:
            return self._predictor.results(texts, options)
        except RegardError as error:
            if len(batch) == 1:
                return [_failed(texts[0], str(error).rstrip("."))]
        except Exception as error:
            if len(batch) == 1:  # a bug, which must not stop the service
                LOGGER.exception("an input could not be predicted")
                return [_failed(texts[0], f"it could not be predicted; this is a bug ({type(error).__name__})")]
        return [result for item in batch for result in self._predict_batch([item])]
