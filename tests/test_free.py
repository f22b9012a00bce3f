"""The free engine: real processes live through the incident, and none outlives its command."""

import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta

import psutil
import psycopg
import pytest

from lab import folders
from lab.engine.free import FreeRun
from lab.engine.postgres import server as lab_server
from lab.engine.stepper import INCIDENT
from lab.errors import LabError
from lab.judge.stage import stage
from lab.judge.verdict import judge, read
from tests.doctored import doctored
from tests.postgres_servers import ODD, await_backends, foreign, own_home

BUG = stage(0)
RUNS = int(os.environ.get("LAB_FREE_RUNS", "3"))  # one takes about 3 s; `.ci/run` does 20


def lived_through(found, server, **options):
    """Let three replicas live through it; returns history, verdict and the world's time then."""
    with found.database(server) as database, database.connect() as conn:
        with FreeRun(database, found.folder, **options) as free:
            history = free.run()
            later = free.now
        verdict = judge(read(conn, found.effects), history, found.effects)
        told = conn.execute(
            "SELECT created_at FROM notifications JOIN members m ON m.id = member_id"
            " WHERE m.name = 'Lupita Hernández' ORDER BY created_at").fetchall()
    return history, verdict, [(later - at).total_seconds() // 60 for at, in told]


@pytest.mark.timeout(120 + 15 * RUNS)
def test_three_notifications_every_time(server):
    for _ in range(RUNS):
        history, verdict, ages = lived_through(BUG, server)
        assert (verdict.code, ages) == ("D3", [19, 18, 17])
        assert history.complete


def test_the_printed_clock_is_the_wake_ups_and_the_statements(server):
    history, _, _ = lived_through(BUG, server)
    ticks = [(e.replica, datetime.fromisoformat(e.clock) - INCIDENT)
             for e in history if e.kind == "tick"]
    assert ticks == [("ABC"[n % 3], timedelta(minutes=n % 3 + 15 * (n // 3))) for n in range(6)]
    for replica in "ABC":
        clocks = [e.clock for e in history if e.replica == replica]
        assert clocks == sorted(clocks)


def test_events_are_told_as_they_happen(server):
    told = []
    history, _, _ = lived_through(BUG, server, on_event=told.append)
    assert told == history.events


def test_a_worker_that_does_not_start_is_said_with_its_last_words(server, tmp_path):
    broken = doctored(tmp_path, 0, "worker.py", "import logging\n", "import lagging\n")
    with pytest.raises(LabError, match=r"Replica \w did not start: .*No module named 'lagging'"):
        lived_through(broken, server)


def test_a_worker_that_ends_before_its_first_statement_is_said_too(server, tmp_path):
    ends = doctored(tmp_path, 0, "worker.py", "            if did := tick(now):",
                    "            raise SystemExit('lost')\n            if did := tick(now):")
    with pytest.raises(LabError, match=r"Replica \w did not start: lost"):
        lived_through(ends, server)


def test_a_run_in_which_a_replica_died_is_not_judged(server, tmp_path):
    dies = doctored(tmp_path, 0, "worker.py", "            if did := tick(now):",
                    "            if tick(now):\n                raise SystemExit(3)\n"
                    "            if did := []:")
    history, verdict, _ = lived_through(dies, server)
    assert not history.complete
    assert verdict.unknown and not verdict.ok


# Signals. The lab's server of these tests is their own, so that they see every database on it.

# What is on the screen when the signal comes: before the server is asked for, while the replicas
# start, while they wait for their turn, in the middle of one, while the pictures are drawn.
MOMENTS = ["Three replicas", "== Friday", "wakes up", "COMMIT", "Wallet"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch, own_home(patch) as folder:
        yield folder


def command(*args, **env):
    return subprocess.Popen(
        [sys.executable, "-m", "lab", *args], cwd=folders.ROOT, text=True, encoding="utf-8",
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | env, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def databases_left():
    """The databases of runs, as the next command leaves the server."""
    with lab_server() as used, psycopg.connect(used.url, autocommit=True) as conn:
        await_backends(conn)
    with lab_server():
        pass
    with lab_server() as used, psycopg.connect(used.url, autocommit=True) as conn:
        names = conn.execute("SELECT datname FROM pg_database WHERE datname LIKE 'lab\\_%'")
        return [name for name, in names if not name.startswith("lab_template_")]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to one process")
@pytest.mark.parametrize(("number", "moment"), [
    *((signal.SIGINT, moment) for moment in MOMENTS), (signal.SIGTERM, "wakes up"),
    *((signal.SIGKILL, moment) for moment in MOMENTS[1:])])
def test_interrupted_at_any_moment_no_process_and_no_database_is_left(home, number, moment):
    with command("stage", "0") as running:
        for line in running.stdout:
            if moment in line:
                break
        replicas = [child for child in psutil.Process(running.pid).children(recursive=True)
                    if "lab.engine" in " ".join(child.cmdline())]
        running.send_signal(number)
        _, said = running.communicate(timeout=30)
    _, alive = psutil.wait_procs(replicas, timeout=10)
    assert alive == []
    if moment in ("wakes up", "COMMIT"):
        assert len(replicas) == 3
    if number != signal.SIGKILL:
        assert running.returncode == 130
        assert said.splitlines() == ["Interrupted; everything that was started is stopped."]
    assert databases_left() == []


def test_the_next_run_works_after_a_kill(home):
    with command("stage", "0") as running:
        for line in running.stdout:
            if "COMMIT" in line:
                break
        running.kill()
        running.communicate()
    with command("stage", "0") as after:
        said, _ = after.communicate(timeout=60)
    assert after.returncode == 0, said
    assert "Wallet +30" in said


def test_on_another_server_it_is_the_same_and_nothing_is_left_there():
    with foreign() as other, psycopg.connect(other.url(), autocommit=True) as conn:
        query = "SELECT datname, datdba, datacl::text FROM pg_database ORDER BY datname"
        before = conn.execute(query).fetchall()
        with command("stage", "0", DATABASE_URL=other.url("maker", ODD)) as running:
            said, errors = running.communicate(timeout=90)
        assert running.returncode == 0, said + errors
        assert "Wallet +30" in said
        assert ODD not in said + errors
        assert conn.execute(query).fetchall() == before
