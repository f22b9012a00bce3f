"""CONTRIBUTING.md is followed word by word, on a throw-away stage in a copy of the checkout."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A checkout with the stage that the page describes."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "lab", folder / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page, re.S):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def commands():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block, = re.findall(r"<!-- run -->\n```sh\n(.*?)```", page, re.S)
    return block.splitlines()


def follow(copy, command):
    python, *rest = shlex.split(command)
    assert python == ".venv/bin/python"
    return subprocess.run([sys.executable, *rest], cwd=copy, text=True, encoding="utf-8",
                          capture_output=True, check=False)


@pytest.mark.parametrize("command", commands())
def test_each_command_of_the_page_keeps_the_new_stages_promise(copy, command):
    done = follow(copy, command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_promise_that_the_new_stage_does_not_keep_ends_in_exit_code_1(copy):
    promise = copy / "97-raffle" / "stage.toml"
    kept = promise.read_text(encoding="utf-8")
    promise.write_text(kept.replace('R2 = "D2"', 'R2 = "1"'), encoding="utf-8")
    try:
        assert follow(copy, ".venv/bin/python -m lab stage 97").returncode == 1
    finally:
        promise.write_text(kept, encoding="utf-8")
