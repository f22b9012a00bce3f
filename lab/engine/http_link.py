"""One HTTP connection of a replica through the gate: each request is a step, as a statement is.

It knows where requests and answers begin and end (RFC 9112, section 6), not what they mean; bytes
go through as they came.
"""

from __future__ import annotations

import re
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lab.engine.channel import Channel
from lab.engine.link import Keeper, Step
from lab.engine.protocol import Segment

__all__ = ["HttpLink"]

GONE = ("hung up", "the connection was closed without an answer")
_HEADERS_END = b"\r\n\r\n"


@dataclass
class Message:
    """A request or an answer: its first line, its bytes, and whether the connection goes on."""

    line: str
    data: bytes
    closes: bool


@dataclass
class Stream:
    """Cuts the bytes of one direction into whole messages.

    Args:
        answers: these are answers: one of a length that is not given goes on until the close.
    """

    answers: bool
    rest: bytes = b""
    bodiless: deque[bool] = field(default_factory=deque)  # of each answer to come: to a HEAD?

    def feed(self, data: bytes, ended: bool = False) -> list[Message]:
        """Add bytes; `ended` says that no more will come. Returns the messages now complete."""
        self.rest += data
        whole = []
        while (end := self.rest.find(_HEADERS_END)) >= 0:
            head, start = self.rest[:end].decode("latin-1"), end + len(_HEADERS_END)
            length = self._length(head, start, ended)
            if length is None:
                break
            line = head.split("\r\n", 1)[0]
            status = line.split(" ")[1] if self.answers else ""
            if not status.startswith("1"):
                if self.answers and self.bodiless:
                    self.bodiless.popleft()
                whole.append(Message(line, self.rest[:start + length],
                                     _header(head, "connection").lower() == "close" or ended))
            self.rest = self.rest[start + length:]
        return whole

    def _length(self, head: str, start: int, ended: bool) -> int | None:
        """How long the body is; None while it is not all there."""
        status = head.split(" ", 2)[1] if self.answers else ""
        if status.startswith("1") or status in ("204", "304") or (
                self.answers and self.bodiless and self.bodiless[0]):
            return 0
        there = len(self.rest) - start
        if "chunked" in _header(head, "transfer-encoding").lower():
            return _chunked(self.rest, start)
        if given := _header(head, "content-length"):
            return int(given) if there >= int(given) else None
        if self.answers:
            return there if ended else None
        return 0


class HttpLink:
    """One connection: the client's socket and the server's. It is held and cut as a `Link` is.

    Args:
        gate: whose loop it is on.
        replica: the letter of the replica that connected.
        client: its socket.
        upstream: URL of the server.
        name: what the server is called in the text of a step, "POST http://NAME/path".

    Raises:
        OSError: the server cannot be reached.
    """

    pid = None  # no backend of Postgres: nothing outlives it, and nobody waits for its locks
    status = "I"
    idle = asked = between = False
    beyond_read_committed: frozenset[str] = frozenset()  # it has no transactions

    def __init__(self, gate: Keeper, replica: str, client: socket.socket, upstream: str,
                 name: str) -> None:
        self.gate, self.replica, self.name = gate, replica, name
        self.held: Step | None = None
        self.running: Step | None = None
        self.closed = False
        self._queue: deque[Message] = deque()
        self._requests, self._answers = Stream(answers=False), Stream(answers=True)
        where = urlsplit(upstream)
        server = socket.create_connection((where.hostname, where.port or 80), timeout=10)
        self.client = Channel(gate.selector, client, self._client_sent, self.close)
        self.server = Channel(gate.selector, server, self._server_sent, self._server_ended)

    def release(self) -> Step:
        """Let the held request go to the server; returns it."""
        step = self.held
        assert step is not None
        self.held, self.running = None, step
        step.released = time.monotonic()
        self._answers.bodiless.append(step.text.startswith("HEAD "))
        self.server.send(step.segment.data)
        return step

    def cut_before(self) -> Step:
        """Break the connection before the held request reaches the server; returns it."""
        step = self.held
        assert step is not None
        step.released = step.done = time.monotonic()
        step.cut = True
        self.close()
        return step

    def close(self) -> None:
        """Close both sides. What the server has received it may still carry out."""
        if not self.closed:
            self.closed, self.held = True, None
            self.client.end()
            self.server.close()
            self.gate.forget(self)
            if step := self.running:
                step.error = step.error or GONE
                self._finish(step)

    def _client_sent(self, data: bytes) -> None:
        try:
            self._queue += self._requests.feed(data)
            self._advance()
        except ValueError:
            self.gate.strange(self, data)
            self.close()

    def _advance(self) -> None:
        if self._queue and not (self.held or self.running or self.closed):
            request = self._queue.popleft()
            method, path, *_ = request.line.split(" ")
            text = f"{method} http://{self.name}{path}"
            self.held = Step(Segment("request", request.data, [text], [()], syncs=1))
            if self.gate.passing:
                self.release()

    def _server_sent(self, data: bytes, ended: bool = False) -> None:
        if data and not (self.running and self.running.cut):
            self.client.send(data)
        for answer in self._answers.feed(data, ended):
            if step := self.running:
                _, status, *reason = answer.line.split(" ", 2)
                said = " ".join([status, *reason])
                if status >= "4":
                    step.error = (status, " ".join(reason))
                step.tags.append(said)
                self._finish(step)
            if answer.closes:
                return self.close()
        return self._advance()

    def _server_ended(self) -> None:
        self._server_sent(b"", ended=True)
        self.close()

    def _finish(self, step: Step) -> None:
        step.done = time.monotonic()
        self.running = None
        self.gate.finished(self, step)
        if step.cut:
            self.close()


def _header(head: str, name: str) -> str:
    found = re.search(rf"^{name}:[ \t]*(.*?)[ \t]*\r?$", head, re.I | re.M)
    return found[1] if found else ""


def _chunked(data: bytes, start: int) -> int | None:
    """How long a chunked body is, its trailer included; None while it is not all there."""
    at = start
    while (line_end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:line_end].split(b";")[0], 16)
        at = line_end + 2
        if size:
            at += size + 2
        else:
            end = data.find(b"\r\n", at)
            return None if end < 0 else end + 2 - start
    return None
