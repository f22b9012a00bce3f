"""The wire: a proxy between each replica and Postgres that holds statements until their release.

It knows the framing of the protocol (`lab.engine.protocol`), not its meaning: bytes go through as
they came. Two answers are the gate's own: it declines encryption, which its loopback does not need,
and leaves out the login methods that need it. One thread, one loop: the caller pumps it
(`Gate.pump`) and looks at the links between pumps.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import struct
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from lab.engine import target
from lab.engine.channel import Channel
from lab.engine.http_link import HttpLink
from lab.engine.link import Link, Step
from lab.engine.outside_link import OutsideLink
from lab.engine.protocol import SSL_REQUEST
from lab.engine.redis_link import RedisLink
from lab.errors import LabError

__all__ = ["Gate"]


class Gate:
    """The proxy: an address per replica, their connections, and the loop that moves the bytes.

    Args:
        url: Postgres URL of the database that the replicas shall reach (with password).

    While `passing` is true nothing is held: statements are only noted. `on_done` is called as steps
    finish, `on_close` as connections end. Of the columns named in `shown`, the values that are read
    and written are noted as well. `odd` says which replica sent what is no message of the
    protocol; its connection is closed then.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.selector = selectors.DefaultSelector()
        self.links: list[Link | OutsideLink] = []
        self.passing = False
        self.shown: Collection[str] = ()
        self.odd = ""
        self.on_done: Callable[[Link, Step], None] = lambda link, step: None
        self.on_close: Callable[[Link], None] = lambda link: None
        self._of: dict[str, list[Link | OutsideLink]] = {}
        self._server = target.parse(url)
        self._addresses: dict[tuple[str, str], tuple[str, int]] = {}
        self._listeners: list[socket.socket] = []

    def listen(self, on_accept: Callable[[socket.socket], object]) -> tuple[str, int]:
        """Open a loopback port; `on_accept` gets each new connection. Returns host and port."""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self._listeners.append(listener)
        self.selector.register(listener, selectors.EVENT_READ, on_accept)
        return listener.getsockname()[:2]

    def database_url(self, replica: str) -> str:
        """The DATABASE_URL through which this replica, and only it, reaches the database."""
        host, port = self._address(replica, "", lambda sock: Link(self, replica, sock))
        parts = {name: value for name, value in self._server.items()
                 if not name.startswith(("ssl", "gss", "host", "channel_binding"))}
        return target.url_for(parts | {"host": host, "port": str(port)}, parts.get("dbname", ""))

    def outside_url(self, replica: str, upstream: str, name: str) -> str:
        """The URL through which this replica, and only it, reaches a server that is no Postgres.

        Its requests are steps, as statements are: "POST http://NAME/path", "SET NAME://KEY".

        Args:
            replica: its letter.
            upstream: URL of the server, http:// or redis://.
            name: what the server is called in a step.
        """
        url = urlsplit(upstream)
        kind = {"http": HttpLink, "redis": RedisLink}[url.scheme]
        host, port = self._address(
            replica, name, lambda sock: kind(self, replica, sock, upstream, name))
        return f"{url.scheme}://{host}:{port}{url.path}"

    def connect_upstream(self) -> socket.socket:
        """A connection to the server itself, over TLS where the URL's sslmode asks and it can."""
        host, port = self._server.get("host", "127.0.0.1"), int(self._server.get("port", 5432))
        mode = self._server.get("sslmode", "prefer")
        if host.startswith("/"):
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(f"{host}/.s.PGSQL.{port}")
            return sock
        sock = socket.create_connection((host, port), timeout=10)
        near = host in ("127.0.0.1", "localhost")
        if mode in ("disable", "allow") or (mode == "prefer" and near):
            return sock
        sock.sendall(struct.pack("!II", 8, SSL_REQUEST))
        if sock.recv(1) == b"S":
            context = ssl.create_default_context()
            context.check_hostname = mode == "verify-full"
            if mode not in ("verify-ca", "verify-full"):
                context.verify_mode = ssl.CERT_NONE
            return context.wrap_socket(sock, server_hostname=host)
        if mode == "prefer":
            return sock
        raise LabError(f"The server at {host}:{port} has no TLS, which sslmode={mode} asks for.",
                       "Use sslmode=prefer in DATABASE_URL, or turn TLS on in the server.")

    def pump(self, timeout: float) -> bool:
        """Move bytes that come within `timeout` seconds; False if none came."""
        ready = self.selector.select(timeout)
        for key, events in ready:
            if isinstance(key.data, Channel):
                if key.data.sock.fileno() >= 0:
                    key.data.ready(events)
            else:
                sock, _ = key.fileobj.accept()
                key.data(sock)
        return bool(ready)

    def of(self, replica: str) -> list[Link]:
        """The open links of a replica, oldest first."""
        return list(self._of.get(replica, ()))

    def finished(self, link: Link, step: Step) -> None:
        """A step on this link has had its last answer."""
        self.on_done(link, step)

    def forget(self, link: Link) -> None:
        """A link was closed."""
        self.links.remove(link)
        if link in self._of.get(link.replica, ()):  # it may have closed before it was filed
            self._of[link.replica].remove(link)
        self.on_close(link)

    def strange(self, link: Link, data: bytes) -> None:
        """What came on this link is no message of the protocol."""
        what = link.protocol if isinstance(link, OutsideLink) else "Postgres message"
        self.odd = self.odd or f"Replica {link.replica} sent what is no {what}: {data[:20]!r}"

    def close(self) -> None:
        """Close every link and every port."""
        for link in list(self.links):
            link.close()
        for listener in self._listeners:
            self.selector.unregister(listener)
            listener.close()
        self.selector.close()

    def _address(self, replica: str, name: str,
                 link: Callable[[socket.socket], Link | OutsideLink]) -> tuple[str, int]:
        """Where a replica connects to for what is called `name`; opened when it is first asked."""
        if (replica, name) not in self._addresses:
            self._addresses[replica, name] = self.listen(lambda sock: self._accept(sock, link))
        return self._addresses[replica, name]

    def _accept(self, sock: socket.socket,
                link: Callable[[socket.socket], Link | OutsideLink]) -> None:
        try:
            made = link(sock)
            self.links.append(made)
            self._of.setdefault(made.replica, []).append(made)
        except OSError:
            sock.close()  # the client sees a refused connection, as it would without the lab
