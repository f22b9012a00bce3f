"""The check is itself checked: starters fail as named, solutions pass, each mutant is caught."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest

from lab import folders
from lab.engine.schedule import Schedule
from lab.judge.bench import MARK, bench
from lab.judge.checking import check_answer
from lab.judge.exercise import exercise, exercises
from lab.judge.explain import explain
from lab.judge.stage import stage, stages
from lab.show import classroom, soak

EVERY = [found for each in stages() for found in exercises(each)]
MUTANTS = [(found, name) for found in EVERY for name in found.mutants]
CLAIM = exercise(stage(3), "claim")
TIMES = {"twice": int(os.environ.get("LAB_CHECKS", "50")),  # a tenth of a second each
         "claim": int(os.environ.get("LAB_CHECKS", "5"))}  # ten to thirty seconds each
STUDENTS = int(os.environ.get("LAB_STUDENTS", "6"))


def place(value):
    return value if isinstance(value, str) else value.place


@pytest.fixture(scope="module")
def bench_of(server):
    """The bench of an exercise, opened once and kept until another exercise's is wanted."""
    with ExitStack() as stack:
        opened = {}

        def of(found):
            if found.place not in opened:
                stack.close()
                opened.clear()
                opened[found.place] = stack.enter_context(bench(found, server))
            return opened[found.place]

        yield of


@pytest.fixture
def checked(server, tmp_path):
    """The check of a text as an answer to the claim exercise; its processes' mark; its database."""

    def of(text):
        answer = tmp_path / "claims.py"
        answer.write_text(text, encoding="utf-8")
        with bench(CLAIM, server) as used:
            database = used.scene.database.name
            return check_answer(used, answer), used.mark, database

    return of


# The data


@pytest.mark.parametrize("found", EVERY, ids=place)
def test_an_exercise_has_all_its_parts_in_two_languages(found):
    assert found.starter.is_file() and found.solution.is_file()
    assert len(found.hints()) == len(found.hints(spanish=True)) == 3
    assert found.text("task") and found.text("task", spanish=True)
    assert set(found.mutants) == set(found.data["mutants"])
    assert len(found.mutants) >= 4
    names = [case["name"] for case in found.data["cases"]]
    assert len(set(names)) == len(names) and set(found.data["mutants"].values()) <= set(names)


@pytest.mark.parametrize("found", EVERY, ids=place)
def test_starter_and_solution_begin_alike(found):
    first = [path.read_text("utf-8").splitlines()[0] for path in (found.starter, found.solution)]
    assert first[0][:40] == first[1][:40]


@pytest.mark.parametrize("found", EVERY, ids=place)
def test_no_hint_holds_a_line_of_the_solution(found):
    lines = {line.strip() for line in found.solution.read_text("utf-8").splitlines()}
    new = {line for line in lines - set(found.starter.read_text("utf-8").split("\n"))
           if len(line) > 25}
    assert not [line for line in new for hint in found.hints() if line in hint]


@pytest.mark.parametrize("name", ["instructor.md", "instructor.es.md"])
def test_the_instructor_is_told_of_every_exercise(name):
    text = (folders.ROOT / "docs" / name).read_text("utf-8")
    for found in EVERY:
        alone = len(exercises(found.stage)) == 1
        assert f"make check-{found.stage.number}{'' if alone else f' WHICH={found.name}'}`" in text
        assert f"make exercise-{found.stage.number}" in text


# Starters, solutions, mutants


@pytest.mark.parametrize("found", EVERY, ids=place)
def test_the_solution_passes_and_the_starter_fails_for_the_reason_named(bench_of, found):
    solved = check_answer(bench_of(found), found.solution)
    assert solved.passed, solved.failure.said
    failed = check_answer(bench_of(found), found.starter).failure
    assert [failed.name, failed.code] == found.data["starter"]
    assert failed.said


@pytest.mark.parametrize(("found", "name"), MUTANTS, ids=place)
def test_a_mutant_is_caught_by_the_case_meant_for_it(bench_of, found, name):
    caught = check_answer(bench_of(found), found.mutants[name])
    assert caught.failure and caught.failure.name == found.data["mutants"][name]
    row = classroom.table(found, {name: caught}).splitlines()[-1]
    assert row in classroom.TABLE.read_text("utf-8"), "run: python -m lab mutants"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("found", [exercise(stage(1), "twice"), CLAIM], ids=place)
def test_a_solution_passes_every_time_while_the_machine_is_busy(server, found):
    with bench(found, server) as used, soak.busy(os.cpu_count() or 2):
        for number in range(TIMES[found.name]):
            failure = check_answer(used, found.solution).failure
            assert failure is None, f"time {number + 1}: {failure.title}: {failure.said}"


# What a failure says


def test_a_look_that_came_too_early_is_explained_by_its_two_moves(bench_of):
    found = exercise(stage(2), "second-path")
    history, verdict = bench_of(found).play(found.data["cases"][0],
                                            Schedule.parse("A..commit B.. A.."))
    said = explain(history, verdict, found.stage.effects, {}, verdict.code)
    assert said == ("A's SELECT threads (move 1) came before B's COMMIT (move 2), so A could not "
                    "see what B had written to threads. Both went on to INSERT token_transactions.")


@pytest.mark.parametrize(("name", "words"), [
    ("always-true", ["A had committed (move 2) before B began", "INSERT worker_runs: no row"]),
    ("committed-on-its-own", ["A committed its INSERT worker_runs (move 3) without INSERT token",
                              "then it was killed", "INSERT worker_runs: no row"]),
    ("select-then-insert", ["23505", "B's SELECT worker_runs (move 2) came before A's COMMIT "
                            "(move 3), so B could not see A's row"]),
    ("swallows", ["B's run ended in an error", "25P02", "until ROLLBACK"]),
])
def test_a_failure_is_explained_from_what_happened(bench_of, name, words):
    said = check_answer(bench_of(CLAIM), CLAIM.mutants[name]).failure.said
    assert [word for word in words if word not in said] == []


# Answers that are no answers

HEAD = "from sqlalchemy import text\n\n\ndef claim_run(db, name, key):\n"
CLAIMS = HEAD + """    db.execute(text(
        "INSERT INTO worker_runs (name, key) VALUES (:n, :k) ON CONFLICT DO NOTHING"),
        {"n": name, "k": key})
"""
SPAWN = """    import subprocess, sys
    for _ in range(8):
        subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    return True
"""
NO_ANSWERS = {
    "an endless loop": (HEAD + "    while True:\n        pass\n", "loop"),
    "endless statements": (HEAD + "    while True:\n        db.execute(text('SELECT 1'))\n",
                           "Time is up"),
    "no Python": ("def claim_run(db:\n", "is not Python"),
    "another function": ("def claim(db, name, key):\n    return True\n",
                         "no function of that name"),
    "other arguments": ("def claim_run(name, key):\n    return True\n", "takes 2 positional"),
    "no return": (CLAIMS, "What does claim_run return"),
    "a result in place of a boolean": (CLAIMS.replace("    db.execute", "    return db.execute"),
                                       "INSERT worker_runs: no row"),
    "a commit of its own": (CLAIMS.replace("    db.execute", "    done = db.execute")
                            + "    db.commit()\n    return done.rowcount == 1\n",
                            "without INSERT token_transactions, then it was killed"),
    "a table of another name": (CLAIMS.replace("worker_runs", "runs"), "Its name is another one"),
    "async": ("async def claim_run(db, name, key):\n    return True\n", "plain def"),
    "an import that is not there": ("import nothing_of_that_name\n" + HEAD + "    return True\n",
                                    "nothing_of_that_name"),
    "DROP TABLE": (HEAD + "    db.execute(text('DROP TABLE token_transactions CASCADE'))\n"
                   "    db.commit()\n    return True\n", "table"),
    "TRUNCATE": (HEAD + "    db.execute(text('TRUNCATE members CASCADE'))\n"
                 "    db.commit()\n    return True\n", "Rows are gone"),
    "all the memory": (HEAD + "    kept = []\n    while True:\n"
                       "        kept.append('x' * 100_000_000)\n", "1 GB of memory"),
    "calls itself": (HEAD + "    return claim_run(db, name, key)\n", "calls itself"),
    "sleep": (HEAD + "    import time\n    time.sleep(600)\n", "did not come to rest"),
    "a flood": (HEAD + "    while True:\n        print('x' * 10_000)\n", "OSError"),
    "sys.exit": (HEAD + "    raise SystemExit('no')\n", "sys.exit()"),
    "os._exit": (HEAD + "    import os\n    os._exit(3)\n", "ended by itself, exit code 3"),
    "input()": (HEAD + "    return input() == 'yes'\n", "input() gets no answer"),
    "processes": (HEAD + SPAWN, "A had committed"),
}


def strays(mark):
    """The processes that carry the mark of a check that is over."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.parametrize("what", NO_ANSWERS)
def test_no_answer_ends_in_a_helpful_message_and_leaves_nothing(server, checked, what):
    if what == "a flood" and sys.platform == "win32":
        pytest.skip("there is no limit on a file's size on Windows")
    if what == "all the memory" and sys.platform != "linux":
        pytest.skip("only Linux limits the memory of a process")
    text, words = NO_ANSWERS[what]
    result, mark, database = checked(text)
    assert not result.passed and words in result.failure.said, result.failure.said
    assert strays(mark) == []
    with psycopg.connect(server.url) as conn:
        left = conn.execute("SELECT datname FROM pg_database WHERE datname = %s", (database,))
        assert left.fetchall() == []


# The student's commands


@pytest.fixture
def student(tmp_path):
    """Runs `python -m lab …` where my/ and out/ are the student's own."""

    def run(*args):
        env = os.environ | {"PYTHONPATH": str(folders.ROOT), "LANG": "C.UTF-8", "PYTHONUTF8": "1"}
        return subprocess.run([sys.executable, "-m", "lab", *args], cwd=tmp_path, env=env,
                              capture_output=True, text=True, encoding="utf-8", check=False)

    return run


def test_the_way_of_a_student(student, tmp_path):
    mine = tmp_path / "my/01-advisory-lock/twice/schedule.txt"
    assert "Begin with" in student("check", "1", "twice").stderr
    assert str(Path("my/01-advisory-lock/twice/schedule.txt")) in student(
        "exercise", "1", "twice").stdout
    failed = student("check", "1", "twice")
    assert failed.returncode == 1
    assert "make replay-1 MY=twice CASE=twice" in failed.stdout
    picture = tmp_path / "out/my-01-twice.png"
    assert picture.exists()
    assert student("replay", "1", "--my", "twice", "--case", "twice").returncode == 0
    assert "hint 1 of 3" in student("hint", "1", "twice").stdout
    assert student("solution", "1", "twice").returncode == 2
    mine.write_text("A.. B..\n")
    student("exercise", "1", "twice")
    assert mine.read_text() == "A.. B..\n", "a file that was begun is left alone"
    assert "1 scenario" in student("check", "1", "twice").stdout
    assert not picture.exists(), "what has passed has no picture of its failure"
    assert student("solution", "1", "twice").returncode == 0
    student("reset", "1", "twice")
    assert mine.with_name("schedule.txt.1.bak").read_text() == "A.. B..\n"
    assert "passed" in student("progress").stdout


def test_a_hint_is_one_and_says_whose_it_is_and_how_to_get_another(student):
    first, second = student("hint", "3").stdout, student("hint", "3", "claim").stdout
    assert "03-claim-row/claim: hint 1 of 3" in first and "make hint-3 WHICH=claim" in first
    assert "For argue: make hint-3 WHICH=argue" in first
    assert "hint 2 of 3" in second and "hint 1 of 3" not in second
    assert "argue: hint 1 of 3" in student("hint", "3", "argue").stdout
    student("hint", "3", "claim")
    again = student("hint", "3", "claim").stdout
    assert "hint 1 of 3" in again and "hint 3 of 3" in again, "all of them, when none is left"


def test_a_replay_of_a_wrong_answer_says_what_the_check_says(student, tmp_path):
    answer = tmp_path / "my/03-claim-row/claim/claims.py"
    answer.parent.mkdir(parents=True)
    answer.write_bytes(CLAIM.mutants["swallows"].read_bytes())
    shown = student("replay", "3", "--my", "claim", "--case", "in-turn", "@18:00 A.. @18:01 B..")
    assert "B's run ended in an error" in shown.stdout and "every effect once" not in shown.stdout


def test_what_was_counted_is_said_as_it_was_counted(bench_of):
    argue = exercise(stage(3), "argue")
    assert check_answer(bench_of(argue), argue.solution).counts == (
        "two-ticks: 0 of 72, tick-and-button: 0 of 34, no-section: 72 of 72")


@pytest.mark.timeout(1800)
def test_a_room_of_students_on_one_server_gets_the_right_results(server, student, tmp_path):
    right = exercise(stage(1), "twice")
    for number in range(STUDENTS):
        answer = tmp_path / f"room/student-{number:02d}" / right.place / right.file
        answer.parent.mkdir(parents=True)
        source = right.solution if number % 2 else right.mutants["overlap"]
        answer.write_bytes(source.read_bytes())
    done = student("check-all", "room", "--at-once", str(min(10, STUDENTS)))
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "room/results.csv").read_text("utf-8").splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == ["False", "True"] * (STUDENTS // 2)
    assert (tmp_path / "room/student-00.json").is_file()
