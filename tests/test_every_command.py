"""Every command that a page names works: each README, CONTRIBUTING and docs/, in both languages.

Each is expanded by make and read by the command line's own parser. What takes a moment is then run
here; with LAB_EVERY_COMMAND=1 all of them are run as they are written, in a copy of the checkout.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from lab import cli, folders
from lab.judge.exercise import exercises
from lab.judge.stage import stages
from tests.checkouts import copy_checkout, environment
from tests.postgres_servers import own_home

ROOT = folders.ROOT
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("[0-9][0-9]-*/README*.md")])
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
PYTHON = re.compile(r"^(\.venv/(bin|Scripts)/)?python3? ")
# A pattern of a command, or one that is not to be run from a test; and why.
NOT_RUN = {
    r"…|\bmake [a-z]+-N\b|\bNAME\b|\bFILE\b|make PYTHON=": "a pattern, with something to fill in",
    r"^make test\b": "runs this test",
    r"^make (notebook|play|play-\d+)$|^python -m lab (notebooks --open|play)": "runs until Ctrl-C",
    r"^python -m lab \w+ 97": "of a stage that CONTRIBUTING has made: test_contributing.py",
    r"^python tools/setup\.py|^make (setup|lock)\b": "installs packages: test_setup.py",
    r"^make lint\b": "looks at the checkout itself, not at a copy",
    r"^(export|cd|git|pip|docker|kubectl|npm|aws) ": "of another program than the lab",
}
CHEAP = {"replay", "diff", "exercise", "hint", "progress", "doctor", "run"}


def commands(text):
    """The commands that a page names: lines of its shell blocks, and code within sentences."""
    found = []
    for language, body in FENCE.findall(text):
        if language == "sh":
            found += body.replace("\\\n", " ").splitlines()
    found += [code for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
              if re.match(r"make( [a-z]|$)|(\.venv/\S+/)?python3? (-m (lab|jobs)|tools/)", code)]
    lines = [" ".join(re.sub(r"\s+#.*", "", line).split()) for line in found]
    return [PYTHON.sub("python ", line) for line in lines if line and not line.startswith("#")]


def every_command():
    """Each command once, with a page that names it."""
    found = {}
    for page in PAGES:
        for command in commands(page.read_text("utf-8")):
            found.setdefault(command, page.relative_to(ROOT).as_posix())
    return found


COMMANDS = every_command()


def reason(command):
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, command)), "")


RUN = [command for command in COMMANDS if not reason(command)]


def expanded(command):
    """The words after each `python -m lab` that a command comes to; [] if it is not the lab's."""
    if command.startswith("make"):
        planned = subprocess.run(command.replace("make", "make -n", 1), shell=True, cwd=ROOT,
                                 capture_output=True, text=True, check=False)
        assert planned.returncode == 0, planned.stderr
        lines = planned.stdout.replace("\\\n", " ").splitlines()
    else:
        lines = [command]
    words = [re.search(r"-m lab ([^;]*)", line) for line in lines]
    return [shlex.split(found[1], comments=True) for found in words if found]


@pytest.mark.skipif(os.name == "nt", reason="needs make")
@pytest.mark.parametrize("command", RUN)
def test_make_and_the_command_line_understand_it(command):
    for args in expanded(command):
        if args != ["--help"]:
            cli._arguments(args)


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder in which every exercise has a right answer of the student's, as in my/ and room/."""
    folder = tmp_path_factory.mktemp("room")
    for one in (one for each in stages() for one in exercises(each)):
        for place in ("my", "room/Ana"):
            mine = folder / place / one.stage.name / one.name / one.file
            mine.parent.mkdir(parents=True)
            shutil.copyfile(one.solution, mine)
    return folder


@pytest.mark.skipif(os.name == "nt", reason="needs make")
@pytest.mark.parametrize("command", RUN)
def test_what_takes_a_moment_works(server, room, monkeypatch, capsys, command):
    monkeypatch.chdir(room)
    for folder in folders.stages().values():
        if not (room / folder.name).exists():
            (room / folder.name).symlink_to(folder)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        for args in expanded(command):
            if args[0] in CHEAP:
                assert cli.main(args) == 0, capsys.readouterr()
                assert capsys.readouterr().err == ""
    finally:
        signal.signal(signal.SIGTERM, handler)


@pytest.mark.skipif(not os.environ.get("LAB_EVERY_COMMAND"), reason="LAB_EVERY_COMMAND is not set")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("command", RUN)
def test_it_works_as_it_is_written(whole, command):
    line = re.sub(r"^python ", ".venv/bin/python ", command)
    done = subprocess.run(line, shell=True, cwd=whole, env=environment(), capture_output=True,
                          text=True, encoding="utf-8", check=False)
    said = done.stdout[-2000:] + done.stderr[-2000:]
    assert done.returncode == (1 if "docs/own-code" in command else 0), said  # it has a race
    assert "Traceback" not in done.stderr, said


@pytest.fixture(scope="module")
def whole(room, tmp_path_factory):
    tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch, own_home(patch) as home:
        folder = copy_checkout(home / "lab")
        for name in ("my", "room"):
            shutil.copytree(room / name, folder / name)
        yield folder


def test_the_commands_of_a_page_are_found():
    page = ("Run `make stage-1`, or `python -m lab stage 1`; `python` alone is none.\n\n```sh\n"
            "make a  # why\n.venv/bin/python -m lab b \\\n    --c\n```\n\n"
            "```text\nmake nothing\n```\n")
    assert commands(page) == ["make a", "python -m lab b --c", "make stage-1",
                              "python -m lab stage 1"]


def test_every_reason_is_needed_and_most_commands_are_run():
    assert [why for pattern, why in NOT_RUN.items()
            if not any(re.search(pattern, command) for command in COMMANDS)] == []
    assert len(RUN) > 50


@pytest.mark.parametrize("page", ["README.md", "README.es.md"])
def test_the_front_page_names_what_chooses_the_server(page):
    text = (ROOT / page).read_text("utf-8")
    assert "`DATABASE_URL`" in text and "`LAB_POSTGRES=docker`" in text
