"""What a statement read and wrote is told of the columns that a stage shows, and of no other."""

import json
import struct

import pytest

from lab.engine.postgres import server as a_server
from lab.engine.protocol import ClientStream
from lab.engine.replies import Reply
from lab.engine.values import columns, read, written
from lab.judge.scenarios import scenarios, theatre
from lab.judge.stage import stage
from lab.show.words import outcome_of
from tests import messages as m

SHOWN = ("use_count", "balance_cents")


def bound(*params: tuple[int, bytes | None], name: bytes = b"") -> bytes:
    """A Bind with parameters as (format, bytes)."""
    formats = struct.pack(f"!H{len(params)}H", len(params), *[form for form, _ in params])
    cells = b"".join(struct.pack("!i", -1) if raw is None else struct.pack("!i", len(raw)) + raw
                     for _, raw in params)
    return m.message("B", b"\0" + name + b"\0" + formats + struct.pack("!H", len(params)) + cells
                     + struct.pack("!H", 0))


def sent(sql: str, *params: tuple[int, bytes | None], types: tuple[int, ...] = ()):
    data = m.startup() + m.parse(sql, types=types) + bound(*params) + m.execute() + m.SYNC
    return ClientStream().feed(data)[-1]


@pytest.mark.parametrize(("param", "oid", "value"), [
    ((0, b"7"), 23, 7), ((0, b"7"), 0, 7), ((1, b"\0\7"), 21, 7), ((1, b"\xff\xd8"), 21, -40),
    ((0, None), 23, "NULL"), ((0, b"open"), 25, "open"), ((1, b"\1"), 16, True)])
def test_a_value_that_the_client_worked_out_is_read_from_its_parameter(param, oid, value):
    segment = sent("UPDATE api_key SET use_count=$1::INTEGER WHERE id = $2", param, (0, b"1"),
                   types=(oid, 23))
    assert written(segment, SHOWN) == {"use_count": value}


@pytest.mark.parametrize("sql", [
    "UPDATE api_key SET use_count = use_count + $1 WHERE id = $2",
    "UPDATE api_key SET use_count = $1 + use_count WHERE id = $2",
    "UPDATE api_key SET last_used_at = $1 WHERE use_count = $2",
    "SELECT use_count FROM api_key WHERE use_count = $1 AND id = $2",
    "UPDATE api_key SET use_count = $9"])
def test_a_value_that_only_the_server_knows_is_not_guessed(sql):
    assert written(sent(sql, (0, b"1"), (0, b"2")), SHOWN) == {}


def test_a_row_tells_its_shown_columns_whatever_their_place_type_and_format():
    description = m.row_description(("secret", 25, 0), ("use_count", 23, 1), ("note", 25, 0),
                                    ("balance_cents", 1700, 0))
    row = m.data_row(b"sk-ana", b"\0\0\0\5", None, b"-40")
    wanted = columns(Reply(b"T", description[5:]).body, SHOWN)
    assert read(row[5:], wanted) == {"use_count": 5, "balance_cents": -40}
    assert columns(description[5:], ()) == {}


def told(number: int, name: str) -> tuple[list[str], str]:
    """What the statements of a scenario tell, and its whole history as text."""
    chosen = stage(number)
    with a_server() as used, theatre(chosen, used) as scene:
        history = scene.play(scenarios(chosen)[name]).history
    said = [f"{event.replica} {outcome_of(event)}" for event in history
            if event.kind == "statement"]
    return said, json.dumps([event.detail for event in history])


def test_in_b1_both_read_0_and_both_write_1():
    said, details = told(7, "B1")
    assert said == ["A use_count 0", "B use_count 0", "B use_count 1", "A use_count 1"]
    assert "sk-ana" not in details, "a column that is not shown is not kept either"


def test_in_b5_both_find_100_and_the_second_debit_leaves_less_than_nothing():
    said, _ = told(7, "B5")
    assert [line for line in said if "balance" in line] == [
        "A balance_cents 100", "B balance_cents 100", "B balance_cents 30", "A balance_cents -40"]


def test_the_debit_that_waited_in_b6_gets_no_row():
    said, _ = told(7, "B6")
    assert said == ["A balance_cents 30", "B waiting", "B no row"]
