"""Messages of the Postgres protocol, put together by hand: for the tests of the wire."""

import struct

USER, CANCEL, SSL, GSS = 196608, 80877102, 80877103, 80877104


def packet(body: bytes) -> bytes:
    """A packet without a type, as a client sends before it has started."""
    return struct.pack("!I", len(body) + 4) + body


def startup(code: int = USER, rest: bytes = b"user\0ana\0database\0lab\0\0") -> bytes:
    """StartupMessage, or with another code SSLRequest, GSSENCRequest or CancelRequest."""
    return packet(struct.pack("!I", code) + rest)


def message(kind: str, body: bytes = b"") -> bytes:
    """A typed message of either side."""
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def query(text: str) -> bytes:
    return message("Q", text.encode() + b"\0")


def parse(text: str, name: bytes = b"", types: tuple[int, ...] = ()) -> bytes:
    oids = struct.pack(f"!H{len(types)}I", len(types), *types)
    return message("P", name + b"\0" + text.encode() + b"\0" + oids)


def bind(name: bytes = b"", portal: bytes = b"") -> bytes:
    return message("B", portal + b"\0" + name + b"\0" + struct.pack("!HHH", 0, 0, 0))


def describe(portal: bytes = b"") -> bytes:
    return message("D", b"P" + portal + b"\0")


def execute(portal: bytes = b"") -> bytes:
    return message("E", portal + b"\0" + struct.pack("!I", 0))


SYNC, FLUSH, TERMINATE = message("S"), message("H"), message("X")


def extended(text: str) -> bytes:
    """A statement as libpq's PQexecParams sends it."""
    return parse(text) + bind() + describe() + execute() + SYNC


def row_description(*columns: tuple[str, int, int]) -> bytes:
    """Columns as (name, type OID, format: 0 text or 1 binary)."""
    fields = b"".join(name.encode() + b"\0" + struct.pack("!IHIhih", 0, 0, oid, 4, -1, form)
                      for name, oid, form in columns)
    return message("T", struct.pack("!H", len(columns)) + fields)


def data_row(*values: bytes | None) -> bytes:
    cells = b"".join(struct.pack("!i", -1) if value is None else
                     struct.pack("!i", len(value)) + value for value in values)
    return message("D", struct.pack("!H", len(values)) + cells)


def complete(tag: str) -> bytes:
    return message("C", tag.encode() + b"\0")


def failure(state: str, text: str, kind: str = "E") -> bytes:
    """ErrorResponse, or with kind N a NoticeResponse."""
    fields = f"SERROR\0VERROR\0C{state}\0M{text}\0\0"
    return message(kind, fields.encode())


def ready(status: str = "I") -> bytes:
    return message("Z", status.encode())


def key_data(pid: int = 4711) -> bytes:
    return message("K", struct.pack("!II", pid, 1))
