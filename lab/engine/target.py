"""Which Postgres is meant, how to connect to it, and whether it will do.

Messages come from here so that a command that fails and `doctor` say the same. None of them holds a
password: what libpq says about a URL it cannot read is left out, because it quotes from it.
"""

import logging
import os
import re
from typing import Literal
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lab.errors import LabError

# An interrupt in the middle of a query is no news: the command that was interrupted says so itself.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)

OLDEST = 14
TIMEOUT = 5  # seconds to wait for a connection, unless the URL has connect_timeout

Kind = Literal["url", "embedded", "docker"]


def chosen() -> Kind:
    """Return which server `LAB_POSTGRES` and `DATABASE_URL` ask for.

    Raises:
        LabError: LAB_POSTGRES has another value, or is `url` without a DATABASE_URL.
    """
    forced = os.environ.get("LAB_POSTGRES", "").strip().lower()
    if forced not in ("", "embedded", "docker", "url"):
        raise LabError(
            f"LAB_POSTGRES is {forced!r}, which is not a kind of server.",
            "Set it to embedded, docker or url, or leave it unset.",
        )
    if forced == "url" and not database_url():
        raise LabError(
            "LAB_POSTGRES is url, but DATABASE_URL is not set.",
            "Set DATABASE_URL to postgresql://user:password@host:port/database.",
        )
    return forced or ("url" if database_url() else "embedded")


def parse(url: str) -> dict[str, str]:
    """Return the parts of a URL or conninfo string as libpq names them.

    SQLAlchemy's form with a driver (`postgresql+psycopg://`) is understood as well.

    Raises:
        LabError: it cannot be read, or it is the sort of nonsense that an @ or / in a password
            makes: libpq would go on with a piece of the password as the host or the port.
    """
    try:
        parts = conninfo_to_dict(re.sub(r"^postgres(ql)?\+\w+://", "postgresql://", url))
        host, port, name = (str(parts.get(key, "")) for key in ("host", "port", "dbname"))
        if "@" in host + name or re.search(r"[^\d,]", port):
            raise psycopg.ProgrammingError
    except psycopg.ProgrammingError:
        raise LabError(
            "DATABASE_URL cannot be read as the address of a Postgres.",
            "Write it as postgresql://user:password@host:port/database, with %40 for an @ and %2F"
            " for a / in the password.",
        ) from None
    return {name: str(value) for name, value in parts.items()}


def database_url() -> str:
    """Return DATABASE_URL, or nothing."""
    return os.environ.get("DATABASE_URL", "").strip()


def url_for(parts: dict[str, str], database: str) -> str:
    """Return the URL of another database on the same server."""
    rest = {name: value for name, value in parts.items() if name != "dbname"}
    login = quote(rest.pop("user", ""), safe="")
    if "password" in rest:
        login += ":" + quote(rest.pop("password"), safe="")
    address = ""
    if not re.search("[/,@]", rest.get("host", "")):  # a socket's folder, or several hosts
        host, port = rest.pop("host", ""), rest.pop("port", "")
        address = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    query = "?" + urlencode(rest, quote_via=quote) if rest else ""
    return f"postgresql://{login}{'@' if login else ''}{address}/{database}{query}"


def connect(parts: dict[str, str]) -> psycopg.Connection:
    """Connect, in autocommit mode.

    Raises:
        LabError: nobody answers there, or the server refuses.
    """
    usual = {"connect_timeout": TIMEOUT, "dbname": "postgres", "application_name": "lab"}
    utf8 = {"client_encoding": "utf8"}  # the server's own may be SQL_ASCII: bytes, not text
    try:
        return psycopg.connect(make_conninfo(**usual | parts | utf8), autocommit=True)
    except psycopg.OperationalError as error:
        raise _refused(error, place(parts)) from None


def sound(conn: psycopg.Connection, url: str) -> psycopg.Connection:
    """Return the connection, or a new one to `url` if that one can do nothing any more.

    An interrupt in the middle of a query, or a restart of the server, leaves it like that.

    Raises:
        LabError: nobody answers at `url` either.
    """
    try:
        conn.execute("SELECT")
        return conn
    except psycopg.OperationalError:
        conn.close()
        return connect(parse(url))


def place(parts: dict[str, str]) -> str:
    """Return host and port of a server, for people."""
    return f"{parts.get('host', 'localhost')}:{parts.get('port', '5432')}"


def version(conn: psycopg.Connection) -> int:
    """Return the server's version as libpq counts it: 180006 is 18.6."""
    return conn.info.server_version


def admit(conn: psycopg.Connection) -> None:
    """Make sure that the server is recent enough, and that this role may create databases.

    Raises:
        LabError: it is not, or it may not.
    """
    if version(conn) < OLDEST * 10000:
        raise LabError(
            f"The server is PostgreSQL {version(conn) // 10000}; the lab needs {OLDEST} or later.",
            "Set DATABASE_URL to a newer server, or leave it unset to use the embedded one.",
        )
    role, may = conn.execute(
        "SELECT quote_ident(rolname), rolcreatedb OR rolsuper FROM pg_roles"
        " WHERE rolname = current_user"
    ).fetchone()
    if not may:
        raise LabError(
            f"The role {role} may not create databases, and every run of the lab needs its own.",
            f"Ask an administrator of the server to run: ALTER ROLE {role} CREATEDB",
        )


def failed(error: psycopg.Error) -> LabError:
    """Return what is told when a server that was in use has stopped, restarted or has no room."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    if isinstance(error, psycopg.errors.DiskFull):
        remedy = "Make room on the disk that holds the server's data, then try again."
    elif isinstance(error, psycopg.errors.TooManyConnections):
        remedy = "Let fewer commands run at once, or raise the server's max_connections."
    else:
        remedy = "Try again; `make doctor` says whether the server answers."
    return LabError(f"Postgres failed in the middle of it: {said}.", remedy)


def _refused(error: psycopg.OperationalError, where: str) -> LabError:
    # A refused connection is told in two lines, the second of which asks whether the server runs.
    lines = [line for line in str(error).strip().splitlines() if not line.startswith("\t")]
    said = lines[-1].strip().removeprefix("connection failed: ").rstrip(".")
    attempt = error.pgconn
    if attempt and attempt.needs_password:
        remedy = "Put the role's password into DATABASE_URL: postgresql://user:password@host/…"
    elif attempt and attempt.used_password:
        remedy = "Correct the user, the password or the database's name in DATABASE_URL."
    else:
        remedy = (
            "Check that the server runs and that host and port in DATABASE_URL are right, or unset"
            " DATABASE_URL to use the embedded one."
        )
    return LabError(f"The Postgres at {where} cannot be used: {said}.", remedy)
