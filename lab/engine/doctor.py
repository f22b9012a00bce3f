"""What `python -m lab doctor` checks, and what `python -m lab clean` takes away.

Doctor uses the server just as a lesson does, so what it says is what a lesson would run into.
"""

import sys
import time
from typing import NamedTuple

import psycopg

from lab.engine import databases, datadir, embedded, programs, scratch, target
from lab.engine.postgres import server
from lab.errors import LabError


class Check(NamedTuple):
    """One thing that was looked at; `str()` is what a person reads, the remedy on its own line."""

    ok: bool
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{'ok  ' if self.ok else 'no  '} {self.what}"
        return f"{line}\n     {self.remedy}" if self.remedy else line


def doctor() -> list[Check]:
    """Return what was checked: Python, which Postgres is used and why, and whether it will do.

    A check that is `ok` and has a remedy is no obstacle; something could be better.
    """
    return [Check(True, f"Python {sys.version.split()[0]}."), *_postgres()]


def clean() -> list[Check]:
    """Drop left-over databases and temporary folders, stop a left-over server, remove its data.

    Databases and servers that somebody is connected to stay.

    Returns:
        What was done or was left alone; not `ok` is what could not be reached.
    """
    done = [Check(True, line) for line in (_clean_embedded() if programs.installed() else [])]
    if folders := scratch.sweep():
        done.append(Check(True, f"Deleted temporary folders of killed commands: {folders}."))
    if url := target.database_url():
        try:
            parts = target.parse(url)
            with target.connect(parts) as admin:
                done += [Check(True, line) for line in _sweep(admin, f"at {target.place(parts)}")]
        except LabError as error:
            done.append(Check(False, error.what, error.remedy))
    return done


def _postgres() -> list[Check]:
    try:
        kind = target.chosen()
        asked = {
            "url": "DATABASE_URL is set: its server is used.",
            "embedded": "The embedded server is used; DATABASE_URL would name another.",
            "docker": "LAB_POSTGRES is docker: a server in a container is used.",
        }
        found = [Check(True, asked[kind])]
    except LabError as error:
        return [Check(False, error.what, error.remedy)]
    try:
        with server() as used:
            found.append(Check(True, f"{used.described} answers."))
            began = time.perf_counter()
            with used.database([], "doctor") as database, database.connect() as conn:
                took = 1000 * (time.perf_counter() - began)
                found.append(Check(True, f"A database was made in {took:.0f} ms."))
                found.append(_wal_level(conn.execute("SHOW wal_level").fetchone()[0]))
                left = databases.leftovers(conn)
    except LabError as error:
        return [*found, Check(False, error.what, error.remedy)]
    runs = [name for name in left if not name.startswith("lab_template_")]
    if runs:
        found.append(Check(True, f"Left over: {', '.join(runs)}.", "Run `make clean`."))
    return found


def _wal_level(level: str) -> Check:
    if level == "logical":
        return Check(True, "wal_level is logical.")
    return Check(
        True,
        f"wal_level is {level}: everything runs but the reader of the WAL in 06-notifications.",
        "For that, unset DATABASE_URL, or run ALTER SYSTEM SET wal_level = logical and restart.",
    )


def _clean_embedded() -> list[str]:
    with embedded.gate():
        url = embedded.running()
        if url:
            with target.connect(target.parse(url)) as admin:
                users = databases.others(admin)
                if users:
                    who = "1 connection" if users == 1 else f"{users} connections"
                    return [*_sweep(admin), f"The embedded server is in use by {who}: it stays."]
            embedded.stop()
        removed = datadir.remove()
    return ["Stopped the embedded server."] * bool(url) + ["Removed its data."] * removed


def _sweep(admin: psycopg.Connection, where: str = "on the embedded server") -> list[str]:
    """Drop what nobody uses; templates only if no command that may want one is at work."""
    keep = []
    databases.join(admin)
    if not databases.leave(admin):
        keep = [name for name in databases.leftovers(admin) if name.startswith("lab_template_")]
    return [f"Dropped {name} {where}." for name in databases.sweep(admin, keep)]
