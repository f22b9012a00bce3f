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


@dataclass(frozen=True)
class OwnCode:
    """A worker, the SQL files that make its database, and what must hold when its runs are over.

    Args:
        folder: where the worker's file is; it is the script's own directory.
        program: what every replica runs.
        scripts: SQL files, in order.
        broken: gets an autocommit connection; returns a sentence for each thing that is wrong.
    """

    folder: Path
    program: Program
    scripts: tuple[Path, ...]
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
        """The outcome of a run: "ok", or what is wrong; an error in a run is one of its own."""
        errors = sorted({event.outcome.split()[1] for event in history
                         if event.kind == "end" and event.failed})
        wrong = self.broken(connection)
        said = "; ".join([*wrong, *(f"error {name}" for name in errors)])
        return said or "ok", bool(wrong)


def own_code(worker: Path, call: str, schema: list[Path], invariant: Path) -> OwnCode:
    """Read somebody's files.

    Args:
        worker: a Python file; it finds DATABASE_URL in its environment.
        call: the function of that file that a replica runs, with the time (aware, Mexico City) as
            its argument if it takes one.
        schema: SQL files.
        invariant: a Python file with `broken(connection) -> list[str]`.

    Raises:
        LabError: a file is missing, or has no such function.
    """
    for path in (worker, invariant, *schema):
        if not path.is_file():
            raise LabError(f"{path} is not there.", "Name files that exist.")
    function = _functions(worker).get(call)
    if function is None:
        raise LabError(f"{worker.name} has no function {call}.",
                       "Name the one that a replica shall run: --call NAME.")
    takes = function.args.posonlyargs + function.args.args
    required = len(takes) - len(function.args.defaults)
    program = Program(f"{worker.stem}:{call}", ("{now}",) if required else ())
    if "broken" not in _functions(invariant):
        raise LabError(f"{invariant.name} has no function broken.",
                       "Write broken(connection): a sentence for each thing that is wrong.")
    spec = importlib.util.spec_from_file_location("own_invariant", invariant)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return OwnCode(worker.resolve().parent, program, tuple(p.resolve() for p in schema),
                   module.broken)


def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise LabError(f"{path.name}, line {error.lineno}, is not Python: {error.msg}.",
                       "Correct that line.") from error
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
