"""`make play`: the page's server, on this machine's loopback only."""

from __future__ import annotations

import argparse
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from lab.errors import LabError
from lab.show.page.desk import ORDERS
from lab.show.page.guard import Guard
from lab.show.page.room import Room
from lab.show.page.view import menu

__all__ = ["application", "serve"]

STATIC = Path(__file__).with_name("static")


def application(room: Room, token: str) -> ASGIApp:
    """The page, its events and its orders; everything else is refused."""

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def stages(request: Request) -> Response:
        return JSONResponse(menu())

    async def events(request: Request) -> Response:
        return StreamingResponse(room.watch(), media_type="text/event-stream")

    async def order(request: Request) -> Response:
        try:
            what = await request.json()
            name = what.pop("order")
            if name not in ORDERS:
                raise KeyError(name)
            version = await room.order(name, what)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise HTTPException(400, "This is no order.") from error
        return Response(status_code=204, headers={"Version": str(version)})

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await room.close()

    return Guard(Starlette(lifespan=life, routes=[
        Route("/", page),
        Route("/stages", stages),
        Route("/events", events),
        Route("/order", order, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]), token)


class _Server(uvicorn.Server):
    """A server that ends its event streams when it is told to end, instead of waiting for them."""

    def __init__(self, config: uvicorn.Config, room: Room) -> None:
        super().__init__(config)
        self._room = room

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._room.end()
        super().handle_exit(sig, frame)


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or "a port is a number up to 65535"
        raise LabError(f"The page cannot have port {port}: {said.split(' (')[0]}.",
                       "Choose another --port, or leave it out: any free one is taken.") from None


def serve(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C; then every process and the database are gone.

    Raises:
        LabError: the port is taken, is not allowed, or is none.
    """
    token = secrets.token_urlsafe(16)
    with _listener(args.port) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/{token}/"
        print(f"Be the scheduler: {url}\nCtrl-C ends it.", flush=True)
        if not args.no_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        room = Room(args.stage or 0)
        config = uvicorn.Config(application(room, token), log_level="warning",
                                timeout_graceful_shutdown=1, server_header=False)
        server = _Server(config, room)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            # The terminal was closed; uvicorn, which does not know of it, ends as at SIGTERM.
            signal.signal(signal.SIGHUP, lambda *_: server.handle_exit(signal.SIGTERM, None))
        server.run(sockets=[listener])
    return 0
