"""Bring a database's rows and sequences back to a remembered state, in one round trip.

The rows are remembered in temporary tables of one connection and put back by a temporary function,
so the database itself gets nothing added, and its owner's rights are enough. A table is left alone
when it still holds the very row versions that it held after the last restore: ctid and xmin name a
version, and every insert, update or delete that committed since then changes the set of them.
"""

from graphlib import CycleError, TopologicalSorter

import psycopg
from psycopg import sql

from lab.errors import LabError

RESTORES_PER_VACUUM = 200  # deleted rows slow the next restores down, a vacuum costs about five

USER_NAMESPACES = "n.nspname NOT IN ('pg_catalog', 'information_schema')"
TABLES = f"""
SELECT c.oid, n.nspname, c.relname,
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
       (SELECT array_agg(t.tgname::text ORDER BY t.tgname) FROM pg_trigger t
         WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled = 'O'),
       ARRAY(SELECT f.confrelid FROM pg_constraint f
         WHERE f.contype = 'f' AND f.conrelid = c.oid AND f.confrelid <> c.oid)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND {USER_NAMESPACES}
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
 ORDER BY n.nspname, c.relname
"""
SEQUENCES = f"""
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'S' AND c.relpersistence <> 't' AND {USER_NAMESPACES}
"""

COPY = "CREATE TEMP TABLE {name} AS SELECT {columns} FROM ONLY {table}"
# The function's parts: `touched` and `marks` have an element a table, parents before children.
# A parent's rows can only go and come back together with its children's.
LOOK = "touched[{at}] := {parents} marks[{at}] IS DISTINCT FROM ({versions});"
DELETE = "IF touched[{at}] THEN {disable} DELETE FROM ONLY {table}; END IF;"
INSERT = """IF touched[{at}] THEN
    INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {copy};
    {enable} marks[{at}] := ({versions});
END IF;"""
VERSIONS = "SELECT sha256(string_agg(ctid || ' ' || xmin, ' ')::bytea)::text FROM ONLY {table}"
# The lock waits for writers that have not committed: what they are about to leave is not seen yet.
FUNCTION = """
CREATE FUNCTION pg_temp.lab_restore(marks text[]) RETURNS text[] LANGUAGE plpgsql AS $lab$
DECLARE touched boolean[];
BEGIN
    LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE;
    {steps}
    PERFORM setval(sequence, last_value, is_called) FROM pg_temp.lab_sequences;
    RETURN marks;
END $lab$
"""


class Snapshot:
    """All rows of all user tables, and all sequences, as they are when this is made.

    Args:
        conn: an autocommit connection of the tables' owner, needed as long as the snapshot is.

    Raises:
        LabError: there is no table, or foreign keys form a circle.
    """

    def __init__(self, conn: psycopg.Connection) -> None:
        self._conn = conn
        self._restores = 0
        found = {oid: row for oid, *row in conn.execute(TABLES)}
        parents = {oid: [p for p in row[-1] if p in found] for oid, row in found.items()}
        try:
            order = list(TopologicalSorter(parents).static_order())
        except CycleError:
            raise LabError(
                "These tables' foreign keys form a circle, so there is no order to reset them in.",
                "Drop one of the foreign keys of the circle.",
            ) from None
        if not order:
            raise LabError("The database has no tables.", "Create them before the snapshot.")
        conn.execute("DISCARD TEMP")
        at = {oid: place for place, oid in enumerate(order, 1)}  # Postgres counts from 1
        parts = [
            _parts(at[oid], found[oid], [at[parent] for parent in parents[oid]]) for oid in order
        ]
        for part in parts:
            conn.execute(_fill(COPY, part))
        _remember_sequences(conn)
        steps = [_fill(LOOK, part) for part in parts]
        steps += [_fill(DELETE, part) for part in reversed(parts)]
        steps += [_fill(INSERT, part) for part in parts]
        self._tables = sql.SQL(", ").join(part["table"] for part in parts)
        conn.execute(sql.SQL(FUNCTION).format(
            tables=sql.SQL(", ").join(_fill("ONLY {table}", part) for part in parts),
            steps=sql.SQL("\n    ").join(steps),
        ))  # fmt: skip
        self._marks = [conn.execute(part["versions"]).fetchone()[0] for part in parts]

    def restore(self) -> None:
        """Put everything back. Waits up to 10 s for transactions that are still writing.

        Raises:
            LabError: such a transaction did not end.
        """
        try:
            self._marks = self._conn.execute(
                "SELECT pg_temp.lab_restore(%s)", [self._marks]
            ).fetchone()[0]
        except psycopg.errors.LockNotAvailable:
            raise LabError(
                "The tables cannot be reset: a transaction has been writing to them for 10 s.",
                "End the transactions that are open in this database.",
            ) from None
        self._restores += 1
        if self._restores % RESTORES_PER_VACUUM == 0:
            self._conn.execute(sql.SQL("VACUUM {}").format(self._tables))


def _parts(at: int, row: list, parents: list[int]) -> dict[str, sql.Composable]:
    """What the templates above are filled with for one table."""
    schema, name, columns, triggers, _ = row
    table = sql.Identifier(schema, name)

    def switch(verb: str) -> sql.Composable:
        return sql.SQL(" ").join(
            sql.SQL("ALTER TABLE {} {} TRIGGER {};").format(table, sql.SQL(verb), sql.Identifier(t))
            for t in triggers or ()
        )

    return {
        "at": sql.Literal(at),
        "table": table,
        "name": sql.Identifier(f"lab_copy_{at}"),
        "copy": sql.Identifier("pg_temp", f"lab_copy_{at}"),
        "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
        "versions": sql.SQL(VERSIONS).format(table=table),
        "parents": sql.SQL("").join(sql.SQL("touched[{}] OR ").format(p) for p in sorted(parents)),
        "disable": switch("DISABLE"),
        "enable": switch("ENABLE"),
    }


def _fill(template: str, part: dict[str, sql.Composable]) -> sql.Composed:
    return sql.SQL(template).format(**part)


def _remember_sequences(conn: psycopg.Connection) -> None:
    conn.execute("CREATE TEMP TABLE lab_sequences (sequence regclass, last_value bigint,"
                 " is_called boolean)")  # fmt: skip
    remember = sql.SQL("INSERT INTO lab_sequences SELECT {}, last_value, is_called FROM {}")
    for row in conn.execute(SEQUENCES).fetchall():
        sequence = sql.Identifier(*row)
        conn.execute(remember.format(sql.Literal(sequence.as_string(conn)), sequence))
