"""The values that a statement read or wrote, of the columns that a stage shows its reader."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Mapping

from lab.engine.protocol import Segment
from lab.engine.replies import BOOL, INTEGERS

__all__ = ["columns", "read", "written"]

Value = bool | int | str
Column = tuple[int, int]  # type OID and format: 0 text, 1 binary

_SET = re.compile(r"\bSET\b(.*?)(?:\b(?:WHERE|FROM|RETURNING)\b|$)", re.I | re.S)


def columns(description: bytes, shown: Collection[str]) -> dict[int, tuple[str, Column]]:
    """The shown columns of a result: position -> name, type and format.

    Args:
        description: body of a RowDescription.
        shown: names of the columns that matter.
    """
    found, at = {}, 2
    for position in range(struct.unpack_from("!H", description)[0] if shown else 0):
        end = description.index(b"\0", at)
        if (name := description[at:end].decode(errors="replace")) in shown:
            (oid,) = struct.unpack_from("!I", description, end + 7)
            found[position] = name, (oid, description[end + 18])
        at = end + 19
    return found


def read(row: bytes, wanted: Mapping[int, tuple[str, Column]]) -> dict[str, Value]:
    """The wanted values of a row, the body of a DataRow."""
    found, at = {}, 2
    for position in range(struct.unpack_from("!H", row)[0]):
        (size,) = struct.unpack_from("!i", row, at)
        at += 4
        if position in wanted:
            name, column = wanted[position]
            found[name] = _value(None if size < 0 else row[at:at + size], *column)
        at += max(0, size)
    return {name: value for name, value in found.items() if value is not None}


def written(segment: Segment, shown: Collection[str]) -> dict[str, Value]:
    """What a lone statement's SET takes from its parameters, where it is a shown column's value.

    "SET use_count = $1" writes a value that the client has worked out; "SET use_count = use_count
    + $1" writes one that only the server knows.
    """
    if not shown or len(segment.statements) != 1 or not (
            part := _SET.search(segment.statements[0])):
        return {}
    found = {}
    for name, number in re.findall(r'"?(\w+)"?\s*=\s*\$(\d+)\b(?!\s*[-+*/|])', part[1]):
        at = int(number) - 1
        if name in shown and at < len(segment.params[0]):
            types = segment.param_types[0]
            form, raw = segment.params[0][at]
            found[name] = _value(raw, types[at] if at < len(types) else 0, form)
    return {name: value for name, value in found.items() if value is not None}


def _value(raw: bytes | None, oid: int, form: int) -> Value | None:
    """A value for the eye; None where it is of a type that is not read in its binary format."""
    if raw is None:
        return "NULL"
    if oid == BOOL:
        return raw in (b"t", b"\1")
    if form:
        return int.from_bytes(raw, "big", signed=True) if oid in INTEGERS else None
    text = raw.decode(errors="replace")
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text
