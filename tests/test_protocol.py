"""Where messages begin and end, however the packets are cut, and which of them are steps."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.engine.protocol import ClientStream, Strange
from lab.engine.replies import ServerStream, without_binding
from tests import messages as m

SQL = st.one_of(
    st.sampled_from(["BEGIN", "COMMIT", "SET x = 1", "INSERT INTO t VALUES (1)", "", "SELECT 1",
                     "UPDATE wallets SET balance = balance - 30 WHERE member_id = 1"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
NAMES = st.sampled_from([b"", b"s1", b"_pg3_0"])
FROM_CLIENT = st.one_of(
    SQL.map(m.query), st.builds(m.parse, SQL, NAMES, st.lists(st.just(23), max_size=3).map(tuple)),
    st.builds(m.bind, NAMES), st.just(m.describe()), st.just(m.execute()), st.just(m.SYNC),
    st.just(m.FLUSH), st.binary(max_size=40).map(lambda data: m.message("d", data)),
    st.just(m.message("c")), st.just(m.message("f", b"no\0")), st.just(m.message("p", b"secret\0")),
    st.just(m.message("C", b"Ss1\0")), st.just(m.TERMINATE))
CONVERSATION = st.builds(
    lambda before, after: b"".join([*before, m.startup(), *after]),
    st.lists(st.sampled_from([m.startup(m.SSL, b""), m.startup(m.GSS, b"")]), max_size=2),
    st.lists(FROM_CLIENT, max_size=12))
FROM_SERVER = st.one_of(
    st.just(m.ready()), st.just(m.ready("E")), st.just(m.key_data()),
    st.just(m.complete("INSERT 0 1")),
    st.just(m.failure("40P01", "deadlock detected")), st.just(m.failure("00000", "hi", kind="N")),
    st.just(m.message("A", b"\0\0\0\1lab\0\0")), st.just(m.message("S", b"TimeZone\0UTC\0")),
    st.just(m.row_description(("n", 23, 0))), st.binary(max_size=30).map(m.data_row),
    st.just(m.message("1")), st.just(m.message("n")), st.just(m.message("I")))


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """The same bytes in packets that end at these places."""
    edges = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def segments(*packets: bytes) -> list:
    stream = ClientStream()
    return [segment for data in packets for segment in stream.feed(data)]


def steps(*packets: bytes) -> list[str]:
    return [segment.text for segment in segments(m.startup(), *packets) if segment.kind == "step"]


@given(CONVERSATION, st.lists(st.integers(min_value=0), max_size=20))
def test_segments_are_the_same_however_the_packets_are_cut(data, at):
    assert segments(*cut(data, at)) == segments(data)


@given(CONVERSATION, st.lists(st.integers(min_value=0), max_size=5), FROM_CLIENT)
def test_segments_are_the_bytes_that_came_in_their_order(data, at, last):
    whole = data + last + m.SYNC
    assert b"".join(segment.data for segment in segments(*cut(whole, at))) == whole


@given(st.lists(FROM_SERVER, max_size=12).map(b"".join),
       st.lists(st.integers(min_value=0), max_size=20))
def test_replies_are_the_same_however_the_packets_are_cut(data, at):
    whole, cut_up = ServerStream(), ServerStream()
    assert [reply for part in cut(data, at) for reply in cut_up.feed(part)] == whole.feed(data)


@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans())
def test_any_bytes_are_messages_or_strange_and_nothing_else(packets, started):
    stream = ClientStream()
    try:
        for data in [m.startup()] * started + packets:
            stream.feed(data)
    except Strange:
        pass


@pytest.mark.parametrize("data", [
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS without asking first
    m.startup() + b"Y\0\0\0\4",
    m.startup() + b"Q\0\0\0\1",
    m.startup() + m.message("P", b"half"),
], ids=["http", "tls", "unknown type", "length below four", "a Parse cut short"])
def test_what_is_no_message_is_strange_at_once(data):
    with pytest.raises(Strange):
        ClientStream().feed(data)


@pytest.mark.parametrize("text", [
    "BEGIN", "begin;", "BEGIN ISOLATION LEVEL SERIALIZABLE", "START TRANSACTION READ ONLY",
    "SET TIME ZONE 'UTC'", "SET LOCAL lock_timeout = 10", "SHOW server_version", "DEALLOCATE ALL",
    "RESET ALL", "DISCARD ALL", "CLOSE c", "", " ", ";", "select pg_catalog.version()",
    "SELECT current_schema()", "SELECT typname AS name, oid FROM pg_type t WHERE t.oid = $1",
    "SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class WHERE relname = $1"])
def test_what_drivers_say_by_themselves_passes(text):
    assert steps(m.query(text), m.extended(text)) == []


@pytest.mark.parametrize("text", [
    "COMMIT", "ROLLBACK", "END", "INSERT INTO t VALUES (1)", "SELECT 1", "TRUNCATE t", "LISTEN a",
    "BEGIN; INSERT INTO t VALUES (1)", "SET x = 1; DELETE FROM t", "; DELETE FROM t",
    "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_lock(1) FROM pg_class",
    "SELECT a FROM t WHERE o IN (SELECT oid FROM pg_class)", "SELECT version(); DELETE FROM t",
    "DECLARE c CURSOR FOR SELECT 1", "FETCH 2 FROM c", "SAVEPOINT a", "COPY t FROM STDIN",
    "WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x",
    "SELECT a FROM t; SELECT 1 FROM pg_type"])
def test_what_may_decide_something_is_a_step(text):
    assert steps(m.query(text), m.extended(text)) == [text, text]


def test_a_batch_is_one_step_with_all_its_statements():
    batch = m.parse("INSERT INTO t VALUES ($1)", b"s1", (23,)) + (m.bind(b"s1") + m.execute()) * 2
    *_, segment = segments(m.startup(), batch + m.parse("COMMIT") + m.bind() + m.execute() + m.SYNC)
    assert segment.statements == ["INSERT INTO t VALUES ($1)"] * 2 + ["COMMIT"]
    assert segment.param_types == [(23,), (23,), ()]
    assert (segment.kind, segment.syncs, segment.executes) == ("step", 1, 3)


def test_a_prepared_statement_is_told_by_the_text_of_its_parse():
    assert steps(m.parse("INSERT INTO t VALUES (1)", b"s1") + m.SYNC,
                 m.bind(b"s1", b"p") + m.execute(b"p") + m.SYNC) == ["INSERT INTO t VALUES (1)"]


@pytest.mark.parametrize(("data", "beyond"), [
    (m.query("BEGIN ISOLATION LEVEL REPEATABLE READ"), "transaction"),
    (m.query("set transaction isolation level serializable"), "transaction"),
    (m.query("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"), "session"),
    (m.extended("SET default_transaction_isolation = 'repeatable read'"), "session"),
    (m.query("BEGIN"), ""), (m.query("BEGIN ISOLATION LEVEL READ COMMITTED"), "")])
def test_a_higher_isolation_level_is_noticed_as_it_passes(data, beyond):
    assert segments(m.startup(), data)[-1].beyond_read_committed == beyond


def test_a_higher_isolation_level_is_noticed_in_the_startup_options():
    options = b"options\0-c default_transaction_isolation=repeatable\\ read\0\0"
    assert segments(m.startup(rest=options))[0].beyond_read_committed == "session"


@given(st.integers(-2**31, 2**31 - 1))
def test_a_lone_integer_is_read_in_text_and_in_binary(number):
    for form, raw in ((0, str(number).encode()), (1, struct.pack("!i", number))):
        head, row = ServerStream().feed(m.row_description(("n", 23, form)) + m.data_row(raw))
        assert row.lone_value(head.lone_column) == number


@pytest.mark.parametrize(("oid", "raw", "value"), [
    (16, b"t", True), (16, b"f", False), (16, b"\1", True), (16, b"\0", False), (16, None, None),
    (25, b"12", None), (23, None, None)])
def test_a_lone_boolean_is_read_and_other_types_are_left_alone(oid, raw, value):
    head, row = ServerStream().feed(m.row_description(("n", oid, 0)) + m.data_row(raw))
    assert row.lone_value(head.lone_column) is value


def test_of_two_columns_no_value_is_read():
    head, row = ServerStream().feed(
        m.row_description(("n", 23, 0), ("m", 23, 0)) + m.data_row(b"1", b"2"))
    assert row.lone_value(head.lone_column) is None


def test_an_error_has_its_state_and_its_text():
    (reply,) = ServerStream().feed(m.failure("40001", "could not serialize access"))
    assert reply.error == ("40001", "could not serialize access")


def test_login_methods_that_need_tls_are_left_out_and_nothing_else_is():
    sasl = b"\0\0\0\x0a"
    offered = m.message("R", sasl + b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0") + m.ready()
    assert without_binding(offered) == m.message("R", sasl + b"SCRAM-SHA-256\0\0") + m.ready()
    for other in (m.message("R", b"\0\0\0\0"), m.ready(),
                  m.message("R", sasl + b"SCRAM-SHA-256\0\0")):
        assert without_binding(other) == other
