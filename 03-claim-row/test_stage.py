"""03: a slot is paid once, whoever tries; and what a claim that was committed too easily loses."""

import asyncio
import importlib.util
import re
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from lab.world.clock import MX
from lab.world.community import week_key
from tests.playing import counts, ids, outcomes, play, promised, run

HERE = Path(__file__).parent
STAGE = stage(HERE.name)
CLAIM = "INSERT worker_runs"
SLOT = ("leaderboard_close", "2026-W42")
OTHER_PATH = {"B": "admin"}  # does not ask for the lock of the tick


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(3), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_no_interleaving_pays_twice(theatre_of, entry):
    result = counts(theatre_of(3), entry)
    assert promised(result, entry["breaks"], "seconds" in entry)
    assert not any(code.startswith("D") for code in result.outcomes)


def test_no_interleaving_with_a_second_code_path_pays_twice_as_on_02(theatre_of):
    for number, breaks in ((2, "some"), (3, "none")):
        assert promised(theatre_of(number).explore("AB", roles=OTHER_PATH), breaks)


# It stops what broke 02; here is what it lets through.


@pytest.mark.parametrize("name", ["A3", "A9"])
def test_the_schedule_that_broke_02_pays_once(theatre_of, name):
    assert play(theatre_of(2), name).code.startswith("D")
    effects = play(theatre_of(3), name).verdict.effects
    assert {effect.times for effect in effects if effect.name == "coins"} == {1}


def test_a_silent_none_that_is_committed_burns_the_slot_and_loses_the_thread(theatre_of):
    schedule = "+no-section @18:00 A.. +section-back @18:01 B.. @18:02 C.."
    outcome = run(theatre_of(3), schedule)
    assert outcome.code == "P"
    assert not [event for event in outcome.history if event.failed], "not one error"


def test_raised_as_an_error_it_leaves_the_slot_open_for_the_next_tick(theatre_of):
    schedule = "+no-section @18:00 A.. +section-back @18:01 B.. @18:02 C.."
    outcome = run(theatre_of(3), schedule, everyone="strict", error="injected")
    assert outcome.code == "1"
    assert [tag for _, _, tag in outcomes(outcome.history, CLAIM)] == [
        "INSERT 0 1", "INSERT 0 1", "INSERT 0 0"]


def test_a_claim_committed_on_its_own_loses_the_week_when_the_process_dies(theatre_of):
    outcome = play(theatre_of(3), "A11")
    assert outcome.code == "M"
    assert [tag for _, _, tag in outcomes(outcome.history, CLAIM)] == [
        "INSERT 0 1", "INSERT 0 0", "INSERT 0 0"]
    assert run(theatre_of(3), "A.. B..", everyone="claim-first").code == "1"


def test_killed_at_any_statement_the_slot_is_free_for_the_next_tick(theatre_of):
    statements = [e for e in run(theatre_of(3), "A..").history if e.kind == "statement"]
    for step in range(len(statements) + 1):
        before = f"A*{step} A.kill" if step else "A.kill"
        assert run(theatre_of(3), f"{before} @18:01 B..").code == "1", before


# A rival


def test_a_rival_waits_and_gets_no_row_when_the_first_commits(theatre_of):
    outcome = run(theatre_of(3), "A..commit B.. A..", roles=OTHER_PATH)
    assert outcomes(outcome.history, CLAIM) == [
        ("A", "ok", "INSERT 0 1"), ("B", "waiting", None), ("B", "ok", "INSERT 0 0")]
    assert outcome.code == "1"


@pytest.mark.parametrize("end", ["A.cut-before", "A.kill"], ids=["rollback", "SIGKILL"])
def test_a_rival_waits_and_wins_when_the_first_rolls_back(theatre_of, end):
    outcome = run(theatre_of(3), f"A..commit B.. {end}", roles=OTHER_PATH, error="injected")
    assert outcomes(outcome.history, CLAIM) == [
        ("A", "ok", "INSERT 0 1"), ("B", "waiting", None), ("B", "ok", "INSERT 0 1")]
    assert outcome.code == "1"


def test_under_repeatable_read_the_rival_gets_40001_and_no_row_when_it_tries_again(theatre_of):
    outcome = run(theatre_of(3), "A..commit B.. A.. B.. B.again", roles=OTHER_PATH,
                  isolation="repeatable read")
    failed = [e for e in outcome.history if e.failed and e.kind == "statement"]
    assert [e.outcome.split()[1] for e in failed] == ["40001"]
    assert outcomes(outcome.history, CLAIM)[-1] == ("B", "ok", "INSERT 0 0")
    assert {effect.outcome for effect in outcome.verdict.effects} == {"once"}


# claim_run by itself


@pytest.fixture(scope="module")
def database(server):
    with STAGE.database(server) as made:
        yield made


@pytest.fixture
def claim_run():
    spec = importlib.util.spec_from_file_location("claims_of_03", HERE / "claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.claim_run


@contextmanager
def two_sessions(database, **options):
    url = make_url(database.url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, **options)
    with Session(engine) as one, Session(engine) as other:
        yield one, other
    with engine.begin() as conn:
        conn.execute(text("DELETE FROM worker_runs"))
    engine.dispose()


def test_rollback_releases_the_slot(database, claim_run):
    with two_sessions(database) as (db, other):
        assert claim_run(db, *SLOT) is True
        db.rollback()
        assert db.scalar(text("SELECT count(*) FROM worker_runs")) == 0
        assert claim_run(other, *SLOT) is True


def test_a_committed_claim_is_refused_to_others_and_only_for_its_name_and_key(database, claim_run):
    with two_sessions(database) as (db, other):
        assert claim_run(db, *SLOT) is True
        assert claim_run(db, *SLOT) is False  # its own, in the same transaction
        db.commit()
        assert claim_run(other, *SLOT) is False
        assert claim_run(other, "weekly_digest", SLOT[1]) is True
        assert claim_run(other, SLOT[0], "2026-W43") is True


def test_a_snapshot_older_than_the_claim_gets_40001_though_nobody_is_in_its_way(
    database, claim_run,
):
    with two_sessions(database, isolation_level="REPEATABLE READ") as (db, other):
        other.scalar(text("SELECT count(*) FROM worker_runs"))  # takes the snapshot
        assert claim_run(db, *SLOT) is True
        db.commit()
        with pytest.raises(OperationalError) as caught:
            claim_run(other, *SLOT)
        assert caught.value.orig.sqlstate == "40001"
        other.rollback()
        assert claim_run(other, *SLOT) is False  # the whole transaction again, with a new snapshot


def test_the_async_form_in_the_readme_does_the_same(database):
    pytest.importorskip("asyncpg", reason="asyncpg is not installed: make .venv/.test")
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    blocks = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text("utf-8"), re.S)
    (block,) = [block for block in blocks if "AsyncSession" in block]
    names = {}
    exec(block, names)
    claim_run = names["claim_run"]
    url = make_url(database.url).set(drivername="postgresql+asyncpg")

    async def rivals():
        engine = create_async_engine(url)
        async with AsyncSession(engine) as db, AsyncSession(engine) as other:
            assert await claim_run(db, *SLOT) is True
            await db.rollback()
            assert await claim_run(db, *SLOT) is True
            waiting = asyncio.create_task(claim_run(other, *SLOT))
            done, _ = await asyncio.wait([waiting], timeout=0.2)
            assert not done, "the rival waits for the first transaction"
            await db.commit()
            assert await waiting is False
        await engine.dispose()

    asyncio.run(rivals())
    with two_sessions(database):  # takes the row away
        pass


# Keys


@pytest.mark.parametrize(("moment", "key"), [
    (datetime(2026, 5, 29, 18, tzinfo=MX), "2026-W22"),
    (datetime(2021, 1, 1, 18, tzinfo=MX), "2020-W53"),  # New Year's Day in the old ISO year
    (datetime(2024, 12, 31, 18, tzinfo=MX), "2025-W01"),  # New Year's Eve in the new one
    (datetime(2027, 1, 1, 18, tzinfo=MX), "2026-W53"),  # a Friday of week 53
    (datetime(2026, 5, 30, 0, tzinfo=UTC), "2026-W22"),  # Friday 18:00 in Mexico, Saturday in UTC
    (datetime(2026, 6, 1, 1, tzinfo=UTC), "2026-W22"),  # Sunday in Mexico, Monday of W23 in UTC
    (datetime(2022, 4, 4, 4, 30, tzinfo=UTC), "2022-W13"),  # Sunday 23:30, with daylight saving
    (datetime(2023, 4, 3, 5, 30, tzinfo=UTC), "2023-W13"),  # Sunday 23:30, without
], ids=lambda value: value if isinstance(value, str) else value.isoformat())
def test_the_key_is_the_iso_week_of_mexico_city(moment, key):
    assert week_key(moment) == key


def test_calendar_year_and_iso_week_do_not_go_together():
    new_year = datetime(2021, 1, 1, 18, tzinfo=MX)
    assert f"{new_year:%Y}-W{new_year.isocalendar().week:02d}" == "2021-W53"  # never comes
    assert week_key(new_year) == f"{new_year:%G-W%V}"
