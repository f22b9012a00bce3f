"""00: nothing stops a replica from closing the week again, and thirty lines show it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from tests.playing import counts, ids, play, promised, run

HERE = Path(__file__).parent
STAGE = stage(HERE.name)


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(0), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_every_interleaving_breaks_it(theatre_of, entry):
    assert entry["breaks"] == "all"
    assert promised(counts(theatre_of(0), entry), "all", "seconds" in entry)


def test_three_replicas_pay_three_times_together_or_in_turn(theatre_of):
    for schedule in ("A..commit B..commit C..commit A.. B.. C..", "A.. B.. C.."):
        verdict = run(theatre_of(0), schedule).verdict
        assert verdict.code == "D3"
        assert {effect.times for effect in verdict.effects} == {3}


def test_the_next_stage_holds_when_ticks_overlap(theatre_of):
    assert play(theatre_of(0), "A1").code == "D3"
    assert play(theatre_of(1), "A1").code == "1"


def test_a_second_replica_makes_up_for_one_that_rolled_back(theatre_of):
    # Without a guard the failure of one is repaired by another: what a try-lock takes away (A6).
    assert play(theatre_of(0), "A6").code == "1"


def test_a_tick_outside_the_window_pays_nobody(theatre_of):
    for time in ("17:59", "18:15", "2026-05-28T18:00", "2026-05-30T18:00"):
        assert run(theatre_of(0), f"@{time} A..").code == "M"
    for time in ("18:00", "18:14"):
        assert run(theatre_of(0), f"@{time} A..").code == "1"


# bug.py


def by_hand(database):
    """Run bug.py as a reader would."""
    done = subprocess.run([sys.executable, HERE / "bug.py"], capture_output=True, text=True,
                          encoding="utf-8", check=True,
                          env=os.environ | {"DATABASE_URL": database.url, "PYTHONUTF8": "1"})
    return done.stdout


def test_run_by_hand_a_second_time_bug_py_pays_a_second_time(server):
    with STAGE.database(server) as database:
        first, second = by_hand(database), by_hand(database)
    assert "wallet: +10 (" in first and "wallet: +20 (" in second
    assert (first.count("🥉"), second.count("🥉")) == (1, 2)
    assert "Lupita Hernández:" in first and "(hace 0 min)" in first


def test_bug_py_is_thirty_lines_of_code_and_needs_only_psycopg():
    source = (HERE / "bug.py").read_text("utf-8")
    tree = ast.parse(source)
    docstring = range(tree.body[0].lineno, tree.body[0].end_lineno + 1)
    code = [line for number, line in enumerate(source.splitlines(), 1)
            if line.strip() and not line.strip().startswith("#") and number not in docstring]
    assert len(code) <= 30
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                for alias in node.names}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))
    assert imported - sys.stdlib_module_names == {"psycopg"}
