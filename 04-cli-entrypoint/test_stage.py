"""04: a command closes a slot once, whenever it starts; and what still depends on its caller."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from tests.playing import counts, ids, play, promised, run

HERE = Path(__file__).parent
STAGE = stage(HERE.name)
FRIDAY = "2026-06-05T18:00:00-06:00"


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(4), name)
    assert outcome.code == outcome.expected


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_no_interleaving_pays_twice_or_never(theatre_of, entry):
    assert promised(counts(theatre_of(4), entry), entry["breaks"])


@pytest.mark.parametrize("name", ["A6", "A7", "A15b"])
def test_the_schedule_that_lost_the_week_on_03_pays_once(theatre_of, name):
    assert play(theatre_of(3), name).code == "M"
    assert play(theatre_of(4), name).code == "1"


def test_the_loser_waits_and_takes_the_slot_over_when_the_winner_rolls_back(theatre_of):
    history = play(theatre_of(4), "A6").history
    waited = [e for e in history if e.outcome == "waiting"]
    assert [(e.replica, e.label, e.waits_for) for e in waited] == [
        ("B", "INSERT worker_runs", ("A",))]


def test_a_failed_job_ends_in_exit_code_1_and_can_be_run_again(theatre_of):
    outcome = run(theatre_of(4), "+no-section A.. +section-back B..", everyone="strict",
                  error="injected")
    assert outcome.code == "1"


def test_under_repeatable_read_the_one_that_waited_fails_and_its_second_run_finds_the_slot_taken(
        theatre_of):
    outcome = run(theatre_of(4), "A..commit B.. A.. B.. B.again", isolation="repeatable read")
    ends = [(e.replica, e.outcome) for e in outcome.history if e.kind == "end"]
    assert ends == [("A", "ok"), ("B", "error: SystemExit 1"), ("B", "ok")]
    assert outcome.code == "E 1"


def test_a_key_of_its_own_is_a_slot_of_its_own(theatre_of):
    assert play(theatre_of(4), "A12").code == "1"
    assert play(theatre_of(4), "A12b").code == "D2"


@pytest.fixture
def jobs(server):
    """Runs the command by hand on one database; gives (exit code, stdout, stderr)."""
    with STAGE.database(server) as database:
        def command(*arguments, folder=HERE, url=database.url):
            done = subprocess.run(
                [sys.executable, "-m", "jobs", *arguments], cwd=folder, text=True, check=False,
                encoding="utf-8", capture_output=True,
                env={"DATABASE_URL": url, "PYTHONPATH": str(HERE.parent), "PYTHONUTF8": "1",
                     "PATH": ""})
            return done.returncode, done.stdout, done.stderr

        command.database = database
        yield command


def test_the_second_run_of_a_slot_is_a_success_that_says_so(jobs):
    code, said, _ = jobs("leaderboard_close", "--now", FRIDAY)
    assert code == 0 and said.startswith("leaderboard closed: ")
    code, said, _ = jobs("leaderboard_close", "--now", FRIDAY)
    assert (code, said) == (0, "leaderboard_close: already claimed, nothing to do\n")


def test_a_late_start_claims_the_slot_that_it_was_meant_for(jobs):
    jobs("leaderboard_close", "--now", FRIDAY)
    assert "already claimed" in jobs("leaderboard_close", "--now", "2026-06-07T23:59:00-06:00")[1]
    assert "closed" in jobs("leaderboard_close", "--now", "2026-06-08T00:00:00-06:00")[1]


def test_a_command_before_the_hour_takes_the_slot_from_the_one_that_is_on_time(jobs):
    assert "closed" in jobs("leaderboard_close", "--now", "2026-06-04T09:00:00-06:00")[1]
    assert "already claimed" in jobs("leaderboard_close", "--now", FRIDAY)[1]


def test_the_other_two_jobs_write_what_they_are_for_and_claim_their_own_slots(jobs):
    assert jobs("squad_health", "--now", FRIDAY)[1].count("squad ") == 3
    assert jobs("weekly_digest", "--now", FRIDAY)[1] == "digest: 13 members told\n"
    with jobs.database.connect() as conn:
        names = conn.execute("SELECT name, key FROM worker_runs ORDER BY name").fetchall()
        reports = conn.execute("SELECT count(*) FROM squad_reports").fetchone()[0]
    assert names == [("squad_health", "2026-W23"), ("weekly_digest", "2026-W23")]
    assert reports == 3


@pytest.mark.parametrize(("arguments", "said"), [
    ((), "which job? one of: leaderboard_close"),
    (("payroll",), "choose from"),
    (("weekly_digest", "--now", "friday"), "is not a time"),
    (("weekly_digest", "--now", "2026-06-05T18:00:00"), "has no zone"),
    (("weekly_digest", "--now", "0001-01-01T00:00:00Z"), "is outside the calendar"),
    (("weekly_digest", "--no", FRIDAY), "unrecognized arguments: --no"),
])
def test_wrong_usage_runs_nothing_says_why_and_exits_with_2(jobs, arguments, said):
    code, out, err = jobs(*arguments)
    assert (code, out) == (2, "") and said in err and "Traceback" not in err
    with jobs.database.connect() as conn:
        assert conn.execute("SELECT count(*) FROM worker_runs").fetchone()[0] == 0


@pytest.mark.parametrize(("url", "said"), [
    ("", "DATABASE_URL is not set"),
    ("somewhere", "DATABASE_URL is no address"),
    ("postgresql://host:port/database", "DATABASE_URL is no address"),
])
def test_without_a_database_it_says_so_in_two_sentences_and_exits_with_2(jobs, url, said):
    code, out, err = jobs("weekly_digest", "--now", FRIDAY, url=url)
    assert (code, out) == (2, "") and err.startswith(said)
    assert err.count("\n") == 2 and "Traceback" not in err and "run again" not in err


def test_the_list_of_jobs_needs_no_database(jobs):
    assert jobs("--list", url="")[0] == 0


def test_a_job_that_raises_keeps_nothing_and_exits_with_1(jobs):
    with jobs.database.connect() as conn:
        conn.execute("ALTER TABLE squad_reports RENAME TO elsewhere")
        code, _, err = jobs("squad_health", "--now", FRIDAY)
        assert code == 1 and "nothing was kept" in err
        assert conn.execute("SELECT count(*) FROM worker_runs").fetchone()[0] == 0


def test_a_new_job_is_a_file_and_a_line(jobs, tmp_path):
    folder = Path(shutil.copytree(HERE, tmp_path / "04", ignore=shutil.ignore_patterns("exercise")))
    (folder / "jobs" / "greeting.py").write_text(
        "def run(db, now):\n    return [f'hello, week {now:%V}']\n", encoding="utf-8")
    entry = folder / "jobs" / "__init__.py"
    text = entry.read_text(encoding="utf-8")
    text = text.replace("import leaderboard", "import greeting, leaderboard")
    entry.write_text(text.replace('JOBS = {\n', 'JOBS = {\n    "greeting": greeting.run,\n'),
                     encoding="utf-8")
    assert "greeting" in jobs("--list", folder=folder)[1].split()
    assert jobs("greeting", "--now", FRIDAY, folder=folder)[:2] == (0, "hello, week 23\n")


def test_the_replicas_tick_has_no_branch_on_the_wall_clock(theatre_of):
    assert not any(word in (HERE / "worker.py").read_text(encoding="utf-8")
                   for word in ("weekday", ".hour", ".minute", "leaderboard"))


def test_a_thread_of_more_than_30_days_is_closed_once(server):
    script = ("import sys; sys.path.insert(0, '.')\n"
              "from datetime import datetime; import worker\n"
              f"now = datetime.fromisoformat('{FRIDAY}')\n"
              "print(worker.tick(now)); print(worker.tick(now))\n")
    with STAGE.database(server) as database, database.connect() as conn:
        for title, opened in (("old", "2026-05-01T00:00Z"), ("new", "2026-06-01T00:00Z")):
            conn.execute("INSERT INTO threads (section_id, author_id, title, body_md, created_at)"
                         " VALUES (1, 1, %s, '', %s)", (title, opened))
        done = subprocess.run([sys.executable, "-c", script], cwd=HERE, text=True, check=False,
                              capture_output=True, encoding="utf-8",
                              env={"DATABASE_URL": database.url, "PYTHONPATH": str(HERE.parent),
                                   "PYTHONUTF8": "1", "PATH": ""})
    assert done.stdout.splitlines() == ["['closed: old']", "[]"], done.stderr
