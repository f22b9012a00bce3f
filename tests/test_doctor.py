"""`doctor` says what a lesson would run into; `clean` takes away what killed commands left."""

import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from lab.engine import databases, datadir, embedded, scratch, target
from lab.engine.doctor import clean, doctor
from lab.engine.postgres import server
from lab.errors import LabError
from tests.postgres_servers import ODD, foreign, own_home, user_process


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory):
    tmp_path_factory.getbasetemp()  # or it would lie in this home, and go with it
    with pytest.MonkeyPatch.context() as patch, own_home(patch):
        yield


@pytest.fixture(scope="module")
def foreign_server():
    with foreign() as found:
        yield found


def test_doctor_finds_nothing_wrong_with_the_embedded_server():
    checks = doctor()
    assert all(check.ok and not check.remedy for check in checks)
    text = "\n".join(map(str, checks))
    assert "PostgreSQL 18" in text
    assert "(embedded) answers" in text


def test_doctor_names_the_server_of_database_url_and_what_it_lacks(foreign_server, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", foreign_server.url("maker", ODD))
    text = "\n".join(map(str, doctor()))
    assert "DATABASE_URL is set" in text
    assert "wal_level is replica" in text
    assert "ALTER SYSTEM SET wal_level = logical" in text
    assert ODD not in text


@pytest.mark.parametrize(
    "fault", ["unreachable", "password", "role", "old", "unreadable", "kind", "docker"]
)
def test_doctor_says_the_same_as_the_command_that_fails(fault, foreign_server, monkeypatch):
    urls = {
        "unreachable": "postgresql://u:learns@127.0.0.1:1/db",
        "password": foreign_server.url("maker", "guessed"),
        "role": foreign_server.url("student", "learns"),
        "unreadable": "nonsense",
    }
    monkeypatch.setenv("DATABASE_URL", urls.get(fault, foreign_server.url("maker", ODD)))
    if fault == "old":
        monkeypatch.setattr(target, "version", lambda conn: 130014)
    if fault in ("kind", "docker"):
        monkeypatch.setenv("LAB_POSTGRES", fault)
        monkeypatch.setitem(sys.modules, "testcontainers.community.postgres", None)
    with pytest.raises(LabError) as caught, server():
        pass
    last = doctor()[-1]
    assert (last.ok, last.what, last.remedy) == (False, caught.value.what, caught.value.remedy)
    assert str(last).splitlines()[1].strip() == caught.value.remedy


def cleaned():
    """What was done to servers, a line each: folders are the machine's, other tests' among them."""
    return [check.what for check in clean() if "folders" not in check.what]


def test_clean_stops_the_server_of_a_killed_process_and_removes_its_data():
    with user_process() as killed:
        killed.stdout.readline()
        killed.kill()
    data = Path(datadir.load().data)
    assert embedded._postmaster()
    assert cleaned() == ["Stopped the embedded server.", "Removed its data."]
    assert not embedded._postmaster()
    assert not data.exists()
    assert cleaned() == []


def test_clean_deletes_the_temporary_folder_of_a_killed_process_and_no_other(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    made = ("from lab.engine import scratch; kept = scratch.folder(); "
            "print(kept.name, flush=True); input()")
    with (subprocess.Popen([sys.executable, "-c", made], stdin=subprocess.PIPE, text=True,
                           stdout=subprocess.PIPE) as killed, scratch.folder() as ours):
        left = Path(killed.stdout.readline().strip())
        assert scratch.sweep() == 0
        assert left.exists()
        killed.kill()
        killed.wait()
        assert scratch.sweep() == 1
        assert not left.exists()
        assert Path(ours).exists()


def test_the_next_command_deletes_what_a_killed_one_left():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    here = Path(tempfile.gettempdir())
    left, of_another = here / f"{scratch.OURS}-{ended.pid}-a", here / "lab-scratch-elsewhere-1-a"
    for folder in (left, of_another):
        folder.mkdir()
    scratch.sweep_once.cache_clear()
    with server():
        assert not left.exists()
        assert of_another.exists()
    of_another.rmdir()


def test_clean_leaves_a_server_that_is_in_use_alone_but_for_left_over_databases():
    with user_process() as killed, user_process() as user:
        left = killed.stdout.readline().split()[-1]
        kept = user.stdout.readline().split()[-1]
        killed.kill()
        killed.wait()
        with server() as used:
            done = cleaned()
            assert f"Dropped {left} on the embedded server." in done
            assert done[-1].startswith("The embedded server is in use by")
            with psycopg.connect(used.url) as conn:
                names = {name for (name,) in conn.execute("SELECT datname FROM pg_database")}
            assert kept in names
            assert left not in names
        user.communicate("")
        assert user.returncode == 0
    assert not embedded._postmaster()


def test_doctor_names_left_over_databases_of_another_server_and_clean_drops_them(
    foreign_server, monkeypatch
):
    monkeypatch.setenv("DATABASE_URL", foreign_server.url("maker", ODD))
    monkeypatch.setattr(databases, "leave", lambda admin: False)  # as if somebody else were there
    with user_process() as killed:
        left = killed.stdout.readline().split()[-1]
        killed.kill()
    text = "\n".join(map(str, doctor()))
    assert f"Left over: {left}." in text
    assert "make clean" in text
    monkeypatch.undo()
    monkeypatch.setenv("DATABASE_URL", foreign_server.url("maker", ODD))
    assert any(line.startswith(f"Dropped {left} at 127.0.0.1:") for line in cleaned())
    with psycopg.connect(foreign_server.url(), client_encoding="utf8") as conn:
        names = {name for (name,) in conn.execute("SELECT datname FROM pg_database")}
    assert {name for name in names if name.startswith("lab_")} == {"lab_results"}


def test_clean_says_so_when_the_server_of_database_url_cannot_be_reached(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@127.0.0.1:1/db")
    last = clean()[-1]
    assert "127.0.0.1:1 cannot be used" in last.what
    assert not last.ok
    assert "secret" not in str(last)
