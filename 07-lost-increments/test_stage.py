"""07: what is read, changed in memory and written back is lost; what is one statement is not."""

import os
import random
import shutil
import subprocess
import sys
import sysconfig
import time
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lab.engine.load import statement_load
from lab.folders import ROOT
from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from lab.show import load
from tests import money
from tests.playing import counts, ids, outcomes, play, promised, run

HERE = Path(__file__).parent
STAGE = stage(HERE.name)
NEEDS_API = pytest.mark.skipif(
    not (find_spec("fastapi") and find_spec("uvicorn")),
    reason="FastAPI is not installed: make .venv/.api (the extra api)")
REPAIRED = ["atomic_update", "for_update", "version_column", "repeatable_read", "serializable"]
COUNT = "SELECT use_count FROM api_key WHERE id = 1"
UPDATE = "UPDATE api_key"


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(7), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_the_interleavings_break_it_as_promised(theatre_of, entry):
    assert promised(counts(theatre_of(7), entry), entry["breaks"])


def count(scene):
    with scene.database.connect() as conn:
        return conn.execute(COUNT).fetchone()[0]


# Counting


def test_two_overlapping_requests_are_answered_and_one_increment_is_lost_every_time(theatre_of):
    for _ in range(5):
        outcome = play(theatre_of(7), "B1")
        ends = [e.detail["value"] for e in outcome.history if e.kind == "end"]
        assert ends == [1, 1], "both were told 1"
        assert count(theatre_of(7)) == 1


@pytest.mark.parametrize("variant", REPAIRED)
def test_the_schedule_of_the_loss_loses_nothing_when_repaired(theatre_of, variant):
    outcome = run(theatre_of(7), "A B.. A..", everyone=variant)
    assert outcome.code == "1"
    assert count(theatre_of(7)) == 2


def test_the_second_update_waits_and_adds_to_what_the_first_committed(theatre_of):
    history = play(theatre_of(7), "B2").history
    assert outcomes(history, UPDATE) == [
        ("A", "ok", "UPDATE 1"), ("B", "waiting", None), ("B", "ok", "UPDATE 1")]
    assert [e.detail["value"] for e in history if e.kind == "end"] == [1, 2]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_at_a_stricter_level_the_loss_becomes_40001(theatre_of, level):
    outcome = run(theatre_of(7), "A..update B.. A..", isolation=level)
    failed = [e.outcome.split()[1] for e in outcome.history if e.kind == "statement" and e.failed]
    assert failed == ["40001"]
    assert count(theatre_of(7)) == 1


def test_the_retry_reads_again_and_counts(theatre_of):
    history = play(theatre_of(7), "B8").history
    assert [e.label for e in history if e.replica == "A" and e.kind != "rollback"] == [
        "retry:authenticate", "SELECT api_key", UPDATE, "SELECT api_key", UPDATE, "COMMIT", "end"]


def test_a_stale_version_finds_no_row_and_tries_again(theatre_of):
    history = run(theatre_of(7), "A..update B.. A..", everyone="version_column").history
    assert [(r, tag) for r, _, tag in outcomes(history, UPDATE)] == [
        ("B", "UPDATE 1"), ("A", "UPDATE 0"), ("A", "UPDATE 1")]


# Revocation


def test_revoked_in_the_gap_it_is_counted_all_the_same(theatre_of):
    outcome = play(theatre_of(7), "B3")
    ends = {e.replica: e.detail["value"] for e in outcome.history if e.kind == "end"}
    assert ends == {"R": 0, "A": 1}, "billed for no use, and one was answered"


def test_with_one_statement_a_revoked_key_gives_no_row(theatre_of):
    history = run(theatre_of(7), "R.. A..", everyone="atomic_update", roles={"R": "revoke"}).history
    assert outcomes(history, UPDATE)[-1] == ("A", "ok", "UPDATE 0")
    assert [e.detail.get("value") for e in history if e.kind == "end"] == [0, None]


# Balance


def test_two_debits_of_70_from_100_end_at_minus_40_or_the_second_gets_no_row(theatre_of):
    with theatre_of(7).database.connect() as conn:
        for name, balance in (("B5", -40), ("B6", 30)):
            play(theatre_of(7), name)
            assert conn.execute("SELECT balance_cents FROM user_billing WHERE user_id = 1"
                                ).fetchone() == (balance,)


def test_killed_at_any_statement_a_call_leaves_nothing_stuck_once_its_hold_is_over(theatre_of):
    scene = theatre_of(7)
    steps = [e for e in run(scene, "A..", everyone="call").history
             if e.kind in ("statement", "commit")]
    points = [(step, fault) for step in range(1, len(steps) + 1)
              for fault in ("kill", "cut-before", "cut-after")
              if step < len(steps) or fault == "kill"]
    with scene.database.connect() as conn:
        for step, fault in points:
            text = f"A*{step} A.{fault} @18:10 X.."
            outcome = run(scene, text, everyone="call", roles={"X": "expire"}, error="injected")
            assert outcome.code == "1", text
            assert conn.execute("SELECT count(*) FROM hold").fetchone() == (0,), text


@pytest.fixture(scope="module")
def bank(server, tmp_path_factory):
    """The tables of 07, and what the renewal of 08 needs beside them."""
    later = tmp_path_factory.mktemp("bank") / "later.sql"
    later.write_text(money.LATER + money.FILL, encoding="utf-8")
    with server.database([HERE / "schema.sql", HERE / "seed.sql", later], "07") as database:
        yield database


def test_no_sequence_of_operations_makes_balance_holds_and_ledger_disagree(bank, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", bank.url)
    bank.snapshot()
    conn = bank.connect()
    reservations, renewal = money.programs("reservations"), money.programs("renew_once")
    debits = money.programs("guarded_debit")
    users, cents = st.sampled_from([1, 2]), st.integers(0, 3000)

    class Money(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            bank.reset()
            self.now, self.holds, self.seen = money.START, [], {}

        @rule(user=users, cents=cents)
        def reserve(self, user, cents):
            hold = reservations.reserve(user, cents, self.now)
            self.holds += [hold] if hold else []

        @rule(at=st.integers(0, 5), cost=cents)
        def settle(self, at, cost):
            if self.holds:
                hold = self.holds[at % len(self.holds)]  # it may be settled or expired already
                first, second = reservations.settle(hold, cost), reservations.settle(hold, cost)
                assert second is None and (first is None or 0 <= first <= cost)

        @rule(at=st.integers(0, 5))
        def release(self, at):
            if self.holds:
                reservations.release(self.holds[at % len(self.holds)])

        @rule(minutes=st.integers(0, 15))
        def expire(self, minutes):
            self.now += timedelta(minutes=minutes)
            reservations.expire(self.now)
            assert conn.execute("SELECT count(*) FROM hold WHERE expires_at <= %s",
                                (self.now,)).fetchone() == (0,)

        @rule(user=users, cents=cents)
        def debit(self, user, cents):
            debits.debit(user, cents)

        @rule(user=users, event=st.integers(1, 3))
        def renew(self, user, event):
            new = renewal.renew(f"evt-{event}-{user}", user)
            assert (new is None) == (self.seen.get((user, event), False))
            self.seen[user, event] = True

        @invariant()
        def every_cent_is_explained(self):
            assert money.broken(conn) == []

    Money.TestCase.settings = settings(
        max_examples=12, stateful_step_count=20, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck))
    try:
        Money.TestCase().runTest()
    finally:
        conn.close()
        money.programs("models").engine().dispose()
        money.programs("models").engine.cache_clear()
        bank.reset()


@pytest.mark.timeout(1200)
def test_10_000_mixed_operations_with_processes_killed_at_random_explain_every_cent(bank):
    """Four processes at a time; each is killed at a random moment, and another takes its place.

    LAB_LONG=1 gives a slow machine as long as it needs; otherwise it has 40 s, and says so.
    """
    bank.reset()
    rng, done, killed, seed = random.Random(7), 0, 0, 0
    env = {**os.environ, "DATABASE_URL": bank.url, "PYTHONPATH": str(ROOT)}
    running = []
    deadline = time.monotonic() + (1000 if os.environ.get("LAB_LONG") else 40)
    with bank.connect() as conn:
        while done < 10_000 and time.monotonic() < deadline:
            while len(running) < 4:
                seed += 1
                process = subprocess.Popen([sys.executable, "-m", "tests.money", str(seed), "5000"],
                                           cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
                running.append([process, rng.randint(40, 160), 0])
            for one in running:
                process, most, _ = one
                line = process.stdout.readline()
                done += 10
                one[2] += 1
                assert line.strip(), "a process ended by itself"
                if one[2] >= most:
                    process.kill()
                    killed += 1
                    rest = process.communicate()[0]
                    done += 10 * rest.count("\n")
            running = [one for one in running if one[0].returncode is None]
            assert money.broken(conn) == []
        for process, *_ in running:
            process.kill()
            process.communicate()
        assert done >= 500
        assert killed >= 1
        assert money.broken(conn) == []
        renewals = conn.execute(
            "SELECT count(*) FROM ledger WHERE reason = 'renewal'").fetchone()[0]
        assert renewals == conn.execute("SELECT count(*) FROM processed_event").fetchone()[0]
    if done < 10_000:
        pytest.skip(f"every cent is explained after {done:,} operations and {killed} kills, but "
                    "10,000 take longer here; LAB_LONG=1 waits for them")


# Load


@NEEDS_API
def test_nine_passes_of_the_atomic_update_over_http_lose_nothing(server):
    seen = load.loads(server, STAGE, only=("atomic_update",))["atomic_update"]
    assert len(seen) == 9
    sent = STAGE.data["load"]["requests"]
    assert sent >= max(STAGE.data["load"]["users"]), "each user sends at least one"
    assert [(one.answered, one.failed, one.counted) for one in seen] == [(sent, 0, sent)] * 9


@NEEDS_API
def test_k6_plays_the_same_users_and_the_atomic_update_loses_nothing(server, monkeypatch):
    monkeypatch.setenv("PATH", os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]]))
    if not shutil.which("k6"):
        pytest.skip("k6 is not here (make .venv/.k6 installs it)")
    seen = load.loads(server, STAGE, k6=True, only=("atomic_update",))["atomic_update"]
    sent = STAGE.data["load"]["requests"]
    assert [(one.answered, one.failed, one.counted) for one in seen] == [(sent, 0, sent)] * 9


@NEEDS_API
def test_the_api_answers_401_for_a_revoked_key_and_402_without_balance(server, monkeypatch):
    from fastapi.testclient import TestClient

    with STAGE.database(server) as database, database.connect() as conn:
        monkeypatch.setenv("DATABASE_URL", database.url)
        app = TestClient(money.programs("api").app)
        use, debit = "/atomic_update/use", "/guarded_debit/debit"
        assert app.post(use, params={"secret": "sk-ana"}).json() == {"use_count": 1}
        conn.execute("UPDATE api_key SET revoked_at = now() WHERE id = 1")
        assert app.post(use, params={"secret": "sk-ana"}).status_code == 401
        assert app.post(debit, params={"user": 1, "cents": 100}).json() == {"balance_cents": 0}
        assert app.post(debit, params={"user": 1, "cents": 1}).status_code == 402
        assert app.post("/no_such/use", params={"secret": "sk-ana"}).status_code == 404
        money.programs("models").engine().dispose()
        money.programs("models").engine.cache_clear()


def test_the_statement_that_is_sent_from_many_connections_loses_nothing(server):
    with STAGE.database(server) as database, database.connect() as conn:
        rate = statement_load(database, STAGE.data["load"]["statement"], 4, 0.5)
        assert rate > 0
        assert conn.execute(COUNT).fetchone()[0] == round(rate * 0.5)
