"""What a client says in the Postgres wire protocol (version 3): where its messages begin and end.

Bytes go through unchanged. Messages are gathered into segments, each of which ends where the client
hands the turn to the server (Query, FunctionCall, Sync or Flush). A segment that executes something
is a *step*; one that only prepares, or that is start-up chatter of a driver, passes. Statements are
read only as far as that takes; one that cannot be told for chatter is a step.

Source: PostgreSQL documentation, "Frontend/Backend Protocol", Message Formats.

Longer than 250 lines because both directions share the messages' formats.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

__all__ = ["ClientStream", "Segment", "Strange", "question"]

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
LONGEST_STARTUP, LONGEST = 10_000, 0x3FFFFFFF  # Postgres itself accepts no more (pqcomm.h)
Params = tuple[tuple[int, bytes | None], ...]
FRONTEND = frozenset(b"BCDEFHPQSXcdfp")  # the types of message that a client may send

# What passes without the schedule's say: it touches no table and decides nothing.
_CHATTER = re.compile(
    r"""\s*(?:
        (?: BEGIN | START\s+TRANSACTION | SET | RESET | SHOW | DEALLOCATE | DISCARD | CLOSE )\b
      | (?= ;?\s*$ )
      | SELECT\s+(?:pg_catalog\.)?(?:version|current_schema|current_database|set_config
                 |pg_is_in_recovery)\s*\(
      | SELECT\b(?!.*\b(?:pg_\w*advisory\w*|lo_\w+)\s*\()(?:(?!\bFROM\b)[^;])*
                 \bFROM\s+pg_(?:catalog\.pg_)?(?:type|range|attribute|class|namespace|settings)\b
      | WITH\s+RECURSIVE\s+typeinfo_tree\b
      )[^;]*;?\s*$""", re.I | re.X | re.S)
_BEYOND = re.compile(rb"REPEATABLE\\?\s+READ|SERIALIZABLE", re.I)


class Strange(Exception):
    """What came is no message of the protocol."""


@dataclass
class Segment:
    """What a client sends in one turn.

    Args:
        kind: "startup" (packets before the first typed message), "pass" or "step".
        data: the bytes, to be forwarded as they are.
        statements: text of every statement that it executes, in order.
        param_types: per statement, the type OIDs that its Parse named.
        params: per statement, its parameters: format (0 text, 1 binary) and bytes, None for NULL.
        syncs: ReadyForQuery messages that will answer it.
        executes: answers to wait for when nothing but a Flush ends it.
    """

    kind: str
    data: bytes
    statements: list[str] = field(default_factory=list)
    param_types: list[tuple[int, ...]] = field(default_factory=list)
    params: list[Params] = field(default_factory=list)
    syncs: int = 0
    executes: int = 0

    @property
    def text(self) -> str:
        """The statements as one text, as the history shows them."""
        return "; ".join(self.statements)

    @property
    def simple(self) -> bool:
        """Whether it is a Query message: one that needs no Sync."""
        return self.data[:1] == b"Q"

    @property
    def beyond_read_committed(self) -> str:
        """What asks for more than READ COMMITTED: "session", "transaction" or ""."""
        if not _BEYOND.search(self.data):
            return ""
        return "session" if self.kind == "startup" or b"session" in self.data.lower() or (
            b"default_" in self.data) else "transaction"


class ClientStream:
    """Splits what a client sends into segments. Feed it packets of any size.

    Raises:
        Strange: (from `feed`) what came is no message of the protocol.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._started = False
        self._segment = Segment("pass", b"")
        self._prepared: dict[bytes, tuple[str, tuple[int, ...]]] = {}
        self._portals: dict[bytes, tuple[str, tuple[int, ...], Params]] = {}

    def feed(self, data: bytes) -> list[Segment]:
        """Take the next bytes; return the segments that they complete."""
        self._buffer += data
        done = []
        while (segment := self._next()) is not None:
            done.append(segment)
        return done

    def _next(self) -> Segment | None:
        while True:
            head = 5 if self._started else 4
            if len(self._buffer) < head:
                return None
            (length,) = struct.unpack_from("!I", self._buffer, head - 4)
            if self._started:
                fits = 4 <= length <= LONGEST and self._buffer[0] in FRONTEND
            else:
                fits = 8 <= length <= LONGEST_STARTUP
            if not fits:
                raise Strange(bytes(self._buffer[:20]))
            total = length + head - 4
            if len(self._buffer) < total:
                return None
            packet = bytes(self._buffer[:total])
            del self._buffer[:total]
            try:
                segment = self._message(packet) if self._started else self._startup(packet)
            except struct.error:
                raise Strange(packet[:20]) from None
            if segment:
                return segment

    def _startup(self, packet: bytes) -> Segment:
        (code,) = struct.unpack_from("!I", packet, 4)
        if code not in (SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST):
            self._started = True
        return Segment("startup", packet)

    def _message(self, packet: bytes) -> Segment | None:
        kind, body, segment = packet[:1], packet[5:], self._segment
        segment.data += packet
        if kind == b"P":
            name, _, rest = body.partition(b"\0")
            text, _, rest = rest.partition(b"\0")
            (count,) = struct.unpack_from("!H", rest)
            types = struct.unpack_from(f"!{count}I", rest, 2)
            self._prepared[name] = (text.decode(errors="replace"), types)
        elif kind == b"B":
            portal, _, rest = body.partition(b"\0")
            name, _, rest = rest.partition(b"\0")
            self._portals[portal] = *self._prepared.get(name, ("", ())), _params(rest)
        elif kind == b"E":
            self._execute(*self._portals.get(body.partition(b"\0")[0], ("", (), ())))
        elif kind == b"Q":
            self._execute(body.rstrip(b"\0").decode(errors="replace"))
        elif kind == b"F":
            self._execute("function call")
        if kind in (b"Q", b"F", b"S"):
            segment.syncs = 1
        # Password, Terminate and the COPY data of a running COPY go through one by one.
        elif kind not in (b"H", b"p", b"X", b"d", b"c", b"f"):
            return None
        self._segment = Segment("pass", b"")
        if not all(_CHATTER.match(text) for text in segment.statements):
            segment.kind = "step"
        return segment

    def _execute(self, text: str, types: tuple[int, ...] = (), params: Params = ()) -> None:
        self._segment.statements.append(text)
        self._segment.param_types.append(types)
        self._segment.params.append(params)
        self._segment.executes += 1


def _params(body: bytes) -> Params:
    """The parameters in what a Bind says after its names."""
    (count,) = struct.unpack_from("!H", body)
    formats = struct.unpack_from(f"!{count}H", body, 2)
    at = 2 + 2 * count
    (count,) = struct.unpack_from("!H", body, at)
    at += 2
    found = []
    for index in range(count):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        form = formats[index if len(formats) > 1 else 0] if formats else 0
        found.append((form, None if size < 0 else body[at:at + size]))
        at += max(0, size)
    return tuple(found)


def question(sql: str) -> bytes:
    """A statement in messages that leave the client's own statements and portals as they are."""
    name, text = b"lab\0", sql.encode() + b"\0"
    parts = ((b"P", name + text + b"\0\0"), (b"B", name * 2 + b"\0\0" * 3),
             (b"E", name + b"\0" * 4), (b"C", b"P" + name), (b"C", b"S" + name), (b"S", b""))
    return b"".join(kind + struct.pack("!I", len(body) + 4) + body for kind, body in parts)
