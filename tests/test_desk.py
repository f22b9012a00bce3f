"""The run behind the page: the moves as text, the code shown, and that nothing is left behind."""

import textwrap

import pytest

from lab.engine import schedule as schedules
from lab.engine.schedule import Schedule
from lab.engine.stepper import Impossible
from lab.engine.where import Frame
from lab.errors import LabError
from lab.show.page import soak
from lab.show.page.code import entry, excerpt
from lab.show.page.desk import Desk
from lab.show.page.guard import refusal
from lab.show.page.view import plain, view

SECONDS = 6.0


@pytest.fixture(scope="module")
def desk(server):
    one = Desk(3)
    yield one
    one.close()


def test_a_desk_that_was_closed_opens_where_it_was(desk):
    desk.do("play", text="A..commit B..")
    before = view(desk)
    desk.close()
    desk.open()
    after = view(desk)
    assert after["schedule"] == before["schedule"] == "A..commit B.."
    assert after["timeline"] == before["timeline"]


def test_a_problem_leaves_the_run_as_it_was(desk):
    desk.do("play", text="A*2")
    for order, what in (("move", {"text": "A Z"}), ("play", {"text": "nonsense"}),
                        ("choose", {"number": 77}), ("cast", {"letters": "AB", "everyone": "x"}),
                        ("scenario", {"name": "A99"})):
        desk.do(order, **what)
        assert isinstance(desk.problem, LabError)
        assert view(desk)["schedule"] == "A*2"
        assert view(desk)["stage"]["number"] == 3


def test_a_move_that_a_replay_cannot_make_again_ends_the_run_there_and_is_told(desk, monkeypatch):
    desk.do("play", text="A B A B A")
    made = schedules.make

    def another_first(stepper, move):  # as when two waited for A, and the other one wakes first
        if stepper.record.move == 3:
            raise Impossible("B cannot take a step: it is waiting for C.", "C can.")
        made(stepper, move)

    monkeypatch.setattr(schedules, "make", another_first)
    desk.do("undo")
    assert view(desk)["schedule"] == "A B A"
    assert desk.problem.what.endswith("the run ends before B.")
    monkeypatch.undo()
    desk.do("move", text="A")
    assert desk.problem is None
    assert view(desk)["schedule"] == "A B A A"


def test_only_a_run_to_the_end_without_faults_counts_as_tried(desk):
    desk.do("cast", letters="AB")
    for schedule in ("A..", "A..commit A.kill B..", "A.. @18:01 B.."):
        desk.do("play", text=schedule)
    assert view(desk)["tried"]["count"] == 0
    desk.do("play", text="A.. B..")
    assert view(desk)["tried"]["total"] > 1, "counted unasked, as far as a few seconds reach"
    desk.do("count")
    tried = view(desk)["tried"]
    assert (tried["count"], tried["broke"], tried["breaking"]) == (1, 0, 0)
    assert tried["complete"]
    assert view(desk)["schedule"] == "A.. B..", "the run is still there"


def test_a_scenario_comes_out_on_the_page_as_it_is_promised(desk):
    for name in ("A4", "A6", "A9"):  # other programs for all, a fault, another program for one
        desk.do("scenario", name=name)
        shown = view(desk)["verdict"]
        assert (shown["certain"], shown["code"]) == (True, desk.stage.data["expect"][name])


def test_a_failing_one_is_looked_for_among_the_parts_that_were_chosen(server):
    one = Desk(7)
    try:
        one.do("cast", letters="AB", everyone="guarded_debit")
        one.do("failing")
        assert one.note == {"kind": "none-fails"}
        one.do("cast", letters="AB", everyone="check_then_debit")
        for _ in range(2):
            one.do("failing")
            assert (one.note["code"], one.everyone) == ("negative", "check_then_debit")
            assert view(one)["verdict"]["code"] == "negative"
        one.do("cast", letters="AB")
        one.do("failing")
        first = one.note["schedule"]
        one.do("failing")
        assert one.note["schedule"] != first, "asked again, the next one"
    finally:
        one.close()


def test_a_start_that_says_nothing_is_left_out_of_the_text():
    assert plain(Schedule.parse("A.start A B.start A.. B")) == "A A.. B"
    assert plain(Schedule.parse("A.start @18:01 A..")) == "A.start @18:01 A.."
    assert plain(Schedule.parse("A.start B..")) == "A.start B.."


def test_random_play_leaves_no_process_and_no_database_behind(desk):
    assert soak.play_at_random(desk, SECONDS, seed=10).total() > 10
    assert desk.names and soak.left_behind(desk) == []


CODE = textwrap.dedent('''\
    def tick(now):
        """What it does."""
        with session() as db:
            # Not safe.
            if not locked(db):
                return []
            db.add(
                now)
    ''')


@pytest.mark.parametrize(("line", "start", "end"), [(3, 3, 3), (5, 5, 5), (6, 6, 6), (8, 7, 8)])
def test_the_statement_under_way_is_marked_and_of_a_block_only_its_head(tmp_path, line, start, end):
    (tmp_path / "worker.py").write_text(CODE, "utf-8")
    shown = excerpt(tmp_path, Frame("worker.py", line, "tick"))
    assert (shown["start"], shown["end"]) == (start, end)
    assert [number for number, _ in shown["lines"]] == [1, 3, 4, 5, 6, 7, 8], "no docstring"
    assert entry(tmp_path, "worker:tick")["lines"] == shown["lines"]
    assert entry(tmp_path, "elsewhere:tick") is None


def test_a_request_of_the_page_itself_is_not_refused():
    assert refusal({"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80"}, 80) == ""
    assert refusal({"host": "localhost:80", "sec-fetch-site": "same-origin"}, 80) == ""
    assert refusal({"host": "127.0.0.1:81"}, 80) and refusal({}, 80)
    assert refusal({"host": "localhost:80", "origin": "http://127.0.0.1:80"}, 80)
