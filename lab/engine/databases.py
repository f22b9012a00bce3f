"""The lab's databases on a server: made, told from others', swept when left over, dropped.

A database of this lab is told by its name, whose last part is computed from the rest. So another's
`lab_…` database is never taken for a left-over, and a process that is killed at any moment leaves
nothing that is not recognised.
"""

import hashlib
import re
import time
from collections.abc import Collection

import psycopg
from psycopg import errors, sql

from lab.errors import LabError

USING = 5_249_114_020  # the advisory lock that every command on the server holds, shared
PATIENCE = 10  # seconds for a DROP DATABASE, which takes a hundredth of one


def signed(stem: str) -> str:
    """Return the name of a database of this lab: the stem, and a part computed from it."""
    return f"{stem}_{hashlib.sha256(b'shared postgres' + stem.encode()).hexdigest()[:8]}"


def join(admin: psycopg.Connection) -> None:
    """Count as a command that uses the server, until `leave` or the end of the connection."""
    admin.execute("SET statement_timeout = 0; SET lock_timeout = 0")
    admin.execute("SELECT pg_advisory_lock_shared(%s)", [USING])


def leave(admin: psycopg.Connection) -> bool:
    """Stop counting; return whether no other command is left, and then bar new ones.

    They wait until the connection ends.
    """
    admin.execute("SELECT pg_advisory_unlock_shared(%s)", [USING])
    return admin.execute("SELECT pg_try_advisory_lock(%s)", [USING]).fetchone()[0]


def others(admin: psycopg.Connection) -> int:
    """Return how many other connections the server has, given a moment for those that just end."""
    for _ in range(20):
        count = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type IN ('client backend', 'walsender')"
        ).fetchone()[0]
        if not count:
            break
        time.sleep(0.005)  # polls: a backend tells nobody that it has ended
    return count


def create(admin: psycopg.Connection, name: str, template: str | None = None) -> None:
    """Make a database from a template, or an empty one that is alike on every server."""
    how = "CREATE DATABASE {} TEMPLATE {}"
    if not template:  # text is sorted by code point, whatever the server's own locale is
        how += " ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        how += " LOCALE_PROVIDER libc" if admin.info.server_version >= 150000 else ""
    names = sql.Identifier(name), sql.Identifier(template or "template0")
    admin.execute(sql.SQL(how).format(*names))


def seal(admin: psycopg.Connection, template: str) -> None:
    """Let nobody connect any more, which is also the mark of a template that is complete."""
    admin.execute(
        sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(template))
    )
    _vacate(admin, template)


def drop(admin: psycopg.Connection, name: str, force: bool = True) -> None:
    """Drop a database if it exists; `force` ends the connections to it.

    Postgres waits until every backend of the server has closed the database's files. One that
    waits for the rows of a COPY FROM STDIN, wherever it is, does so only when that goes on.

    Raises:
        LabError: the name is not one of this lab.
        ObjectInUse: somebody is connected, and `force` is false.
        QueryCanceled: it took longer than `PATIENCE`; a later sweep will find the database.
    """
    if not re.fullmatch(r"lab_[a-z0-9_]+", name):
        raise LabError(
            f"The lab does not drop {name!r}: only names that begin with lab_ are its own.",
            "Drop it yourself if it has to go.",
        )
    if force:
        _vacate(admin, name)
    how = sql.SQL("DROP DATABASE IF EXISTS {}" + " WITH (FORCE)" * force)
    admin.execute(f"SET statement_timeout = {1000 * PATIENCE:.0f}")
    try:
        admin.execute(how.format(sql.Identifier(name)))
    finally:
        admin.execute("SET statement_timeout = 0")


def leftovers(admin: psycopg.Connection) -> list[str]:
    """Return the databases of this lab that nobody is connected to and this role may drop."""
    found = admin.execute(
        "SELECT datname FROM pg_database d WHERE datname ~ '^lab_[a-z0-9_]+$'"
        " AND pg_has_role(datdba, 'USAGE') AND NOT EXISTS (SELECT FROM pg_stat_activity a"
        " WHERE a.datid = d.oid AND a.usesysid IS NOT NULL) ORDER BY datname"
    )
    return [name for (name,) in found if name == signed(name.rpartition("_")[0])]


def sweep(admin: psycopg.Connection, keep: Collection[str] = ()) -> list[str]:
    """Drop the left-over databases of this lab but for `keep`, and return their names."""
    swept = []
    for name in leftovers(admin):
        if name not in keep:
            try:
                drop(admin, name, force=False)
                swept.append(name)
            except errors.ObjectInUse:  # somebody has just connected
                continue
            except (errors.QueryCanceled, errors.InternalError_):  # busy, or its disk is full
                break
    return swept


def _vacate(admin: psycopg.Connection, name: str) -> None:
    """End all connections to a database, and wait for it.

    Postgres would do so itself, but looks only every 100 ms whether they are gone; and it does not
    end one that reads the WAL through a replication slot.
    """
    for _ in range(100):
        ended = admin.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = %s AND usesysid IS NOT NULL",
            [name],
        ).fetchone()[0]
        if not ended:
            break
        time.sleep(0.002)  # polls: a backend tells nobody that it has ended
