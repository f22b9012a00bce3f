"""The framing of the Postgres wire protocol (version 3): where messages begin and end, and no more.

Bytes go through unchanged. A client's messages are gathered into segments, each of which ends where
the client hands the turn to the server (Query, FunctionCall, Sync or Flush). A segment that executes
something is a *step*; one that only prepares, or that is start-up chatter of a driver, passes.
Statements are read only as far as that takes; one that cannot be told for chatter is a step.

Source: PostgreSQL documentation, "Frontend/Backend Protocol", Message Formats.

Longer than 250 lines because both directions share the messages' formats.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

__all__ = ["ClientStream", "Reply", "Segment", "ServerStream", "Strange", "question",
           "without_binding"]

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
BOOL, INTEGERS = 16, (20, 21, 23)  # type OIDs (pg_type.dat)
LONGEST_STARTUP, LONGEST = 10_000, 0x3FFFFFFF  # Postgres itself accepts no more (pqcomm.h)
FRONTEND = frozenset(b"BCDEFHPQSXcdfp")  # the types of message that a client may send

# What passes without the schedule's say: it touches no table and decides nothing.
_CHATTER = re.compile(
    r"""\s*(?: (?: BEGIN | START\s+TRANSACTION | SET | RESET | SHOW | DEALLOCATE | DISCARD | CLOSE )\b
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
        syncs: ReadyForQuery messages that will answer it.
        executes: answers to wait for when nothing but a Flush ends it.
    """

    kind: str
    data: bytes
    statements: list[str] = field(default_factory=list)
    param_types: list[tuple[int, ...]] = field(default_factory=list)
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
        """What may get a higher isolation level than Postgres's default: "session", "transaction", ""."""
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
        self._portals: dict[bytes, tuple[str, tuple[int, ...]]] = {}

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
            self._portals[portal] = self._prepared.get(rest.partition(b"\0")[0], ("", ()))
        elif kind == b"E":
            text, types = self._portals.get(body.partition(b"\0")[0], ("", ()))
            self._execute(text, types)
        elif kind == b"Q":
            self._execute(body.rstrip(b"\0").decode(errors="replace"), ())
        elif kind == b"F":
            self._execute("function call", ())
        if kind in (b"Q", b"F", b"S"):
            segment.syncs = 1
        # Password, Terminate and the COPY data of a running COPY go through one by one.
        elif kind not in (b"H", b"p", b"X", b"d", b"c", b"f"):
            return None
        self._segment = Segment("pass", b"")
        if not all(_CHATTER.match(text) for text in segment.statements):
            segment.kind = "step"
        return segment

    def _execute(self, text: str, types: tuple[int, ...]) -> None:
        self._segment.statements.append(text)
        self._segment.param_types.append(types)
        self._segment.executes += 1


@dataclass(frozen=True)
class Reply:
    """A message of the server that the bench takes note of: its type byte and its body."""

    kind: bytes
    body: bytes

    @property
    def error(self) -> tuple[str, str]:
        """SQLSTATE and message text of an ErrorResponse or NoticeResponse."""
        fields = {part[:1]: part[1:].decode(errors="replace")
                  for part in self.body.split(b"\0") if part}
        return fields.get(b"C", "?????"), fields.get(b"M", "")

    @property
    def tag(self) -> str:
        """Command tag of a CommandComplete, such as "INSERT 0 1"."""
        return self.body.rstrip(b"\0").decode(errors="replace")

    @property
    def status(self) -> str:
        """Transaction status of a ReadyForQuery: I idle, T in a transaction, E in a failed one."""
        return self.body.decode()

    @property
    def pid(self) -> int:
        """Process id of the backend in a BackendKeyData."""
        return struct.unpack_from("!I", self.body)[0]

    @property
    def lone_column(self) -> tuple[int, int]:
        """Type OID and format (0 text, 1 binary) of a RowDescription's only column, or zeros."""
        if struct.unpack_from("!H", self.body)[0] != 1:
            return 0, 0
        at = self.body.index(b"\0", 2)
        return struct.unpack_from("!I", self.body, at + 7)[0], self.body[at + 18]

    def lone_value(self, column: tuple[int, int]) -> bool | int | None:
        """The only column of a DataRow, if it is a boolean or an integer."""
        (size,) = struct.unpack_from("!i", self.body, 2)
        raw = self.body[6:6 + size]
        if size < 0 or column[0] not in (BOOL, *INTEGERS):
            return None
        if column[0] == BOOL:
            return raw in (b"t", b"\1")
        return int.from_bytes(raw, "big", signed=True) if column[1] else int(raw)


class ServerStream:
    """Notes the messages of a server. The bytes themselves are forwarded by the caller."""

    NOTED = frozenset(b"ZCEKITDsGW")

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Reply]:
        """Take the next bytes; return the noted messages that they complete, in order."""
        buffer = self._buffer
        buffer += data
        replies, at, end = [], 0, len(buffer)
        while end - at >= 5:
            (length,) = struct.unpack_from("!I", buffer, at + 1)
            if at + 1 + length > end:
                break
            if buffer[at] in self.NOTED:
                replies.append(Reply(bytes(buffer[at:at + 1]), bytes(buffer[at + 5:at + 1 + length])))
            at += 1 + length
        del buffer[:at]
        return replies


def question(sql: str) -> bytes:
    """A statement in messages that leave the client's own statements and portals as they are."""
    name, text = b"lab\0", sql.encode() + b"\0"
    parts = ((b"P", name + text + b"\0\0"), (b"B", name * 2 + b"\0\0" * 3), (b"E", name + b"\0" * 4),
             (b"C", b"P" + name), (b"C", b"S" + name), (b"S", b""))
    return b"".join(kind + struct.pack("!I", len(body) + 4) + body for kind, body in parts)


def without_binding(data: bytes) -> bytes:
    """An authentication request of a server behind TLS, as a client without TLS can take it.

    Args:
        data: what the server sent. If it starts with AuthenticationSASL, the mechanisms that bind to
            the TLS channel (-PLUS) are left out: libpq refuses them on a connection without TLS.
    """
    if data[:1] != b"R" or data[5:9] != b"\0\0\0\x0a":
        return data
    (length,) = struct.unpack_from("!I", data, 1)
    kept = [name for name in data[9:1 + length].split(b"\0") if name and not name.endswith(b"-PLUS")]
    body = data[5:9] + b"".join(name + b"\0" for name in kept) + b"\0"
    return b"R" + struct.pack("!I", len(body) + 4) + body + data[1 + length:]
