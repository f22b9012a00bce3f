"""What a server says in the Postgres wire protocol (version 3), as far as it is noted.

Source: PostgreSQL documentation, "Frontend/Backend Protocol", Message Formats.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["Reply", "ServerStream", "without_binding"]

BOOL, INTEGERS = 16, (20, 21, 23)  # type OIDs (pg_type.dat)


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
                body = bytes(buffer[at + 5:at + 1 + length])
                replies.append(Reply(bytes(buffer[at:at + 1]), body))
            at += 1 + length
        del buffer[:at]
        return replies


def without_binding(data: bytes) -> bytes:
    """An authentication request of a server behind TLS, as a client without TLS can take it.

    Args:
        data: what the server sent. If it starts with AuthenticationSASL, the mechanisms that bind
            to the TLS channel (-PLUS) are left out: libpq refuses them where there is no TLS.
    """
    if data[:1] != b"R" or data[5:9] != b"\0\0\0\x0a":
        return data
    (length,) = struct.unpack_from("!I", data, 1)
    kept = [name for name in data[9:1 + length].split(b"\0")
            if name and not name.endswith(b"-PLUS")]
    body = data[5:9] + b"".join(name + b"\0" for name in kept) + b"\0"
    return b"R" + struct.pack("!I", len(body) + 4) + body + data[1 + length:]
