"""`make preflight`: what a room of students needs, tried a line each before they come."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterator

from rich.text import Text

from lab.engine.postgres import Server, server
from lab.errors import LabError
from lab.folders import ROOT
from lab.judge.bench import bench
from lab.judge.checking import check_answer
from lab.judge.exercise import exercise
from lab.judge.scenarios import scenarios, theatre
from lab.judge.stage import stage, stages
from lab.show import terminal

__all__ = ["run"]

CONNECTIONS = 12  # that a check holds at most: its own, and those of its replicas
PACKAGES = {"notebooks": "jupyterlab nbclient ipykernel", "stage 07": "fastapi httpx psycopg_pool",
            "the page": "starlette uvicorn", "tests": "pytest hypothesis"}


def run(args: argparse.Namespace) -> int:
    """Try what a room needs, a line each; exit code 1 when something is missing."""
    console, ready = terminal.screen(), True
    asked: set[str] = set()
    sys.addaudithook(lambda event, values: asked.update(_beyond(event, values)))
    with server() as used:
        for what, attempt in _attempts(used):
            began = time.monotonic()
            try:
                sign, said = "✓", attempt()
            except (LabError, ImportError, OSError) as error:
                sign, said, ready = "✗", str(error), False
            console.print(Text.assemble((f"{sign} ", "bold"), f"{what:<28} {said} ",
                                        (f"({time.monotonic() - began:.1f} s)", "dim")))
    sign, said = ("✗", f"asked for {', '.join(sorted(asked))}") if asked else (
        "✓", "nothing of this asked for another machine")
    console.print(f"{sign} {'without a network':<28} {said}", highlight=False)
    return 0 if ready and not asked else 1


def _attempts(used: Server) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "Python and room on the disk", _machine
    yield "Postgres", lambda: f"{used.described}, version {used.version}"
    yield "checks at the same time", lambda: _room(used)
    for package, names in PACKAGES.items():
        yield f"packages for {package}", lambda names=names: _packages(names)
    for found in stages():
        yield f"stage {found.number:02d}", lambda found=found: _stage(found.number, used)
    yield "a check", lambda: _check(used)
    yield "a picture", _picture


def _machine() -> str:
    free = shutil.disk_usage(ROOT).free / 1024 ** 3
    if free < 1:
        raise LabError(f"{free:.1f} GB are free.", "A room needs 1 GB.")
    return f"{sys.version.split()[0]}, {free:.0f} GB free"


def _room(used: Server) -> str:
    with used.database([ROOT / "lab/world/schema.sql"]) as database, database.connect() as conn:
        free, = conn.execute("SELECT current_setting('max_connections')::int"
                             " - (SELECT count(*) FROM pg_stat_activity)").fetchone()
    return f"about {free // CONNECTIONS}, by the server's max_connections"


def _packages(names: str) -> str:
    missing = [name for name in names.split() if not importlib.util.find_spec(name)]
    if missing:
        raise LabError(f"{', '.join(missing)} not installed.", "Run `make preflight` online once.")
    return names


def _stage(number: int, used: Server) -> str:
    found = stage(number)
    if not scenarios(found):
        return "has no scenario"
    first = next(iter(scenarios(found).values()))
    with theatre(found, used) as scene:
        outcome = scene.play(first)
    if not outcome.as_promised:
        raise LabError(f"{first.name} came out as {outcome.code}, not {outcome.expected}.",
                       "Run `make doctor`.")
    return f"{first.name} came out as promised: {outcome.code}"


def _check(used: Server) -> str:
    found = exercise(stage(1), "twice")
    with bench(found, used) as place:
        checked = check_answer(place, found.solution)
    if checked.failure:
        raise LabError(f"The solution of {found.place} does not pass.", checked.failure.said)
    return f"the solution of {found.place} passes"


def _picture() -> str:
    from lab.show import plots

    plots.duplicates({"Lupita": 30})
    return "drawn"


def _beyond(event: str, values: tuple) -> list[str]:
    """The addresses beyond this machine that an audited event asks for."""
    if event not in ("socket.connect", "socket.getaddrinfo"):
        return []
    host = values[0] if event == "socket.getaddrinfo" else values[1][0]
    local = not isinstance(host, str) or host in ("localhost", "127.0.0.1", "::1", "")
    return [] if local or host.startswith("/") else [host]
