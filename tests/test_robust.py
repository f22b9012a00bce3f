"""A replica may hang, die or talk nonsense, the engine may be killed: it is said, nothing stays."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from lab.engine import databases
from lab.engine.replica import ROOT
from lab.engine.rest import LIMIT, Rest
from lab.engine.schedule import Schedule, run
from lab.engine.stepper import Stepper
from lab.errors import LabError
from tests.sampling import SAMPLES, cast, sampler

LIGHT = ("psycopg",)


@pytest.fixture
def stepper(server):
    with sampler(server, imports=LIGHT) as made:
        made.limit = 1.0
        yield made
        processes = [r.process.popen for r in made.replicas.values() if not r.dead]
        ports = [port for _, port in made.gate._addresses.values()]
    assert all(process.poll() is not None for process in processes)
    sockets = psutil.Process().net_connections("tcp")
    listening = {c.laddr.port for c in sockets if c.status == "LISTEN"}
    assert not listening & set(ports)


def failing(stepper, text: str, **programs: tuple) -> LabError:
    """The error of a schedule that cannot be run to its end, which comes within ten seconds."""
    cast(stepper, **programs)
    stepper.reset()
    while not all(r.process.ready for r in stepper.replicas.values()):
        stepper.gate.pump(0.1)
        if not all(r.process.alive for r in stepper.replicas.values()):
            break
    began = time.monotonic()
    with pytest.raises(LabError) as caught:
        run(stepper, Schedule.parse(text))
    assert time.monotonic() - began < 10
    return caught.value


def test_the_limit_is_ten_seconds():
    assert LIMIT == Rest.limit == 10


def test_a_replica_that_hangs_is_named_with_the_state_of_every_replica(stepper):
    error = failing(stepper, "B A", A=("hang",), B=("claim", "B"), C=("claim", "C"))
    assert error.what == ("Replica A did not come to rest within 1 s.\n  A: running its own code\n"
                          "  B: held at INSERT log\n  C: not started")
    assert "loop" in error.remedy


def test_a_statement_that_hangs_is_named(stepper):
    hangs = ("look", "A", "SELECT pg_sleep(60)")  # interrupted: by the limit
    error = failing(stepper, "A", A=hangs, B=("claim", "B"))
    assert "  A: running SELECT pg_sleep\n  B: not started" in error.what  # interrupted: so said


def test_the_engine_can_go_on_after_a_hang(stepper):
    failing(stepper, "B A", A=("hang",), B=("claim", "B"))
    cast(stepper, A=("claim", "A"), B=("claim", "B"))
    assert run(stepper, Schedule.parse("A.. B..")).complete


def test_a_process_that_ends_by_itself_is_named_with_its_exit_code(stepper):
    error = failing(stepper, "B A", A=("end_process", 7), B=("claim", "B"))
    assert error.what.startswith("Replica A ended by itself, exit code 7: ")
    assert "\n  B: held at INSERT log" in error.what


@pytest.mark.parametrize(("code", "what"), [
    ("def tick(now:\n    pass\n", "SyntaxError: '(' was never closed (worker.py, line 1)"),
    ("import sys\nsys.exit('no configuration')\n", "SystemExit: no configuration"),
    ("import nowhere\n", "ModuleNotFoundError: No module named 'nowhere'"),
    ("def other(now):\n    pass\n", "AttributeError: module 'worker' has no attribute 'tick'"),
], ids=["syntax error", "sys.exit at import", "import of nothing", "no such function"])
def test_code_that_cannot_be_run_at_all_is_no_outcome_but_an_error(server, tmp_path, code, what):
    (tmp_path / "worker.py").write_text(code)
    with server.database([SAMPLES / "schema.sql"], "broken") as database, \
            Stepper(database, tmp_path, {}, imports=LIGHT) as stepper:
        error = failing(stepper, "A", A=("tick", "{now}"))
    assert error.what.startswith(f"Replica A cannot run worker:tick: {what}\n  A: ")


def test_a_process_that_dies_before_it_can_take_orders_is_an_error(server):
    with sampler(server, imports=("nowhere",)) as stepper:
        error = failing(stepper, "A", A=("claim", "A"))
    assert "exit code 1: ModuleNotFoundError: No module named 'nowhere'" in error.what


def test_what_is_no_message_of_the_protocol_is_named(stepper):
    error = failing(stepper, "B A", A=("send_garbage",), B=("claim", "B"))
    assert error.what.startswith("Replica A sent what is no Postgres message: b'GET / HTTP/1.1")
    assert "\n  B: held at INSERT log" in error.what


ENGINE = """
import sys, time
from contextlib import suppress
from lab.engine.postgres import server
from lab.engine.schedule import Schedule, make
from lab.errors import LabError
from tests.sampling import cast, sampler
with server() as used, sampler(used, spares=1, imports=("psycopg",)) as stepper:
    cast(stepper, A=("claim", "A"), B=("claim", "B"), C=("hang",))
    stepper.limit = 0.5
    stepper.reset()
    with suppress(LabError):
        for move in Schedule.parse("A A.freeze B C"):
            make(stepper, move)
    pids = [process.popen.pid for process in stepper.stable._all]
    print(stepper.database.name, *pids, flush=True)
    time.sleep(120)
"""


@pytest.fixture
def engine(server):
    """An engine in a process of its own: A frozen in a transaction, B waits for it, C loops."""
    made = subprocess.Popen([sys.executable, "-c", ENGINE], cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    try:
        made.database, *pids = made.stdout.readline().split()
        made.replicas = [psutil.Process(int(pid)) for pid in pids]
        assert len(made.replicas) >= 3
        yield made
    finally:
        made.kill()
        made.communicate()


def exists(server, database: str) -> bool:
    found = server._admin.execute("SELECT FROM pg_database WHERE datname = %s", [database])
    return found.rowcount > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends frozen processes that way")
def test_a_killed_engine_leaves_no_process_and_a_database_that_is_swept(server, engine):
    assert {p.status() for p in engine.replicas} >= {psutil.STATUS_STOPPED}
    engine.kill()
    _, alive = psutil.wait_procs(engine.replicas, timeout=10)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    for _ in range(200):
        if engine.database in databases.leftovers(server._admin):
            break
        time.sleep(0.05)  # polls: Postgres has to notice that the connections are gone
    assert engine.database in databases.leftovers(server._admin)
    databases.drop(server._admin, engine.database)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_ctrl_c_leaves_no_process_and_no_database(server, engine):
    engine.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in engine.communicate(timeout=20)[1]
    assert not [p for p in engine.replicas if p.is_running()]
    assert not exists(server, engine.database)
