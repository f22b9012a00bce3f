"""01: the lock keeps overlapping ticks apart, and no others."""

from pathlib import Path

import pytest

from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from tests.playing import counts, ids, outcomes, play, promised, run

STAGE = stage(Path(__file__).parent.name)
LOCK = "SELECT pg_try_advisory_xact_lock"


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(1), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_some_interleavings_break_it(theatre_of, entry):
    result = counts(theatre_of(1), entry)
    assert entry["breaks"] == "some"
    assert promised(result, "some", "seconds" in entry)
    assert result.breaking < result.total


# It stops what broke 00; here is what it lets through; 02 closes that.


def test_the_overlap_that_broke_00_holds(theatre_of):
    assert play(theatre_of(0), "A1").code == "D3"
    outcome = play(theatre_of(1), "A1")
    assert outcome.code == "1"
    assert outcomes(outcome.history, LOCK) == [
        ("A", "ok", True), ("B", "ok", False), ("C", "ok", False)]


def test_sequential_ticks_each_get_the_lock_and_each_pay(theatre_of):
    outcome = play(theatre_of(1), "A2")
    assert outcomes(outcome.history, LOCK) == [(r, "ok", True) for r in "ABC"]
    assert outcome.code == "D3"


def test_02_closes_the_sequential_ticks(theatre_of):
    assert play(theatre_of(2), "A2").code == "1"


# The lock itself


def test_only_orders_in_which_one_tick_ends_before_the_other_begins_pay_twice(theatre_of):
    result = theatre_of(1).explore("AB")
    assert [str(f.schedule) for f in result.findings if f.breaks] == ["A.. B..", "B.. A.."]
    assert result.breaking == 2


def test_work_shorter_than_the_distance_between_ticks_is_paid_each_time(theatre_of):
    assert run(theatre_of(1), "A.. B.. C..").code == "D3"


@pytest.mark.parametrize("end", ["A..", "A.cut-before", "A.kill"],
                         ids=["commit", "rollback", "SIGKILL"])
def test_the_lock_ends_with_the_transaction_however_that_ends(theatre_of, end):
    outcome = run(theatre_of(1), f"A..commit {end} B..", error="injected")
    assert outcomes(outcome.history, LOCK) == [("A", "ok", True), ("B", "ok", True)]


def test_the_loser_of_a_try_lock_leaves_and_nobody_inherits_when_the_winner_rolls_back(theatre_of):
    assert play(theatre_of(0), "A6").code == "1"
    outcome = play(theatre_of(1), "A6")
    assert outcome.code == "M"
    assert outcomes(outcome.history, LOCK) == [("A", "ok", True), ("B", "ok", False)]
    assert not any(event.outcome == "waiting" for event in outcome.history)


def test_a_code_path_that_does_not_ask_for_the_lock_is_not_kept_out(theatre_of):
    outcome = play(theatre_of(1), "A9")
    assert outcome.code == "D2"
    assert [replica for replica, *_ in outcomes(outcome.history, LOCK)] == ["A"]
