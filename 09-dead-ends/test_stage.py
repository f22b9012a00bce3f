"""09: each dead end holds where it should, and a forced schedule breaks it; the claim closes it."""

from pathlib import Path

import pytest

from lab.engine import redis
from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from tests.playing import counts, ids, play, promised, run

STAGE = stage(Path(__file__).parent.name)
ALL = scenarios(STAGE)
WITH_REDIS = [name for name in ALL if ALL[name].everyone in STAGE.data["redis"]]
lack = redis.missing()
needs_redis = pytest.mark.skipif(lack is not None, reason=str(lack).replace("\n", " "))


def times(outcome, name):
    return {effect.times for effect in outcome.verdict.effects if effect.name == name}


@pytest.mark.parametrize("name", [name for name in ALL if name not in WITH_REDIS])
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(9), name)
    assert outcome.code == outcome.expected


@needs_redis
@pytest.mark.parametrize("name", WITH_REDIS)
def test_the_scenario_with_redis_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(9), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_every_interleaving_comes_out_as_promised(theatre_of, entry):
    if lack and entry["everyone"] in STAGE.data["redis"]:
        pytest.skip(str(lack))
    assert promised(counts(theatre_of(9), entry), entry["breaks"])


# Redis


@needs_redis
def test_a_frozen_owner_does_not_release_the_lock_of_the_next_one(theatre_of):
    late = "A..commit A.freeze @18:10 B..commit A.thaw A.. C.. B.."
    outcome = run(theatre_of(9), late, everyone="redis-lock")
    told = [(e.label, e.detail["tag"]) for e in outcome.history if e.replica == "C"
            and e.kind in ("statement", "request")]
    assert told == [("SET NX redis://leaderboard", "nil")], "B still holds it: C does nothing"
    released = [(e.replica, e.detail["tag"]) for e in outcome.history if e.label.startswith("EVAL")]
    assert released == [("A", "nil"), ("B", "1")]
    assert times(outcome, "coins") == {2}, "A and B were owners at the same time, by the clock"


@needs_redis
def test_the_lock_expires_only_once_its_time_is_over(theatre_of):
    for minute, wanted in ((4, 1), (5, 2)):
        schedule = f"A..commit A.freeze @18:0{minute} B.. A.thaw A.."
        assert times(run(theatre_of(9), schedule, everyone="redis-lock"), "coins") == {wanted}


@needs_redis
def test_every_failover_without_the_key_breaks_it_and_none_with_the_key(theatre_of):
    for _ in range(3):
        assert play(theatre_of(9), "R6").code == "D2"
        assert play(theatre_of(9), "R5").code == "1"


def test_without_redis_server_the_reason_and_the_remedy_are_named(monkeypatch):
    monkeypatch.setattr(redis.shutil, "which", lambda name: None)
    assert "apt-get install redis-server" in str(redis.missing())


# A leader


@pytest.mark.parametrize("point", ["insert:token_transactions", "insert:notifications",
                                   "insert:threads", "commit"])
def test_a_leader_woken_on_any_line_of_its_work_past_its_lease_pays_again(theatre_of, point):
    schedule = f"A..{point} A.freeze @18:10 B.. A.thaw A.."
    if point == "commit":  # the lease has a commit of its own, before that of the work
        schedule = "A..insert:threads A A.freeze @18:10 B.. A.thaw A.."
    assert run(theatre_of(9), schedule, everyone="leader").code == "D2"
    assert run(theatre_of(9), schedule, everyone="fenced-leader").code == "1"


def test_a_leader_that_renews_stays_the_leader(theatre_of):
    schedule = "@18:00 A.. @18:04 A.again A.. @18:08 B.."
    outcome = run(theatre_of(9), schedule, everyone="fenced-leader")
    assert not [e for e in outcome.history if e.replica == "B" and e.label == "INSERT worker_runs"]


def test_a_former_leader_is_refused_before_its_successor_has_claimed(theatre_of):
    outcome = play(theatre_of(9), "F3c")
    claims = [(e.replica, e.detail.get("tag")) for e in outcome.history
              if e.label == "INSERT worker_runs"]
    assert claims == [("A", "INSERT 0 0"), ("B", "INSERT 0 1")]


def test_the_plain_claim_of_stage_03_needs_no_leader(theatre_of):
    assert play(theatre_of(3), "A2").code == "1"


# The notification


def test_the_bell_rings_once_and_the_coins_arrive_three_times(theatre_of):
    outcome = play(theatre_of(9), "N1")
    assert times(outcome, "notifications") == {1}
    assert times(outcome, "coins") == {3} == times(outcome, "thread")


def test_the_next_consumer_is_the_next_hole(theatre_of):
    outcome = play(theatre_of(9), "N2")
    assert times(outcome, "notifications") == times(outcome, "coins") == {1}
    assert times(outcome, "thread") == {3}


def test_ticks_that_overlap_do_not_see_each_other_and_even_the_bell_rings_twice(theatre_of):
    outcome = play(theatre_of(9), "N3")
    assert times(outcome, "notifications") == times(outcome, "coins") == {2}
