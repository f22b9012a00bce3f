"""02: the thread proves that the work was done, as long as it is written."""

from pathlib import Path

import pytest

from lab.judge.scenarios import scenarios, theatre
from lab.judge.stage import stage
from tests.doctored import doctored
from tests.playing import counts, ids, outcomes, play, promised, run

STAGE = stage(Path(__file__).parent.name)
TRY = '"SELECT pg_try_advisory_xact_lock(:key)"'
BLOCKING = '"SELECT true FROM pg_advisory_xact_lock(:key)"'


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(2), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_the_count_is_as_promised(theatre_of, entry):
    assert promised(counts(theatre_of(2), entry), entry["breaks"])


# It stops what broke 01; here is what it lets through; 03 closes that.


def test_the_ticks_in_turn_that_broke_01_hold(theatre_of):
    assert play(theatre_of(1), "A2").code == "D3"
    outcome = play(theatre_of(2), "A2")
    assert outcome.code == "1"
    found = [tag for _, _, tag in outcomes(outcome.history, "SELECT threads")]
    assert found == ["SELECT 0", "SELECT 1", "SELECT 1"]


@pytest.mark.parametrize("missing", ["no-section", "no-bot"])
def test_a_thread_that_is_silently_not_written_lets_every_tick_pay(theatre_of, missing):
    outcome = run(theatre_of(2), f"+{missing} @18:00 A.. @18:01 B.. @18:02 C..")
    assert outcome.code == "D3"
    assert not [event for event in outcome.history if event.failed], "not one error"
    assert {e.outcome for e in outcome.verdict.effects if e.name == "thread"} == {"missed"}


def test_03_pays_once_when_the_thread_is_not_written(theatre_of):
    outcome = play(theatre_of(3), "A3")
    assert {e.times for e in outcome.verdict.effects if e.name == "coins"} == {1}


def test_without_the_section_interleavings_pay_twice_on_02_and_none_on_03(theatre_of):
    for number, duplicated in ((2, True), (3, False)):
        result = theatre_of(number).explore("AB", standing=["no-section"])
        assert result.complete
        assert any(code.startswith("D") for code in result.outcomes) == duplicated


# The sentinel itself


def test_two_calls_at_the_same_time_both_find_no_thread(theatre_of):
    outcome = play(theatre_of(2), "A9")
    assert outcome.code == "D2"
    assert [tag for _, _, tag in outcomes(outcome.history, "SELECT threads")] == ["SELECT 0"] * 2


def test_the_title_names_a_day_so_a_close_on_the_next_day_pays_again_and_the_claim_does_not(
    theatre_of,
):
    schedule, roles = "A.. @2026-05-30T10:00 B..", {"B": "admin"}
    assert run(theatre_of(2), schedule, roles=roles).code == "D2"
    assert run(theatre_of(3), schedule, roles=roles).code == "1"


def test_a_blocking_lock_call_takes_a_snapshot_that_is_stale_when_it_returns(server, tmp_path):
    """A10: under REPEATABLE READ who waited for the lock cannot see the thread of who had it."""
    waits = doctored(tmp_path, 2, "worker.py", TRY, BLOCKING)
    schedule = "A..commit B.. A.."
    with theatre(waits, server) as scene:
        stale = run(scene, schedule, isolation="repeatable read")
        assert [e.replica for e in stale.history if e.outcome == "waiting"] == ["B"]
        assert stale.code == "D2"
        assert run(scene, schedule).code == "1"  # READ COMMITTED: each statement has its snapshot


def test_the_claim_meets_the_same_stale_snapshot_with_40001_instead_of_a_payment(server, tmp_path):
    waits = doctored(tmp_path, 3, "worker.py", TRY, BLOCKING)
    with theatre(waits, server) as scene:
        stale = run(scene, "A..commit B.. A..", isolation="repeatable read")
    assert stale.code == "E 1"
    assert [e.outcome.split()[1] for e in stale.history if e.failed and e.kind == "statement"] == [
        "40001"]
