"""What the terminal shows, from histories made by hand."""

from __future__ import annotations

import io

import pytest

from lab.show import terminal
from tests.histories import CLAIM, Run, effect, held, incident, inherits, refused_later

BODY = "🥉 ¡Quedaste en el top 3! +10 Coins por tu actividad esta semana."
CELLS = {(stage, f"A{n}"): "E M" if n % 2 else "1" for stage in range(6) for n in range(1, 16)}


def shown(*things, encoding: str = "utf-8") -> str:
    """What a pipe of that encoding gets."""
    raw = io.BytesIO()
    console = terminal.screen(io.TextIOWrapper(raw, encoding=encoding, write_through=True))
    for thing in things:
        console.print(thing)
    return raw.getvalue().decode(encoding)


def everything():
    """One of each."""
    history, verdict = incident()
    return [*(terminal.event_line(event) for event in history), terminal.transcript(history),
            terminal.phone("Iñaki Peña", [(BODY, 17), (BODY, 18)], 20, 10),
            terminal.verdict(verdict, history),
            terminal.ladder_table(CELLS, {**CELLS, (2, "A2"): "D3"}),
            terminal.heading("Three ticks."), terminal.result("D3", "1")]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def test_a_pipe_gets_no_colour_and_at_most_80_columns():
    text = shown(*everything())
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_no_color_is_respected_on_a_terminal(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31" not in shown(terminal.result("D3", "D3"))


def test_a_terminal_gets_colour(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[1;31m" in shown(terminal.result("D3", "D3"))


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
def test_an_output_that_is_not_utf8_gets_ascii_signs_and_straight_boxes(encoding):
    text = shown(*everything(), encoding=encoding)
    box = [line for line in text.splitlines() if line.startswith("|")]
    phone = [line for line in box if line.endswith("|") and len(line) == 50]
    assert len(phone) == 12
    assert "X duplicated" in text
    assert "o  SELECT members" in text


def test_an_event_is_one_line_with_clock_replica_label_and_outcome():
    history, _ = incident()
    event = next(e for e in history if e.label == "INSERT token_transactions" and e.replica == "B")
    assert terminal.event_line(event).plain.split() == [
        "18:01:00", "B", "■", "INSERT", "token_transactions", "INSERT", "0", "3"]


def test_a_transcript_shows_a_wait_as_waiting_and_later_as_completed():
    assert terminal.transcript(inherits()[0]).plain.splitlines() == [
        "  1  -- Fri 29 May 2026, 18:00",
        "  2  A: INSERT worker_runs                       INSERT 0 1",
        "  3  B: INSERT worker_runs ... <waiting for A>",
        "  4  A: SELECT members                           SELECT 3",
        "  5  A: INSERT token_transactions                INSERT 0 3",
        "  6  A: INSERT notifications                     INSERT 0 3",
        "  7  A: SELECT sections                          SELECT 1",
        "  8  A: INSERT threads                           INSERT 0 1",
        "  9  A: ROLLBACK",
        "     B: <... completed> INSERT 0 1",
        " 10  B: SELECT members                           SELECT 3",
        " 11  B: INSERT token_transactions                INSERT 0 3",
        " 12  B: INSERT notifications                     INSERT 0 3",
        " 13  B: SELECT sections                          SELECT 1",
        " 14  B: INSERT threads                           INSERT 0 1",
        " 15  B: COMMIT",
    ]


def test_a_transcript_says_who_got_no_row():
    lines = terminal.transcript(refused_later()[0]).plain.splitlines()
    assert "B: INSERT worker_runs                       INSERT 0 0: no row" in lines[11]


def test_a_transcript_shows_faults_and_errors():
    run = Run()
    run.step("A", CLAIM)
    run.step("A", "before COMMIT", None, "cut", outcome="cut")
    run.step("B", CLAIM, outcome="error: 40001 could not serialize access")
    run.fault("B", "kill")
    lines = terminal.transcript(run.history).plain.splitlines()
    assert [line.split("  ", 2)[-1].strip() for line in lines[1:]] == [
        "A: <cut before COMMIT>", "B: INSERT worker_runs                       error: 40001",
        "B: <killed>"]


def test_a_transcript_names_a_run_that_came_to_no_statement_and_no_other_end():
    run = Run()
    run.commit("A")
    run.add("A", "end", "end")
    run.move += 1
    run.add("B", "end", "end")
    assert [line.split("  ", 1)[-1].strip() for line in
            terminal.transcript(run.history).plain.splitlines()] == [
        "1  A: COMMIT", "2  B: <ends without a statement>"]


def test_a_transcript_says_that_a_replica_starts_or_runs_again():
    run = Run()
    run.step("A", "tick", None, "tick")
    run.commit("A")
    run.add("A", "end", "end")
    run.step("A", "tick", None, "tick")
    run.commit("A")
    assert [line.split("  ", 1)[-1].strip() for line in
            terminal.transcript(run.history).plain.splitlines()] == [
        "1  A: <starts>", "2  A: COMMIT", "3  A: <runs again>", "4  A: COMMIT"]


def test_the_phone_shows_each_notification_with_its_age_and_the_wrong_wallet():
    text = shown(terminal.phone("Ximena", [(BODY, 17), (BODY, 18), (BODY, 19)], 30, 10))
    assert [age in text for age in ("hace 17 min", "hace 18 min", "hace 19 min")] == [True] * 3
    assert text.count("¡Quedaste en el top 3!") == 3
    assert "Wallet +30 (expected +10)" in text


def test_a_phone_without_notifications_says_so():
    assert "sin notificaciones" in shown(terminal.phone("Ximena", [], 0, 10))


def test_a_verdict_names_its_witnesses_by_replica_and_move():
    history, verdict = incident()
    text = shown(terminal.verdict(verdict, history))
    assert "✗ coins, notifications, thread 3× instead of 1×" in text
    assert [f"{who} {move}" in text for who, move in (("A", 3), ("B", 10), ("C", 17))] == [True] * 3


def test_a_verdict_that_could_not_be_judged_does_not_look_like_a_pass():
    verdict = held()
    verdict.effects, verdict.ok, verdict.unknown = (), False, True
    text = shown(terminal.verdict(verdict))
    assert "unknown" in text and "✓" not in text


def test_a_missed_effect_is_not_once():
    verdict = held()
    verdict.effects = (effect("thread", "2026-W22", "missed", 0),)
    assert "✗ thread missed" in shown(terminal.verdict(verdict))


def test_a_cell_that_is_not_as_promised_says_what_was_promised():
    text = shown(terminal.ladder_table({(0, "A1"): "D2"}, {(0, "A1"): "D3"}))
    assert "!! D2" in text and "not D3" in text and "1 not as promised" in text


def test_a_ladder_as_promised_has_no_warning():
    text = shown(terminal.ladder_table(CELLS, CELLS))
    assert "!!" not in text and "✗ E M" in text and "✓ 1" in text


@pytest.mark.parametrize(("code", "promised", "said"), [
    ("1", "1", "✓ held (1: every effect once)"), ("D3", "D3", "✗ broke, as promised (D3)"),
    ("1", "D3", "!! NOT as promised: 1, promised D3"),
    ("E 1", "E 1", "✓ held (E 1: every effect once, and a run ended in an error)"),
    ("P", "P", "✗ broke, as promised (P)")])
def test_a_result_is_held_broken_as_promised_or_not_as_promised(code, promised, said):
    assert terminal.result(code, promised).plain == said


def test_a_progress_display_leaves_nothing_in_a_pipe():
    raw = io.StringIO()
    with terminal.meter(terminal.screen(raw), "interleavings", unit="schedules") as tell:
        tell(3, "1 breaking", total=71)
    assert raw.getvalue() == ""


def test_a_progress_display_shows_count_and_breaking_on_a_terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    raw = io.StringIO()
    with terminal.meter(terminal.screen(raw), "interleavings", unit="schedules") as tell:
        tell(3, "1 breaking", total=71)
    assert "3 of 71" in raw.getvalue() and "1 breaking" in raw.getvalue()
