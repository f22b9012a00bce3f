"""One connection of a replica to Redis through the gate: each command is a step.

It knows where commands and replies begin and end (RESP, versions 2 and 3), and of a command its
name, its key and whether it does nothing where the key is there already. Values are not shown: one
may be the token of a lock.
"""

from __future__ import annotations

from lab.engine.outside_link import Answer, OutsideLink, Request

__all__ = ["RedisLink", "split"]

# What a client says of itself before its first command, or asks to see whether anybody is there.
QUIET = ("HELLO", "AUTH", "CLIENT", "SELECT", "PING", "QUIT")
SCRIPTS = ("EVAL", "EVALSHA", "FCALL")  # their key comes after the script and the number of keys
_END = b"\r\n"
_LINES, _TEXTS = b"+-:_#,(", b"$!="
_LISTS = {b"*": 1, b"~": 1, b">": 1, b"%": 2}  # a type -> how many values an entry has


class Refusal(str):
    """An error that Redis answered with."""


class RedisLink(OutsideLink):
    """One connection to Redis; a step reads "SET NX redis://KEY"."""

    protocol = "Redis command"
    port = 6379
    _sent = _received = b""

    def requests(self, data: bytes) -> list[Request]:
        """The commands that these bytes complete; ValueError if they are none."""
        found, self._sent = split(self._sent + data)
        return [_request(words, whole, self.name) for words, whole in found]

    def answers(self, data: bytes, ended: bool) -> list[Answer]:
        """The replies that these bytes complete. What Redis pushes unasked is none."""
        found, self._received = split(self._received + data)
        return [_answer(value) for value, whole in found if whole[:1] != b">"]


def split(data: bytes) -> tuple[list[tuple[object, bytes]], bytes]:
    """The whole values at the beginning of some bytes, each with its own, and the bytes left over.

    Texts are bytes, whatever is given on one line is a str, an int or None, an error is a Refusal.

    Raises:
        ValueError: this is not RESP.
    """
    found, at = [], 0
    while read := _value(data, at):
        value, end = read
        found.append((value, data[at:end]))
        at = end
    return found, data[at:]


def _value(data: bytes, at: int) -> tuple[object, int] | None:
    """The value that begins at `at`, and where it ends; None while it is not all there."""
    kind, line_end = data[at:at + 1], data.find(_END, at)
    if kind and not (kind in _LINES or kind in _TEXTS or kind in _LISTS):
        raise ValueError(kind)
    if line_end < 0:
        return None
    line, end = data[at + 1:line_end].decode("utf-8", "replace"), line_end + len(_END)
    if kind in _LINES:
        value = {b"-": Refusal, b":": int, b"_": lambda nothing: None}.get(kind, str)(line)
        return value, end
    size = int(line)
    if size < 0:
        return None, end
    if kind in _TEXTS:
        text, end = data[end:end + size], end + size + len(_END)
        value = Refusal(text.decode("utf-8", "replace")) if kind == b"!" else text
        return (value, end) if len(data) >= end else None
    values = []
    for _ in range(size * _LISTS[kind]):
        if not (read := _value(data, end)):
            return None
        value, end = read
        values.append(value)
    return values, end


def _request(words: object, data: bytes, server: str) -> Request:
    if not (isinstance(words, list) and words and all(isinstance(word, bytes) for word in words)):
        raise ValueError(words)
    name, *rest = [word.decode("utf-8", "replace") for word in words]
    name = name.upper()
    key = "".join(rest[2:3] if name in SCRIPTS else rest[:1])
    only_if = {word.upper() for word in rest[2:]} & {"NX", "XX"} if name == "SET" else ()
    return Request(" ".join([name, *only_if, f"{server}://{key}"]), data, name in QUIET)


def _answer(value: object) -> Answer:
    if isinstance(value, Refusal):
        code, _, reason = value.partition(" ")
        return Answer(value, (code, reason))
    if isinstance(value, bytes):
        return Answer("a value")
    if isinstance(value, list):
        return Answer(f"{len(value)} values")
    return Answer("nil" if value is None else str(value))
