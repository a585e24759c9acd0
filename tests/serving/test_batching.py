"""Batches of many clients' texts: together, in order, and no one's trouble is another's."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from regard.inference.options import Options
from regard.inference.results import Result
from regard.serving.batching import Batcher, Late, Overloaded

FAST, SLOW = Options(beam=1), Options(beam=5)


class Fake:
    """Says everything in capitals; fails where it is told to; remembers its batches."""

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


Work = Callable[[Batcher, Fake], Coroutine[None, None, None]]


def run(work: Work, *, held: bool = True, **settings: Any) -> None:
    """Some work with a batcher of these settings. `held`: nothing is translated until `fake.go` is set."""

    async def whole() -> None:
        fake = Fake()
        batcher = Batcher(fake, **settings)
        batcher.start()
        if held:
            fake.go.clear()
        await asyncio.wait_for(work(batcher, fake), 30)
        await batcher.stop()

    asyncio.run(whole())


async def asked(batcher: Batcher, *texts: str, options: Options = FAST, seconds: float = 5) -> list[str]:
    return [result.text or result.error for result in await batcher.translate(texts, options, seconds=seconds)]


def test_many_clients_share_batches_and_each_gets_its_own() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        answers = await asyncio.gather(*(asked(batcher, f"text {n}", f"more {n}") for n in range(100)))
        assert answers == [[f"TEXT {n}", f"MORE {n}"] for n in range(100)]
        assert len(fake.batches) < 20
        assert batcher.count.texts == 200
        assert batcher.count.batches == len(fake.batches)

    run(work, held=False, budget=2000)


def test_a_batch_has_a_budget_and_one_kind_of_options() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        waiting = [
            asyncio.create_task(asked(batcher, f"{n} " + "x" * 70, options=FAST if n % 2 else SLOW)) for n in range(12)
        ]
        await asyncio.sleep(0.05)
        fake.go.set()
        answers = await asyncio.gather(*waiting)
        assert [answer[0].split()[0] for answer in answers] == [str(n) for n in range(12)]
        for batch in fake.batches:
            assert sum(len(text) + 20 for text in batch) <= 300
            assert len({int(text.split()[0]) % 2 for text in batch}) == 1
        assert len(fake.batches) == 4
        # A text over the budget is translated alone.
        assert (await asked(batcher, "y" * 900))[0] == "Y" * 900

    run(work, budget=300)


def test_one_that_fails_does_not_take_its_batch_down() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        waiting = [asyncio.create_task(asked(batcher, text)) for text in ("a", "boom", "b", "c")]
        await asyncio.sleep(0.05)
        fake.go.set()
        answers = await asyncio.gather(*waiting)
        assert answers == [["A"], ["it could not be translated (RuntimeError)"], ["B"], ["C"]]
        assert batcher.count.failed == 1

    run(work)


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        first = asyncio.create_task(asked(batcher, "x" * 100))
        await asyncio.sleep(0.05)  # it is being translated
        waiting = [asyncio.create_task(asked(batcher, "y" * 400)) for _ in range(2)]
        await asyncio.sleep(0.02)
        with pytest.raises(Overloaded) as full:
            await asked(batcher, "z" * 400)
        assert 1 <= full.value.after <= 30
        assert batcher.count.refused == 1
        fake.go.set()
        await asyncio.gather(first, *waiting)
        assert await asked(batcher, "z" * 2000) == ["Z" * 2000], "nobody waits: even a large one may come"

    run(work, most_waiting=1000)


def test_what_takes_too_long_is_answered_in_time() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        with pytest.raises(Late):
            await asked(batcher, "slow", seconds=0.1)  # it is being translated, and would be for ever
        fake.go.set()
        assert await asked(batcher, "next") == ["NEXT"]

    run(work)


def test_what_waits_too_long_is_told_and_never_translated() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        first = asyncio.create_task(asked(batcher, "first"))
        await asyncio.sleep(0.05)
        late = asyncio.create_task(asked(batcher, "late", seconds=0.05))
        await asyncio.sleep(0.1)
        fake.go.set()
        assert await first == ["FIRST"]
        with pytest.raises(Late):
            await late
        assert batcher.count.late == 1
        assert not any("late" in batch for batch in fake.batches)

    run(work)


def test_a_client_that_leaves_is_not_translated_for() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        first = asyncio.create_task(asked(batcher, "first"))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(asked(batcher, "gone", "gone too"))
        stays = asyncio.create_task(asked(batcher, "stays"))
        await asyncio.sleep(0.02)
        gone.cancel()
        fake.go.set()
        assert await first == ["FIRST"]
        assert await stays == ["STAYS"]
        assert fake.batches == [["first"], ["stays"]]
        assert batcher.count.left == 2
        assert batcher._size == 0, "nothing is left behind"

    run(work)


def test_what_waits_at_the_end_is_told() -> None:
    async def work(batcher: Batcher, fake: Fake) -> None:
        tasks = [asyncio.create_task(asked(batcher, "x")) for _ in range(3)]
        await asyncio.sleep(0.05)
        more = asyncio.create_task(asked(batcher, "y"))
        await asyncio.sleep(0.01)
        fake.go.set()
        await batcher.stop()
        for task in (*tasks, more):
            with pytest.raises(Late):
                await task

    run(work)
