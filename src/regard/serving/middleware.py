"""The outermost ASGI middleware: allowed hosts, body limits, security and CORS headers, log lines."""

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

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


MAX_DRAINED = 4 << 20  # bytes of a rejected body that are read
DRAIN_TIMEOUT = 2.0  # seconds


class BodyTooLarge(Exception):  # noqa: N818
    """A body over its size limit."""


class BodyTimeout(Exception):  # noqa: N818
    """A body that was not received within the time limit."""


class RequestMiddleware:
    """Wraps the whole application."""

    def __init__(
        self,
        app: App,
        *,
        limits: Limits,
        hosts: tuple[str, ...],
        origins: tuple[str, ...] = (),
        log: Callable[[str], None] | None = None,
        observe: Callable[[str, int, float], None] = lambda route, status, seconds: None,
    ) -> None:
        """log: called with a line of JSON per request. observe: called with the route, status and seconds."""
        self._app, self._limits, self._hosts, self._origins = app, limits, hosts, origins
        self._log, self._observe = log, observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *self._added_headers(message, headers)]}
            await send(message)

        try:
            if not self._is_allowed_host(headers.get("host", "")):
                await _send_error(send_with_headers, 421, "this service does not go by that name.")
            elif self._content_length(headers) > self._body_limit(scope):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(_drain_body(receive), DRAIN_TIMEOUT)
                await _send_error(send_with_headers, 413, f"the body is over {self._body_limit(scope):,} bytes.")
            elif scope["method"] == "OPTIONS" and headers.get("origin") in self._origins:
                await send_with_headers({"type": "http.response.start", "status": 204, "headers": []})
                await send_with_headers({"type": "http.response.body", "body": b""})
            else:
                await self._run_with_limits(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            self._observe(route, status, seconds)
            if self._log is not None:
                # JSON escapes every control character: a request cannot forge a log line.
                line = {"method": scope["method"][:10], "path": scope["path"][:200], "status": status}
                self._log(json.dumps({**line, "ms": round(1000 * seconds, 1)}))

    async def _run_with_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = 0
        response_started = body_complete = False
        deadline = time.monotonic() + self._limits.seconds

        async def receive_limited() -> Message:
            nonlocal received, body_complete
            try:  # after the whole body, the next message is the disconnect of the client: no time limit for that
                message = await (
                    receive() if body_complete else asyncio.wait_for(receive(), deadline - time.monotonic())
                )
            except TimeoutError:
                raise BodyTimeout from None
            body_complete = body_complete or not message.get("more_body")
            received += len(message.get("body", b""))
            if received > self._body_limit(scope):
                raise BodyTooLarge
            return message

        async def send_tracked(message: Message) -> None:
            nonlocal response_started
            response_started = response_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive_limited, send_tracked)
        except BodyTooLarge:
            if not response_started:
                await _send_error(send, 413, f"the body is over {self._body_limit(scope):,} bytes.")
        except BodyTimeout:
            if not response_started:
                await _send_error(send, 408, f"the body did not come within {self._limits.seconds:g} seconds.")

    def _body_limit(self, scope: Scope) -> int:
        return (
            self._limits.file
            if scope["path"] in ("/v1/file", "/v1/predict-file", "/v1/attend-file")
            else self._limits.body
        )

    @staticmethod
    def _content_length(headers: dict[str, str]) -> int:
        value = headers.get("content-length", "0")
        return int(value[:16]) if value.isascii() and value.isdigit() else 0

    def _is_allowed_host(self, host: str) -> bool:
        if "*" in self._hosts:
            return True
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        return name.lower().rstrip(".") in self._hosts

    def _added_headers(self, message: Message, headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
        present = {name.decode("latin1").lower() for name, _ in message.get("headers", [])}
        added = {name: value for name, value in SECURITY_HEADERS.items() if name not in present}
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


async def _drain_body(receive: Receive) -> None:
    """Read and discard the beginning of a rejected body: many clients read the response only after sending all."""
    received = 0
    while received < MAX_DRAINED:
        message = await receive()
        received += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return


async def _send_error(send: Send, status: int, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
