"""The blocks in the READMEs are what the program prints and what the files hold.

A comment above a block says where it comes from: a command, or a file. A line with an ellipsis
alone stands for what is left out.
"""

import re
import shlex
import subprocess
import sys
from functools import cache

import pytest

from lab import folders
from lab.engine import redis

READMES = sorted(folders.ROOT.glob("[0-9][0-9]-*/README.md"))
BLOCK = re.compile(r"(?:<!-- ([^\n]+?) -->\n)?```(\w+)\n(.*?)^```", re.M | re.S)
NOT_OUTPUT = {"sh", "mermaid"}


def blocks(text):
    """(source, body) of each block that shows output or code; the source may be missing: ""."""
    return [(source, body) for source, language, body in BLOCK.findall(text)
            if language not in NOT_OUTPUT]


def normal(text):
    """Without durations, numbers of runs, seconds of the clock and the breaks of lines."""
    text = re.sub(r"\b[\d,]+\s+runs,\s+[\d.]+\s+s\b", "… runs, … s", text)
    text = re.sub(r"\([\d.]+\s+s\)", "(… s)", text)
    return " ".join(re.sub(r"\b(\d\d:\d\d):\d\d\b", r"\1", text).split())


def found(body, text):
    """Whether the parts of a block are in a text, in their order."""
    at, text = 0, normal(text)
    for part in re.split(r"^…$", body, flags=re.M):
        at = text.find(normal(part), at)
        if at < 0:
            return False
        at += len(normal(part))
    return True


@cache
def source_text(source):
    if source.startswith("python -m lab "):
        done = subprocess.run(
            [sys.executable, *shlex.split(source)[1:]], cwd=folders.ROOT, capture_output=True,
            text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return (folders.ROOT / source).read_text("utf-8")


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.parent.name)
def test_every_block_is_what_its_source_says(path):
    lack = None
    for source, body in blocks(path.read_text("utf-8")):
        assert source, f"no source is named for:\n{body}"
        if "redis" in source and (lack := redis.missing()):
            continue
        if not source.startswith("tested by "):
            assert found(body, source_text(source)), f"not in {source}:\n{body}"
    if lack:
        pytest.skip(str(lack))


def test_a_stale_block_is_seen():
    text = "2 of 56 break it (16 runs, 0.6 s)\n18:00:05  A  COMMIT\n"
    assert found("2 of 56 break it (16 runs, 1.1 s)\n…\nA COMMIT\n", text)
    assert found("18:00:09  A  COMMIT\n", text)
    assert found("two runs each (15.7 s)\n", "two runs\neach (22.1 s)\n")
    assert not found("3 of 56 break it\n", text)
    assert not found("A COMMIT\n…\n2 of 56\n", text)
    assert blocks("```text\nx\n```\n") == [("", "x\n")]
    assert blocks("<!-- a.py -->\n```python\nx\n```\n") == [("a.py", "x\n")]
