"""Who may talk to the page's server: a browser of this machine that was given the address."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "refusal"]

# Nothing from elsewhere is loaded, no other page may embed this one, and no link gives it away.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                               "form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Guard:
    """Refuses what does not come from the page itself, before anything else sees it.

    Args:
        app: what is guarded; it finds the path without the token.
        token: has to be the first part of the path.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        why = refusal(Headers(scope=scope), scope["server"][1])
        first, _, rest = scope["path"].lstrip("/").partition("/")
        if not why and not secrets.compare_digest(first.encode(), self.token.encode()):
            why = "Open the address that `make play` printed: it has a key in it."
        if why:
            await PlainTextResponse(why + "\n", 403)(scope, receive, guarded)
        else:
            await self.app({**scope, "path": "/" + rest, "raw_path": b"/" + rest.encode()},
                           receive, guarded)


def refusal(headers: Mapping[str, str], port: int) -> str:
    """Why a request is refused; "" when it is not.

    A page of another origin cannot hide where it comes from (Origin, Sec-Fetch-Site), and a foreign
    name that was made to point at this machine is still in Host.
    """
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
    host = headers.get("host", "")
    if host not in hosts:
        return "This server answers to the names 127.0.0.1 and localhost only."
    if headers.get("origin", f"http://{host}") != f"http://{host}" or (
            headers.get("sec-fetch-site", "none") not in ("none", "same-origin")):
        return "This request comes from another origin."
    return ""
