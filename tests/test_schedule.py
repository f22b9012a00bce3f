"""Schedules: text that prints back, moves that do what they say, the same history every time."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.engine import schedule as schedules
from lab.engine.schedule import ACTIONS, Move, Schedule, run
from lab.engine.stepper import Impossible
from lab.errors import LabError
from tests.histories import normal
from tests.sampling import cast, left, sampler

LETTERS = st.sampled_from("ABCZ")
MOVES = st.one_of(
    st.builds(Move, st.just("step"), LETTERS, st.integers(1, 30).map(str)),
    st.builds(Move, st.just("run"), LETTERS, st.sampled_from(["", "commit", "insert:worker_runs"])),
    st.builds(Move, st.sampled_from(ACTIONS), LETTERS),
    st.builds(Move, st.just("clock"), st.just(""), st.one_of(
        st.times().map(lambda t: f"{t:%H:%M}"), st.datetimes().map(lambda t: f"{t:%H:%M:%S}"),
        st.datetimes().map(lambda t: f"{t.year:04}-{t:%m-%dT%H:%M}"))),
    st.builds(Move, st.just("condition"), st.just(""), st.sampled_from(["no-section", "no-bot"])))


@pytest.fixture(scope="module")
def stepper(server):
    with sampler(server, spares=1, imports=("psycopg",)) as made:
        yield made


def play(stepper, text: str, **programs: tuple):
    """Run a schedule; without programs everyone claims the job."""
    cast(stepper, **(programs or {letter: ("claim", letter) for letter in "AB"}))
    return run(stepper, Schedule.parse(text))


def told(history, *fields: str) -> list[tuple]:
    """These fields of every event, as they are shown."""
    return [tuple(getattr(event, field) for field in fields) for event in history]


def table(stepper, name: str) -> list[tuple]:
    return stepper.monitor.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()


# Text


@given(st.lists(MOVES, max_size=12))
def test_a_schedule_that_is_printed_and_read_again_is_the_same(moves):
    assert Schedule.parse(str(Schedule(moves))) == Schedule(moves)


@given(st.lists(st.sampled_from("AB"), max_size=20))
def test_single_steps_drawn_together_are_the_same_steps(letters):
    drawn = "".join(move.letter * int(move.argument) for move in Schedule.of(letters))
    assert drawn == "".join(letters)


@pytest.mark.parametrize("word", [
    "a", "AB", "A*0", "A*", "A.jump", "A.", "@6:00", "@25:00", "@18:61", "@2026-02-30T18:00", "+",
    "A->B", "A..(x)"])
def test_what_is_no_move_is_named(word):
    with pytest.raises(LabError) as caught:
        Schedule.parse(f"A {word} B..")
    assert f"“{word}”" in caught.value.what


def test_the_words_of_a_point_may_stand_anywhere_in_the_label(stepper):
    history = play(stepper, "A..insert:log")
    assert [e.label for e in history if e.move == 0] == ["worker:claim", "INSERT claims"]


# Moves


def test_a_step_is_one_statement_and_the_first_begins_the_run(stepper):
    history = play(stepper, "A B A*2")
    assert told(history, "move", "replica", "label", "outcome") == [
        (0, "A", "worker:claim", "ok"), (0, "A", "INSERT claims", "ok"),
        (1, "B", "worker:claim", "ok"), (1, "B", "INSERT claims", "waiting"),
        (2, "A", "INSERT log", "ok"), (2, "A", "COMMIT", "ok"), (2, "B", "INSERT claims", "ok"),
        (2, "A", "end", "ok"), (3, "B", "COMMIT", "ok"), (3, "B", "end", "ok")]


def test_a_wait_is_shown_and_later_completed(stepper):
    history = play(stepper, "A..commit B.. A..")
    (waiting,) = [e for e in history if e.outcome == "waiting"]
    (resumed,) = [e for e in history if e.resumes is not None]
    assert (waiting.replica, waiting.waits_for, waiting.ended) == ("B", ("A",), None)
    assert (resumed.resumes, resumed.label, resumed.outcome) == (waiting.seq, "INSERT claims", "ok")
    assert resumed.detail["tag"] == "INSERT 0 0"
    assert [(e.replica, e.label) for e in history if e.move == 2] == [
        ("A", "COMMIT"), ("B", "INSERT claims"), ("A", "end")]
    assert history.complete and table(stepper, "claims") == [("job", "A")]


def test_replicas_that_are_left_run_to_their_end_in_name_order(stepper):
    history = play(stepper, "B A")
    assert history.complete
    assert [e.replica for e in history if e.kind == "end"] == ["B", "A"]
    assert table(stepper, "claims") == [("job", "B")]


def test_a_kill_rolls_back_what_was_not_committed(stepper):
    history = play(stepper, "A..commit A.kill B..")
    assert told(history, "kind", "outcome")[3] == ("kill", "killed")
    assert (table(stepper, "claims"), history.complete) == ([("job", "B")], True)


def test_a_kill_of_one_who_waits_leaves_the_other_alone(stepper):
    history = play(stepper, "A..commit B.. B.kill A..")
    assert [e.outcome for e in history if e.replica == "B"] == ["ok", "waiting", "killed"]
    assert (table(stepper, "claims"), history.complete) == ([("job", "A")], True)


def test_a_cut_before_the_commit_undoes_and_a_cut_after_it_only_hides(stepper):
    history = play(stepper, "A..commit A.cut-before")
    assert table(stepper, "claims") == []
    assert [e.outcome[:9] for e in history if e.kind in ("cut", "end")] == ["cut", "error: Op"]
    history = play(stepper, "A..commit A.cut-after B..")
    assert table(stepper, "claims") == [("job", "A")]
    assert [(e.kind, e.outcome[:9]) for e in history if e.replica == "A"][-3:] == [
        ("cut", "cut"), ("commit", "cut"), ("end", "error: Op")]


def test_a_frozen_replica_keeps_its_locks_until_it_is_thawed(stepper):
    history = play(stepper, "A..commit A.freeze B.. A.thaw A..")
    assert [(e.kind, e.outcome) for e in history if e.move >= 1 and e.label != "end"][:4] == [
        ("freeze", "ok"), ("tick", "ok"), ("statement", "waiting"), ("thaw", "ok")]
    assert table(stepper, "claims") == [("job", "A")]


def test_a_frozen_replica_that_nobody_thaws_makes_the_history_incomplete(stepper):
    assert not play(stepper, "A..commit A.freeze B..").complete
    assert play(stepper, "A.. B..").complete


def test_a_restart_is_a_new_process_and_again_is_the_same_one(stepper):
    play(stepper, "A..")
    before = stepper.replicas["A"].process.popen.pid
    history = play(stepper, "A.. A.again A..")
    assert [e.kind for e in history].count("tick") == 2
    assert stepper.replicas["A"].process.popen.pid == before
    play(stepper, "A.. A.restart A..")
    assert stepper.replicas["A"].process.popen.pid != before


def test_the_clock_is_set_for_all_and_written_down(stepper):
    history = play(stepper, "A.. @18:07 B.. @2026-06-05T09:00:30 C..",
                   **{letter: ("tell_time", letter) for letter in "ABC"})
    assert table(stepper, "seen") == [
        ("A", "29 18:00:00"), ("B", "29 18:07:00"), ("C", "05 09:00:30")]
    assert [e.clock for e in history if e.kind == "tick"] == [
        "2026-05-29T18:00:00-06:00", "2026-05-29T18:07:00-06:00", "2026-06-05T09:00:30-06:00"]


def test_a_condition_changes_the_world_and_only_for_this_run(stepper, monkeypatch):
    poor = {"poor": ["UPDATE wallets SET balance = 0"]}
    monkeypatch.setattr(schedules, "conditions", lambda: poor)
    play(stepper, "+poor A..", A=("increment",))
    assert table(stepper, "wallets")[0] == (1, 10)
    play(stepper, "A..", A=("increment",))
    assert table(stepper, "wallets")[0] == (1, 110)
    with pytest.raises(LabError, match=r"no condition “rich”.*\n.*poor"):
        play(stepper, "+rich")


# Errors are outcomes


def test_a_deadlock_is_an_outcome_of_the_one_who_closes_the_circle(stepper):
    history = play(stepper, "A B A B..", A=("move", 1, 2), B=("move", 2, 1))
    (broken,) = [e for e in history if e.failed and e.kind == "statement"]
    assert (broken.replica, broken.outcome[:12]) == ("B", "error: 40P01")
    assert [(e.replica, e.waits_for) for e in history if e.outcome == "waiting"] == [("A", ("B",))]
    assert {e.replica: e.outcome[:12] for e in history if e.kind == "end"} == {
        "A": "ok", "B": "error: 40P01"}
    assert history.complete and table(stepper, "wallets")[:2] == [(1, 90), (2, 110)]
    history = play(stepper, "A B B A..", A=("move", 1, 2), B=("move", 2, 1))
    assert [e.replica for e in history if e.failed and e.kind == "statement"] == ["A"]


def test_a_serialization_failure_is_an_outcome(stepper):
    history = play(stepper, "A B A.. B..", A=("increment", 3), B=("increment", 3))
    assert [(e.replica, e.outcome[:12]) for e in history if e.kind == "end"] == [
        ("A", "ok"), ("B", "error: 40001")]


def test_a_lost_update_is_no_error(stepper):
    history = play(stepper, "A B A.. B..", A=("increment",), B=("increment",))
    assert not any(e.failed for e in history) and table(stepper, "wallets")[0] == (1, 110)


def test_an_exit_with_a_code_is_an_error_and_without_one_an_end(stepper):
    assert [e.outcome for e in play(stepper, "A..", A=("leave", 3)) if e.kind == "end"] == [
        "error: SystemExit 3"]
    assert [e.outcome for e in play(stepper, "A..", A=("leave", 0)) if e.kind == "end"] == ["ok"]


# What cannot be done is said


@pytest.mark.parametrize(("text", "what", "possible"), [
    ("A.. A", "A cannot take a step: it is finished.", "none"),
    ("A..commit B.. B", "B cannot take a step: it is waiting for A.", "A"),
    ("A B.kill B", "B cannot start a run: it is dead.", "A"),
    ("A B A.kill A", "A cannot take a step: it is dead.", "B"),
    ("A A.freeze A", "A cannot take a step: it is frozen.", "none"),
    ("A A.freeze A.freeze", "A cannot be frozen: it is frozen.", "none"),
    ("A A.thaw", "A cannot be thawed: it is held at INSERT log.", "A"),
    ("A A.again", "A cannot run again: it is held at INSERT log.", "A"),
    ("A.. A.cut-before", "A cannot have its connection cut: it is finished.", "none"),
    ("A.kill A.kill", "A cannot be killed: it is dead.", "none"),
])
def test_a_move_that_is_impossible_says_what_was_possible(stepper, text, what, possible):
    with pytest.raises(Impossible) as caught:
        play(stepper, text)
    assert caught.value.what == what
    assert caught.value.remedy.startswith(f"Replicas that can take a step now: {possible}.\n")
    assert "  A: " in caught.value.remedy and "  B: " in caught.value.remedy


def test_a_replica_or_a_point_that_there_is_not_is_named(stepper):
    with pytest.raises(Impossible, match=r"no replica Z\.\nThe replicas of this run are A, B\."):
        play(stepper, "A Z")
    with pytest.raises(Impossible, match=r"never came to “delete”; its run ended: ok\.\n.*claims"):
        play(stepper, "A..delete")


# The same every time


def test_what_a_session_holds_does_not_outlive_the_run(stepper):
    programs = {letter: ("hold_session_lock", letter, False) for letter in "AB"}
    for _ in range(3):
        play(stepper, "B.. A..", **programs)
        assert [who for _, who in table(stepper, "log")] == ["B"]
        play(stepper, "A.. B..", **programs)
        assert [who for _, who in table(stepper, "log")] == ["A"]


def test_a_wait_for_a_lock_that_nobody_will_release_ends_with_the_run(stepper):
    programs = {letter: ("hold_session_lock", letter) for letter in "AB"}
    history = play(stepper, "A.. B..", **programs)
    assert history[-1].waits_for == ("A",) and not history.complete
    assert play(stepper, "B..", **programs).complete


def test_the_lock_of_a_connection_that_was_closed_is_gone_for_the_next_move(stepper):
    for _ in range(30):
        play(stepper, "B.. A..", A=("own_connection", "A"), B=("own_connection", "B"))
        assert len(table(stepper, "log")) == 2


def test_a_transaction_that_is_left_open_does_not_outlive_the_run(stepper):
    for _ in range(2):
        play(stepper, "A..", A=("leave_open", "A"))
        assert table(stepper, "log") == []


@contextmanager
def both_cores_busy():
    """Something else runs on every core, at the same priority."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.timeout(300)
def test_one_schedule_gives_one_history_200_times_of_200_on_a_busy_machine(stepper):
    with both_cores_busy():
        cast(stepper, A=("claim", "A", True), B=("claim", "B"), C=("increment",))
        schedule = Schedule.parse("A C A B C.. A.. B..")
        histories = [normal(run(stepper, schedule)) for _ in range(200)]
        end = left(stepper, stepper.history)
        cast(stepper, A=("move", 1, 2), B=("move", 2, 1))
        deadlock = Schedule.parse("A B A B.. A..")
        deadlocks = [normal(run(stepper, deadlock)) for _ in range(50)]
    assert all(history == deadlocks[0] for history in deadlocks)
    assert all(history == histories[0] for history in histories)
    assert [e.replica for e in histories[0] if e.outcome == "waiting"] == ["B"]
    assert end.startswith(
        "[('A', 'error: RuntimeError'), ('B', 'ok'), ('C', 'ok')] claims=['jobB']")
