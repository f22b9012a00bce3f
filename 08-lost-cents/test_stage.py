"""08: a cost, a pocket, a balance that somebody forgot; and the place that cannot be forgotten."""

from datetime import timedelta
from pathlib import Path

import pytest

from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from lab.show import distribution
from tests import money
from tests.playing import counts, ids, play, promised, run

HERE = Path(__file__).parent
STAGE = stage(HERE.name)


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(8), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_the_interleavings_break_it_as_promised(theatre_of, entry):
    assert promised(counts(theatre_of(8), entry), entry["breaks"])


@pytest.fixture
def database(theatre_of, monkeypatch):
    """The stage's database as it begins, and this process as one of its programs."""
    found = theatre_of(8).database
    found.reset()
    monkeypatch.setenv("DATABASE_URL", found.url)
    yield found
    found.reset()


def effect(outcome, name):
    return [(e.subject, e.times, e.expected) for e in outcome.verdict.effects if e.name == name]


# The repeated search


@pytest.mark.parametrize(("variant", "quota", "report"), [
    ("forgotten_spend", 1, 3), ("status_column", 3, 9), ("unbilled_spend", 1, 9)])
def test_quota_report_and_invoice_of_a_search_that_is_made_three_times(
        database, variant, quota, report):
    readers = money.programs("readers")
    for _ in range(3):
        money.programs(variant).search(1, "bache", 3, money.START)
    with database.connect() as conn:
        assert readers.quota_used(conn, 1) == quota
        assert readers.spent(conn) == report
        assert conn.execute("SELECT sum(cents) FROM provider_invoice").fetchone() == (9,)


def test_the_price_of_a_charged_search_is_that_of_the_first_and_no_repetition_changes_it(database):
    readers, search = money.programs("readers"), money.programs("unbilled_spend").search
    with database.connect() as conn:
        search(1, "bache", 3, money.START)
        before = readers.cost_per_charged_search(conn)
        search(1, "bache", 9, money.START)
        assert readers.cost_per_charged_search(conn) == before == 3.0
    money.programs("status_column").search(1, "bache", 9, money.START)
    with database.connect() as conn:
        assert readers.cost_per_charged_search(conn) == 6.0, "the tempting fix moves the price"


def test_the_row_with_another_status_is_what_the_next_repetition_refers_to(database):
    for minute in range(3):
        money.programs("status_column").search(
            1, "bache", 3, money.START + timedelta(minutes=minute))
    with database.connect() as conn:
        first, second, third = conn.execute(
            "SELECT id, status, duplicate_of FROM search ORDER BY id").fetchall()
    assert second == (first[0] + 1, "duplicate", first[0])
    assert third[2] == second[0], "not the search that was charged"


def test_the_spend_outlives_the_search_that_it_refers_to(database):
    readers = money.programs("readers")
    for _ in range(2):
        money.programs("unbilled_spend").search(1, "bache", 3, money.START)
    with database.connect() as conn:
        conn.execute("DELETE FROM search")
        spend = conn.execute("SELECT search_id, cost_cents FROM unbilled_search_spend").fetchall()
        assert spend == [(None, 3)]
        assert readers.spent(conn) == 3


# Two pockets


def test_a_402_with_the_credits_there_to_be_seen(database):
    assert money.programs("one_pocket").generate(1, 5) is None
    assert money.programs("both_pockets").generate(1, 5) == 7


def test_daily_credits_go_first_and_neither_pocket_goes_below_zero(database):
    generate = money.programs("both_pockets").generate
    with database.connect() as conn:
        for cost, left, pockets in ((7, 5, (3, 2)), (5, 0, (0, 0)), (5, None, (0, 0))):
            assert generate(1, cost) == left
            found = conn.execute("SELECT daily_credits, sub_credits FROM profile").fetchone()
            assert found == pockets


def test_nobody_can_write_the_total_but_the_database(database):
    import psycopg

    with database.connect() as conn, pytest.raises(psycopg.errors.GeneratedAlways):
        conn.execute("UPDATE profile SET total_credits = 99")


# The renewal


def test_every_customer_loses_what_was_left_and_none_when_it_is_added(server):
    lost = distribution.losses(server, STAGE)
    assert len(lost["overwrite"]) == 40
    assert all(cents > 0 for cents in lost["overwrite"])
    assert set(lost["renew_once"]) == {0}


def test_the_cost_of_a_purchase_in_the_gap_comes_back(theatre_of):
    balance = effect(play(theatre_of(8), "C7"), "balance")
    assert balance == [("balance", 310 + 1499, 310 + 1499 - 200)]


def test_an_event_delivered_twice_adds_twice_and_with_its_id_once(theatre_of):
    for program, balance in (("one_update", 310 + 2 * 1499), ("renew_once", 310 + 1499)):
        outcome = run(theatre_of(8), "A.. B..", everyone=program)
        assert effect(outcome, "balance")[0][1] == balance


def test_a_bare_least_cuts_after_a_downgrade_and_the_repaired_statement_does_not(theatre_of):
    for program, balance in (("one_update", 3 * 499), ("renew_once", 3800)):
        outcome = run(theatre_of(8), "+downgraded A..", everyone=program)
        assert effect(outcome, "balance")[0][1] == balance


def test_killed_at_any_statement_the_event_is_applied_once_when_it_comes_again(theatre_of):
    steps = len([e for e in run(theatre_of(8), "A..", everyone="renew_once").history
                 if e.kind in ("statement", "commit")])
    for step in range(1, steps + 1):
        assert run(theatre_of(8), f"A*{step} A.kill B..", everyone="renew_once").code == "1", step
    assert play(theatre_of(8), "C10").code == "lost", "the id on its own, committed first"


def test_the_ledger_explains_the_balance_after_renewals_up_to_the_cap(database):
    renew = money.programs("renew_once").renew
    balances = [renew(f"evt-{n}", 1) for n in range(4)]
    assert balances == [1809, 3308, 4497, 4497]
    with database.connect() as conn:
        assert conn.execute("SELECT sum(cents) FROM ledger WHERE user_id = 1").fetchone() == (4497,)
