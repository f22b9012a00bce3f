"""Code from outside this repo: somebody's worker, schema and invariant, as if they were a stage."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from lab.engine.history import History
from lab.engine.postgres import Server
from lab.engine.replica import Program
from lab.engine.stepper import Stepper
from lab.errors import LabError

__all__ = ["OwnCode", "own_code"]

TAKES = "A replica calls it with the time (aware, Mexico City), or with nothing."


@dataclass(frozen=True)
class OwnCode:
    """A worker, the SQL files that make its database, and what must hold when its runs are over.

    Args:
        folder: where the worker's file is; it is the script's own directory.
        program: what every replica runs.
        scripts: SQL files, in order.
        invariant: name of the file that `broken` is from.
        broken: gets an autocommit connection; returns a sentence for each thing that is wrong.
    """

    folder: Path
    program: Program
    scripts: tuple[Path, ...]
    invariant: str
    broken: Callable[[psycopg.Connection], list[str]]

    @contextmanager
    def stepper(self, server: Server, letters: str, isolation: str) -> Iterator[Stepper]:
        """Its replicas, on a database of their own."""
        env = {}
        if isolation != "read committed":
            level = isolation.replace(" ", r"\ ")
            env["PGOPTIONS"] = f"-c default_transaction_isolation={level}"
        programs = dict.fromkeys(letters, self.program)
        with (server.database(self.scripts, "own") as database,
              Stepper(database, self.folder, programs, env=env) as stepper):
            yield stepper

    def judge(self, connection: psycopg.Connection, history: History) -> tuple[str, bool]:
        """The outcome of a run, and whether it breaks what must hold.

        The outcome is "ok", or what is wrong; an error in a run is told, and breaks nothing by
        itself. A run that does not end does.

        Raises:
            LabError: the invariant cannot be asked.
        """
        wrong = self._wrong(connection)
        if not history.complete:
            wrong.append(f"never ends: {_stuck(history)}")
        errors = sorted({event.outcome.split()[1] for event in history
                         if event.kind == "end" and event.failed})
        said = "; ".join([*wrong, *(f"error {name}" for name in errors)])
        return said or "ok", bool(wrong)

    def _wrong(self, connection: psycopg.Connection) -> list[str]:
        try:
            wrong = self.broken(connection)
        except Exception as error:
            raise LabError(f"broken in {self.invariant} failed: {_first_line(error)}.",
                           "Correct it; it is asked after every run, with the tables as they are "
                           "then.") from error
        if not isinstance(wrong, (list, tuple)) or not all(isinstance(w, str) for w in wrong):
            raise LabError(f"broken in {self.invariant} returned {wrong!r}.",
                           "Let it return a list: a sentence for each thing that is wrong.")
        return list(wrong)


def own_code(worker: Path, call: str, schema: list[Path], invariant: Path) -> OwnCode:
    """Read somebody's files.

    Args:
        worker: a Python file; it finds DATABASE_URL in its environment.
        call: the function of that file that a replica runs, with the time (aware, Mexico City) as
            its argument if it takes one. One that the file imports is called with nothing.
        schema: SQL files.
        invariant: a Python file with `broken(connection) -> list[str]`.

    Raises:
        LabError: a file is missing or is no text, has no such function, or cannot be imported.
    """
    for path in (worker, invariant, *schema):
        _text(path)
    program = Program(f"{worker.stem}:{call}", _arguments(worker, call))
    if "broken" not in _names(invariant):
        raise LabError(f"{invariant.name} has no function broken.",
                       "Write broken(connection): a sentence for each thing that is wrong.")
    spec = importlib.util.spec_from_file_location("own_invariant", invariant)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise LabError(f"{invariant.name} cannot be imported: {_first_line(error)}.",
                       "Correct it; the lab's own Python imports it.") from error
    return OwnCode(worker.resolve().parent, program, tuple(p.resolve() for p in schema),
                   invariant.name, module.broken)


def _arguments(worker: Path, call: str) -> tuple[str, ...]:
    """What the function is called with: the time if it takes an argument, else nothing."""
    node = _names(worker).get(call)
    if node is None:
        raise LabError(f"{worker.name} has no function {call}.",
                       "Name the one that a replica shall run: --call NAME.")
    if isinstance(node, ast.AsyncFunctionDef):
        raise LabError(f"{call} in {worker.name} is async, so a call of it runs nothing.",
                       "Name a function that calls asyncio.run.")
    if not isinstance(node, ast.FunctionDef):
        return ()
    takes = node.args.posonlyargs + node.args.args
    required = len(takes) - len(node.args.defaults)
    if required > 1 or None in node.args.kw_defaults:
        raise LabError(f"{call} in {worker.name} needs more than one argument.", TAKES)
    return ("{now}",) if required else ()


def _names(path: Path) -> dict[str, ast.stmt]:
    """What a file defines, imports or assigns at its top level."""
    try:
        tree = ast.parse(_text(path))
    except SyntaxError as error:
        raise LabError(f"{path.name}, line {error.lineno}, is not Python: {error.msg}.",
                       "Correct that line.") from error
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name: node for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {name.id: node for name in node.targets if isinstance(name, ast.Name)}
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise LabError(f"{path} is not UTF-8.", "Save it as UTF-8.") from None
    except OSError:
        raise LabError(f"{path} is not there.", "Name files that exist.") from None


def _first_line(error: Exception) -> str:
    said = (str(error).splitlines() or [""])[0].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _stuck(history: History) -> str:
    """Who waits for whom, or stands still, at the end of a history."""
    stands: dict[str, str] = {}
    for event in history:
        if event.outcome == "waiting":
            stands[event.replica] = f"{event.replica} waits for {', '.join(event.waits_for)}"
        elif event.kind == "freeze":
            stands[event.replica] = f"{event.replica} is frozen"
        elif event.replica in stands:
            del stands[event.replica]
    return "; ".join(stands.values()) or "a replica is under way"
