"""Which line of the stage a replica is on, asked of the process while its statement is held."""

import pytest

from lab.engine import schedule
from lab.engine.schedule import Schedule
from lab.engine.where import where
from tests.histories import normal


@pytest.fixture
def stepper(theatre_of):
    return theatre_of(0).stepper("AB")


def line(stepper, frame):
    return (stepper.folder / frame.file).read_text("utf-8").splitlines()[frame.line - 1].strip()


def test_a_held_replica_is_on_the_line_whose_statement_comes_next(stepper):
    schedule.run(stepper, Schedule.parse("A..commit B.start"), finish=False)
    frames = where(stepper)
    assert [frame.function for frame in frames["A"]] == ["tick"]
    assert line(stepper, frames["A"][0]) == "db.commit()"
    assert [frame.function for frame in frames["B"]] == ["leaderboard_close", "tick"]
    assert line(stepper, frames["B"][0]) == "winners = podium(db, week_key(now))"


def test_who_has_no_run_under_way_or_is_frozen_is_nowhere(stepper):
    schedule.run(stepper, Schedule.parse("A.."), finish=False)
    assert where(stepper) == {}
    schedule.run(stepper, Schedule.parse("A B B.freeze"), finish=False)
    assert list(where(stepper)) == ["A"]


def test_being_asked_changes_nothing_of_the_run(stepper):
    plain = normal(schedule.run(stepper, Schedule.parse("A*3 B.. A..")))
    stepper.reset()
    for number, move in enumerate(Schedule.parse("A*3 B.. A..")):
        stepper.record.move = number
        schedule.make(stepper, move)
        where(stepper)
    assert normal(stepper.history) == plain
