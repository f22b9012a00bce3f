"""What `diff` shows of two stages, and what make says of a number without a stage."""

import os
import subprocess
from argparse import Namespace

import pytest

from lab import folders
from lab.show import diff

BEGINNINGS = [number for number, folder in folders.stages().items()
              if "begins" in diff.stage_data(folder).get("diff", {})]


def shown(number, capsys):
    """The lines that `diff N` prints."""
    assert diff.run(Namespace(stage=str(number))) == 0
    return capsys.readouterr().out.splitlines()


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def test_the_branch_on_the_wall_clock_is_the_first_that_is_seen_to_go_in_04(capsys):
    lines = shown(4, capsys)
    assert lines[:2] == ["--- 03-claim-row/worker.py", "+++ 04-cli-entrypoint/worker.py"]
    gone = [line for line in lines if line.startswith("-") and "friday_18_window" in line]
    assert len(gone) == 2
    assert not [line for line in lines if line.startswith("+") and "friday_18_window" in line]


def test_a_file_that_moved_is_compared_with_what_it_was(capsys):
    lines = shown(4, capsys)
    at = lines.index("--- 03-claim-row/leaderboard.py")
    assert lines[at + 1] == "+++ 04-cli-entrypoint/jobs/leaderboard_close.py"
    assert "Moved as it was: claims.py -> jobs/claims.py" in lines


def test_another_file_is_no_move(tmp_path):
    write(tmp_path / "1", a_py="one = 1\ntwo = 2\n")
    write(tmp_path / "2", b_py="import this\n\n\ndef three():\n    return four\n")
    assert diff.unified(tmp_path / "1", tmp_path / "2")[-1] == "Only in 1: a.py"


def test_a_long_new_file_is_named_and_shown_only_where_the_stage_puts_it_first(tmp_path):
    long = "".join(f"line_{n} = {n}\n" for n in range(diff.LONG + 1))
    write(tmp_path / "1", a_py="a = 1\n")
    write(tmp_path / "2", a_py="a = 1\n", new_py=long)
    name_only = [f"New in 2: new.py, {diff.LONG + 1} lines"]
    assert diff.unified(tmp_path / "1", tmp_path / "2") == name_only
    write(tmp_path / "2", stage_toml='[diff]\nfirst = ["new.py"]\n')
    assert "+line_0 = 0" in diff.unified(tmp_path / "1", tmp_path / "2")


def test_files_that_lose_lines_come_before_those_that_only_gain(tmp_path):
    write(tmp_path / "1", a_py="a = 1\n", b_py="b = 1\nc = 1\n")
    write(tmp_path / "2", a_py="a = 1\nd = 1\n", b_py="c = 1\n")
    headers = [x for x in diff.unified(tmp_path / "1", tmp_path / "2") if x.startswith("+++ ")]
    assert headers == ["+++ 2/b.py", "+++ 2/a.py"]


def test_every_stage_after_05_begins_a_story():
    assert [number for number in folders.stages() if number > 5] == BEGINNINGS


@pytest.mark.parametrize("number", BEGINNINGS)
def test_where_a_story_begins_its_own_steps_are_compared(number, capsys):
    first, *lines, last = shown(number, capsys)
    folder = folders.stage(number)
    assert first.startswith("A ") and first.endswith("but step by step:")
    assert not [x for x in lines if x.startswith("--- ") and not x.startswith(f"--- {folder.name}")]
    rows = diff.stage_data(folder)["diff"]["steps"]
    assert sum(x.startswith("+++ ") for x in lines) == sum(len(row) - 1 for row in rows)
    added, removed = diff.changed(lines)
    assert last == f"inside {folder.name}: +{added} -{removed} lines of code" and added


@pytest.mark.skipif(os.name == "nt", reason="needs make")
@pytest.mark.parametrize(("target", "asked"), [
    ("stage-11", "11"), ("diff-x", "x"), ("check-12", "12"), ("deliver-99", "99")])
def test_make_says_which_stages_there_are(target, asked):
    done = subprocess.run(["make", "-s", target], cwd=folders.ROOT, capture_output=True, text=True)
    last = max(folders.stages())
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[0] == (
        f"There is no stage {asked}. The stages are 0 … {last}.")
