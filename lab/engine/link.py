"""One connection of a replica through the gate: what it sends is held, released, answered or cut.

Longer than 250 lines because what is sent, held and answered is one state machine.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Collection
from selectors import BaseSelector
from typing import Protocol

from lab.engine.channel import Channel
from lab.engine.protocol import (
    GSS_REQUEST,
    SSL_REQUEST,
    ClientStream,
    Segment,
    Strange,
    question,
)
from lab.engine.replies import Reply, ServerStream, without_binding
from lab.engine.step import Step
from lab.engine.values import columns, read, written
from lab.errors import LabError

__all__ = ["Link", "Step"]

SKIPPED = ("25P02", "skipped: an earlier statement of its pipeline failed")
GONE = ("08006", "the connection was closed")


class Keeper(Protocol):
    """What a link needs of the gate that it belongs to."""

    selector: BaseSelector
    passing: bool
    shown: Collection[str]

    def connect_upstream(self) -> socket.socket: ...
    def finished(self, link: Link, step: Step) -> None: ...
    def forget(self, link: Link) -> None: ...
    def strange(self, link: Link, data: bytes) -> None: ...


class Link:
    """One connection of a replica: the client's socket and the server's.

    Raises:
        OSError: the server cannot be reached.
    """

    def __init__(self, gate: Keeper, replica: str, client: socket.socket) -> None:
        self.gate, self.replica = gate, replica
        self.pid: int | None = None
        self.status = "I"
        self.held: Step | None = None
        self.running: Step | None = None
        self.closed = False
        self.beyond_read_committed: set[str] = set()  # "session", "transaction": who asked for it
        self.asked = False  # the answers to come are to the bench's own question
        self._queue: deque[Segment] = deque()
        self._answers = 0  # ReadyForQuery messages still to come
        self._copying = self._copied = False  # the client sends the data of a COPY; it said the end
        self._unsynced = False  # the client has sent messages that no Sync has ended
        self._skipping = False  # the server skips everything up to the next Sync
        self._column = (0, 0)
        self._shown = {}  # of the result to come: the columns that a reader shall see
        self._from_client, self._from_server = ClientStream(), ServerStream()
        upstream = gate.connect_upstream()
        self._over_tls = isinstance(upstream, ssl.SSLSocket)
        self.client = Channel(gate.selector, client, self._client_sent, self.close)
        self.server = Channel(gate.selector, upstream, self._server_sent, self.close)

    def release(self) -> Step:
        """Let the held step go to the server; returns it."""
        step = self.held
        assert step is not None
        self.held, self.running = None, step
        step.released = time.monotonic()
        step.values = written(step.segment, self.gate.shown)
        step.left = 0 if step.segment.syncs else step.segment.executes
        self._forward(step.segment)
        if self._skipping and not step.segment.syncs:
            step.error = SKIPPED
            self._finish(step)
        return step

    def cut_before(self) -> Step:
        """Break the connection before the held step reaches the server; returns the step."""
        step = self.held
        assert step is not None
        step.released = step.done = time.monotonic()
        step.cut = True
        self.close()
        return step

    @property
    def idle(self) -> bool:
        """Whether nothing is under way on it, not even a transaction."""
        return bool(self.pid) and self.status == "I" and not (
            self.held or self.running or self._answers or self._queue)

    @property
    def between(self) -> bool:
        """Whether the server has answered all that it was sent, so that `ask` disturbs nothing."""
        return not (self.running or self._answers or self._unsynced) and self.status != "E"

    def ask(self, sql: str) -> None:
        """Send a statement of the bench's own, which the client does not see; `asked` meanwhile."""
        self.asked = True
        self._answers += 1
        self.server.send(question(sql))

    def close(self) -> None:
        """Close both sides. What the server has received it still carries out."""
        if not self.closed:
            self.closed, self.asked, self.held = True, False, None
            self.client.end()
            self.server.close()
            self.gate.forget(self)
            if step := self.running:
                step.error = step.error or GONE
                self._finish(step)

    def _client_sent(self, data: bytes) -> None:
        try:
            segments = self._from_client.feed(data)
        except Strange:
            self.gate.strange(self, data)
            self.close()
            return
        for segment in segments:
            self.beyond_read_committed.add(segment.beyond_read_committed)
            if segment.kind == "startup":
                self._startup(segment)
            elif self._copying:
                self._copy(segment)
            else:
                self._queue.append(segment)
        self._advance()

    def _startup(self, segment: Segment) -> None:
        (code,) = struct.unpack_from("!I", segment.data, 4)
        if code in (SSL_REQUEST, GSS_REQUEST):
            self.client.send(b"N")  # the lab's own loopback needs no encryption
        else:
            self.server.send(segment.data)

    def _copy(self, segment: Segment) -> None:
        """Data of a COPY, and what ends it: in the extended protocol that is a second Sync.

        The first one, which came with the COPY itself, is skipped by the server.
        """
        self.server.send(segment.data)
        kind, step = segment.data[:1], self.running
        if kind in (b"c", b"f"):
            self._copied = True
            self._copying = not (step and step.segment.simple)
        elif kind == b"S" and (self._copied or (step and step.error)):
            self._copying = False

    def _advance(self) -> None:
        while self._queue and not (self.held or self.running or self._answers or self.closed):
            segment = self._queue.popleft()
            if segment.kind == "step" and not self._skipping:
                self.held = Step(segment, in_transaction=self.status != "I")
                if self.gate.passing:
                    self.release()
            else:
                self._forward(segment)

    def _forward(self, segment: Segment) -> None:
        self._answers += segment.syncs
        self._unsynced = not segment.syncs
        self.server.send(segment.data)

    def _server_sent(self, data: bytes) -> None:
        replies = self._from_server.feed(data)
        if not (self.asked or (self.running and self.running.cut)):
            self.client.send(without_binding(data) if self._over_tls and not self.pid else data)
        for reply in replies:
            self._note(reply)
        self._advance()

    def _note(self, reply: Reply) -> None:
        kind, step = reply.kind, self.running
        if kind == b"K":
            self.pid = reply.pid
        elif kind == b"Z":
            self.status = reply.status
            self._copying = self._skipping = self.asked = False
            self._answers = max(0, self._answers - 1)
            if step and step.segment.syncs:
                self._finish(step)
        elif kind in (b"G", b"W"):
            self._copying, self._copied = True, False
            while self._queue and self._copying:  # asyncpg sends data before it is asked for it
                self._copy(self._queue.popleft())
        elif kind == b"E" and self.asked:
            raise LabError(f"The bench could not set up a session: {reply.error[1]}.",
                           "Report it: this is a fault of the lab.", code=1)
        elif kind == b"E" and not self._answers:
            self._skipping = True
        if step is None:
            return
        if kind == b"T":
            self._column = reply.lone_column
            self._shown = columns(reply.body, self.gate.shown)
        elif kind == b"D":
            if step.value is None and self._column[0]:
                step.value = reply.lone_value(self._column)
            step.values |= read(reply.body, self._shown)
            self._column, self._shown = (0, 0), {}
        elif kind in (b"C", b"E", b"I", b"s"):
            if kind == b"C":
                step.tags.append(reply.tag)
            elif kind == b"E":
                step.error = reply.error
            step.left -= 1
            if not step.segment.syncs and (step.left <= 0 or step.error):
                self._finish(step)

    def _finish(self, step: Step) -> None:
        step.done = time.monotonic()
        self.running = None
        self.gate.finished(self, step)
        if step.cut:
            self.close()
