"""Around every request: hosts, sizes, headers, log lines."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from regard.serving.limits import Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


DRAINED = 4 << 20  # bytes
PATIENCE = 2.0  # seconds for what nobody will look at


class TooLarge(Exception):  # noqa: N818
    """A body over its limit."""


class Slow(Exception):  # noqa: N818
    """A body that does not come."""


class Guard:
    """The outermost layer."""

    def __init__(
        self,
        app: App,
        *,
        limits: Limits,
        hosts: tuple[str, ...],
        origins: tuple[str, ...] = (),
        log: Callable[[str], None] | None = None,
        seen: Callable[[str, int, float], None] = lambda path, status, seconds: None,
    ) -> None:
        self._app, self._limits, self._hosts, self._origins = app, limits, hosts, origins
        self._log, self._seen = log, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *self._added(message, headers)]}
            await send(message)

        try:
            if not self._known(headers.get("host", "")):
                await _refuse(answer, 421, "this service does not go by that name.")
            elif self._declared(headers) > self._limit(scope):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(_drain(receive), PATIENCE)
                await _refuse(answer, 413, f"the body is over {self._limit(scope):,} bytes.")
            elif scope["method"] == "OPTIONS" and headers.get("origin") in self._origins:
                await answer({"type": "http.response.start", "status": 204, "headers": []})
                await answer({"type": "http.response.body", "body": b""})
            else:
                await self._within(scope, receive, answer)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "other")
            self._seen(route, status, seconds)
            if self._log is not None:
                # JSON escapes every control character: no request can write a line of its own.
                line = {"method": scope["method"][:10], "path": scope["path"][:200], "status": status}
                self._log(json.dumps({**line, "ms": round(1000 * seconds, 1)}))

    async def _within(self, scope: Scope, receive: Receive, answer: Send) -> None:
        read = 0
        begun = whole = False
        until = time.monotonic() + self._limits.seconds

        async def counted() -> Message:
            nonlocal read, whole
            try:  # once all is there, what comes next is that the client leaves
                message = await (receive() if whole else asyncio.wait_for(receive(), until - time.monotonic()))
            except TimeoutError:
                raise Slow from None
            whole = whole or not message.get("more_body")
            read += len(message.get("body", b""))
            if read > self._limit(scope):
                raise TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await answer(message)

        try:
            await self._app(scope, counted, noted)
        except TooLarge:
            if not begun:
                await _refuse(answer, 413, f"the body is over {self._limit(scope):,} bytes.")
        except Slow:
            if not begun:
                await _refuse(answer, 408, f"the body did not come within {self._limits.seconds:g} seconds.")

    def _limit(self, scope: Scope) -> int:
        return self._limits.file if scope["path"] in ("/v1/file", "/v1/read", "/v1/look") else self._limits.body

    @staticmethod
    def _declared(headers: dict[str, str]) -> int:
        given = headers.get("content-length", "0")
        return int(given[:16]) if given.isascii() and given.isdigit() else 0

    def _known(self, host: str) -> bool:
        if "*" in self._hosts:
            return True
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        return name.lower().rstrip(".") in self._hosts

    def _added(self, message: Message, headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
        own = {name.decode("latin1").lower() for name, _ in message.get("headers", [])}
        added = {name: value for name, value in HEADERS.items() if name not in own}
        origin = headers.get("origin", "")
        if origin and origin in self._origins:
            added |= {
                "access-control-allow-origin": origin,
                "access-control-allow-headers": "authorization, content-type",
                "access-control-allow-methods": "GET, POST",
                "vary": "origin",
                "cross-origin-resource-policy": "cross-origin",
            }
        return [(name.encode("latin1"), value.encode("latin1")) for name, value in added.items()]


async def _drain(receive: Receive) -> None:
    """Read some of what nobody will look at: many clients listen only when they have said all."""
    read = 0
    while read < DRAINED:
        message = await receive()
        read += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return


async def _refuse(answer: Send, status: int, why: str) -> None:
    body = json.dumps({"error": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await answer({"type": "http.response.start", "status": status, "headers": headers})
    await answer({"type": "http.response.body", "body": body})
