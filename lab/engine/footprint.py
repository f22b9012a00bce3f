"""What a statement touches, and which statements could therefore notice each other's order.

Two schedules that differ only in the order of neighbouring, independent statements end the same
way, so one of them may stand for both (Mazurkiewicz traces; the reduction of `lab.engine.explore`).

The relations are Postgres's own answer: preparing a statement inside a scratch transaction takes
the relation locks that its analysis and rewriting need, and pg_locks shows them (documentation,
section 13.3.1). What cannot be prepared, several statements in one turn, and what this does not see
(the user's functions, triggers, side effects such as nextval) counts as touching everything, which
is always safe.

Rows that are only ever added, and that no statement looks at, may be added in any order. Their
generated numbers then differ, so they count as names: neither a judge nor a program that got one by
RETURNING may go by which of two is the greater.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from psycopg import sql

from lab.engine.link import Step

__all__ = ["EVERYTHING", "Footprint", "Footprints", "Learned", "dependent"]

_OPAQUE = re.compile(r"\b(setval|nextval|currval|lastval|pg_notify|dblink\w*|lo_\w+|pg_sleep\w*"
                     r"|txid_\w+|clock_timestamp|statement_timestamp|pg_locks|pg_stat\w*|xmin"
                     r"|pg_current_\w+|pg_snapshot\w*|pg_logical\w*|pg_replication\w*"
                     r"|pg_advisory_(un)?lock\w*|pg_try_advisory_lock\w*)\b", re.I)
_CHANGES = re.compile(r"\bDELETE\b|(?<!\bFOR )(?<!\bKEY )\bUPDATE\b", re.I)
_INSERT = re.compile(r'\s*INSERT\s+INTO\s+(?:"?\w+"?\.)?"?(\w+)"?\s*\(([^)]*)\)', re.I)
_ADVISORY = re.compile(r"\bpg_\w*advisory\w*\s*\(", re.I)
_CALLED = re.compile(r"\b(\w+)\s*\(")
_READ = "AccessShareLock"


@dataclass(frozen=True)
class Footprint:
    """Relations that a statement reads, refers to by keys, writes or locks, appends to.

    To append is to insert rows that can collide with nobody's, to a table that nobody looks at: it
    has no unique index but on generated numbers. `everything` means that nothing is known: it
    depends on all. `ends` marks the end of a transaction.
    """

    reads: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    appends: frozenset[str] = frozenset()
    everything: bool = False
    ends: bool = False

    def __or__(self, other: Footprint) -> Footprint:
        return Footprint(self.reads | other.reads, self.keys | other.keys,
                         self.writes | other.writes, self.appends | other.appends,
                         self.everything or other.everything, self.ends or other.ends)

    def may_wait_for(self, other: Footprint) -> bool:
        """Whether this statement could be made to wait by locks that `other` holds."""
        return (self.everything or other.everything
                or bool(self.writes & (other.writes | other.keys) or self.keys & other.writes))


EVERYTHING = Footprint(everything=True)


def dependent(a: Footprint, b: Footprint) -> bool:
    """Whether the order of these two steps, of different replicas, could matter.

    Under READ COMMITTED a statement sees what was committed when it began. So a write that is not
    committed disturbs no reader, only those who want the same lock; the end of a transaction (its
    footprint is that of all its statements) disturbs everyone who touches what it wrote.
    """
    return a.may_wait_for(b) or _shows(a, b) or _shows(b, a)


def _shows(a: Footprint, b: Footprint) -> bool:
    return a.ends and bool((a.writes | a.appends) & b.reads
                           or a.appends & (b.writes | b.keys))


class Learned(Exception):
    """Earlier answers were too bold: a table that was appended to is looked at as well."""


class Footprints:
    """Answers by statement text, remembered: each text is looked up once.

    Args:
        connection: an autocommit connection to the run's database, used for nothing else.
        weakest: isolation level of the replicas. Above READ COMMITTED a transaction's first
            statement fixes what all later ones see, so nothing is taken for independent.
    """

    def __init__(self, connection: psycopg.Connection, weakest: str = "read committed") -> None:
        self.connection = connection
        self.reducible = weakest.lower() in ("read committed", "read uncommitted")
        self._known: dict[tuple[str, tuple[int, ...]], Footprint] = {}
        self._functions = self._names(
            "SELECT lower(proname) FROM pg_proc WHERE pronamespace NOT IN "
            "('pg_catalog'::regnamespace, 'information_schema'::regnamespace)")
        self._guarded = self._names(
            "SELECT tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal "
            "UNION SELECT inhparent::regclass::text FROM pg_inherits "
            "UNION SELECT inhrelid::regclass::text FROM pg_inherits "
            "UNION SELECT conrelid::regclass::text FROM pg_constraint WHERE condeferrable "
            "UNION SELECT coalesce(ev_class, polrelid, adrelid, conrelid)::regclass::text"
            "  FROM pg_depend"
            "  LEFT JOIN pg_rewrite r ON (classid, objid) = ('pg_rewrite'::regclass, r.oid)"
            "  LEFT JOIN pg_policy p ON (classid, objid) = ('pg_policy'::regclass, p.oid)"
            "  LEFT JOIN pg_attrdef a ON (classid, objid) = ('pg_attrdef'::regclass, a.oid)"
            "  LEFT JOIN pg_constraint c ON (classid, objid) = ('pg_constraint'::regclass, c.oid)"
            "  WHERE refclassid = 'pg_proc'::regclass"
            "  AND coalesce(ev_class, polrelid, adrelid, nullif(conrelid, 0)) IS NOT NULL")
        self._appended: set[str] = set()
        self._touched: set[str] = set()
        self._generated: dict[str, set[str]] = {}
        for table, column in connection.execute(
                "SELECT attrelid::regclass::text, attname FROM pg_attribute "
                "WHERE attidentity <> '' AND NOT attisdropped"):
            self._generated.setdefault(table, set()).add(column)
        self._unique: dict[str, list[set[str]]] = {}
        for table, columns in connection.execute(
                "SELECT indrelid::regclass::text, array_agg(coalesce(attname, '')) FROM pg_index "
                "LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey::int[]) "
                "WHERE indisunique OR indisexclusion GROUP BY indexrelid, indrelid"):
            self._unique.setdefault(table, []).append(set(columns))
        self._parents: dict[str, set[str]] = {}
        self._cascades: dict[str, set[str]] = {}
        for child, parent, cascades in connection.execute(
                "SELECT conrelid::regclass::text, confrelid::regclass::text, "
                "ARRAY[confdeltype, confupdtype] && '{c,n,d}' FROM pg_constraint "
                "WHERE contype = 'f'"):
            self._parents.setdefault(child, set()).add(parent)
            if cascades:
                self._cascades.setdefault(parent, set()).add(child)

    def of(self, step: Step) -> Footprint:
        """The footprint of a statement by itself (for COMMIT and ROLLBACK: only that it ends).

        Raises:
            Learned: what was said of other statements does not hold any more.
        """
        if not self.reducible or len(step.segment.statements) != 1:
            return EVERYTHING
        text = step.segment.statements[0]
        if "://" in text:
            return Footprint(writes=frozenset({"outside"}))
        words = text.split()
        if words[0].upper().rstrip(";") in ("COMMIT", "ROLLBACK", "END", "ABORT"):
            return EVERYTHING if len(words) > 1 else Footprint(ends=True)
        key = (text, step.segment.param_types[0])
        if key not in self._known:
            self._known[key] = found = self._look_up(*key)
            self._appended |= found.appends
            self._touched |= found.reads | found.writes
            if self._appended & self._touched:
                self._appended -= self._touched
                self._known.clear()
                raise Learned
        return self._known[key]

    def _look_up(self, text: str, types: tuple[int, ...]) -> Footprint:
        called = {name.lower() for name in _CALLED.findall(text)}
        if _OPAQUE.search(_without_literals(text)) or called & self._functions:
            return EVERYTHING
        rows = self._locks(text, types)
        if rows is None:
            return EVERYTHING
        reads = {name for name, mode in rows if mode == _READ}
        writes = {name for name, mode in rows if mode != _READ}
        if (reads | writes) & self._guarded:
            return EVERYTHING
        if _CHANGES.search(text):
            todo = list(writes)
            while todo:
                todo += (more := self._cascades.get(todo.pop(), set()) - writes)
                writes |= more
        keys = {parent for name in writes for parent in self._parents.get(name, ())}
        if re.match(r"\s*(DELETE|UPDATE|WITH)\b", text, re.I):  # its children are looked at, too
            keys |= {child for child, parents in self._parents.items() if parents & writes}
        if _ADVISORY.search(text):
            writes.add("advisory-locks")
        appends = {name for name in writes - self._touched if self._only_appends(name, text)}
        return Footprint(frozenset(reads), frozenset(keys), frozenset(writes - appends),
                         frozenset(appends))

    def _only_appends(self, table: str, text: str) -> bool:
        found = _INSERT.match(text)
        if not found or found[1] != table or re.search(r"\bON\s+CONFLICT\b", text, re.I):
            return False
        given = {column.strip(' "').lower() for column in found[2].split(",")}
        free = self._generated.get(table, set()) - given
        return all(columns <= free for columns in self._unique.get(table, []))

    def _locks(self, text: str, types: tuple[int, ...]) -> list[tuple[str, str]] | None:
        declared = ""
        if types:
            names = [self.connection.execute("SELECT format_type(%s, NULL)", (oid,)).fetchone()[0]
                     if oid else "unknown" for oid in types]
            declared = f"({', '.join(names)})"
        try:
            with self.connection.transaction(force_rollback=True):
                self.connection.execute(
                    sql.SQL("PREPARE lab_scratch {} AS {}").format(
                        sql.SQL(declared), sql.SQL(text)).as_string(self.connection).encode())
                rows = self.connection.execute(
                    "SELECT relation::regclass::text, mode FROM pg_locks WHERE pid = "
                    "pg_backend_pid() AND locktype = 'relation' AND relation::regclass::text "
                    "NOT LIKE 'pg\\_%'").fetchall()
        except psycopg.Error:
            return None
        self.connection.execute("DEALLOCATE ALL")
        return rows

    def _names(self, query: str) -> frozenset[str]:
        return frozenset(name for name, in self.connection.execute(query))


def _without_literals(text: str) -> str:
    return re.sub(r"'(?:[^']|'')*'", "''", text)
