"""The pages of the service, and the modules and style sheets they load, each as a separate file.

A file of the package is at /static/ followed by its path in the package, so that relative imports between modules are
the same in a browser and in the source tree.
"""

from collections.abc import Awaitable, Callable
from importlib import resources

from fastapi import FastAPI, Response

from regard.views.html_page import STYLES, fill_template

FOLDERS = ("views/page", "serving/page")
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css"}


def add_to(app: FastAPI) -> None:
    """Register the routes."""
    package = resources.files("regard")
    html = {
        "/": (package / "serving/page/index.html").read_text("utf-8"),
        "/docs": (package / "serving/page/docs.html").read_text("utf-8"),
        "/see": _live_page((package / "serving/page/live.html").read_text("utf-8")),
    }
    for path, content in html.items():
        _add_route(app, path, content, "text/html")
    for folder in FOLDERS:
        for file in (package / folder).iterdir():
            suffix = file.name[file.name.rfind(".") :]
            if suffix in MEDIA_TYPES:
                _add_route(app, f"/static/{folder}/{file.name}", file.read_text("utf-8"), MEDIA_TYPES[suffix])


def _live_page(form: str) -> str:
    """The attention page with a form for texts and files."""
    styles = [f'<link rel="stylesheet" href="/static/views/page/{name}">' for name in STYLES]
    return fill_template(
        head="\n".join([*styles, '<link rel="icon" href="data:,">']),
        form=form,
        scripts='<script type="module" src="/static/serving/page/live.js"></script>',
    )


def _add_route(app: FastAPI, path: str, content: str, media_type: str) -> None:
    app.add_api_route(path, _response(content, media_type), methods=["GET", "HEAD"], include_in_schema=False)


def _response(content: str, media_type: str) -> Callable[[], Awaitable[Response]]:
    async def respond() -> Response:
        return Response(content, media_type=f"{media_type}; charset=utf-8")

    return respond
