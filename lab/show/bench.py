"""`make bench`: what the lab takes on this machine, beside its budgets (two cores).

A budget is a line in PARTS: a function that measures and gives rows of (what, measured, budget).
Nothing here fails: machines differ, so rates are printed, not asserted. `--save` keeps the table in
docs/bench.md, above what people wrote there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.table import Table

from lab.engine import isolationtester, scratch
from lab.engine.explore import explore
from lab.engine.history import History
from lab.engine.isolationtester import SPECS, Spec
from lab.engine.postgres import Server, server
from lab.engine.stepper import Stepper
from lab.errors import LabError
from lab.folders import ROOT
from lab.judge.scenarios import theatre
from lab.judge.stage import stages
from lab.show import delivery, ladder, load, notebooks, terminal
from lab.show.page.desk import Desk
from lab.show.page.view import view

__all__ = ["run"]

Rows = Iterator[tuple[str, str, str]]


def isolation_specs(used: Server) -> Rows:
    """One spec through PostgreSQL's isolationtester and through the explorer, all permutations."""
    program = isolationtester.find()
    for name in ("two-payers", "claim-commit", "lost-update"):
        full, reduced, orders, steps, runs = _explored(used, name)
        theirs, ratio, of_all, said = 0.0, "", "", "is not installed here"
        if program:
            with Spec.read(name).database(used) as database:
                began = time.perf_counter()
                isolationtester.permute(program, Spec.read(name), orders, database.url)
                theirs = time.perf_counter() - began
            said = f"{theirs:.2f} s"
            ratio, of_all = f" = {reduced / theirs:.2f}", f" = {full / theirs:.2f}"
        yield (f"{name}: {len(orders)} permutations",
               f"{reduced:.2f} s ({runs} run) / isolationtester {said}{ratio}", "≤ 1")
        yield "  each of them run", f"{full:.2f} s, {steps / full:,.0f} steps/s{of_all}", ""


def _explored(used: Server, name: str) -> tuple[float, float, list[str], int, int]:
    spec = Spec.read(name)
    orders: list[str] = []
    with spec.database(used) as database, \
            Stepper(database, SPECS, spec.programs(), imports=("psycopg",)) as stepper:

        def judge(history: History) -> tuple[str, bool]:
            rows = stepper.monitor.execute(spec.look).fetchall()
            order, outcome = isolationtester.outcome_of(spec, history, rows)
            orders.append(order)
            return str(outcome), False

        explore(stepper, judge)  # the processes start, and connect
        orders.clear()
        full = explore(stepper, judge, reduce=False)
        every, steps = list(orders), sum(len(order.split()) for order in orders)
        reduced = explore(stepper, judge)
    return full.seconds, reduced.seconds, every, steps, reduced.runs


def every_interleaving(used: Server) -> Rows:
    """All schedules of two replicas, from the start of their processes on."""
    for stage in stages():
        entry = next((e for e in stage.data.get("explore", ()) if e["replicas"] == 2), None)
        if not entry:
            continue
        parts = {key: entry[key] for key in ("everyone", "roles", "isolation", "standing")
                 if key in entry}
        with theatre(stage, used) as scene:
            began = time.perf_counter()
            result = scene.explore("AB", **parts)
            cold = time.perf_counter() - began
            warm = scene.explore("AB", **parts).seconds
            memory = _memory()
        yield (f"stage {stage.number}, 2 replicas: {result.headline}",
               f"{cold:.1f} s ({warm:.1f} s warm), {memory:.0f} MB", "≤ 2 s, 500 MB")


def _memory() -> float:
    """MB of this process and its children; Postgres is not among them."""
    me = psutil.Process()
    return sum(p.memory_info().rss for p in (me, *me.children(recursive=True))
               if "postgres" not in p.name()) / 2 ** 20


def whole_ladder(used: Server) -> Rows:
    """Every stage of the ladder in every scenario."""
    began = time.perf_counter()
    climbed = ladder.climb(terminal.screen(), used, quick=True)
    seconds = time.perf_counter() - began
    yield f"the ladder: {len(climbed.cells)} scenarios", f"{seconds:.0f} s", "≤ 60 s"


def free_engine(used: Server) -> Rows:
    """Load and deliveries of the stages that declare them."""
    for stage in stages():
        if "load" in stage.data:
            ours, theirs = load.against_pgbench(used, stage)
            yield (f"stage {stage.number}, one UPDATE: the lab / pgbench",
                   f"{ours:,.0f} / {theirs:,.0f} per s = {ours / theirs:.2f}", "≥ 0.5")
        if "relays" in stage.data:
            for what, much in delivery.rows(delivery.measure(used, stage)):
                yield f"stage {stage.number}, {what}", much, ""


def page_step(used: Server) -> Rows:
    """A step on the page, from the order to all that the page will show, which then draws it."""
    desk, took = Desk(0), []
    try:
        desk.do("move", text="A.start B.start C.start")  # now the processes are there
        for letter in "ABC" * 9:
            began = time.perf_counter()
            desk.do("move", text=letter)
            json.dumps(view(desk))
            took.append(1000 * (time.perf_counter() - began))
    finally:
        desk.close()
    yield (f"stage {desk.stage.number}, {len(took)} steps on the page",
           f"median {statistics.median(took):.0f} ms, slowest {max(took):.0f} ms", "≤ 100 ms")


def first_duplicate(used: Server) -> Rows:
    """`make stage-0`, until the coins are inserted a second time: here, and in a fresh clone."""
    warm = _until_twice([sys.executable, "-m", "lab", "stage", "0"], ROOT, {})
    yield "stage 0, to its first duplicate", f"{warm:.1f} s", "≤ 3 s"
    with scratch.folder() as folder:
        clone, temporary = Path(folder) / "clone", Path(folder) / "tmp"
        temporary.mkdir()
        _quietly(["git", "clone", "--quiet", str(ROOT), str(clone)])
        cold = _until_twice(["make", "stage-0"], clone, {"TMPDIR": str(temporary)})
    yield "  from a fresh clone, packages in the cache", f"{cold:.1f} s", "≤ 10 s"


def _until_twice(command: Sequence[str], folder: Path, more: dict[str, str]) -> float:
    """Real seconds until a command's output shows the second payment; then it goes on."""
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, env=os.environ | more, text=True, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        paid = 0
        for line in process.stdout:
            paid += "INSERT token_transactions" in line
            if paid == 2:
                break
        seconds = time.perf_counter() - began
        process.stdout.read()
    if paid < 2:
        raise LabError(f"{' '.join(command)} showed no duplicate.", "Run it by hand.")
    return seconds


def _quietly(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise LabError(f"{command[0]} did not work here.", "Run the part in a clone.") from None


def every_notebook(used: Server) -> Rows:
    """All notebooks, executed."""
    found = notebooks.chosen([])
    began = time.perf_counter()
    for _ in notebooks.executed(found):
        pass
    yield f"{len(found)} notebooks", f"{time.perf_counter() - began:.0f} s", "≤ 180 s"


PARTS = (isolation_specs, every_interleaving, whole_ladder, free_engine, page_step,
         first_duplicate, every_notebook)
SAVED = ROOT / "docs" / "bench.md"
BELOW = "\n## "  # what people wrote begins with its first heading


def run(args: argparse.Namespace) -> int:
    """`bench`: measure every part, or those named, and print a table."""
    console = terminal.screen()
    table = Table("what", "measured", "budget", box=None, pad_edge=False)
    wanted = [part for part in PARTS if not args.parts or part.__name__ in args.parts]
    rows: list[tuple[str, str, str]] = []
    with server() as used:
        machine = (f"{used.described}, {psutil.cpu_count()} processors, "
                   f"load {psutil.getloadavg()[0]:.1f}")
        console.print(machine)
        for part in wanted:
            with terminal.meter(console, part.__name__.replace("_", " "), unit="rows") as tell:
                try:
                    for number, row in enumerate(part(used), 1):
                        rows.append(row)
                        tell(number, row[0])
                except LabError as error:
                    rows.append((part.__name__.replace("_", " "), error.what, ""))
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if args.save:
        _save(machine, rows)
    return 0


def _save(machine: str, rows: Sequence[tuple[str, str, str]]) -> None:
    before = SAVED.read_text("utf-8") if SAVED.exists() else ""
    words = before[before.index(BELOW):] if BELOW in before else "\n"
    lines = ["# What it takes", "",
             "Written by `make bench SAVE=1`; the budgets are for two cores.", "",
             f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, "
             f"{platform.system()} {platform.machine()}, {machine}.", "",
             "| what | measured | budget |", "| --- | --- | --- |",
             *("| " + " | ".join(row) + " |" for row in rows)]
    SAVED.write_text("\n".join(lines) + "\n" + words, "utf-8", newline="\n")
