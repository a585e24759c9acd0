"""regard serve, regard key."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Engine, Precision, Shortlist
from regard.errors import RegardError

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

    from regard.serving.limits import Limits
    from regard.serving.model_pool import ModelPool

LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "serve",
        epilog="\b\nExamples:\n"
        "  regard serve run\n"
        "  regard serve en-de de-en --port 9000\n"
        "  regard key alice >> keys.txt\n"
        "  regard serve run --host 0.0.0.0 --allowed-host translate.example.org --api-keys keys.txt",
    )(serve)
    app.command("key")(key)


Runs = Annotated[list[Path], typer.Argument(help="Trained runs' folders.")]
Host = Annotated[str, typer.Option(help="The address to listen on; by default, only this machine can connect.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")]
AllowedHosts = Annotated[
    list[str] | None, typer.Option(help="A name that this service goes by, beside localhost. May be repeated.")
]
Origins = Annotated[
    list[str] | None, typer.Option(help="A web page that may use it, such as https://example.org. May be repeated.")
]
KeyFile = Annotated[Path | None, typer.Option(help="Ask for a key, one of this file's; see regard key.")]
Log = Annotated[bool, typer.Option("--access-log", help="Write a line for every request.")]


def serve(
    runs: Runs,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    allowed_host: AllowedHosts = None,
    cors_origin: Origins = None,
    api_keys: KeyFile = None,
    engine: Engine = "auto",
    precision: Precision = "auto",
    shortlist: Shortlist = False,
    access_log: Log = False,
) -> None:
    """Predict over HTTP: a page, an API, and what clients of LibreTranslate and DeepL speak."""
    import asyncio

    from regard.runs.folder import open_run
    from regard.serving.api_keys import ApiKeys
    from regard.serving.app import create_app
    from regard.serving.limits import Limits
    from regard.serving.model_pool import ModelPool, check_served
    from regard.tasks.base import task_from_description

    for run in runs:  # a folder that is not a run, or cannot be served, is reported now, not in the background
        check_served(run, task_from_description(open_run(run).description))
    keys = ApiKeys(api_keys)
    is_public = host not in LOCAL
    if is_public and not allowed_host:
        raise RegardError(
            f"--host: {host} lets others in; name this service with --allowed-host (or * for any) and "
            f"require a key with --api-keys."
        )
    limits = Limits()
    hosts = (*LOCAL, *(allowed_host or ()), *([host] if host not in ("0.0.0.0", "::") else []))
    pool = ModelPool(list(runs), limits, engine=engine, precision=precision, shortlist=shortlist)
    app = create_app(
        pool,
        limits=limits,
        api_keys=keys,
        hosts=tuple(each.lower() for each in hosts),
        origins=tuple(cors_origin or ()),
        log=access_log,
    )
    note = "Anybody who can reach it may use it: no API keys are required." if is_public and not keys.required else ""
    asyncio.run(_run_server(app, pool, limits, host, port, note))
    if pool.load_error:
        raise RegardError(pool.load_error)


async def _run_server(app: "ASGIApp", pool: "ModelPool", limits: "Limits", host: str, port: int, note: str) -> None:
    """Serve until interrupted, or until a model cannot be loaded."""
    import asyncio

    import uvicorn

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        limit_concurrency=limits.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=60,
        server_header=False,
        http="h11",  # the faster httptools takes headers of any size
        h11_max_incomplete_event_size=32 << 10,
    )
    server = uvicorn.Server(config)

    async def stop_if_models_fail() -> None:
        while not pool.ready and not pool.load_error:
            await asyncio.sleep(0.05)
        server.should_exit = bool(pool.load_error)

    sockets = [_listening_socket(host, port)]
    address = sockets[0].getsockname()
    url_host = f"[{address[0]}]" if ":" in address[0] else address[0]
    typer.echo(f"http://{url_host}:{address[1]}/  (Ctrl-C stops it)", err=True)
    if note:
        typer.echo(note, err=True)
    watcher = asyncio.create_task(stop_if_models_fail())
    await server.serve(sockets=sockets)
    watcher.cancel()


def _listening_socket(host: str, port: int) -> "socket.socket":
    """A socket that listens at this address. Raises RegardError if there can be none."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only if the socket names its protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)  # before the address is printed, so that clients can connect at once
    except OSError as error:
        listener.close()
        raise RegardError(
            f"{host} port {port} cannot be listened on ({error.strerror or error}); choose another --port."
        ) from None
    listener.set_inheritable(True)
    return listener


def key(name: Annotated[str, typer.Argument(help="Whose it is; for you to know.")]) -> None:
    """Make an API key: the key is shown once, its line for a file of keys goes to the output."""
    from regard.serving.api_keys import hash_key, new_key

    if not name.strip() or any(letter.isspace() or not letter.isprintable() for letter in name):
        raise RegardError("a key's name is one word.")
    value = new_key()
    typer.echo(f"{name}'s key, shown only now: {value}", err=True)
    typer.echo(f"{name} {hash_key(value)}")
