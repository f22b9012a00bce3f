"""The gate on code from outside this repo, as docs/how-the-gate-works.md shows it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
])
def test_a_file_that_will_not_do_is_named_without_a_traceback(elsewhere, tmp_path, damage, said):
    folder = Path(shutil.copytree(elsewhere, tmp_path / "own"))
    damage(folder)
    done = explore(folder)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) == 2
