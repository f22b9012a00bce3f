"""The pictures, from histories made by hand: nothing overlaps, nothing is lost, files repeat."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import pytest

from lab.engine.history import History
from lab.show import plots
from lab.show.flags import Flag, pack, raise_over
from lab.show.lanes import lay_out
from lab.show.picture import drawable
from lab.show.words import ordinals
from tests.histories import (
    CLAIM,
    LOCK,
    Run,
    broken,
    effect,
    incident,
    inherits,
    refused_later,
)


def texts(figure):
    """Every text that is drawn: (string, extent in pixels)."""
    found = [*figure.texts, *(t for axes in figure.axes for t in axes.texts)]
    found += [t for axes in figure.axes for t in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    return [(t.get_text(), t.get_window_extent()) for t in found if t.get_text().strip()]


def overlapping(figure):
    """Pairs of texts that lie on each other by more than a pixel or two."""
    pairs = []
    for (a, first), (b, second) in itertools.combinations(texts(figure), 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        if wide > 2 and high > 4:
            pairs.append((a, b))
    return pairs


def outside(figure):
    """Texts that do not fit on the 1600 x 900 picture."""
    return [text for text, box in texts(figure)
            if box.x0 < 0 or box.y0 < 0 or box.x1 > 1600 or box.y1 > 900]


TIMELINES = {
    "three replicas, eight statements each": lambda: incident(lock=True),
    "a free run": lambda: incident(free=True),
    "a wait that inherits": inherits,
    "the three layers": refused_later,
}


@pytest.mark.parametrize("name", TIMELINES)
def test_no_two_texts_of_a_timeline_overlap_and_none_leaves_the_picture(name):
    history, verdict = TIMELINES[name]()
    figure = plots.timeline(history, name, verdict)
    assert overlapping(figure) == []
    assert outside(figure) == []


@pytest.mark.parametrize("name", TIMELINES)
def test_every_text_is_large_enough_for_the_last_row(name):
    history, verdict = TIMELINES[name]()
    figure = plots.timeline(history, name, verdict)
    sizes = [t.get_size() for t in figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))
             if t.get_text().strip()]
    assert min(sizes) >= 14


def test_every_statement_of_three_replicas_is_labelled():
    history, verdict = incident(lock=True)
    said = [text for text, _ in texts(plots.timeline(history, "", verdict))]
    assert said.count("INSERT token_transactions") == 3
    assert said.count("SELECT pg_try_advisory_xact_lock → true") == 3
    assert said.count("SELECT sections") == 3


def test_a_history_without_events_is_drawn_too():
    assert outside(plots.timeline(History(), "nothing happened")) == []


def test_a_long_title_is_made_to_fit():
    history, verdict = incident()
    for words in (9, 90):
        assert outside(plots.timeline(history, "a long schedule " * words, verdict)) == []


def test_one_statement_a_member_is_still_the_same_time():
    run = Run()
    seqs = [run.step(replica, "INSERT INTO token_transactions VALUES ($1)").seq
            for replica in "AAABBB"]
    verdict = SimpleNamespace(effects=[effect("coins", name, "duplicated", 2, witnesses=seqs)
                                       for name in ("Ximena", "Diego", "Lucía")], unknown=False)
    assert list(ordinals(verdict, run.history).values()) == ["1×"] * 3 + ["2×"] * 3


def test_a_commit_whose_answer_was_cut_off_still_counts():
    run = Run()
    run.step("A", CLAIM)
    run.step("A", "after COMMIT", None, "cut", outcome="cut")
    run.step("A", "COMMIT", None, "commit", outcome="cut")
    assert [bar.look for bar in lay_out(run.history).bars] == ["ran"]


def test_a_duplicate_is_counted_on_the_statements_that_made_it():
    history, verdict = incident()
    said = [text for text, _ in texts(plots.timeline(history, "", verdict))]
    assert [said.count(sign) for sign in ("1×", "2×", "3×")] == [3, 3, 3]
    assert "✗ coins, notifications, thread 3× instead of 1×" in said


def test_a_run_that_holds_shows_no_violation():
    history, verdict = inherits()
    figure = plots.timeline(history, "", verdict)
    said = [text for text, _ in texts(figure)]
    assert "✓ every effect once" in said
    assert "1×" not in said
    assert not any("violation" in t.get_text() for t in figure.legends[0].get_texts())


def test_an_unjudged_run_is_not_shown_as_held():
    history, _ = incident()
    verdict = SimpleNamespace(effects=(), ok=False, worst="", code="", unknown=True)
    said = [text for text, _ in texts(plots.timeline(history, "", verdict))]
    assert any(text.startswith("? unknown") for text in said)


def test_a_wait_ends_in_the_column_of_the_rollback_that_ends_it():
    lanes = lay_out(inherits()[0])
    wait = next(bar for bar in lanes.bars if bar.look == "waiting")
    rollback = next(mark for mark in lanes.marks if mark.kind == "rollback")
    assert (wait.replica, wait.note, wait.end) == ("B", "waits for A", rollback.x)


def test_a_lock_is_held_from_the_statement_that_took_it_to_the_end_of_the_transaction():
    history, _ = refused_later()
    lanes = lay_out(history)
    locks = {band.replica: band for band in lanes.bands if band.what == "lock"}
    first = next(bar for bar in lanes.bars if bar.replica == "A")
    commit = next(mark for mark in lanes.marks if mark.kind == "commit")
    assert (locks["A"].start, locks["A"].end) == (first.start, commit.x)


def test_who_was_refused_the_lock_holds_none():
    run = Run()
    run.step("A", LOCK, tag="SELECT 1", value=False)
    run.rollback("A")
    lanes = lay_out(run.history)
    assert [bar.look for bar in lanes.bars] == ["no-row"]
    assert not [band for band in lanes.bands if band.what == "lock"]


def test_what_a_rollback_undid_looks_undone_but_a_request_was_made():
    run = Run()
    run.step("A", CLAIM)
    run.step("A", "POST /member-1", kind="request", tag=None)
    run.rollback("A")
    assert [bar.look for bar in lay_out(run.history).bars] == ["undone", "ran"]


def test_a_rollback_does_not_undo_what_was_committed_before():
    run = Run()
    run.step("A", CLAIM)
    run.commit("A")
    run.step("A", LOCK, tag="SELECT 1", value=True)
    run.rollback("A")
    assert [bar.look for bar in lay_out(run.history).bars] == ["ran", "undone"]


def test_a_kill_ends_the_life_the_lock_and_the_wait():
    run = Run()
    run.step("A", CLAIM)
    run.step("B", CLAIM, outcome="waiting", waits_for=("A",))
    run.fault("B", "kill")
    run.fault("A", "kill")
    lanes = lay_out(run.history)
    kills = {mark.replica: mark.x for mark in lanes.marks if mark.kind == "kill"}
    assert {b.replica: b.end for b in lanes.bands if b.what == "lock"} == {"A": kills["A"]}
    assert [b.end for b in lanes.bars if b.look == "waiting"] == [kills["B"]]
    assert {b.replica: b.end for b in lanes.bands if b.what == "alive"} == kills


def test_a_free_run_keeps_the_order_of_events_that_overlap():
    run = Run(free=True)
    for replica, started, ended in (("A", 0.001, 0.009), ("B", 0.003, 0.005)):
        run.history.add(replica=replica, kind="statement", statement=CLAIM, started=started,
                        ended=ended, outcome="ok", clock="2026-05-29T18:00:00-06:00")
    a, b = lay_out(run.history).bars
    assert a.start < b.start < b.end < a.end


def test_a_free_run_shows_a_tick_before_its_first_statement_though_it_is_heard_of_later():
    run = Run(free=True)
    for kind, started in (("tick", 0.5), ("statement", 0.2)):
        run.history.add(replica="A", kind=kind, statement=CLAIM, started=started, ended=0.6,
                        outcome="ok", clock=run.clock)
    lanes = lay_out(run.history)
    assert lanes.clocks[0][0] < lanes.bars[0].start


def test_a_pause_takes_room_but_a_long_one_not_much_more():
    run = Run(free=True)
    for time in ("18:00", "18:01", "18:15"):
        run.clock = f"2026-05-29T{time}:00-06:00"
        run.step("A", CLAIM)
    first, second, third = (bar.start for bar in lay_out(run.history).bars)
    assert 2 < second - first < third - second < 5


def test_alike_statements_of_two_transactions_have_a_label_each():
    run = Run()
    for _ in range(2):
        run.step("A", CLAIM)
        run.commit("A")
    said = [text for text, _ in texts(plots.timeline(run.history, ""))]
    assert said.count("INSERT worker_runs") == 2


def test_no_pole_crosses_a_label_while_there_is_room():
    flags = [Flag(x, x + 1, f"label {x}", False, width=250) for x in range(8)]
    raise_over(flags, column=60)
    for flag, other in itertools.pairwise(flags):
        assert flag.level > other.level


def test_labels_without_room_are_left_out_rather_than_laid_over_others():
    flags = [Flag(x, x + 1, f"label {x}", x == 3, width=400) for x in range(4)]
    pack(flags, column=50, levels=2)
    shown = [flag for flag in flags if flag.level is not None]
    assert flags[3] in shown
    assert len({flag.level for flag in shown}) == len(shown) == 2


CELLS = {(0, "A1"): "D3", (0, "A2"): "D3", (0, "A10"): "E M", (1, "A1"): "1", (1, "A2"): "P",
         (1, "A10"): "-"}


def test_the_ladder_writes_each_code_and_marks_what_was_not_promised():
    said = [text for text, _ in texts(plots.ladder(CELLS, {**CELLS, (1, "A2"): "1"}))]
    assert sorted(set(CELLS.values())) == sorted(set(said) & set(CELLS.values()))
    assert said.count("not 1") == 1


def test_the_ladder_puts_a10_after_a2():
    axes = plots.ladder(CELLS, CELLS).axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["A1", "A2", "A10"]


def test_broken_cells_of_the_ladder_are_told_apart_without_colour():
    hatches = [hatch for _, hatch, _ in plots.CELLS.values()]
    broken_ones = [plots.CELLS[kind][1] for kind in ("duplicated", "missed", "partial", "error")]
    assert all(broken_ones) and len(set(broken_ones)) == 4
    assert hatches.count("") == 2  # once, and does not apply: told apart by their text


def test_a_share_is_labelled_with_its_numbers():
    figure = plots.shares({0: (71, 71), 1: (3, 1532), 3: (0, 45)})
    said = [text for text, _ in texts(figure)]
    assert {"71 of 71", "3 of 1,532", "0 of 45"} <= set(said)
    assert overlapping(figure) == []


def test_duplicates_have_their_number_on_the_bar_and_the_expected_line():
    figure = plots.duplicates({"Ximena": 3, "Diego": 1}, expected=1)
    said = [text for text, _ in texts(figure)]
    assert {"3×", "1×", "expected: 1"} <= set(said)


def test_every_stage_has_a_colour_of_its_own():
    assert sorted(plots.STAGE_COLOURS) == list(range(11))
    assert len(set(plots.STAGE_COLOURS.values())) == 11


def test_what_the_font_lacks_is_left_out():
    assert drawable("🥉 ¡Quedaste en el top 3! → Peña ×2") == "¡Quedaste en el top 3! → Peña ×2"


def test_the_same_picture_gives_the_same_files(tmp_path):
    def files(folder):
        history, verdict = incident()
        paths = plots.save(plots.timeline(history, "twice", verdict), "twice", tmp_path / folder)
        return [path.read_bytes() for path in paths]
    png, svg = files("a")
    assert [png, svg] == files("b")
    assert png.startswith(b"\x89PNG")
    assert not re.search(rb"<dc:date>|<dc:creator>|matplotlib\.org|Matplotlib v", svg)


def test_a_picture_shows_itself_in_a_notebook():
    assert plots.shares({0: (1, 2)})._repr_png_().startswith(b"\x89PNG")


def test_the_verdict_of_a_broken_run_names_only_what_broke():
    history, verdict = incident()
    verdict = broken(verdict, keep="coins")
    said = [text for text, _ in texts(plots.timeline(history, "", verdict))]
    assert "✗ coins 3× instead of 1×" in said
