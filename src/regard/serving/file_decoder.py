"""Uploaded files are decoded in threads, few at a time."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from regard.errors import RegardError
from regard.serving.http_requests import RequestError

MAX_DECODING = 2  # files that are decoded at the same time: each may briefly take some hundred megabytes
MAX_WAITING = 64  # files that wait to be decoded, each of them in memory
T = TypeVar("T")


class FileDecoder:
    """Decodes files in threads, MAX_DECODING at a time; refuses a file if too many wait, or if it takes too long."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._slots, self._waiting = seconds, asyncio.Semaphore(MAX_DECODING), 0

    async def run(self, decode: Callable[[], T]) -> T:
        """The result of `decode`, called in a thread. Raises RequestError."""
        if self._waiting >= MAX_WAITING:
            raise RequestError(429, "too many files are waiting; try again later.", {"Retry-After": "2"})
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._slots.acquire()
                future = asyncio.ensure_future(asyncio.to_thread(decode))
                future.add_done_callback(self._release)  # a thread cannot be canceled: its slot is free when it ends
                return await asyncio.shield(future)
        except TimeoutError:
            raise RequestError(503, "it took too long; try again later.", {"Retry-After": "5"}) from None
        except RegardError as error:
            raise RequestError(400, str(error).removeprefix("the file: ")) from None
        finally:
            self._waiting -= 1

    def _release(self, future: "asyncio.Future[Any]") -> None:
        self._slots.release()
        if not future.cancelled():
            future.exception()  # marks it as retrieved: its client may have disconnected
