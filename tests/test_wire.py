"""Passing through the gate changes nothing: real clients, every byte recorded on both sides."""

import asyncio
import random
import select
import shutil
import socket
import subprocess
import threading
import time
from contextlib import closing

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import pq
from sqlalchemy.ext.asyncio import create_async_engine

from lab.engine.link import Link
from lab.engine.protocol import ClientStream
from lab.engine.wire import Gate
from tests import messages as m
from tests.wiring import Bench, wired

TABLE = """
CREATE TABLE IF NOT EXISTS runs (id int GENERATED ALWAYS AS IDENTITY, name text PRIMARY KEY);
TRUNCATE runs RESTART IDENTITY"""
psql = pytest.mark.skipif(not shutil.which("psql"), reason="psql is not installed here")


@pytest.fixture(scope="module")
def database(server):
    with server.database([], "wire") as made:
        yield made


@pytest.fixture(params=[True, False], ids=["held", "passing"])
def bench(database, request):
    """A gate between taps; the end of the test compares what went in and what came out."""
    with database.connect() as conn:
        conn.execute(TABLE)
    with wired(database.url, request.param) as made:
        yield made


def next_result(pgconn: pq.PGconn) -> pq.PGresult | None:
    """get_result, without holding the GIL while it waits."""
    while pgconn.flush() or pgconn.is_busy():
        select.select([pgconn.socket], [], [], 0.1)
        pgconn.consume_input()
    return pgconn.get_result()


def labels(bench) -> list[str]:
    return [text for text, _, _ in bench.steps]


# psycopg


def test_psycopg_simple_and_extended(bench):
    with psycopg.connect(bench.url) as conn:
        conn.execute("INSERT INTO runs (name) VALUES ('a'); INSERT INTO runs (name) VALUES ('b')")
        conn.execute("INSERT INTO runs (name) VALUES (%s)", ["c"])
        assert conn.execute("SELECT count(*) FROM runs").fetchone() == (3,)
        assert conn.execute("SELECT %b::int8", [7], binary=True).fetchone() == (7,)
    assert [text for text, _, _ in bench.steps] == [
        "INSERT INTO runs (name) VALUES ('a'); INSERT INTO runs (name) VALUES ('b')",
        "INSERT INTO runs (name) VALUES ($1)", "SELECT count(*) FROM runs", "SELECT $1::int8",
        "COMMIT"]
    assert bench.steps[0][2] == ["INSERT 0 1", "INSERT 0 1"]
    assert bench.values == [None, None, 3, 7, None]


def test_psycopg_prepared_statements(bench):
    with psycopg.connect(bench.url, prepare_threshold=0) as conn:
        for name in "abc":
            conn.execute("INSERT INTO runs (name) VALUES (%s)", [name])
        conn.rollback()
        conn.execute("INSERT INTO runs (name) VALUES (%s)", ["d"])
    assert labels(bench) == ["INSERT INTO runs (name) VALUES ($1)"] * 3 + [
        "ROLLBACK", "INSERT INTO runs (name) VALUES ($1)", "COMMIT"]


def test_psycopg_executemany_is_a_pipeline(bench):
    with psycopg.connect(bench.url) as conn, conn.cursor() as cursor:
        cursor.executemany("INSERT INTO runs (name) VALUES (%s)", [[str(n)] for n in range(2000)])
        assert cursor.rowcount == 2000


def test_psycopg_pipeline_with_results_in_the_middle(bench):
    with psycopg.connect(bench.url, autocommit=True) as conn, conn.pipeline() as pipeline:
        first = conn.execute("INSERT INTO runs (name) VALUES ('a') RETURNING name")
        second = conn.execute("SELECT count(*) FROM runs")
        assert (first.fetchone(), second.fetchone()) == (("a",), (1,))
        pipeline.sync()
        assert conn.execute("SELECT 'after'").fetchone() == ("after",)
    assert sum(len(tags) for _, _, tags in bench.steps) == 3


@pytest.mark.parametrize("flush", [True, False])
def test_psycopg_pipeline_after_an_error_skips_to_the_sync(bench, flush):
    with psycopg.connect(bench.url, autocommit=True) as conn:
        with pytest.raises(psycopg.Error), conn.pipeline():
            conn.execute("INSERT INTO runs (name) VALUES ('a')")
            broken = conn.execute("SELECT 1 / 0")
            skipped = conn.execute("INSERT INTO runs (name) VALUES ('b')")
            if flush:
                with pytest.raises(psycopg.errors.DivisionByZero):
                    broken.fetchone()
                conn.execute("INSERT INTO runs (name) VALUES ('c')")
                skipped.fetchone()
        assert conn.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    assert bench.steps[0][1].startswith("error: 22012 division by zero")


def test_psycopg_copy_in_and_out(bench):
    with psycopg.connect(bench.url) as conn, conn.cursor() as cursor:
        with cursor.copy("COPY runs (name) FROM STDIN") as copy:
            for number in range(5000):
                copy.write_row([f"run {number}"])
        with cursor.copy("COPY (SELECT name FROM runs WHERE name <> %s) TO STDOUT", ["x"]) as copy:
            assert sum(1 for _ in copy.rows()) == 5000
    assert [tags for _, _, tags in bench.steps] == [["COPY 5000"], ["COPY 5000"], ["COMMIT"]]


def test_psycopg_copy_in_given_up_or_refused(bench):
    with psycopg.connect(bench.url, autocommit=True) as conn, conn.cursor() as cursor:
        with pytest.raises(ZeroDivisionError), cursor.copy("COPY runs (name) FROM STDIN") as copy:
            copy.write_row(["a"])
            raise ZeroDivisionError
        with pytest.raises(psycopg.errors.UniqueViolation), \
                cursor.copy("COPY runs (name) FROM STDIN") as copy:
            copy.write_row(["b"])
            copy.write_row(["b"])
        assert conn.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    assert [outcome.split()[1:2] for _, outcome, _ in bench.steps] == [["57014"], ["23505"], []]


@pytest.mark.parametrize("data", [b"a\nb\n", b"a\na\n"], ids=["taken", "refused"])
def test_libpq_copy_in_of_the_extended_protocol_ends_with_a_second_sync(bench, data):
    with psycopg.connect(bench.url, autocommit=True) as conn:
        started = conn.pgconn.exec_params(b"COPY runs (name) FROM STDIN", None)
        assert started.status == pq.ExecStatus.COPY_IN
        for byte in data:
            conn.pgconn.put_copy_data(bytes([byte]))
        conn.pgconn.put_copy_end()
        while result := next_result(conn.pgconn):
            expected = pq.ExecStatus.COMMAND_OK if data == b"a\nb\n" else pq.ExecStatus.FATAL_ERROR
            assert result.status == expected
        (count,) = conn.execute("SELECT count(*) FROM runs").fetchone()
        assert count == (2 if data == b"a\nb\n" else 0)
        assert conn.execute("SELECT count(*) FROM runs", prepare=True).fetchone()
    assert labels(bench) == ["COPY runs (name) FROM STDIN"] + ["SELECT count(*) FROM runs"] * 2


def test_psycopg_cancel(bench):
    with psycopg.connect(bench.url, autocommit=True) as conn:
        timer = threading.Timer(0.2, conn.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("SELECT pg_sleep(30)")  # interrupted: from outside
        timer.join()
        assert conn.execute("SELECT 1").fetchone() == (1,)
    assert bench.steps[0][1].startswith("error: 57014")


def test_psycopg_notices_between_replies(bench):
    heard = []
    with psycopg.connect(bench.url) as conn:
        conn.add_notice_handler(lambda notice: heard.append(notice.message_primary))
        for number in range(3):
            conn.execute(f"DO $$ BEGIN RAISE NOTICE 'n{number}'; RAISE WARNING 'w{number}'; END $$")
            assert conn.execute("SELECT %s::int", [number]).fetchone() == (number,)
    assert heard == ["n0", "w0", "n1", "w1", "n2", "w2"]


def test_psycopg_notifications_arrive_while_nothing_is_asked(bench):
    with psycopg.connect(bench.url, autocommit=True) as ear, \
            psycopg.connect(bench.url, autocommit=True) as mouth:
        ear.execute("LISTEN jobs")
        mouth.execute("NOTIFY jobs, 'one'")
        assert [note.payload for note in ear.notifies(timeout=10, stop_after=1)] == ["one"]
        mouth.execute("SELECT pg_notify('jobs', 'two')")
        assert [note.payload for note in ear.notifies(timeout=10, stop_after=1)] == ["two"]
        assert ear.execute("SELECT 1").fetchone() == (1,)


def test_psycopg_server_side_cursors(bench):
    with psycopg.connect(bench.url) as conn, conn.cursor("c", withhold=True) as cursor:
        cursor.execute("SELECT generate_series(1, %s)", [10])
        assert [row for row, in cursor.fetchmany(3)] == [1, 2, 3]
        conn.commit()
        assert sum(row for row, in cursor) == sum(range(4, 11))


def test_libpq_single_row_mode_and_closing_prepared_statements(bench):
    with psycopg.connect(bench.url, autocommit=True) as conn:
        assert sum(n for n, in conn.cursor().stream("SELECT generate_series(1, 500)")) == 125250
        libpq = conn.pgconn
        for ask, answer in ((lambda: libpq.send_prepare(b"ps", b"SELECT $1::text"), lambda r: True),
                            (lambda: libpq.send_describe_prepared(b"ps"), lambda r: r.nparams == 1),
                            (lambda: libpq.send_query_prepared(b"ps", [b"x"]),
                             lambda r: r.get_value(0, 0) == b"x")):
            ask()
            assert answer(next_result(libpq))
            assert next_result(libpq) is None
        conn.execute("DEALLOCATE ps")


def test_psycopg_large_results_and_large_parameters(bench):
    body = "ñ" * 3_000_000
    with psycopg.connect(bench.url) as conn:
        assert conn.execute("SELECT %s || %s", [body, "x"]).fetchone() == (body + "x",)


def test_psycopg_async_with_several_connections(bench):
    async def one(name: str) -> int:
        async with await psycopg.AsyncConnection.connect(bench.url) as conn:
            await conn.execute("INSERT INTO runs (name) VALUES (%s)", [name])
            async with conn.pipeline():
                cursor = await conn.execute("SELECT 1")
                await conn.execute("SELECT 2")
            return (await cursor.fetchone())[0]

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(one(f"n{number}") for number in range(6)))

    assert asyncio.run(all_of_them()) == [1] * 6
    assert labels(bench).count("COMMIT") == 6


# SQLAlchemy


def test_sqlalchemy_orm_and_savepoints(bench):
    class Base(sa.orm.DeclarativeBase):
        pass

    class Run(Base):
        __tablename__ = "runs"
        id: sa.orm.Mapped[int] = sa.orm.mapped_column(sa.Identity(always=True))
        name: sa.orm.Mapped[str] = sa.orm.mapped_column(primary_key=True)

    engine = sa.create_engine(
        bench.url.replace("postgresql:", "postgresql+psycopg:"), pool_pre_ping=True)
    with sa.orm.Session(engine) as db:
        db.add_all(Run(name=str(number)) for number in range(1500))
        db.flush()
        with pytest.raises(sa.exc.IntegrityError), db.begin_nested():
            db.execute(sa.text("INSERT INTO runs (name) VALUES ('1')"))
        db.commit()
    with sa.orm.Session(engine) as db:
        assert db.scalar(sa.select(sa.func.count()).select_from(Run)) == 1500
        assert len(sa.inspect(engine).get_columns("runs")) == 2
    engine.dispose()
    assert "ROLLBACK TO SAVEPOINT sa_savepoint_1" in labels(bench)


def test_sqlalchemy_async_on_asyncpg(bench):
    async def run() -> int:
        engine = create_async_engine(bench.url.replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.begin() as conn:
            await conn.execute(
                sa.text("INSERT INTO runs (name) VALUES (:n)"), [{"n": "a"}, {"n": "b"}])
            count = await conn.scalar(sa.text("SELECT count(*) FROM runs"))
        await engine.dispose()
        return count

    assert asyncio.run(run()) == 2


# asyncpg


def asyncpg_test(body):
    """Run an async test with a connection of asyncpg's."""
    def test(bench):
        async def run() -> None:
            conn = await asyncpg.connect(bench.url)
            try:
                await body(bench, conn)
            finally:
                await conn.close()

        asyncio.run(run())
    test.__name__ = body.__name__
    return test


@asyncpg_test
async def test_asyncpg_statements_and_transactions(bench, conn):
    assert await conn.fetchval("SELECT 1") == 1
    await conn.execute("INSERT INTO runs (name) VALUES ($1)", "a")
    with pytest.raises(asyncpg.UniqueViolationError):
        async with conn.transaction():
            await conn.execute("INSERT INTO runs (name) VALUES ('a')")
    with pytest.raises(asyncpg.PostgresSyntaxError):
        await conn.fetch("SELEC")
    assert await conn.fetch("SELECT 1, 'x'::text WHERE $1", True) == [(1, "x")]


@asyncpg_test
async def test_asyncpg_executemany_copy_and_cursors(bench, conn):
    await conn.executemany(
        "INSERT INTO runs (name) VALUES ($1)", [(f"{n:0200}",) for n in range(2000)])
    await conn.copy_records_to_table(
        "runs", records=[(f"r{n}",) for n in range(500)], columns=["name"])
    chunks = bytearray()

    async def take(data: bytes) -> None:
        chunks.extend(data)

    await conn.copy_from_query("SELECT name FROM runs", output=take)
    assert chunks.count(b"\n") == 2500
    async with conn.transaction():
        cursor = await conn.cursor("SELECT name FROM runs ORDER BY id")
        assert len(await cursor.fetch(100)) + len(await cursor.fetch(5000)) == 2500
        assert [row async for row in conn.cursor("SELECT 1")] == [(1,)]
    with pytest.raises(asyncpg.UniqueViolationError):
        await conn.copy_records_to_table("runs", records=[("r1",)], columns=["name"])
    with pytest.raises(asyncpg.UniqueViolationError):
        await conn.executemany("INSERT INTO runs (name) VALUES ($1)", [("z",), ("r1",), ("y",)])
    assert await conn.fetchval("SELECT count(*) FROM runs") == 2500


@asyncpg_test
async def test_asyncpg_timeouts_cancel_and_notifications(bench, conn):
    with pytest.raises(TimeoutError):
        await conn.execute("SELECT pg_sleep(30)", timeout=0.3)  # interrupted: from outside
    assert await conn.fetchval("SELECT 1") == 1
    heard = asyncio.Queue()
    await conn.add_listener("jobs", lambda *note: heard.put_nowait(note[3]))
    await conn.execute("NOTIFY jobs, 'hi'")
    assert await asyncio.wait_for(heard.get(), 10) == "hi"


@asyncpg_test
async def test_asyncpg_types_of_its_own(bench, conn):
    await conn.execute("DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('ok', 'sad')")
    assert await conn.fetchval("SELECT ARRAY['ok', 'sad']::mood[]") == ["ok", "sad"]


# psql


@psql
def test_psql(bench, tmp_path):
    (tmp_path / "names").write_text("a\nb\nc\n")
    said = subprocess.run(
        ["psql", "-X", "-At", bench.url], text=True, capture_output=True, timeout=30,
        input=f"""\\copy runs (name) FROM '{tmp_path / "names"}'
BEGIN; INSERT INTO runs (name) VALUES ('d'); COMMIT;
SELECT 1/0;
DO $$ BEGIN RAISE NOTICE 'heard'; END $$;
COPY runs (name) TO STDOUT;
\\d runs
\\set FETCH_COUNT 2
SELECT count(*) FROM runs;
\\bind 5
SELECT $1::int + 1 \\g
""")
    assert "division by zero" in said.stderr and "heard" in said.stderr
    assert said.stdout.startswith("COPY 3\nBEGIN\nINSERT 0 1\nCOMMIT\nDO\na\nb\nc\nd\n")
    assert said.stdout.rstrip().split("\n")[-1:] in (["4"], ["6"])  # \bind came with psql 16


@psql
def test_psql_several_statements_in_one_query(bench):
    said = subprocess.run(
        ["psql", "-X", "-At", bench.url, "-c",
         "BEGIN; INSERT INTO runs (name) VALUES ('a'); COMMIT; SELECT count(*) FROM runs"],
        text=True, capture_output=True, timeout=30)
    assert said.stdout == "BEGIN\nINSERT 0 1\nCOMMIT\n1\n"
    assert len(bench.steps) == 1


# Connections


def test_each_replica_has_an_address_and_connections_of_its_own(database):
    with closing(Bench(Gate(database.url))) as bench:
        urls = {letter: bench.gate.database_url(letter) for letter in "AB"}
        assert urls["A"] == bench.gate.database_url("A") != urls["B"]
        with psycopg.connect(urls["A"]), psycopg.connect(urls["A"]), psycopg.connect(urls["B"]):
            assert (len(bench.gate.of("A")), len(bench.gate.of("B"))) == (2, 1)


def test_encryption_is_declined_and_the_startup_may_come_byte_by_byte(bench, database):
    with socket.create_connection(bench.before.address) as client:
        for code in (m.GSS, m.SSL):
            client.sendall(m.startup(code, b""))
            assert client.recv(1) == b"N"
        for byte in m.startup(rest=f"user\0nobody\0database\0{database.name}\0\0".encode()):
            client.sendall(bytes([byte]))
        assert client.recv(1) in (b"R", b"E")


def test_a_server_that_refuses_closes_the_clients_connection_and_only_that():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with closing(Bench(Gate(f"postgresql://u:p@127.0.0.1:{port}/x"))) as bench:
        for _ in range(5):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(bench.gate.database_url("A"), connect_timeout=5)
        assert bench.gate.links == []


def test_a_backend_that_is_ended_is_an_error_of_its_step_with_the_servers_words(bench, database):
    with psycopg.connect(bench.url, autocommit=True) as conn, database.connect() as admin:
        pid = conn.execute("SELECT pg_backend_pid()").fetchone()[0]
        timer = threading.Timer(0.2, admin.execute, ["SELECT pg_terminate_backend(%s)", [pid]])
        timer.start()
        with pytest.raises(psycopg.errors.AdminShutdown):
            conn.execute("SELECT pg_sleep(30)")  # interrupted: from outside
        timer.join()
    assert bench.steps[1][1].startswith("error: 57P01")


def test_a_client_that_leaves_in_the_middle_ends_its_step(database):
    with closing(Bench(Gate(database.url))) as bench:
        conn = psycopg.connect(bench.gate.database_url("A"), autocommit=True)
        conn.pgconn.send_query(b"SELECT pg_sleep(0.5)")  # interrupted: its client leaves
        while not bench.held:
            time.sleep(0.01)  # polls: the loop of another thread
        conn.close()
        while bench.gate.links:
            time.sleep(0.01)  # polls: the loop of another thread
        ((_, outcome, tags),) = bench.steps
        assert (outcome, tags) == ("error: 08006 the connection was closed", [])


def test_a_servers_last_words_reach_a_client_that_reads_slowly():
    words = random.Random(1).randbytes(8_000_000)
    with socket.create_server(("127.0.0.1", 0)) as fake, \
            closing(Bench(Gate(f"postgresql://u@127.0.0.1:{fake.getsockname()[1]}/x"))) as bench, \
            socket.create_connection(bench.address("A")) as client:
        server, _ = fake.accept()
        server.sendall(m.message("d", words))
        server.close()
        while bench.gate.links:
            time.sleep(0.01)  # polls: the loop of another thread
        got = bytearray()
        while data := client.recv(1 << 16):
            got += data
    assert bytes(got) == m.message("d", words)


def test_what_is_no_message_closes_the_connection_and_is_noted():
    with socket.create_server(("127.0.0.1", 0)) as fake, \
            closing(Bench(Gate(f"postgresql://u@127.0.0.1:{fake.getsockname()[1]}/x"))) as bench:
        with socket.create_connection(bench.address("B")) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(10) == b""
        assert bench.gate.odd == (
            "Replica B sent what is no Postgres message: b'GET / HTTP/1.1\\r\\n\\r\\n'")


def test_a_database_url_keeps_what_is_not_about_the_way_to_the_server():
    gate = Gate("postgresql://ana:p%40ss@db.example:6432/lab?sslmode=verify-full&sslrootcert=x"
                "&channel_binding=require&application_name=me&gssencmode=require&hostaddr=10.0.0.1")
    parts = psycopg.conninfo.conninfo_to_dict(gate.database_url("A"))
    assert (parts["user"], parts["password"], parts["dbname"]) == ("ana", "p@ss", "lab")
    assert (parts["host"], parts["application_name"]) == ("127.0.0.1", "me")
    assert set(parts) == {"user", "password", "dbname", "host", "port", "application_name"}
    gate.close()


def test_copy_data_may_come_before_it_is_asked_for_and_a_statement_right_behind_it():
    ends = socket.socketpair(), socket.socketpair()
    gate = Gate("postgresql://u@localhost/x")
    gate.connect_upstream = lambda: ends[1][0]
    link = Link(gate, "A", ends[0][1])
    client, server = ends[0][0], ends[1][1]
    data = m.message("d", b"a\n") + m.message("c")
    copies = (m.query("COPY t FROM STDIN"), b""), (m.extended("COPY t FROM STDIN"), m.SYNC)
    for copy, end in copies:
        client.sendall((m.startup() if not end else b"") + copy + data + end + m.query("SELECT 1"))
        gate.pump(1)
        link.release()
        server.recv(1 << 16)
        server.sendall(m.message("G", b"\0\0\0"))
        gate.pump(1)
        assert server.recv(1 << 16) == data + end
        server.sendall(m.complete("COPY 1") + m.ready())
        gate.pump(1)
        assert link.held.text == "SELECT 1"
        link.release()
        server.sendall(m.complete("SELECT 1") + m.ready())
        gate.pump(1)
        assert server.recv(1 << 16) == m.query("SELECT 1")
    gate.close()
    for sock in (*ends[0], *ends[1]):
        sock.close()


# Any conversation, cut anywhere


class Server:
    """Answers each segment as the protocol asks, with asynchronous messages in between."""

    def __init__(self, dice: random.Random) -> None:
        self.dice, self.stream = dice, ClientStream()
        self.got, self.said = bytearray(), bytearray()

    def answer(self, data: bytes) -> bytes:
        self.got += data
        reply = bytearray()
        for segment in self.stream.feed(data):
            if segment.kind == "startup":
                reply += m.message("R", b"\0\0\0\0") + m.key_data() + m.ready()
            for text in segment.statements:
                if self.dice.random() < 0.3:
                    reply += m.failure("00000", "a notice", "N") + m.message("A", b"\0\0\0\1c\0\0")
                reply += m.complete(f"INSERT 0 {len(text)}")
            reply += m.ready() * segment.syncs
        self.said += reply
        return bytes(reply)


TURNS = st.lists(st.sampled_from([
    m.query("INSERT 1"), m.extended("INSERT 2"), m.extended("BEGIN"), m.query("SET a = 1"),
    m.parse("SELECT 3") + m.describe() + m.FLUSH, m.extended("UPDATE 4")[:-5] + m.FLUSH,
    m.extended("UPDATE 4")[:-5] + m.extended("DELETE 5"), m.SYNC, m.query("COMMIT")]), max_size=10)


@settings(deadline=None, max_examples=100)
@given(TURNS, st.integers(), st.booleans())
def test_any_conversation_cut_anywhere_arrives_as_it_was_sent(turns, seed, passing):
    dice = random.Random(seed)
    sent, received, server = m.startup() + b"".join(turns), bytearray(), Server(dice)
    ends = socket.socketpair(), socket.socketpair()
    gate = Gate("postgresql://u@localhost/x")
    gate.connect_upstream = lambda: ends[1][0]
    gate.passing = passing
    done = []
    gate.on_done = lambda link, step: done.append(step.text)
    link = Link(gate, "A", ends[0][1])
    gate.links.append(link)
    client, upstream = ends[0][0], ends[1][1]
    client.setblocking(False)
    upstream.setblocking(False)
    at, waiting, idle = 0, bytearray(), 0
    while idle < 20:
        progress = gate.pump(0)
        if at < len(sent):
            size = dice.randint(1, 60)
            progress = client.send(sent[at:at + size])
            at += size
        if link.held and dice.random() < 0.5:
            progress = bool(link.release())
        for sock, take in ((upstream, lambda data: waiting.extend(server.answer(data))),
                           (client, received.extend)):
            try:
                take(sock.recv(dice.randint(1, 200)))
                progress = True
            except BlockingIOError:
                pass
        if waiting:
            size = dice.randint(1, 40)
            upstream.sendall(waiting[:size])
            del waiting[:size]
            progress = True
        idle = 0 if progress else idle + 1
    gate.close()
    for pair in ends:
        for sock in pair:
            sock.close()
    assert (bytes(server.got), bytes(received)) == (sent, bytes(server.said))
    steps = [turn for turn in turns if b"BEGIN" not in turn and b"SET" not in turn
             and (turn[:1] == b"Q" or b"E\0\0\0\x09" in turn)]
    assert len(done) == len(steps)


