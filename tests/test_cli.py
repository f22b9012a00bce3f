"""The command line: what it says when it is used wrongly, and that it can be interrupted."""

import ast
import os
import re
import signal
import subprocess
import sys

import pytest

from lab import cli, folders
from lab.errors import LabError

WAITER = """
import sys
from lab import cli

def wait(args):
    try:
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        print("cleaned up", flush=True)

cli.COMMANDS["wait"] = cli.Command("wait for a signal", "__main__:wait")
sys.exit(cli.main(["wait"]))
"""


def lab(*args, **env):
    return subprocess.run(
        [sys.executable, "-m", "lab", *args],
        cwd=folders.ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_help_lists_every_command_and_imports_none_of_them():
    code = "import sys; from lab import cli; cli.parser().print_help(); print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folders.ROOT, capture_output=True, text=True, check=True
    )
    assert [name for name in cli.COMMANDS if name not in done.stdout] == []
    loaded = set(ast.literal_eval(done.stdout.splitlines()[-1]))
    assert not loaded & {"rich", "psycopg", "sqlalchemy", "matplotlib"}
    assert lab("--help").returncode == 0


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_and_its_function_exists(name):
    module, function = cli.COMMANDS[name].run.split(":")
    source = (folders.ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
    defined = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert function in defined
    assert lab(name, "--help").returncode == 0


def test_every_command_of_the_makefile_is_declared():
    makefile = (folders.ROOT / "Makefile").read_text("utf-8")
    assert [c for c in re.findall(r"\$\(LAB\) (\w+)", makefile) if c not in cli.COMMANDS] == []


@pytest.mark.parametrize("args", [[], ["no-such-command"], ["diff"], ["diff", "1", "2"]])
def test_wrong_usage_exits_with_2_and_prints_the_usage(args):
    done = lab(*args)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m lab")
    assert done.stdout == ""


@pytest.mark.parametrize("word", ["--twise", "twice"])
def test_a_word_that_a_command_does_not_know_is_named_below_those_that_it_does(word):
    done = lab("deliver", "5", word)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m lab deliver") and "[--twice]" in done.stderr
    assert done.stderr.endswith(f"error: unrecognized arguments: {word}\n")


@pytest.mark.parametrize(("option", "value"), [
    ("--again", "-1d"), ("--late", "-3h"), ("--again", "--twice"), ("--again", "3 days")])
def test_what_is_no_duration_is_refused_with_the_form_of_one(option, value):
    done = lab("deliver", "5", option, value)
    assert done.returncode == 2
    assert done.stderr == f"“{value}” is no duration.\nWrite 30m, 3h or 2d.\n"


@pytest.mark.parametrize("number", ["77", "-1", "x", "1.5", "²"])
def test_an_unknown_stage_lists_those_that_exist(number):
    with pytest.raises(LabError) as caught:
        folders.stage(number)
    assert caught.value.what == f"There is no stage {number}."
    assert "0 (the-bug)" in caught.value.remedy


def test_a_stage_may_be_written_with_one_digit_or_two():
    assert folders.stage("0") == folders.stage("00") == folders.stage(0) == folders.stages()[0]


def test_an_error_is_two_sentences_without_a_traceback():
    done = lab("diff", "77")
    assert done.returncode == 2
    assert done.stdout == ""
    first, second = done.stderr.splitlines()
    assert first == "There is no stage 77."
    assert second.startswith("The stages are 0 (the-bug)")


def test_the_exit_code_of_an_error_is_its_own(monkeypatch, capsys):
    def fail(args):
        raise LabError("It broke.", "Mend it.", code=7)

    monkeypatch.setattr("lab.show.diff.run", fail)
    assert cli.main(["diff", "1"]) == 7
    assert capsys.readouterr().err == "It broke.\nMend it.\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cleans_up_and_exits_with_130(number):
    pipe = subprocess.PIPE
    waiter = subprocess.Popen(
        [sys.executable, "-c", WAITER],
        cwd=folders.ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
    )  # fmt: skip
    with waiter:
        assert waiter.stdout.readline() == "ready\n"
        waiter.send_signal(number)
        out, err = waiter.communicate(timeout=20)
    assert waiter.returncode == 130
    assert out == "cleaned up\n"
    assert err == "Interrupted; everything that was started is stopped.\n"


def test_the_diff_counts_the_changed_lines_of_the_code():
    done = lab("diff", "3")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    body = [line for line in lines[:-1] if not line.startswith(("+++ ", "--- "))]
    added, removed = (sum(line.startswith(sign) for line in body) for sign in "+-")
    assert lines[-1] == f"02-thread-sentinel -> 03-claim-row: +{added} -{removed} lines of code"
    assert "+++ 03-claim-row/schema.sql" in lines
    assert not [line for line in lines if "test_stage" in line or "README" in line]
    assert "\x1b" not in done.stdout


def test_the_first_stage_has_nothing_to_differ_from():
    done = lab("diff", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("00-the-bug is the first stage")


@pytest.mark.skipif(os.name == "nt", reason="needs make")
def test_make_works_in_a_folder_with_spaces_and_accents(tmp_path):
    there = tmp_path / "copia ñandú – dos"
    there.mkdir()
    for name in ("Makefile", "requirements.lock", "locks", "lab", "02-thread-sentinel",
                 "03-claim-row"):  # fmt: skip
        (there / name).symlink_to(folders.ROOT / name)
    (there / ".venv").symlink_to(folders.ROOT / ".venv")
    shown = subprocess.run(["make", "help"], cwd=there, capture_output=True, text=True)
    assert "make stage-N" in shown.stdout
    for command in ("make -n stage-10", "make -n clean", "make -n setup"):
        planned = subprocess.run(command.split(), cwd=there, capture_output=True, text=True)
        assert planned.returncode == 0, planned.stderr
    assert "-m lab stage 10" in subprocess.run(
        ["make", "-n", "stage-10"], cwd=there, capture_output=True, text=True
    ).stdout  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another error for a closed pipe")
@pytest.mark.parametrize("words", ["run 00-the-bug/bug.py", "stage 4", "play --soak 60"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_stops_reading_ends_the_command_without_a_traceback(words, unbuffered):
    read, written = os.pipe()
    os.close(read)  # as `| head -0` does
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lab", *words.split()], cwd=folders.ROOT, stdout=written,
            stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, timeout=60)
    finally:
        os.close(written)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_pipe_of_the_labs_own_that_breaks_is_no_silent_end():
    code = WAITER.replace("sys.stdin.read()", "raise BrokenPipeError(32, 'Broken pipe')")
    done = subprocess.run([sys.executable, "-c", code], cwd=folders.ROOT, capture_output=True,
                          text=True)
    assert done.returncode == 1 and "BrokenPipeError" in done.stderr
