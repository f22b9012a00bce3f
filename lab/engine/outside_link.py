"""One connection of a replica through the gate to what is no Postgres: each request is a step.

It is held, released and cut as a statement is. What a request and an answer look like is for the
protocol's own link to say (`HttpLink`, `RedisLink`); bytes go through as they came.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from dataclasses import dataclass
from urllib.parse import urlsplit

from lab.engine.channel import Channel
from lab.engine.link import Keeper, Step
from lab.engine.protocol import Segment

__all__ = ["Answer", "OutsideLink", "Request"]

GONE = ("hung up", "the connection was closed without an answer")


@dataclass
class Request:
    """What a client asked: its short form, its bytes; `quiet` if it is the client's own affair.

    What is quiet is neither held nor recorded, as the start of a connection to Postgres is not.
    """

    text: str
    data: bytes
    quiet: bool = False


@dataclass
class Answer:
    """What came back: its short form, the error that it is, and whether the connection ends."""

    text: str
    error: tuple[str, str] | None = None
    closes: bool = False


class OutsideLink:
    """One connection: the client's socket and the server's. It is held and cut as a `Link` is.

    Args:
        gate: whose loop it is on.
        replica: the letter of the replica that connected.
        client: its socket.
        upstream: URL of the server.
        name: what the server is called in the text of a step.

    Raises:
        OSError: the server cannot be reached.
    """

    protocol = ""  # what its requests are called where one is none
    port = 0  # where the server listens if its URL does not say

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
        self._queue: deque[Request] = deque()
        self._quiet = False  # what is running is quiet
        where = urlsplit(upstream)
        server = socket.create_connection((where.hostname, where.port or self.port), timeout=10)
        self.client = Channel(gate.selector, client, self._client_sent, self.close)
        self.server = Channel(gate.selector, server, self._server_sent, self._server_ended)

    def requests(self, data: bytes) -> list[Request]:
        """The requests that these bytes of the client complete; ValueError if they are none."""
        raise NotImplementedError

    def answers(self, data: bytes, ended: bool) -> list[Answer]:
        """The answers that these bytes of the server complete; `ended`: no more will come."""
        raise NotImplementedError

    def release(self) -> Step:
        """Let the held request go to the server; returns it."""
        step = self.held
        assert step is not None
        self.held, self.running = None, step
        step.released = time.monotonic()
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
            self._queue += self.requests(data)
            self._advance()
        except ValueError:
            self.gate.strange(self, data)
            self.close()

    def _advance(self) -> None:
        if self._queue and not (self.held or self.running or self.closed):
            request = self._queue.popleft()
            self.held = Step(Segment("request", request.data, [request.text], [()], syncs=1))
            self._quiet = request.quiet
            if self.gate.passing or request.quiet:
                self.release()

    def _server_sent(self, data: bytes, ended: bool = False) -> None:
        if data and not (self.running and self.running.cut):
            self.client.send(data)
        for answer in self.answers(data, ended):
            if step := self.running:
                step.error = step.error or answer.error
                step.tags.append(answer.text)
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
        if not self._quiet:
            self.gate.finished(self, step)
        if step.cut:
            self.close()
