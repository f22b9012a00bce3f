"""A real Postgres for every run, with nothing to install: which one, and a database on it.

`server()` answers with the server of DATABASE_URL, or the embedded one, or one in Docker;
`Server.database()` makes a database on it, for one run. Nothing else on the server is changed.
A database of this lab is told by its name, whose last part is computed from the rest: another's
`lab_…` database is not taken for ours, and a process killed at any moment leaves nothing unmarked.
"""

import hashlib
import re
import secrets
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import psycopg
from psycopg import errors, sql

from lab.engine import docker, embedded, target
from lab.engine.snapshot import Snapshot
from lab.errors import LabError

USING = 5_249_114_020  # advisory lock, held shared by each command that uses the server
BUILDING = 5_249_114_021  # advisory lock, held by whoever makes a template

# A classroom's or a cloud's settings must not change how a lesson ends.
SETTINGS = {
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


class Database:
    """One run's own database, as `Server.database` gives it.

    Attributes:
        name: `lab_…`.
        url: with the password, so only for the environment of child processes.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        # Open as long as the database is used: nobody then takes it for a left-over.
        self._keeper = self.connect()
        self._keeper.execute("SET lock_timeout = '10s'")
        self._snapshot: Snapshot | None = None

    def connect(self, **options) -> psycopg.Connection:
        """Return a new connection, in autocommit mode unless `options` says otherwise."""
        return psycopg.connect(self.url, **{"autocommit": True} | options)

    def snapshot(self) -> None:
        """Remember the rows of all user tables and the state of all sequences, for `reset`.

        Raises:
            LabError: there are no tables, or their foreign keys form a circle.
        """
        self._snapshot = Snapshot(self._keeper)

    def reset(self) -> None:
        """Go back to the snapshot, which the first call takes if there is none yet.

        Raises:
            LabError: a transaction that writes has not ended within 10 s.
        """
        if self._snapshot:
            self._snapshot.restore()
        else:
            self.snapshot()

    def close(self) -> None:
        """Close the connection that keeps the database; `Server.database` does that."""
        self._keeper.close()


class Server:
    """A Postgres that this process uses, as `server` gives it.

    Attributes:
        kind: `url`, `embedded` or `docker`.
        url: with the password.
        version: PostgreSQL's major version.
        described: version and place, for people; without the password.
    """

    def __init__(self, kind: target.Kind, url: str, admin: psycopg.Connection) -> None:
        self.kind = kind
        self.url = url
        self.version = target.version(admin) // 10000
        number = (admin.info.parameter_status("server_version") or "").split()[0]
        where = {
            "url": f"at {target.place(target.parse(url))} (DATABASE_URL)",
            "embedded": "(embedded)",
            "docker": "(Docker)",
        }
        self.described = f"PostgreSQL {number} {where[kind]}"
        self.templates: set[str] = set()
        self._admin = admin
        self._lock = threading.Lock()  # advisory locks keep processes apart, not threads

    @contextmanager
    def database(self, scripts: Sequence[Path], label: str = "00") -> Iterator[Database]:
        """Give a new database in which `scripts` have run; it is dropped at the end of the block.

        Args:
            scripts: SQL files, run in this order, once for all databases made from the same ones.
            label: goes into the name, `lab_<label>_…`.

        Raises:
            LabError: a script has an error, or the role may not do what it asks for.
        """
        database = self._open(scripts, re.sub(r"[^a-z0-9]+", "_", label.lower())[:30])
        try:
            yield database
        finally:
            database.close()
            with suppress(psycopg.OperationalError):  # the server is gone; the next one sweeps
                drop(self._admin, database.name)

    def _open(self, scripts: Sequence[Path], label: str) -> Database:
        name = signed(f"lab_{label}_{secrets.token_hex(4)}")
        identifier = sql.Identifier(name)
        for _ in range(3):  # somebody on another maintenance database may just sweep the template
            template = sql.Identifier(self._template(scripts))
            with suppress(errors.InvalidCatalogName):
                self._admin.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(identifier, template)
                )
                break
        self._admin.execute(
            sql.SQL(";").join(
                sql.SQL("ALTER DATABASE {} SET {} TO {}").format(identifier, sql.SQL(key), value)
                for key, value in SETTINGS.items()
            )
        )
        return Database(name, target.url_for(target.parse(self.url), name))

    def _template(self, scripts: Sequence[Path]) -> str:
        """Return the template for these scripts. One that is complete accepts no connections."""
        digest = hashlib.sha256(self._admin.info.user.encode())  # another role's cannot be copied
        for script in scripts:
            digest.update(b"\0" + script.read_bytes())
        name = signed(f"lab_template_{digest.hexdigest()[:16]}")
        self.templates.add(name)
        with self._lock:
            if not self._complete(name):
                self._admin.execute("SELECT pg_advisory_lock(%s)", [BUILDING])
                try:
                    if not self._complete(name):
                        self._build(name, scripts)
                finally:
                    self._admin.execute("SELECT pg_advisory_unlock(%s)", [BUILDING])
        return name

    def _complete(self, template: str) -> bool:
        found = self._admin.execute(
            "SELECT FROM pg_database WHERE datname = %s AND NOT datallowconn", [template]
        )
        return found.rowcount == 1

    def _build(self, name: str, scripts: Sequence[Path]) -> None:
        drop(self._admin, name)  # what a killed command may have left of it
        # The same on every server: UTF-8, and text sorted by code point.
        alike = "ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        if self.version >= 15:
            alike += " LOCALE_PROVIDER libc"
        create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 " + alike)
        self._admin.execute(create.format(sql.Identifier(name)))
        try:
            with target.connect(target.parse(self.url) | {"dbname": name}) as conn:
                for script in scripts:
                    try:
                        conn.execute(script.read_text(encoding="utf-8"))
                    except psycopg.Error as error:
                        said = str(error).splitlines()[0].rstrip(".")
                        raise LabError(
                            f"{script.parent.name}/{script.name} does not run: {said}.",
                            "Correct that file.",
                        ) from None
        except BaseException:
            drop(self._admin, name)
            raise
        close = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false")
        self._admin.execute(close.format(sql.Identifier(name)))


@contextmanager
def server() -> Iterator[Server]:
    """Give the Postgres to use: DATABASE_URL's, or the embedded one; `LAB_POSTGRES` forces a kind.

    The embedded one is started if it does not run. Who leaves last drops what killed commands left
    and, if nobody else is connected either, stops the embedded server.

    Raises:
        LabError: the server cannot be used; it says why, and what to do.
    """
    kind = target.chosen()
    gate = embedded.gate if kind == "embedded" else nullcontext
    with ExitStack() as stack:
        with gate():
            if kind == "embedded":
                url = embedded.start()
            elif kind == "docker":
                url = stack.enter_context(docker.container())
            else:
                url = target.from_environment()
            admin = stack.enter_context(target.connect(target.parse(url)))
            admin.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            admin.execute("SELECT pg_advisory_lock_shared(%s)", [USING])
        target.admit(admin)
        used = Server(kind, url, admin)
        try:
            yield used
        finally:
            with gate(), suppress(psycopg.OperationalError):
                _leave(used, admin)


def _leave(used: Server, admin: psycopg.Connection) -> None:
    if alone(admin):
        sweep(admin, keep=used.templates if used.kind == "embedded" else ())
    if used.kind == "embedded" and not others(admin):
        admin.close()
        embedded.stop()


def alone(admin: psycopg.Connection) -> bool:
    """Stop counting as a user; return whether no other command uses the server, and bar new ones."""
    admin.execute("SELECT pg_advisory_unlock_shared(%s)", [USING])
    return admin.execute("SELECT pg_try_advisory_lock(%s)", [USING]).fetchone()[0]


def others(admin: psycopg.Connection) -> int:
    """Return how many other connections the server has, ignoring those that are just ending."""
    for _ in range(20):
        count = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE usesysid IS NOT NULL"
            " AND backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()"
        ).fetchone()[0]
        if not count:
            break
        time.sleep(0.01)
    return count


def signed(stem: str) -> str:
    """Return the name of a database of this lab: the stem, and a part computed from it."""
    return f"{stem}_{hashlib.sha256(b'shared postgres' + stem.encode()).hexdigest()[:8]}"


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
    names = [name for name in leftovers(admin) if name not in keep]
    for name in names:
        with suppress(errors.ObjectInUse):  # somebody has just connected
            drop(admin, name, force=False)
    return names


def drop(admin: psycopg.Connection, name: str, force: bool = True) -> None:
    """Drop a database if it exists, with everybody who is connected to it if `force`.

    Raises:
        LabError: the name is not one of this lab.
    """
    if not re.fullmatch(r"lab_[a-z0-9_]+", name):
        raise LabError(
            f"The lab does not drop {name!r}: only names that begin with lab_ are its own.",
            "Drop it yourself if it has to go.",
        )
    how = sql.SQL("DROP DATABASE IF EXISTS {}" + " WITH (FORCE)" * force)
    try:
        admin.execute(how.format(sql.Identifier(name)))
    except errors.ObjectInUse:
        if not force:
            raise
        admin.execute(  # FORCE ends every connection but one that reads the WAL through a slot
            "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots"
            " WHERE database = %s AND active",
            [name],
        )
        admin.execute(how.format(sql.Identifier(name)))
