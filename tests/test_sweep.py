"""A sweep as a picture and as text: no cell is left out, and no outcome needs a colour."""

import io

import pytest
from rich.console import Console

from lab.engine.history import History
from lab.engine.sweep import Outcome, Point, Sweep
from lab.judge.sweeps import Swept
from lab.show import sweep
from lab.show.lanes import lay_out
from lab.show.plots_sweep import LOOKS, crashes, short, strip


def swept(*outcomes, letter="A"):
    """A sweep of one step for each three outcomes; tried again, all is well."""
    points = [Point(letter, at // 3, "INSERT x", ("kill", "cut-before", "cut-after")[at % 3],
                    outcome, Outcome("once"), "") for at, outcome in enumerate(outcomes)]
    return Sweep({letter: ["INSERT x"]}, Outcome("once"), points, 1.5)


SOME = [Outcome("once"), Outcome("lost", 0), Outcome("phantom", 3), Outcome("duplicated", 2)]


def test_every_outcome_has_a_sign_and_a_hatch_or_shade_of_its_own():
    assert len({sign for _, _, sign, _ in LOOKS.values()}) == len(LOOKS)
    assert len({(hatch, fill if not hatch else "") for fill, hatch, _, _ in LOOKS.values()}) == 6


def test_the_picture_has_two_cells_a_point_and_says_how_many_points():
    figure = crashes({"inside_transaction": swept(*SOME), "outbox + relay": swept(*SOME)})
    signs = [text.get_text() for text in figure.axes[0].texts]
    assert [signs.count(sign) for sign in ("1", "L", "P3", "2")] == [10, 2, 2, 2]
    assert any("8 points" in text.get_text() for text in figure.texts)


def test_the_strip_has_a_sign_a_point_and_a_gap_between_steps():
    assert strip(swept(*SOME).points) == "1LP 2"
    assert strip(swept(*SOME).points, retried=True) == "111 1"


@pytest.mark.parametrize(("label", "word"), [
    ("INSERT purchases", "INSERT"), ("COMMIT", "COMMIT"), ("POST http://ntfy/ta050", "POST"),
    ("SELECT pg_notify", "notify"), ("SELECT pg_logical_slot_peek_changes", "peek")])
def test_a_step_has_a_short_name(label, word):
    assert short(label, {"SELECT pg_logical_slot_peek_changes": "peek"}) == word


def told(*done):
    screen = Console(file=io.StringIO(), width=100)
    screen.print(sweep.table(done))
    return screen.file.getvalue()


def test_what_is_not_as_promised_or_was_not_swept_is_said_loudly():
    right = Swept({"name": "a", "outcomes": ["lost", "phantom", "duplicated"]}, swept(*SOME))
    wrong = Swept({"name": "b", "outcomes": ["lost"]}, swept(*SOME))
    skipped = Swept({"name": "c", "outcomes": [], "otherwise": "no log."}, None)
    assert (right.as_promised, wrong.as_promised, skipped.as_promised) == (True, False, True)
    assert "!!" not in told(right)
    assert "!! NOT as promised: duplicated, lost, phantom instead of lost" in told(wrong)
    assert "!! c was NOT swept: no log." in told(skipped)


def test_a_run_that_could_not_be_judged_is_not_as_promised():
    unknown = Swept({"name": "a", "outcomes": []}, swept(Outcome("unknown", 0)))
    assert not unknown.as_promised and "NOT as promised: unknown" in told(unknown)
    assert [t.get_text() for t in crashes({"a": unknown.result}).axes[0].texts][1] == "?"


def test_a_statement_that_is_a_transaction_by_itself_is_not_drawn_as_undone():
    history = History(complete=True)
    for at, (kind, statement, alone) in enumerate([
            ("statement", "UPDATE outbox SET attempts = 1", True),
            ("request", "POST http://ntfy/ta050", False),
            ("statement", "UPDATE outbox SET sent_at = now()", False), ("kill", "SIGKILL", False)]):
        history.add(replica="R", kind=kind, statement=statement, started=float(at), ended=at + 0.5,
                    outcome="ok", move=at, detail={"alone": True} if alone else {})
    lanes = lay_out(history)
    assert [bar.look for bar in lanes.bars] == ["ran", "ran", "undone"]
    assert [(band.start, band.end) for band in lanes.bands if band.what == "lock"] == [(2, 3.5)]
