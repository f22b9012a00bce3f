"""A socket on the bench's loop: non-blocking, with an outgoing buffer."""

from __future__ import annotations

import selectors
import socket
import ssl
from collections.abc import Callable

__all__ = ["Channel"]

CHUNK = 1 << 16


class Channel:
    """One socket.

    Args:
        selector: the loop that it is registered with.
        sock: a connected socket.
        on_data: gets what arrives.
        on_close: called when the other side is gone.
    """

    def __init__(self, selector: selectors.BaseSelector, sock: socket.socket,
                 on_data: Callable[[bytes], None], on_close: Callable[[], None]) -> None:
        self.sock, self.on_data, self.on_close = sock, on_data, on_close
        self._selector = selector
        self._out = bytearray()
        self._ending = False
        sock.setblocking(False)
        if sock.family != getattr(socket, "AF_UNIX", None):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(sock, selectors.EVENT_READ, self)

    def send(self, data: bytes) -> None:
        """Send now what the socket takes, and the rest when it is ready."""
        if self._out or self.sock.fileno() < 0:
            self._out += data
            return
        try:
            sent = self.sock.send(data)
        except (BlockingIOError, ssl.SSLWantWriteError):
            sent = 0
        except OSError:
            self.lost()
            return
        if sent < len(data):
            self._out += data[sent:]
            self._selector.modify(self.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def ready(self, events: int) -> None:
        """Called by the loop."""
        if events & selectors.EVENT_WRITE:
            data = bytes(self._out)
            self._out.clear()
            self._selector.modify(self.sock, selectors.EVENT_READ, self)
            self.send(data)
            if self._ending and not self._out:
                self.close()
        if events & selectors.EVENT_READ and self.sock.fileno() >= 0:
            self._read()

    def _read(self) -> None:
        while True:
            try:
                data = self.sock.recv(CHUNK)
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            except OSError:
                data = b""
            if not data:
                self.lost()
                return
            self.on_data(data)
            # TLS may hold decrypted bytes that the selector cannot see.
            if not (isinstance(self.sock, ssl.SSLSocket) and self.sock.fileno() >= 0
                    and self.sock.pending()):
                return

    def end(self) -> None:
        """Close it once everything is sent; what still arrives is thrown away."""
        self.on_data = self.on_close = lambda *_: None
        self._ending = True
        if not self._out:
            self.close()

    def lost(self) -> None:
        """The other side is gone."""
        if self.close():
            self.on_close()

    def close(self) -> bool:
        """Close the socket; False when it was closed already."""
        if self.sock.fileno() < 0:
            return False
        self._selector.unregister(self.sock)
        self.sock.close()
        return True
