"""The gate on code from outside this repo, as docs/how-the-gate-works.md shows it."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab import cli
from lab.show import own

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-the-gate-works.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """The example's files outside the checkout, in a folder with a space and an accent."""
    return Path(shutil.copytree(ROOT / "docs" / "own-code",
                                tmp_path_factory.mktemp("mi código") / "own"))


def explore(folder, *more):
    command = [sys.executable, "-m", "lab", "explore", "--worker", folder / "worker.py",
               "--call", "redeem", "--schema", folder / "schema.sql",
               "--invariant", folder / "invariant.py", *more]
    return subprocess.run(command, cwd=ROOT, text=True, encoding="utf-8", capture_output=True,
                          check=False)


def blocks(text):
    return re.findall(r"```\w*\n(.*?)```", text, re.S)


def test_the_pages_counts_are_what_the_command_prints(elsewhere):
    done = explore(elsewhere)
    assert done.returncode == 1, done.stderr
    printed = [re.sub(r" \(\d+ runs.*", "", line).strip() for line in done.stdout.splitlines()]
    shown = next(block for block in blocks(PAGE) if "of 24 interleavings" in block)
    assert printed[:3] == [line.strip() for line in shown.splitlines()]


def test_the_pages_transcript_is_what_the_printed_command_replays(elsewhere):
    printed = explore(elsewhere).stdout
    schedule = re.search(r"--schedule '(.*?)'", printed)[1]
    done = explore(elsewhere, "--schedule", schedule)
    assert done.returncode == 1
    shown = next(block for block in blocks(PAGE) if block.startswith("  1  A:"))
    assert done.stdout.rstrip() == shown.rstrip()


def test_repeatable_read_breaks_nothing_and_exits_with_zero(elsewhere):
    done = explore(elsewhere, "--isolation", "repeatable read")
    assert done.returncode == 0 and done.stdout.startswith("0 of 24"), done.stdout + done.stderr


def test_every_code_block_of_the_page_is_the_examples_code():
    worker = (ROOT / "docs/own-code/worker.py").read_text(encoding="utf-8")
    invariant = (ROOT / "docs/own-code/invariant.py").read_text(encoding="utf-8")
    shown = [block for block in blocks(PAGE) if block.startswith("def ")]
    assert len(shown) == 2 and shown[0] in worker and shown[1] in invariant


def test_the_pages_list_of_moves_is_the_modules_own():
    from lab.engine import schedule

    shown = next(block for block in blocks(PAGE) if block.startswith("A            one"))
    assert [line.strip() for line in shown.splitlines()] == [
        line.strip() for line in schedule.__doc__.splitlines()[2:] if line.strip()]


@pytest.mark.parametrize(("damage", "said"), [
    (lambda f: (f / "schema.sql").unlink(), "is not there"),
    (lambda f: (f / "worker.py").write_text("def redeem(:\n"), "is not Python"),
    (lambda f: (f / "worker.py").write_text("x = 1\n"), "has no function redeem"),
    (lambda f: (f / "invariant.py").write_text("x = 1\n"), "has no function broken"),
    (lambda f: (f / "schema.sql").write_text("CREATE TABEL x();\n"), "does not run"),
    (lambda f: (f / "schema.sql").write_bytes(b"-- caf\xe9\n"), "is not UTF-8"),
    (lambda f: (f / "worker.py").write_text("async def redeem():\n    pass\n"), "is async"),
    (lambda f: (f / "worker.py").write_text("def redeem(a, b):\n    pass\n"), "more than one"),
    (lambda f: (f / "worker.py").write_text("def redeem():\n    pass\n"),
     "No statement of worker.py came through the gate"),
    (lambda f: (f / "worker.py").write_text("def redeem():\n    raise ValueError('no')\n"),
     "Every run of worker.py ended in an error: ValueError no"),
    (lambda f: (f / "worker.py").write_text("import sys\ndef redeem():\n    sys.exit(3)\n"),
     "Every run of worker.py ended in an error"),
    (lambda f: (f / "worker.py").write_text("import psycopg2\ndef redeem():\n    pass\n"),
     "postgresql+psycopg://"),
    (lambda f: (f / "worker.py").write_text("import nowhere\ndef redeem():\n    pass\n"),
     "install nowhere"),
    (lambda f: (f / "invariant.py").write_text("import nowhere\ndef broken(c): return []\n"),
     "cannot be imported: ModuleNotFoundError"),
    (lambda f: (f / "invariant.py").write_text(
        "def broken(c):\n    return c.execute('SELECT * FROM nothing').fetchall()\n"),
     "failed: UndefinedTable"),
    (lambda f: (f / "invariant.py").write_text("def broken(c): return True\n"), "returned True"),
    (lambda f: (f / "invariant.py").write_text("def broken(c):\n    return 'ok'\n"),
     "returned 'ok'"),
])
def test_a_file_that_will_not_do_is_named_without_a_traceback(elsewhere, tmp_path, damage, said):
    folder = Path(shutil.copytree(elsewhere, tmp_path / "own"))
    damage(folder)
    done = explore(folder)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    sentences = [line for line in done.stderr.splitlines() if not line.startswith("  ")]
    assert "Traceback" not in done.stderr and len(sentences) == 2, done.stderr


@pytest.mark.parametrize(("more", "said"), [
    (["--replicas", "9"], "9 replicas cannot be stepped"),
    (["--replicas", "0"], "0 replicas cannot be stepped"),
    (["--roles", "B=other"], "is no stage"), (["3"], "is no stage"),
    (["--schedule", "+no-section A.."], "changes what is not there"),
])
def test_what_makes_no_sense_with_code_of_ones_own_is_said(elsewhere, more, said):
    done = explore(elsewhere, *more)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 2


ITS_OWN_LOCK = """
import os
import psycopg

def redeem():
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url) as one, psycopg.connect(url) as other:
        one.execute("UPDATE coupons SET uses_left = 9")
        other.execute("UPDATE coupons SET uses_left = 8")
"""


def test_a_run_that_never_ends_breaks_it_and_is_told_who_waits(elsewhere, tmp_path):
    folder = Path(shutil.copytree(elsewhere, tmp_path / "own"))
    (folder / "worker.py").write_text(ITS_OWN_LOCK)
    done = explore(folder)
    assert done.returncode == 1 and "never ends: A waits for A" in done.stdout, done.stderr
    done = explore(folder, "--schedule", "A..")
    assert done.returncode == 1 and done.stdout.endswith("✗ never ends: A waits for A\n")
    done = explore(elsewhere, "--schedule", "A*2 A.freeze B..")
    assert done.returncode == 1
    assert done.stdout.endswith("✗ never ends: A is frozen; B waits for A\n"), done.stdout


@pytest.mark.parametrize("more", [["--isolation", "repeatable read"],
                                  ["--replicas", "3", "--seconds", "5"]])
def test_the_printed_command_is_typed_as_it_stands_and_breaks_it_again(elsewhere, tmp_path, more):
    folder = Path(shutil.copytree(elsewhere, tmp_path / "own"))
    if "--isolation" in more:
        (folder / "invariant.py").write_text("def broken(c):\n    return ['as always']\n")
    printed = next(line for line in explore(folder, *more).stdout.splitlines()
                   if " --schedule " in line)
    again = subprocess.run(shlex.split(printed), cwd=ROOT, text=True, encoding="utf-8",
                           capture_output=True, check=False)
    assert again.returncode == 1, again.stdout + again.stderr
    assert ("repeatable read" in printed) == ("--isolation" in more)


def test_when_time_is_up_it_says_what_was_tried(elsewhere):
    done = explore(elsewhere, "--replicas", "4", "--seconds", "1")
    assert "of at least" in done.stdout and "Time is up." in done.stdout


def test_a_function_that_the_file_imports_may_be_called(elsewhere, tmp_path):
    folder = Path(shutil.copytree(elsewhere, tmp_path / "own"))
    (folder / "worker.py").rename(folder / "theirs.py")
    (folder / "worker.py").write_text("from theirs import redeem\n")
    assert explore(folder).stdout.startswith("22 of 24")


def test_a_loop_over_statements_is_ended(elsewhere, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(own, "MOST", 50)
    folder = Path(shutil.copytree(elsewhere, tmp_path / "own"))
    text = (folder / "worker.py").read_text(encoding="utf-8")
    (folder / "worker.py").write_text(text.replace(
        "    with db", "    while True:\n        db.execute('SELECT 1')\n    with db"))
    code = cli.main(["explore", "--worker", str(folder / "worker.py"), "--call", "redeem",
                     "--schema", str(folder / "schema.sql"),
                     "--invariant", str(folder / "invariant.py")])
    assert (code, "50 statements were run" in capsys.readouterr().err) == (2, True)
