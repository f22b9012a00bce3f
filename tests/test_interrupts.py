"""Every command, interrupted or killed at a moment that chance picks: nothing of it is left.

A moment is not a point in time but something that has happened: its n-th process is there, its
database is, that has seen n transactions, or n lines are on the screen. LAB_SEED repeats a choice;
LAB_EVERY_MOMENT=1 tries all moments, the first and the last n of each, with all signals, not one
moment for each signal.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lab import cli, folders
from lab.engine.databases import drop
from lab.engine.doctor import clean, doctor
from lab.engine.postgres import server
from tests.checkouts import command, copy_checkout
from tests.command_lines import MOST, NEITHER_PROCESS_NOR_DATABASE, RUNS, lacking
from tests.postgres_servers import await_backends, own_home

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no signals for process groups")

SEED = int(os.environ.get("LAB_SEED") or random.randrange(10**6))
CHANCE = random.Random(SEED)
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
EVERY = bool(os.environ.get("LAB_EVERY_MOMENT"))



def counts(moment):
    """The n of a moment to try: one by chance, or the first and the last."""
    most = MOST.get(moment, 1)
    return sorted({1, most}) if EVERY else [CHANCE.randint(1, most)]


CASES = [
    (name, number, moment, count)
    for name, (_, moments) in RUNS.items()
    for number in (CHANCE.sample(SIGNALS, 1) if "," in name and not EVERY else SIGNALS)
    for moment in (moments if EVERY else CHANCE.sample(moments, 1))
    for count in counts(moment)
]  # fmt: skip
if os.name != "nt":  # a terminal that is closed
    CASES += [("replay", signal.SIGHUP, "database", 1), ("play", signal.SIGHUP, "line", 1)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch, own_home(patch) as folder:
        yield folder


@pytest.fixture(scope="module")
def checkout(home):
    folder = copy_checkout(home / "Clase de José" / "laboratorio")
    answer = Path("03-claim-row", "claim", "claims.py")
    solution = folder / "03-claim-row/exercise/claim/solution.py"
    for student in ("my", "room/Ana", "room/Beto", "room/Íñigo"):
        (folder / student / answer).parent.mkdir(parents=True)
        shutil.copyfile(solution, folder / student / answer)
    return folder


@pytest.fixture(scope="module")
def admin(home):
    """A connection to the server of these tests, which it keeps running."""
    with server() as used:
        yield used._admin


def databases(admin):
    rows = admin.execute(
        "SELECT datname FROM pg_database WHERE datname ~ '^lab_' AND datname !~ '^lab_template_'")
    return {name for (name,) in rows}


def transactions(admin):
    return admin.execute(
        "SELECT coalesce(sum(xact_commit + xact_rollback), 0) FROM pg_stat_database"
        " WHERE datname ~ '^lab_' AND datname !~ '^lab_template_'").fetchone()[0]


def catches(pid, number):
    """Whether a process has a handler for a signal (on Linux; elsewhere as soon as it is there)."""
    status = Path(f"/proc/{pid}/status")
    if not status.parent.parent.joinpath("self").exists():
        return psutil.pid_exists(pid)
    caught = int(re.search(r"^SigCgt:\s*(\w+)", status.read_text(), re.M)[1], 16)
    return bool(caught & 1 << number - 1)


def reached(running, admin, moment, count):
    """Wait for a moment; False if the command ended before."""
    if moment in ("line", "lines"):
        return running.read_lines(count)
    there = {
        "begun": lambda: catches(running.popen.pid, signal.SIGTERM),
        "database": lambda: databases(admin),
        "process": lambda: len(running.children()) >= count,
        "transactions": lambda: transactions(admin) >= count,
    }[moment]
    while not there():
        if running.popen.poll() is not None:
            return False
        time.sleep(0.005)  # polls: the command tells nobody how far it is
    return True


def gone(running, seconds):
    """What is alive of a command after so many seconds at most."""
    _, alive = psutil.wait_procs(running.processes(), timeout=seconds)
    return [" ".join(p.cmdline()) for p in alive if p in running.processes()]


def test_every_command_is_interrupted_or_starts_nothing():
    tried = {arguments[0] for arguments, _ in RUNS.values()}
    assert tried | NEITHER_PROCESS_NOR_DATABASE == set(cli.COMMANDS)
    assert not tried & NEITHER_PROCESS_NOR_DATABASE


@pytest.mark.parametrize(("name", "number", "moment", "count"), CASES, ids=[
    f"{name}-{number.name}-{moment}-{count}" for name, number, moment, count in CASES])
def test_nothing_is_left_and_the_next_command_works(checkout, admin, name, number, moment, count):
    print(f"LAB_SEED={SEED}")
    if lack := lacking(name):
        pytest.skip(lack)
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as nohup has it, and so by every process")
    for left in databases(admin):  # by the test before this one, which has failed
        drop(admin, left)
    with command(checkout, *RUNS[name][0]) as running:
        if not reached(running, admin, moment, count):
            code, out, errors = running.end()
            pytest.fail(f"it ended before: {code}\n{out}{errors}")
        running.send(number)
        code, _, errors = running.end(30)
        assert gone(running, 5) == []
    if number == signal.SIGKILL:
        assert code == -signal.SIGKILL
        await_backends(admin)
        clean()
    elif (code, errors, moment) != (0, "", "lines"):  # its last line may have been its end
        assert errors == "Interrupted; everything that was started is stopped.\n"
        assert code in (130, -signal.SIGINT)  # so Python ends when it came in the middle of an eval
    assert databases(admin) == set()
    assert [check for check in doctor() if not check.ok] == []


LOSES = """
import os, signal, sys, time
from lab.show import diff

class Drops:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)  # Python drops what a destructor raises
        for _ in range(1000):
            pass

def run(args):
    Drops()
    time.sleep(60)  # interrupted: by what was dropped

diff.run = run
sys.argv = ["lab", "diff", "1"]
import lab.__main__
"""


def test_an_interrupt_that_python_drops_comes_again():
    lost = subprocess.run([sys.executable, "-c", LOSES], cwd=folders.ROOT, timeout=30, text=True,
                          capture_output=True, check=False)
    assert lost.returncode == 130
    assert lost.stderr == "Interrupted; everything that was started is stopped.\n"
