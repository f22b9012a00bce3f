"""Servers for the tests of the lab's Postgres: an embedded one in a home of its own, and a foreign
one that nobody but these tests uses."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg

from lab import folders
from lab.engine import datadir, embedded, programs

DEBIAN = Path("/usr/lib/postgresql/15/bin")

# Roles of the foreign server. The odd password has to survive every way it is passed on.
ODD = "p@ss/w:rd ñ%41"
ROLES = f"""
CREATE ROLE maker LOGIN CREATEDB PASSWORD '{ODD}';
CREATE ROLE student LOGIN PASSWORD 'learns';
CREATE ROLE "Odd-One" LOGIN PASSWORD 'learns';
CREATE DATABASE lab_results OWNER maker;
"""
USER = """
import sys
from lab.engine.postgres import server
with server() as used, used.database([], "kept") as database:
    started = database.connect().execute("SELECT pg_postmaster_start_time()").fetchone()[0]
    print(started, database.name, flush=True)
    sys.stdin.read()
"""


class Foreign(NamedTuple):
    """A server that is not the lab's."""

    port: int
    password: str
    version: int

    def url(self, user: str = "postgres", password: str | None = None) -> str:
        secret = quote(self.password if password is None else password, safe="")
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/postgres"


def new_folder() -> Path:
    """A folder that the user that Postgres runs as can enter, as pytest's own ones cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="lab-test-"))
    folder.chmod(0o711)
    return folder


@contextmanager
def own_home(monkeypatch):
    """Let the embedded server of this process and its children be another than the user's."""
    home = new_folder()
    for name in ("TMPDIR", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("DATABASE_URL", "LAB_POSTGRES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    try:
        yield home
    finally:
        with embedded.gate():
            embedded.stop()
            datadir.remove()
        shutil.rmtree(home)


def await_backends(conn: psycopg.Connection) -> None:
    """Wait until Postgres has noticed that the clients of the lab's databases have gone."""
    for _ in range(200):
        if not conn.execute("SELECT FROM pg_stat_activity WHERE datname ~ '^lab_'").rowcount:
            return
        time.sleep(0.05)  # polls: a backend tells nobody that its client has gone


@contextmanager
def user_process(code: str = USER, **env: str):
    """A process that uses the server until its input ends; `code` prints a line when it does."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folders.ROOT, env=os.environ | env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def foreign():
    """A server of Debian's PostgreSQL 15 where that is installed, or else of the wheel's."""
    folder = new_folder()
    owner = "postgres" if DEBIAN.exists() else "nobody"
    bin_ = DEBIAN if DEBIAN.exists() else programs._folder(folder)
    how: dict = {"cwd": folder, "stdout": subprocess.DEVNULL, "check": True}
    if programs.is_root():
        entry = pwd.getpwnam(owner)
        how |= {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    secret = folder / "password"
    secret.write_text("administers")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    subprocess.run(
        [bin_ / "initdb", "-D", data, "-A", "scram-sha-256", "-U", "postgres", "-N",
         f"--pwfile={secret}", "--locale=C", "-ESQL_ASCII"], **how,
    )  # fmt: skip
    options = f"-p {port} -c fsync=off -c unix_socket_directories= -c listen_addresses=127.0.0.1"
    subprocess.run(
        [bin_ / "pg_ctl", "start", "-w", "-D", data, "-l", folder / "log", "-o", options], **how
    )
    try:
        server = Foreign(port, "administers", 0)
        with psycopg.connect(server.url(), autocommit=True, client_encoding="utf8") as conn:
            for statement in ROLES.strip().split(";\n"):
                conn.execute(statement.rstrip(";\n"))
            yield server._replace(version=conn.info.server_version // 10000)
    finally:
        subprocess.run([bin_ / "pg_ctl", "stop", "-w", "-D", data, "-m", "immediate"], **how)
        shutil.rmtree(folder)
