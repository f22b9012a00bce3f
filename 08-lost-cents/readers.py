"""Who reads the searches: the quota, the search for a duplicate, the reports.

None of them asks for a status: when they were written there was none.

**Stops:** nothing.
**Lets through:** every row that somebody adds to `search` for a purpose of its own.
"""

import psycopg


def quota_used(db: psycopg.Connection, user: int) -> int:
    """How many units of quota the user has consumed."""
    return db.execute("SELECT count(*) FROM search WHERE user_id = %s", (user,)).fetchone()[0]


def original(db: psycopg.Connection, user: int, query: str) -> int | None:
    """The search that this one repeats: the newest with the same query, or None."""
    row = db.execute("SELECT id FROM search WHERE user_id = %s AND query = %s"
                     " ORDER BY id DESC LIMIT 1", (user, query)).fetchone()
    return row and row[0]


def spent(db: psycopg.Connection) -> int:
    """The report: cents that all searches cost, charged or not."""
    return db.execute("""
        SELECT (SELECT coalesce(sum(cost_cents), 0) FROM search)
             + (SELECT coalesce(sum(cost_cents), 0) FROM unbilled_search_spend)
    """).fetchone()[0]


def cost_per_charged_search(db: psycopg.Connection) -> float | None:
    """The figure that prices are decided with: cents, None before the first search."""
    cents = db.execute("SELECT avg(cost_cents) FROM search").fetchone()[0]
    return None if cents is None else float(cents)


def ask_provider(db: psycopg.Connection, cents: int) -> int:
    """Embeddings and rerank: the provider does the work, writes its invoice, says what it took."""
    db.execute("INSERT INTO provider_invoice (cents) VALUES (%s)", (cents,))
    return cents
