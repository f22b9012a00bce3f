"""Small programs that meet on one key, one row, one lock: a function each, run as a tick is."""

import os

import psycopg

_connection = None


def db() -> psycopg.Connection:
    """The process's connection, opened anew when it was lost; autocommit outside `transaction`."""
    global _connection
    if _connection is None or _connection.closed:
        _connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    return _connection


def claim(who: str, fail: bool = False) -> bool:
    """Claim the job and do it; with `fail` everything is rolled back after that."""
    with db().transaction():
        won = db().execute(
            "INSERT INTO claims VALUES ('job', %s) ON CONFLICT DO NOTHING", [who]).rowcount
        if won:
            db().execute("INSERT INTO log (who) VALUES (%s)", [who])
        if fail:
            raise RuntimeError("the work failed")
    return bool(won)


def move(first: int, second: int) -> None:
    """Take from one wallet, give to the other, locking them in the order of the call."""
    with db().transaction():
        for wallet, amount in ((first, -10), (second, 10)):
            db().execute(
                "UPDATE wallets SET balance = balance + %s WHERE id = %s", [amount, wallet])


def touch() -> None:
    """Hold a wallet for the length of a transaction."""
    with db().transaction():
        db().execute("UPDATE wallets SET balance = balance WHERE id = 1")


def tell(who: str) -> None:
    """Be the first to say something."""
    db().execute("INSERT INTO seen VALUES ('first', %s) ON CONFLICT DO NOTHING", [who])


def touch_and_tell(who: str) -> None:
    """Both in one statement: it may wait with its first half, and be too late with its second."""
    db().execute(
        "WITH touched AS (UPDATE wallets SET balance = balance WHERE id = 1 RETURNING 1) "
        "INSERT INTO seen SELECT 'first', %s::text FROM touched ON CONFLICT DO NOTHING", [who])


def try_lock(who: str) -> None:
    """Work only with the lock of this transaction."""
    with db().transaction():
        if db().execute("SELECT pg_try_advisory_xact_lock(7)").fetchone()[0]:
            db().execute("INSERT INTO log (who) VALUES (%s)", [who])


def increment(isolation: int | None = None) -> None:
    """Read the balance, add to it here, write it back."""
    db().isolation_level = isolation and psycopg.IsolationLevel(isolation)
    try:
        with db().transaction():
            (balance,) = db().execute("SELECT balance FROM wallets WHERE id = 1").fetchone()
            db().execute("UPDATE wallets SET balance = %s WHERE id = 1", [balance + 10])
    finally:
        db().isolation_level = None


def increment_in_place() -> None:
    """The same in one statement, and with no transaction around it."""
    db().execute("UPDATE wallets SET balance = balance + 10 WHERE id = 1")


def spend(who: str, wallet: int) -> None:
    """A row that refers to a wallet."""
    with db().transaction():
        db().execute("INSERT INTO spends (wallet_id, who) VALUES (%s, %s)", [wallet, who])


def receipt(who: str, wallet: int) -> None:
    """A row that refers to a wallet and keeps it from being deleted."""
    with db().transaction():
        db().execute("INSERT INTO receipts (wallet_id, who) VALUES (%s, %s)", [wallet, who])


def close_wallet(wallet: int) -> None:
    """Delete a wallet, and by cascade what refers to it."""
    with db().transaction():
        db().execute("DELETE FROM wallets WHERE id = %s", [wallet])


def note(who: str) -> None:
    """Add to the log."""
    with db().transaction():
        db().execute("INSERT INTO log (who) VALUES (%s)", [who])


def number(who: str) -> None:
    """Add to the log, and remember the number that the row got."""
    with db().transaction():
        row = db().execute("INSERT INTO log (who) VALUES (%s) RETURNING id", [who]).fetchone()
        db().execute("INSERT INTO seen VALUES (%s, %s)", [who, str(row[0])])


def look(who: str, sql: str) -> None:
    """Ask, and write down the answer."""
    answer = db().execute(sql).fetchall()
    db().execute("INSERT INTO seen VALUES (%s, %s)", [who, str(answer)])


def look_at_two(who: str, isolation: int | None = None) -> None:
    """Ask about two tables in one transaction, and write down the second answer."""
    db().isolation_level = isolation and psycopg.IsolationLevel(isolation)
    try:
        with db().transaction():
            db().execute("SELECT count(*) FROM claims")
            answer = db().execute("SELECT balance FROM wallets WHERE id = 1").fetchall()
            db().execute("INSERT INTO seen VALUES (%s, %s)", [who, str(answer)])
    finally:
        db().isolation_level = None


def hold_session_lock(who: str, wait: bool = True) -> None:
    """Take a lock that lives as long as the session does, and never let go of it."""
    if wait:
        db().execute("SELECT pg_advisory_lock(8)")
    elif not db().execute("SELECT pg_try_advisory_lock(8)").fetchone()[0]:
        return
    db().execute("INSERT INTO log (who) VALUES (%s)", [who])


def leave_open(who: str) -> None:
    """Begin a transaction and forget about it."""
    db().execute("BEGIN")
    db().execute("INSERT INTO log (who) VALUES (%s)", [who])


def own_connection(who: str) -> None:
    """Hold the session's lock on a connection of this run's own, which is closed at its end."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as mine:
        if mine.execute("SELECT pg_try_advisory_lock(9)").fetchone()[0]:
            mine.execute("INSERT INTO log (who) VALUES (%s)", [who])


def hang() -> None:
    """Turn in a loop, far from Postgres."""
    while True:
        pass


def end_process(code: int) -> None:
    """End the process as a crash in a library does."""
    os._exit(code)


def leave(code: int) -> None:
    """End as sys.exit does."""
    raise SystemExit(code)


def send_garbage() -> None:
    """Speak another protocol to the address of the database."""
    import socket

    parts = psycopg.conninfo.conninfo_to_dict(os.environ["DATABASE_URL"])
    with socket.create_connection((parts["host"], int(parts["port"]))) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: db\r\n\r\n")
        sock.recv(100)
    hang()


def tell_time(who: str) -> None:
    """Write down what the world's clock says."""
    from lab.world import clock

    db().execute("INSERT INTO seen VALUES (%s, %s)", [who, f"{clock.now():%d %H:%M:%S}"])
