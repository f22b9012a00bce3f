"""A real Postgres for every run, with nothing to install: which one, and a database on it.

`server()` answers with the server of DATABASE_URL, or the embedded one, or one in Docker;
`Server.database()` makes a database on it, for one run. Nothing else on the server is changed.
"""

import hashlib
import re
import secrets
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import psycopg
from psycopg import errors, sql

from lab.engine import databases, docker, embedded, scratch, target
from lab.engine.snapshot import Snapshot
from lab.errors import LabError

BUILDING = 5_249_114_021  # the advisory lock of whoever makes a template

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
        try:
            return psycopg.connect(self.url, **{"autocommit": True} | options)
        except BaseException as error:
            # An interrupt: its frames would keep a half-made connection, and that bars the DROP.
            traceback.clear_frames(error.__traceback__)
            raise

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
        label = re.sub(r"[^a-z0-9]+", "_", label.lower())[:30]
        name = databases.signed(f"lab_{label}_{secrets.token_hex(4)}")
        try:  # from here on: an interrupt may come when the database is there, but not yet open
            database = self._open(name, scripts)
            try:
                yield database
            finally:
                database.close()
        finally:
            # The server is gone, busy or full, or its administrator is looking in: the next one
            # sweeps.
            with suppress(psycopg.Error, LabError):
                self._admin = target.sound(self._admin, self.url)
                databases.drop(self._admin, name)

    def _open(self, name: str, scripts: Sequence[Path]) -> Database:
        template = self._template(scripts)
        try:
            databases.create(self._admin, name, template)
        except errors.InvalidCatalogName:
            # Swept this moment by a command that came through another maintenance database.
            databases.create(self._admin, name, self._template(scripts))
        set_one = sql.SQL("ALTER DATABASE {} SET {} TO {}")
        self._admin.execute(
            sql.SQL(";").join(
                set_one.format(sql.Identifier(name), sql.SQL(key), sql.Literal(value))
                for key, value in SETTINGS.items()
            )
        )
        return Database(name, target.url_for(target.parse(self.url), name))

    def _template(self, scripts: Sequence[Path]) -> str:
        """Return the template for these scripts. One that is complete accepts no connections."""
        digest = hashlib.sha256(self._admin.info.user.encode())  # another role's cannot be copied
        for script in scripts:
            digest.update(b"\0" + script.read_bytes())
        name = databases.signed(f"lab_template_{digest.hexdigest()[:16]}")
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
        try:
            databases.drop(self._admin, name)  # what a killed command may have left of it
        except errors.QueryCanceled:
            raise LabError(
                "A half-made template cannot be dropped: a session on this server keeps it open.",
                "End the sessions that stand in a COPY, or run make clean; then try again.",
            ) from None
        databases.create(self._admin, name)
        try:
            with target.connect(target.parse(self.url) | {"dbname": name}) as conn:
                for script in scripts:
                    _run(script, conn)
        except BaseException:
            with suppress(errors.QueryCanceled):  # the next one to build it drops it
                databases.drop(self._admin, name)
            raise
        databases.seal(self._admin, name)


@contextmanager
def server() -> Iterator[Server]:
    """Give the Postgres to use: DATABASE_URL's, or the embedded one; `LAB_POSTGRES` forces a kind.

    The embedded one is started if it does not run. Who leaves last drops what killed commands left
    and, if nobody else is connected either, stops the embedded server.

    Raises:
        LabError: the server cannot be used, or has failed in the middle of the block; it says why,
            and what to do.
    """
    kind = target.chosen()
    scratch.sweep_once()
    gate = embedded.gate if kind == "embedded" else nullcontext
    with ExitStack() as stack:
        with gate():
            if kind == "embedded":
                url = embedded.start()
            elif kind == "docker":
                url = stack.enter_context(docker.container())
            else:
                url = target.database_url()
            admin = stack.enter_context(target.connect(target.parse(url)))
            databases.join(admin)
        target.admit(admin)
        used = Server(kind, url, admin)
        try:
            yield used
        except (psycopg.OperationalError, errors.InternalError_) as error:
            raise target.failed(error) from error
        finally:
            with gate(), suppress(psycopg.Error, LabError):  # gone, or full: the next one sweeps
                admin = stack.enter_context(target.sound(used._admin, url))
                if databases.leave(admin):
                    databases.sweep(admin, keep=used.templates if kind == "embedded" else ())
                    if kind == "embedded" and not databases.others(admin):
                        admin.close()
                        embedded.stop()


def _run(script: Path, conn: psycopg.Connection) -> None:
    try:
        conn.execute(script.read_text(encoding="utf-8"))
    except psycopg.Error as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise LabError(
            f"{script.parent.name}/{script.name} does not run: {said}.", "Correct that file."
        ) from None
