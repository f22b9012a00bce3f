"""One connection of a replica through the gate: what it sends is held, released, answered or cut."""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from dataclasses import dataclass, field
from selectors import BaseSelector
from typing import Protocol

from lab.engine.channel import Channel
from lab.engine.protocol import GSS_REQUEST, SSL_REQUEST, ClientStream, Reply, Segment, ServerStream

__all__ = ["Link", "Step"]

_BOOL, _INTEGERS = 16, (20, 21, 23)


@dataclass
class Step:
    """A statement (or several in one turn) on its way, and what came back.

    Args:
        segment: what the client sent.
        in_transaction: whether its connection was inside a transaction when it was sent.
        released: real time (`time.monotonic`) of its release; None while it is held.
        done: real time of the last answer; None while it is outstanding.
    """

    segment: Segment
    in_transaction: bool = False
    released: float | None = None
    done: float | None = None
    tags: list[str] = field(default_factory=list)
    error: tuple[str, str] | None = None
    value: bool | int | None = None
    cut: bool = False
    left: int = 0

    @property
    def text(self) -> str:
        """The statement's text."""
        return self.segment.text

    @property
    def outcome(self) -> str:
        """In the words of the history."""
        if self.cut:
            return "cut"
        return f"error: {self.error[0]} {self.error[1]}" if self.error else "ok"


class Keeper(Protocol):
    """What a link needs of the gate that it belongs to."""

    selector: BaseSelector
    passing: bool

    def connect_upstream(self) -> socket.socket: ...
    def arrived(self, link: Link) -> None: ...
    def finished(self, link: Link, step: Step) -> None: ...
    def forget(self, link: Link) -> None: ...


class Link:
    """One connection of a replica: the client's socket and the server's."""

    def __init__(self, gate: Keeper, replica: str, client: socket.socket) -> None:
        self.gate, self.replica = gate, replica
        self.pid: int | None = None
        self.status = "I"
        self.held: Step | None = None
        self.running: Step | None = None
        self.closed = False
        self._queue: deque[Segment] = deque()
        self._answers = 0  # ReadyForQuery messages still to come
        self._copying = False
        self._type = 0
        self._from_client, self._from_server = ClientStream(), ServerStream()
        self.client = Channel(gate.selector, client, self._client_sent, self.close)
        self.server = Channel(gate.selector, gate.connect_upstream(), self._server_sent, self.close)

    def release(self) -> Step:
        """Let the held step go to the server; returns it."""
        step = self.held
        assert step is not None
        self.held, self.running = None, step
        step.released = time.monotonic()
        step.left = 0 if step.segment.syncs else step.segment.executes
        self._forward(step.segment)
        return step

    def cut_before(self) -> Step:
        """Break the connection before the held step reaches the server; returns the step."""
        step = self.held
        assert step is not None
        step.released = step.done = time.monotonic()
        step.cut = True
        self.close()
        return step

    def close(self) -> None:
        """Close both sides. What the server has received it still carries out."""
        if not self.closed:
            self.closed = True
            self.held = None
            self.client.close()
            self.server.close()
            self.gate.forget(self)

    def _client_sent(self, data: bytes) -> None:
        for segment in self._from_client.feed(data):
            if segment.kind == "startup":
                self._startup(segment)
            elif self._copying:
                self.server.send(segment.data)
            else:
                self._queue.append(segment)
        self._advance()

    def _startup(self, segment: Segment) -> None:
        (code,) = struct.unpack_from("!I", segment.data, 4)
        if code in (SSL_REQUEST, GSS_REQUEST):
            self.client.send(b"N")  # the lab's own loopback needs no encryption
        else:
            self.server.send(segment.data)

    def _advance(self) -> None:
        while self._queue and not (self.held or self.running or self._answers):
            segment = self._queue.popleft()
            if segment.kind == "step" and not self.gate.passing:
                self.held = Step(segment, in_transaction=self.status != "I")
                self.gate.arrived(self)
            elif segment.kind == "step":
                self.held = Step(segment, in_transaction=self.status != "I")
                self.release()
            else:
                self._forward(segment)

    def _forward(self, segment: Segment) -> None:
        self._answers += segment.syncs
        self.server.send(segment.data)

    def _server_sent(self, data: bytes) -> None:
        replies = self._from_server.feed(data)
        if not (self.running and self.running.cut):
            self.client.send(data)
        for reply in replies:
            self._note(reply)
        self._advance()

    def _note(self, reply: Reply) -> None:
        kind, step = reply.kind, self.running
        if kind == b"K":
            self.pid = reply.pid
        elif kind == b"Z":
            self.status, self._copying = reply.status, False
            self._answers = max(0, self._answers - 1)
            if step and step.segment.syncs:
                self._finish(step)
        elif kind in (b"G", b"W"):
            self._copying = True
        elif step is None:
            return
        elif kind == b"T":
            self._type = reply.lone_type
        elif kind == b"D":
            if step.value is None and self._type in (_BOOL, *_INTEGERS):
                step.value = _value(self._type, reply.lone_value)
            self._type = 0
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


def _value(type_oid: int, raw: bytes | None) -> bool | int | None:
    if raw is None:
        return None
    if type_oid == _BOOL:
        return raw in (b"t", b"\x01")
    return int(raw) if raw.isdigit() else None
