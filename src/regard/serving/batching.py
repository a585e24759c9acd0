"""Requests of many clients, translated together.

A queue for each model. What waits is taken in the order it came, as much as fits a budget of characters and is asked
for with the same options; while one batch is translated, the next one gathers. One text that fails does not take its
batch down. What nobody waits for any more is left out.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from regard.data.media import DecodedMedia
from regard.inference.options import Options
from regard.inference.results import Result

MOST_SECONDS = 30  # that a client is asked to wait
FILE = 500  # characters that a picture or a recording counts as
MOST_RUNNING = 16  # pieces of other work that may wait

T = TypeVar("T")


class Overloaded(Exception):  # noqa: N818
    """The queue is full; `after` seconds later it may not be."""

    def __init__(self, after: int) -> None:
        super().__init__("too many requests are waiting")
        self.after = after


class Late(Exception):  # noqa: N818
    """A request waited longer than it may."""


class Predicts(Protocol):
    """What a batcher needs of a predictor."""

    def results(self, inputs: Sequence[Any], options: Options) -> list[Result]: ...


def size_of(text: str | DecodedMedia) -> int:
    """What a text takes of a budget, in characters; short ones cost something, too, and a file costs much."""
    return FILE if isinstance(text, DecodedMedia) else len(text) + 20


@dataclass
class Item:
    """One text that waits."""

    text: str | DecodedMedia  # or a file that was read
    options: Options
    key: str
    answer: "asyncio.Future[Result]"

    @property
    def size(self) -> int:
        """What it takes of a budget."""
        return size_of(self.text)


@dataclass
class Count:
    """What has happened so far."""

    texts: int = 0
    characters: int = 0
    batches: int = 0
    failed: int = 0
    refused: int = 0
    late: int = 0
    left: int = 0  # nobody waited for them any more


class Batcher:
    """One model's queue."""

    def __init__(
        self,
        predictor: Predicts,
        *,
        budget: int = 6000,
        wait: float = 0.004,
        most_waiting: int = 200_000,
        workers: int = 1,
    ) -> None:
        """budget: characters translated together. wait: seconds for company. most_waiting: characters in the queue."""
        self._predictor = predictor
        self._budget, self._wait, self._most = budget, wait, most_waiting
        self._queue: deque[Item] = deque()
        self._size = 0
        self._arrived = asyncio.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="translating")
        self._workers = workers
        self._tasks: list[asyncio.Task[None]] = []
        self._speed = 20_000.0  # characters a second, as measured lately
        self._running = 0  # other work, under way or waiting
        self.count = Count()

    @property
    def waiting(self) -> int:
        """Texts in the queue."""
        return len(self._queue)

    def start(self) -> None:
        """Begin to work; called with a running loop."""
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._workers)]

    async def stop(self) -> None:
        """Stop working. What still waits is told so."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for item in self._queue:
            if not item.answer.done():
                item.answer.set_exception(Late())
        self._queue.clear()
        self._pool.shutdown(wait=True)

    async def translate(self, texts: Sequence[str | DecodedMedia], options: Options, *, seconds: float) -> list[Result]:
        """A result for each text, or Overloaded, or Late. Cancelling this takes the texts out of the queue."""
        size = sum(map(size_of, texts))
        # A request larger than the queue may still come in when nobody waits.
        if self._queue and self._size + size > self._most:
            self.count.refused += len(texts)
            raise Overloaded(min(MOST_SECONDS, max(1, round(self._size / self._speed))))
        loop = asyncio.get_running_loop()
        key = repr(options)
        items = [Item(text, options, key, loop.create_future()) for text in texts]
        self._queue.extend(items)
        self._size += size
        self._arrived.set()
        try:
            async with asyncio.timeout(seconds):  # even what is being translated is waited for no longer
                return [await item.answer for item in items]
        except TimeoutError:
            self.count.late += len(items)
            raise Late from None
        finally:
            for item in items:
                if not item.answer.done():
                    item.answer.cancel()
                elif not item.answer.cancelled():
                    item.answer.exception()  # looked at, so that nobody complains about the others of a request

    async def run(self, work: Callable[[], T], *, seconds: float) -> T:
        """Some other work of this model's, between batches; Overloaded where too much of it waits, or Late."""
        if self._running >= MOST_RUNNING:
            self.count.refused += 1
            raise Overloaded(1)
        self._running += 1
        doing = asyncio.get_running_loop().run_in_executor(self._pool, work)
        doing.add_done_callback(self._ran)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(doing)
        except TimeoutError:
            self.count.late += 1
            doing.cancel()
            raise Late from None
        except asyncio.CancelledError:
            doing.cancel()
            raise

    def _ran(self, doing: "asyncio.Future[T]") -> None:
        self._running -= 1
        if not doing.cancelled():
            doing.exception()  # looked at: nobody may wait any more

    async def _work(self) -> None:
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            if self._size < self._budget and self._wait:
                await asyncio.sleep(self._wait)  # company may be on its way
            batch = self._take()
            if batch:
                await self._translate(batch)

    def _take(self) -> list[Item]:
        """The oldest that waits, and all that may go with it."""
        batch: list[Item] = []
        kept: list[Item] = []
        size = 0
        while self._queue:
            item = self._queue.popleft()
            if item.answer.done():
                self.count.left += 1
                self._size -= item.size
            elif batch and (item.key != batch[0].key or size + item.size > self._budget):
                kept.append(item)
                if size + item.size > self._budget:
                    break
            else:
                batch.append(item)
                size += item.size
        self._queue.extendleft(reversed(kept))
        self._size -= size
        return batch

    async def _translate(self, batch: list[Item]) -> None:
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        try:
            results = await loop.run_in_executor(self._pool, self._together, batch)
        except asyncio.CancelledError:
            for item in batch:
                if not item.answer.done():
                    item.answer.set_exception(Late())
            raise
        seconds = max(1e-4, time.monotonic() - began)
        self._speed += 0.1 * (sum(item.size for item in batch) / seconds - self._speed)
        self.count.batches += 1
        for item, result in zip(batch, results, strict=True):
            self.count.texts += 1
            self.count.characters += len(item.text) if isinstance(item.text, str) else 0
            self.count.failed += bool(result.error)
            if not item.answer.done():
                item.answer.set_result(result)

    def _together(self, batch: list[Item]) -> list[Result]:
        """In a thread of its own. A text that fails is found by translating them one by one."""
        texts, options = [item.text for item in batch], batch[0].options
        try:
            return self._predictor.results(texts, options)
        except Exception as error:
            if len(batch) == 1:
                return [
                    Result(
                        str(texts[0])[:100],
                        "",
                        0.0,
                        [],
                        [],
                        error=f"it could not be translated ({type(error).__name__})",
                    )
                ]
        return [result for item in batch for result in self._together([item])]
