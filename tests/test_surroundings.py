"""Where the lab is run may be wrong in many ways: one sentence says what, one what to do about it.

Each trouble is made for real: small or read-only file systems are mounted in a name space of the
command's own, and the server that stops in the middle belongs to these tests.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest

from lab import cli, folders
from lab.engine import datadir, embedded, programs
from lab.engine.postgres import server
from tests.checkouts import command, copy_checkout, done, marked
from tests.command_lines import NEITHER_PROCESS_NOR_DATABASE, RUNS, lacking
from tests.postgres_servers import own_home

REPLAY = ["replay", "1", "A.. B.."]
OWN_CODE = RUNS["explore, own code"][0][:-2]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch, own_home(patch) as folder:
        yield folder


@pytest.fixture(scope="module")
def checkout(home):
    return copy_checkout(home / "Clase de José" / "laboratorio")


@pytest.fixture(scope="module")
def keeper(home):
    """The server of these tests, kept running."""
    with server() as used:
        yield used


def mounted(*steps):
    """What goes before a command so that it finds other file systems; skips where it may not."""
    barred = "mounting a file system needs root and `unshare` of Linux"
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip(barred)
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"{barred}: {tried.stderr.strip()}")
    return ["unshare", "-m", "sh", "-ec", "\n".join([*steps, 'exec "$@"']), "sh"]


def two_sentences(result, code=2):
    """What an error says; asserts that it is what is wrong, what to do, and no traceback."""
    got, out, errors = result
    assert got == code, out + errors
    lines = errors.splitlines()
    assert len(lines) == 2, out + errors
    assert all(re.search(r"[.…]$|CREATEDB$", line) for line in lines), errors
    return lines


def runs_left(used):
    rows = used._admin.execute(
        "SELECT datname FROM pg_database WHERE datname ~ '^lab_' AND datname !~ '^lab_template_'")
    return [name for (name,) in rows]


# A folder, a user, a home


@pytest.mark.skipif(os.name == "nt", reason="needs make")
@pytest.mark.parametrize("target", [
    "bug", 'replay-1 SCHEDULE="A.. B.."', "exercise-3 WHICH=claim", "hint-3 WHICH=claim", "doctor",
])  # fmt: skip
def test_in_a_folder_with_spaces_and_accents(checkout, keeper, target):
    made = subprocess.run(f"make {target}", shell=True, cwd=checkout, capture_output=True,
                          text=True, encoding="utf-8", check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert made.stderr == ""


def nobody():
    """What goes before a command so that a user without a home or any right runs it."""
    if not programs.is_root() or not shutil.which("setpriv"):
        pytest.skip("running as another user needs root and `setpriv`")
    user, group = programs._nobody()
    bare = [word for name in ("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME") for word in ("-u", name)]
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "env", *bare]


def python_for_all():
    """A Python that any user may run, and what it needs in its environment; else skips."""
    packages = Path(psycopg.__file__).parents[1]
    plain = Path(sys.executable).resolve()
    if not programs.can_enter(plain.parent):
        plain = Path(f"/usr/bin/python3.{sys.version_info[1]}")
    if not (plain.exists() and programs.can_enter(packages)):
        pytest.skip("no Python and packages that another user can read")
    return str(plain), {"PYTHONPATH": str(packages)}


def test_a_user_without_a_home(home):
    python, env = python_for_all()
    there = copy_checkout(home / "nobody" / "laboratorio")
    for folder in (there.with_name("tmp"), there / "out"):
        folder.mkdir()
        folder.chmod(0o777)
    how = {"before": nobody(), "python": python, "TMPDIR": str(there.with_name("tmp")), **env}
    code, out, errors = done(there, *REPLAY, **how)
    assert code == 0, out + errors
    assert "Picture: out/01-replay.png" in out
    assert "Traceback" not in errors
    code, out, errors = done(there, "doctor", **how)
    assert (code, errors) == (0, ""), out
    # The folder is another's, so that not all of it can be deleted; the server's data can.
    assert "Removed its data." in done(there, "clean", **how)[1]


def test_a_checkout_that_may_only_be_read(checkout, keeper):
    read_only = mounted("mount --bind . .", "mount -o remount,ro,bind .", "cd .")
    for args in (REPLAY, ["exercise", "0"]):
        what, remedy = two_sentences(done(checkout, *args, before=read_only))
        assert what.endswith("cannot be written: Read-only file system.")
        assert "let the folder be writable" in remedy
    assert runs_left(keeper) == []


# A disk that is full


def test_no_room_for_a_picture(checkout, keeper):
    full = mounted("mkdir -p out", "mount -t tmpfs -o size=16k none out")
    what, remedy = two_sentences(done(checkout, *REPLAY, before=full))
    assert what == "A file cannot be written: No space left on device."
    assert remedy.startswith("Make room on the disk")
    assert runs_left(keeper) == []


@pytest.mark.parametrize("megabytes", [20, 42])
def test_no_room_for_the_servers_data(checkout, home, megabytes):
    """Too little for initdb, or for what the run itself needs."""
    place = home / f"disk-{megabytes}"
    place.mkdir(mode=0o711)
    small = mounted("mount -t tmpfs -o size=64m none /dev/shm",
                    f"mount -t tmpfs -o size={megabytes}m,mode=711 none {place}")
    with command(checkout, *OWN_CODE, before=small, TMPDIR=str(place)) as running:
        result = running.end(90)
        if result[0] in (0, 1):
            assert megabytes > 20
            pytest.skip(f"{megabytes} MB were enough here")
        what, remedy = two_sentences(result)
        assert "No space left" in what or "checkpoint" in what
        assert "Make room" in remedy or "make doctor" in remedy
        assert [p.cmdline() for p in marked(running.mark)] == []


# A server that is not there, or does not let in


WRONG = {
    "a word": {"DATABASE_URL": "nonsense"},
    "an unquoted password": {"DATABASE_URL": "postgresql://u:se@cr/et@127.0.0.1/postgres"},
    "nobody there": {"DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/postgres"},
    "misspelt": {"LAB_POSTGRES": "embeded"},
    "url without one": {"LAB_POSTGRES": "url"},
}
SERVED = [name for name in RUNS if name not in ("book", "synth", "doctor", "clean")]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", SERVED)
def test_a_wrong_address_is_said_before_anything_else(name, wrong, tmp_path, monkeypatch, capfd):
    if lack := lacking(name):
        pytest.skip(lack)
    monkeypatch.chdir(folders.ROOT)
    for variable in ("DATABASE_URL", "LAB_POSTGRES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in WRONG[wrong].items():
        monkeypatch.setenv(variable, value)
    args = RUNS[name][0]
    if name in ("check", "check-all"):
        for folder in ("my", "room/Ana"):
            shutil.copytree(folders.ROOT / "03-claim-row/exercise/claim",
                            tmp_path / folder / "03-claim-row/claim")
            (tmp_path / folder / "03-claim-row/claim/starter.py").rename(
                tmp_path / folder / "03-claim-row/claim/claims.py")
        monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        code = cli.main(args)
    finally:
        signal.signal(signal.SIGTERM, handler)
    out, errors = capfd.readouterr()
    two_sentences((code, out, errors))
    assert out == ""
    assert "secret" not in errors and "se@cr" not in errors


def test_every_command_that_asks_for_a_server_is_told_so():
    tried = {RUNS[name][0][0] for name in SERVED}
    without = NEITHER_PROCESS_NOR_DATABASE | {"book", "synth", "doctor", "clean"}
    assert tried | without == set(cli.COMMANDS)


@pytest.mark.parametrize("address", ["u:guessed@{place}/postgres", "postgres@nowhere.invalid/x"])
def test_a_wrong_password_and_a_host_that_does_not_exist(checkout, keeper, address):
    place = keeper.url.rpartition("@")[2].partition("/")[0]
    url = "postgresql://" + address.format(place=place)
    result = done(checkout, "stage", "0", DATABASE_URL=url)
    two_sentences(result)
    assert result[1] == ""
    assert "guessed" not in result[2]


def test_a_port_that_is_taken(checkout, keeper):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        what, _ = two_sentences(done(checkout, "play", "--no-browser", "--port", port))
    assert what == f"The page cannot have port {port}: Address already in use."
    what, _ = two_sentences(done(checkout, "play", "--no-browser", "--port", "70000"))
    assert "up to 65535" in what


# Many at once


def test_thirty_runs_at_once_on_one_server(checkout, keeper):
    with ExitStack() as stack, ThreadPoolExecutor(30) as pool:
        runs = [stack.enter_context(command(checkout, *OWN_CODE, "--schedule", "A.. B.."))
                for _ in range(30)]
        results = list(pool.map(lambda running: running.end(110), runs))
    assert [result for result in results if result[0] != 0] == []
    assert runs_left(keeper) == []


# A server that goes away; the last tests here, since the others have theirs no longer


def connected():
    """A connection to the embedded server, as soon as that runs."""
    for _ in range(1000):
        with suppress(OSError, ValueError, IndexError, AttributeError, psycopg.OperationalError):
            state = datadir.load()
            port = int(Path(state.data, "postmaster.pid").read_text().splitlines()[3])
            return psycopg.connect(
                f"postgresql://postgres:{state.password}@127.0.0.1:{port}/postgres",
                autocommit=True)
        time.sleep(0.02)  # polls: the command starts it
    raise AssertionError("no server")


def at_work(conn, running, transactions=40):
    """Wait until a run's database has seen so many transactions."""
    while running.popen.poll() is None:
        seen = conn.execute(
            "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"
            " WHERE datname ~ '^lab_' AND datname !~ '^lab_template_'").fetchone()[0]
        if seen and seen >= transactions:
            return
        time.sleep(0.01)  # polls: the command tells nobody how far it is
    raise AssertionError("".join(running.end()[1:]))


@pytest.mark.parametrize(("args", "mode", "shown"), [
    (["explore", "7", "--all"], "fast", ""), (["stage", "0"], "fast", "wakes up"),
    (["stage", "3"], "immediate", "COMMIT"),
], ids=["explore", "free run", "tale"])  # fmt: skip
def test_a_server_that_restarts_in_the_middle(home, args, mode, shown):
    there = home / "Clase de José" / "laboratorio"
    if not there.exists():
        copy_checkout(there)
    with command(there, *args) as running:
        if shown:
            while shown not in "".join(running.lines[-1:]):
                assert running.read_lines(len(running.lines) + 1), running.end()
        else:
            with connected() as conn:
                at_work(conn, running)
        data = datadir.load().data
        embedded._control("restart", f"-D{data}", f"-m{mode}", f"-l{data}/server.log")
        code, out, errors = running.end(90)
        assert "Traceback" not in errors
        if code == 2:
            two_sentences((code, out, errors))
        else:
            assert code in (0, 1) and errors == "", out + errors
        assert not running.processes()
    assert done(there, "doctor")[0] == 0
    with server() as used:
        assert runs_left(used) == []
