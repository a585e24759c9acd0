"""Dynamic batching of many clients' texts: order, budget, failures, overload, timeouts, disconnects."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from regard.inference.options import Options
from regard.inference.results import Result
from regard.serving.batcher import Batcher, DeadlineExceeded, Overloaded

FAST, SLOW = Options(beam=1), Options(beam=5)


class FakePredictor:
    """Uppercases texts, fails on texts with "boom", records its batches; `go` blocks it until it is set."""

    def __init__(self, seconds: float = 0.01) -> None:
        self.seconds = seconds
        self.batches: list[list[str]] = []
        self.go = threading.Event()
        self.go.set()

    def results(self, texts: Sequence[str], options: Options) -> list[Result]:
        self.go.wait(10)
        self.batches.append(list(texts))
        time.sleep(self.seconds)
        if any("boom" in text for text in texts):
            raise RuntimeError("boom")
        return [Result(text, text.upper(), 0.0, [], []) for text in texts]


Scenario = Callable[[Batcher, FakePredictor], Coroutine[None, None, None]]


def run(scenario: Scenario, *, blocked: bool = True, **settings: Any) -> None:
    """Run a scenario with a batcher of these settings. blocked: no batch is translated until `predictor.go` is set."""

    async def run_scenario() -> None:
        predictor = FakePredictor()
        batcher = Batcher(predictor, **settings)
        batcher.start()
        if blocked:
            predictor.go.clear()
        await asyncio.wait_for(scenario(batcher, predictor), 30)
        await batcher.stop()

    asyncio.run(run_scenario())


async def translate(batcher: Batcher, *texts: str, options: Options = FAST, seconds: float = 5) -> list[str]:
    return [result.text or result.error for result in await batcher.predict(texts, options, seconds=seconds)]


def test_concurrent_clients_share_batches_and_get_their_own_results() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        answers = await asyncio.gather(*(translate(batcher, f"text {n}", f"more {n}") for n in range(100)))
        assert answers == [[f"TEXT {n}", f"MORE {n}"] for n in range(100)]
        assert len(predictor.batches) < 20
        assert batcher.counters.texts == 200
        assert batcher.counters.batches == len(predictor.batches)

    run(scenario, blocked=False, max_batch_characters=2000)


def test_batches_respect_the_budget_and_have_equal_options() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        waiting = [
            asyncio.create_task(translate(batcher, f"{n} " + "x" * 70, options=FAST if n % 2 else SLOW))
            for n in range(12)
        ]
        await asyncio.sleep(0.05)
        predictor.go.set()
        answers = await asyncio.gather(*waiting)
        assert [answer[0].split()[0] for answer in answers] == [str(n) for n in range(12)]
        for batch in predictor.batches:
            assert sum(len(text) + 20 for text in batch) <= 300
            assert len({int(text.split()[0]) % 2 for text in batch}) == 1
        assert len(predictor.batches) == 4
        # A text over the budget is translated alone.
        assert (await translate(batcher, "y" * 900))[0] == "Y" * 900

    run(scenario, max_batch_characters=300)


def test_failing_text_does_not_fail_its_batch() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        waiting = [asyncio.create_task(translate(batcher, text)) for text in ("a", "boom", "b", "c")]
        await asyncio.sleep(0.05)
        predictor.go.set()
        answers = await asyncio.gather(*waiting)
        assert answers == [["A"], ["it could not be predicted; this is a bug (RuntimeError)"], ["B"], ["C"]]
        assert batcher.counters.failed == 1

    run(scenario)


def test_full_queue_raises_overloaded_with_a_retry_time() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        first = asyncio.create_task(translate(batcher, "x" * 100))
        await asyncio.sleep(0.05)  # it is being translated
        waiting = [asyncio.create_task(translate(batcher, "y" * 400)) for _ in range(2)]
        await asyncio.sleep(0.02)
        with pytest.raises(Overloaded) as overloaded:
            await translate(batcher, "z" * 400)
        assert 1 <= overloaded.value.retry_after <= 30
        assert batcher.counters.refused == 1
        predictor.go.set()
        await asyncio.gather(first, *waiting)
        assert await translate(batcher, "z" * 2000) == ["Z" * 2000], "an empty queue accepts a request over its size"

    run(scenario, max_queued_characters=1000)


def test_deadline_applies_to_running_batches() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        with pytest.raises(DeadlineExceeded):
            await translate(batcher, "slow", seconds=0.1)  # it is being translated, and blocked
        predictor.go.set()
        assert await translate(batcher, "next") == ["NEXT"]

    run(scenario)


def test_expired_texts_are_never_translated() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        first = asyncio.create_task(translate(batcher, "first"))
        await asyncio.sleep(0.05)
        expired = asyncio.create_task(translate(batcher, "late", seconds=0.05))
        await asyncio.sleep(0.1)
        predictor.go.set()
        assert await first == ["FIRST"]
        with pytest.raises(DeadlineExceeded):
            await expired
        assert batcher.counters.timed_out == 1
        assert not any("late" in batch for batch in predictor.batches)

    run(scenario)


def test_texts_of_disconnected_clients_are_not_translated() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        first = asyncio.create_task(translate(batcher, "first"))
        await asyncio.sleep(0.05)
        canceled = asyncio.create_task(translate(batcher, "gone", "gone too"))
        stays = asyncio.create_task(translate(batcher, "stays"))
        await asyncio.sleep(0.02)
        canceled.cancel()
        predictor.go.set()
        assert await first == ["FIRST"]
        assert await stays == ["STAYS"]
        assert predictor.batches == [["first"], ["stays"]]
        assert batcher.counters.abandoned == 2
        assert batcher._size == 0, "the size of the queue is updated"

    run(scenario)


def test_stop_raises_deadline_exceeded_for_waiting_texts() -> None:
    async def scenario(batcher: Batcher, predictor: FakePredictor) -> None:
        tasks = [asyncio.create_task(translate(batcher, "x")) for _ in range(3)]
        await asyncio.sleep(0.05)
        more = asyncio.create_task(translate(batcher, "y"))
        await asyncio.sleep(0.01)
        predictor.go.set()
        await batcher.stop()
        for task in (*tasks, more):
            with pytest.raises(DeadlineExceeded):
                await task

    run(scenario)
