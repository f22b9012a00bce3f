"""The life of the embedded server: who starts it, who stops it, and what a crash leaves."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
import pytest

from lab import folders
from lab.engine import databases, datadir, embedded, programs, target
from lab.engine.postgres import server
from lab.errors import LabError
from tests.postgres_servers import USER, new_folder, own_home, user_process


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    tmp_path_factory.getbasetemp()  # or it would lie in this home, and go with it
    with pytest.MonkeyPatch.context() as patch, own_home(patch) as folder:
        yield folder


def remove_data():
    with embedded.gate():
        embedded.stop()
        datadir.remove()


def postmaster():
    process = embedded._postmaster()
    return process and process.pid


def test_four_processes_that_start_at_once_share_one_server_and_the_last_stops_it(home):
    remove_data()
    with ExitStack() as stack:
        users = [stack.enter_context(user_process()) for _ in range(4)]
        lines = [user.stdout.readline().split() for user in users]
        assert len({line[0] + line[1] for line in lines}) == 1, "one start time"
        assert len({line[-1] for line in lines}) == 4, "a database each"
        for user in users[:3]:
            user.communicate("")
        assert postmaster()
        users[3].communicate("")
        assert not postmaster()
        assert [user.returncode for user in users] == [0, 0, 0, 0]


def test_the_server_of_a_killed_process_is_used_and_stopped_by_the_next(home):
    with user_process() as killed:
        left = killed.stdout.readline().split()[-1]
        killed.kill()
    before = postmaster()
    assert before
    with server() as used:
        assert postmaster() == before
        with psycopg.connect(used.url) as conn:
            assert left in databases.leftovers(conn)
    assert not postmaster()
    with server() as used, psycopg.connect(used.url) as conn:
        assert left not in {name for (name,) in conn.execute("SELECT datname FROM pg_database")}


def test_a_process_killed_in_the_middle_of_initdb_or_of_a_start_does_no_harm(home):
    for sign in ("password", "server.json"):  # one is there while initdb runs, one as it ends
        remove_data()
        with user_process() as killed:
            while not (datadir.folder() / sign).exists():
                assert killed.poll() is None
            killed.kill()
        with server() as used:
            assert used.kind == "embedded"


def test_a_connection_that_is_not_the_labs_keeps_the_server_running(home):
    with server() as used:
        guest = psycopg.connect(used.url)
    assert postmaster()
    guest.close()
    with server():
        pass
    assert not postmaster()


def test_another_process_with_the_number_of_a_dead_server_is_not_taken_for_it(home):
    with server() as used:
        guest = psycopg.connect(used.url)
    os.kill(postmaster(), signal.SIGKILL)
    guest.close()
    data = datadir.load().data
    lock = Path(data, "postmaster.pid")
    user, group = programs._nobody() if programs.is_root() else (None, None)
    with subprocess.Popen(["sleep", "600"], user=user, group=group) as stranger:
        try:
            lines = lock.read_text().splitlines()
            lock.write_text("\n".join([str(stranger.pid), *lines[1:]]))
            with server():
                assert postmaster() not in (stranger.pid, None)
            assert datadir.load().data == data
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_data_that_were_in_use_when_the_machine_went_down_are_made_anew(home):
    with server() as used:
        guest = psycopg.connect(used.url)
    os.kill(postmaster(), signal.SIGKILL)
    guest.close()
    before = datadir.load().data
    os.utime(Path(before, "postmaster.pid"), (0, 0))
    with server():
        assert datadir.load().data != before
    assert not Path(before).exists()


def test_a_server_that_hangs_is_replaced(home, monkeypatch):
    monkeypatch.setattr(embedded, "PATIENCE", 1.0)
    with server() as used:
        guest = psycopg.connect(used.url)
    hung = postmaster()
    os.kill(hung, signal.SIGSTOP)
    with server():
        assert postmaster() not in (hung, None)
    guest.close()


def test_data_that_cannot_be_started_are_made_anew(home):
    with server():
        pass
    (Path(datadir.load().data) / "global/pg_control").unlink()
    with server() as used:
        assert psycopg.connect(used.url).execute("SELECT 1").fetchone() == (1,)


def test_the_server_listens_on_the_loopback_with_a_password_that_only_its_user_can_read(home):
    with server() as used:
        with psycopg.connect(used.url) as conn:
            settings = dict(conn.execute("SELECT name, setting FROM pg_settings"))
        wanted = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        wanted |= {"wal_level": "logical", "max_connections": "200"}
        assert {name: settings[name] for name in wanted} == wanted
        without = target.parse(used.url) | {"password": "guessed"}
        with pytest.raises(LabError):
            target.connect(without)
        assert (datadir.folder() / "server.json").stat().st_mode & 0o077 == 0
        assert datadir.load().password not in used.described + repr(used)


def test_the_programs_are_copied_if_the_servers_user_cannot_reach_them(home, monkeypatch):
    if not programs.is_root():
        pytest.skip("only root's server runs as another user")
    monkeypatch.setattr(programs, "_usable", lambda package: False)
    with server():
        assert home.as_posix() in psutil.Process(postmaster()).exe()


def test_a_user_who_is_not_root_has_the_server_in_the_cache_folder():
    if not programs.is_root():
        pytest.skip("the other tests run as such a user")
    plain = Path(sys.executable).resolve()
    if not programs.can_enter(plain.parent):
        plain = Path(shutil.which(f"python3.{sys.version_info[1]}", path="/usr/bin") or "none")
    packages = Path(psycopg.__file__).parents[1]
    if not all(path.exists() and programs.can_enter(path.parent) for path in (plain, packages)):
        pytest.skip("no Python and checkout that another user than root can read")
    cache = new_folder()
    programs.give(cache)
    env = {"PYTHONPATH": f"{folders.ROOT}:{packages}", "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"XDG_CACHE_HOME": str(cache), "PATH": os.defpath}
    code = "from lab.engine import datadir" + USER.replace("sys.stdin.read()", "")
    code += "print(datadir.folder())\ndatadir.remove()"
    uid, gid = programs._nobody()
    try:
        done = subprocess.run(
            [plain, "-c", code], user=uid, group=gid, extra_groups=[], env=env, text=True,
            capture_output=True, cwd="/",
        )  # fmt: skip
        assert str(cache) in done.stdout, done.stderr
    finally:
        shutil.rmtree(cache)


@pytest.mark.parametrize("unusable", ["no home", "a file in its place", "somebody else's"])
def test_without_a_usable_cache_folder_a_temporary_one_is_used(unusable, home, monkeypatch):
    monkeypatch.setattr(programs, "is_root", lambda: False)
    cache = home / unusable.replace(" ", "-")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    if unusable == "no home":
        import platformdirs

        def homeless(name):
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(platformdirs, "user_cache_path", homeless)
    elif unusable == "a file in its place":
        cache.write_text("")
    else:
        if os.getuid() != 0:
            pytest.skip("only root can make a folder of somebody else")
        (cache / datadir.NAME).mkdir(parents=True)
        os.chown(cache / datadir.NAME, 65534, 65534)
    assert datadir.folder().parent == home / f"{datadir.NAME}-{os.getuid()}"


def test_data_lie_on_disk_where_there_is_no_room_in_memory(home, monkeypatch):
    remove_data()
    monkeypatch.setattr(datadir, "MEMORY", home / "absent")
    with server():
        assert Path(datadir.load().data).parent == datadir.folder()


def test_a_path_longer_than_a_sockets_may_be_does_no_harm(home, monkeypatch):
    deep = home / ("long" * 30)
    deep.mkdir(mode=0o711)
    monkeypatch.setattr(datadir, "MEMORY", home / "absent")
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    monkeypatch.setenv("XDG_CACHE_HOME", str(deep))
    with server():
        assert len(datadir.load().data) > 120
    remove_data()


def test_a_server_that_will_not_start_says_why(home, monkeypatch):
    monkeypatch.setitem(embedded.SETTINGS, "wal_level", "nonsense")
    with pytest.raises(LabError, match='invalid value for parameter "wal_level"'), server():
        pass
