"""A coupon that may be used ten times, redeemed the way one would write it first."""

import os

import psycopg

_connection = None


def connection() -> psycopg.Connection:
    """One connection a process, as a pool of one would give it."""
    global _connection
    if _connection is None or _connection.closed:
        _connection = psycopg.connect(os.environ["DATABASE_URL"])
    return _connection


def redeem() -> bool:
    """Use the coupon once; False when it is used up."""
    db = connection()
    with db.transaction():
        left, = db.execute("SELECT uses_left FROM coupons WHERE code = 'HOLA'").fetchone()
        if left == 0:
            return False
        db.execute("UPDATE coupons SET uses_left = %s WHERE code = 'HOLA'", (left - 1,))
        db.execute("INSERT INTO orders (code) VALUES ('HOLA')")
    return True
