"""One HTTP connection of a replica through the gate: each request is a step, as a statement is.

It knows where requests and answers begin and end (RFC 9112, section 6), not what they mean; bytes
go through as they came.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from lab.engine.link import Step
from lab.engine.outside_link import Answer, OutsideLink, Request

__all__ = ["HttpLink"]

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


class HttpLink(OutsideLink):
    """One connection to an HTTP server; a step reads "POST http://NAME/path"."""

    protocol = "HTTP request"
    port = 80

    def __init__(self, *args: Any) -> None:
        self._requests, self._answers = Stream(answers=False), Stream(answers=True)
        super().__init__(*args)

    def requests(self, data: bytes) -> list[Request]:
        """The requests that these bytes complete; ValueError if they are none."""
        found = []
        for message in self._requests.feed(data):
            method, path, *_ = message.line.split(" ")
            found.append(Request(f"{method} http://{self.name}{path}", message.data))
        return found

    def release(self) -> Step:
        """Let the held request go to the server; returns it."""
        self._answers.bodiless.append(self.held.text.startswith("HEAD "))
        return super().release()

    def answers(self, data: bytes, ended: bool) -> list[Answer]:
        """The answers that these bytes complete; `ended`: no more will come."""
        found = []
        for message in self._answers.feed(data, ended):
            _, status, *reason = message.line.split(" ", 2)
            found.append(Answer(" ".join([status, *reason]),
                                (status, " ".join(reason)) if status >= "4" else None,
                                message.closes))
        return found


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
