"""Load: many users at once, by the lab's own processes, through HTTP or straight to Postgres.

`http_load` starts a stage's API, two processes of it, and a process that plays the users, each on
a connection of its own. `statement_load` sends one statement again and again from several
processes. Nothing is stepped, and nothing is promised of the rates.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from lab.engine.launch import launched
from lab.engine.postgres import Database
from lab.errors import LabError
from lab.folders import ROOT

__all__ = ["Pass", "api", "http_load", "statement_load"]

PREPARED = b"load"  # the name of the statement
SERVERS = 2  # processes of the API: as in production, a deploy has more than one


@dataclass(frozen=True)
class Pass:
    """What came of one pass.

    Args:
        users: how many there were at once.
        answered: requests that were answered with 200.
        failed: those that were answered otherwise, or not at all.
        counted: what the table says afterwards.
        seconds: real time taken.
    """

    users: int
    answered: int
    failed: int
    counted: int
    seconds: float

    @property
    def lost(self) -> float:
        """Share of the answered requests that were not counted, from 0 to 1."""
        return (self.answered - self.counted) / self.answered if self.answered else 0.0

    @property
    def rate(self) -> float:
        """Answered requests a second."""
        return self.answered / self.seconds


def _start(database: Database, *command: str, cwd: Path = ROOT) -> subprocess.Popen[str]:
    env = os.environ | {"DATABASE_URL": database.url, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT)}
    env.pop("LAB_CLOCK", None)
    return subprocess.Popen(
        launched(*command), cwd=cwd, env=env,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        encoding="utf-8")


@contextmanager
def api(database: Database, script: Path, servers: int = SERVERS) -> Iterator[list[int]]:
    """Processes of a stage's API, as a list of their ports; they are killed at the end.

    Raises:
        LabError: one did not start; it says what was printed last.
    """
    with ExitStack() as stack:
        started = []
        for _ in range(servers):
            process = _start(database, str(script), cwd=script.parent)
            stack.callback(_end, process)
            started.append(process)
        ports = []
        for process in started:
            line = process.stdout.readline()
            if not line.strip().isdigit():
                said = (line + process.stdout.read()).strip().splitlines() or ["it printed nothing"]
                raise LabError(f"{script.name} did not start: {said[-1]}",
                               "Run `make stage-7`, which installs what it needs (the extra api).")
            ports.append(int(line))
        yield ports


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    process.stdout.close()
    process.stdin.close()


def _said(process: subprocess.Popen[str]) -> str:
    """All that a process prints until it ends. Its standard input stays open: it ends with that."""
    said = process.stdout.read()
    _end(process)
    return said


def http_load(database: Database, ports: Sequence[int], path: str, users: int, requests: int,
              counted: str, k6: Path | None = None) -> Pass:
    """POST to `path` from so many users at once, until `requests` are answered.

    Args:
        counted: SQL that gives what the table counted.
        k6: a script for k6, which then plays the users, against the first port only.
    """
    if k6:
        url = f"URL=http://127.0.0.1:{ports[0]}{path}"
        said = subprocess.run(
            ["k6", "run", "--quiet", "-e", url, "-e", f"USERS={users}", "-e",
             f"REQUESTS={requests}", str(k6)], capture_output=True, text=True, check=False).stdout
    else:
        said = _said(_start(database, str(Path(__file__)), path, str(users), str(requests),
                            *map(str, ports)))
    try:
        found = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        raise LabError(f"The users' process failed: {said.strip()[-200:]}",
                       "Run it again; if it fails again, run make doctor.", code=1) from None
    with database.connect() as conn:
        count = conn.execute(counted).fetchone()[0]
    return Pass(users, found["ok"], found["failed"], count, found["seconds"])


async def _user(port: int, path: str, left: list[None], statuses: list[int]) -> None:
    request = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n").encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while left:
        left.pop()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
        statuses.append(int(head.split()[1]))
    writer.close()


async def _users(path: str, users: int, requests: int, ports: Sequence[int]) -> dict:
    left, statuses = [None] * requests, []
    began = time.perf_counter()
    await asyncio.gather(*(_user(ports[n % len(ports)], path, left, statuses)
                           for n in range(users)))
    ok = statuses.count(200)
    return {"ok": ok, "failed": requests - ok, "seconds": time.perf_counter() - began}


def statement_load(database: Database, statement: str, clients: int, seconds: float,
                   processes: int = 2) -> float:
    """Transactions a second: one statement, sent again and again by so many clients at once.

    The clients are threads of `processes` processes, each with a connection of its own, in
    autocommit mode, the statement prepared: what `pgbench -M prepared` does.
    """
    shares = [clients // processes + (n < clients % processes) for n in range(processes)]
    started = [_start(database, str(Path(__file__)), "--statement", statement, str(share),
                      str(seconds)) for share in shares if share]
    return sum(float(_said(process).splitlines()[-1]) for process in started)


def _client(conn: psycopg.Connection, ready: threading.Barrier, until: list[float],
            done: list[int]) -> None:
    count, libpq = 0, conn.pgconn  # no cursors: pgbench has none, and they cost as much again
    ready.wait()
    while time.perf_counter() < until[0]:
        _well(libpq.exec_prepared(PREPARED, None))
        count += 1
    done.append(count)


def _well(result: PGresult) -> None:
    if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        raise psycopg.DatabaseError(result.error_message.decode(errors="replace").strip())


def _statements(statement: str, clients: int, seconds: float) -> float:
    done: list[int] = []
    until = [0.0]
    ready = threading.Barrier(clients, action=lambda: until.__setitem__(
        0, time.perf_counter() + seconds))
    with ExitStack() as stack:
        conns = [stack.enter_context(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True))
                 for _ in range(clients)]
        for conn in conns:
            _well(conn.pgconn.prepare(PREPARED, statement.encode()))
        threads = [threading.Thread(target=_client, args=(conn, ready, until, done))
                   for conn in conns]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sum(done) / seconds


if __name__ == "__main__":
    if sys.argv[1] == "--statement":
        print(_statements(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
    else:
        path, users, requests, *ports = sys.argv[1:]
        print(json.dumps(asyncio.run(_users(path, int(users), int(requests), [*map(int, ports)]))))
