"""05: one slot, delivered once, twice, late or never; what the scheduler promises, and what not."""

import json
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.judge.deliveries import Plan
from lab.judge.deliveries import play as deliver
from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from tests.playing import counts, ids, outcomes, play, promised, run

HERE = Path(__file__).parent
STAGE = stage(HERE.name)
DAYS = timedelta(days=3)  # Friday 18:00 and this is Monday: the week has turned
CARRIED_OVER = ["admin.py", "bot_service.py", "claim_first.py", "continuous.py", "old_worker.py",
                "schema.sql", "seed.sql", "strict.py", "worker.py",
                *(f"jobs/{path.name}" for path in (HERE / "jobs").glob("*.py"))]
CLOSED, TAKEN = "leaderboard closed", "leaderboard_close: already claimed, nothing to do"


@pytest.fixture
def delivered(server):
    """Delivers a slot as planned, with real processes; gives what was played."""
    return lambda **fields: deliver(STAGE, server, Plan(**fields))


def said(played):
    return [task.said[0].split(":")[0] if task.code == 0 and task.said[0].startswith(CLOSED)
            else task.said[0] for entry in played.entries for task in entry.tasks]


def exits(played):
    return [task.code for entry in played.entries for task in entry.tasks]


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(5), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_every_order_of_two_deliveries_comes_out_as_promised(theatre_of, entry):
    assert promised(counts(theatre_of(5), entry), entry["breaks"])


@pytest.mark.parametrize("name", CARRIED_OVER)
def test_the_code_that_runs_is_that_of_04_unchanged(name):
    assert (HERE / name).read_bytes() == (HERE.parent / "04-cli-entrypoint" / name).read_bytes()


def test_the_mistake_to_try_takes_no_shortened_option_either():
    done = subprocess.run(
        [sys.executable, "-m", "unclaimed", "leaderboard_close", "--no", "2026-05-30T00:00:00Z"],
        cwd=HERE, env={"PYTHONPATH": str(HERE.parent), "PATH": ""}, text=True, check=False,
        capture_output=True)
    assert done.returncode == 2 and "unrecognized arguments: --no" in done.stderr


# What 04 leaves to its caller, the scheduler does: it names the slot.


def test_a_run_that_04_takes_for_the_next_week_closes_the_week_that_was_meant(theatre_of):
    late = "A.. @2026-06-01T18:00 B.."
    assert run(theatre_of(4), late).code == "phantom", "04 was told the clock's time"
    assert run(theatre_of(5), late).code == "1"
    assert run(theatre_of(5), late, everyone="no-time").code == "phantom"


def test_two_deliveries_wait_for_each_other_in_the_claim(theatre_of):
    outcome = play(theatre_of(5), "A13")
    assert outcomes(outcome.history, "INSERT worker_runs") == [
        ("A", "ok", "INSERT 0 1"), ("B", "waiting", None), ("B", "ok", "INSERT 0 0")]


def test_a_killed_run_is_lost_and_run_again_by_hand_it_is_not(theatre_of):
    assert play(theatre_of(5), "A5").code == "M"
    assert run(theatre_of(5), "@18:00 A..commit A.kill @20:00 B..").code == "1"


def test_an_error_is_lost_and_run_again_by_hand_it_is_not(theatre_of):
    fault = {"everyone": "strict", "error": "injected"}
    assert run(theatre_of(5), "+no-section A..", **fault).code == "M"
    assert run(theatre_of(5), "+no-section A.. +section-back @20:00 B..", **fault).code == "1"


# Delivered for real, from the template that is deployed


def test_twice_at_once_and_once_more_when_the_week_has_turned_pays_once(delivered):
    played = delivered(twice=True, again=(DAYS,))
    assert said(played) == [CLOSED, TAKEN, TAKEN] and exits(played) == [0, 0, 0]
    assert played.paid == {"2026-W22": 1} and played.verdict.code == "1"


def test_without_the_claim_every_delivery_pays(delivered):
    played = delivered(twice=True, again=(DAYS,), claim=False)
    assert said(played) == [CLOSED] * 3
    assert played.paid == {"2026-W22": 3} and played.verdict.code == "D3"


def test_without_the_planned_time_a_late_delivery_takes_the_slot_of_the_week_that_has_begun(
        delivered):
    played = delivered(again=(DAYS,), following=True, planned=False)
    assert said(played) == [CLOSED, CLOSED, TAKEN], "the close of W23 finds its slot taken"
    assert played.paid == {"2026-W22": 1, "2026-W23": 1}
    assert {e.subject: e.outcome for e in played.verdict.effects} == {
        "2026-W22": "once", "2026-W23": "early"}


def test_with_the_planned_time_both_weeks_are_closed_on_time(delivered):
    played = delivered(again=(DAYS,), following=True)
    assert said(played) == [CLOSED, TAKEN, CLOSED] and played.verdict.code == "1"


def test_a_retry_of_a_failed_call_carries_the_same_time(delivered):
    first, late = delivered(), delivered(fail=4)
    assert late.entries[-1].at - late.firing == timedelta(minutes=15)
    assert late.entries[-1].tasks[0].command == first.entries[-1].tasks[0].command
    assert late.verdict.code == "1"


def test_a_call_that_fails_for_too_long_is_a_dead_letter_which_can_be_run_by_hand(delivered):
    dead = delivered(fail=99)
    assert exits(dead) == [] and dead.verdict.code == "M"
    assert "dead letter" in dead.entries[-1].what and "tells a person" in dead.entries[-1].what
    assert delivered(fail=99, by_hand=True).verdict.code == "1"


def test_accepted_and_never_placed_leaves_no_error_and_no_dead_letter(delivered):
    played = delivered(never_placed=True)
    assert exits(played) == [] and played.paid == {"2026-W22": 0} and played.verdict.code == "M"
    assert [entry.what.splitlines()[1] for entry in played.entries] == [
        "no error, no dead letter, nobody is told"]


def test_a_container_that_fails_is_not_started_again_and_by_hand_it_is_safe(delivered):
    failed = delivered(read_only=True)
    assert exits(failed) == [1] and failed.verdict.code == "M"
    assert "not tried again" in failed.entries[-1].what
    assert exits(delivered(read_only=True, by_hand=True)) == [1, 0]
    needless = delivered(by_hand=True)
    assert said(needless) == [CLOSED, TAKEN] and needless.verdict.code == "1"


def test_a_digest_of_sunday_evening_tells_of_the_week_that_ends(delivered):
    played = delivered(job="weekly_digest", twice=True)
    assert "2026-06-01T02:00:00Z" in played.entries[0].tasks[0].command, "in UTC it is Monday"
    assert played.paid == {"2026-W22": 1}
    assert delivered(job="squad_health").paid == {"2026-W22": 1}


@pytest.mark.parametrize(("fields", "words"), [
    ({"job": "payroll"}, "no job 'payroll'"),
    ({"job": "squad_health", "claim": False}, "no squad_health without its claim"),
    ({"slot": "2026-22"}, "is no slot"),
    ({"template": Path("nowhere.json")}, "cannot be read"),
    ({"never_placed": True, "twice": True}, "--twice needs a container that starts"),
    ({"never_placed": True, "read_only": True}, "--read-only needs a container that starts"),
    ({"fail": 99, "twice": True}, "--twice needs a call that is accepted"),
    ({"fail": 99, "late": DAYS}, "--late needs a call that is accepted"),
    ({"fail": 99, "never_placed": True}, "--never-placed needs a call that is accepted"),
])
def test_what_cannot_be_delivered_is_refused_with_the_reason(delivered, fields, words):
    with pytest.raises(LabError, match=words):
        delivered(**fields)


def test_a_template_without_dead_letters_and_alarms_leaves_nothing_behind(delivered, tmp_path):
    whole = json.loads((HERE / "template.json").read_text("utf-8"))
    kept = {name: one for name, one in whole["Resources"].items()
            if one["Type"] == "AWS::Scheduler::Schedule"}
    for one in kept.values():
        del one["Properties"]["Target"]["DeadLetterConfig"]
    path = tmp_path / "bare.json"
    path.write_text(json.dumps({"Resources": kept}), "utf-8")
    assert "nothing is left of it" in delivered(fail=99, template=path).entries[-1].what
    assert "nobody is told" in delivered(read_only=True, template=path).entries[-1].what


def test_a_broken_promise_ends_the_tale_with_exit_code_1(tmp_path):
    """The first part of the tale, with the claim taken out of the stage's own job."""
    for name in ("lab", HERE.name):
        shutil.copytree(HERE.parent / name, tmp_path / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    data, claims = (tmp_path / HERE.name / name for name in ("stage.toml", "jobs/claims.py"))
    data.write_text("[[tale]]".join(data.read_text("utf-8").split("[[tale]]")[:2]), "utf-8")
    claims.write_text(claims.read_text("utf-8").replace("return claimed is not None",
                                                        "return True"), "utf-8")
    done = subprocess.run([sys.executable, "-m", "lab", "stage", "5"], cwd=tmp_path, text=True,
                          capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1 and "NOT as promised: D3, promised 1" in done.stdout


@pytest.mark.parametrize(("name", "rows"), [("A1", 1), ("A14", 0)], ids=["ran", "never placed"])
def test_the_query_in_the_readme_finds_a_trace_only_where_the_job_ran(theatre_of, name, rows):
    (query,) = re.findall(r"```sql\n(.*?)```", (HERE / "README.md").read_text("utf-8"), re.S)
    play(theatre_of(5), name)
    with theatre_of(5).database.connect() as conn:
        assert len(conn.execute(query).fetchall()) == rows
