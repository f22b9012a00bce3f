"""`make bench`: what the lab takes on this machine, beside its budgets (two cores).

A budget is a line in PARTS: a function that measures and gives rows of (what, measured, budget).
Nothing here fails: machines differ, so rates are printed, not asserted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import psutil
from rich.table import Table

from lab.engine import isolationtester
from lab.engine.explore import explore
from lab.engine.history import History
from lab.engine.isolationtester import SPECS, Spec
from lab.engine.postgres import Server, server
from lab.engine.stepper import Stepper
from lab.errors import LabError
from lab.judge.scenarios import theatre
from lab.judge.stage import stages
from lab.show import delivery, ladder, load, terminal

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


PARTS = (isolation_specs, every_interleaving, whole_ladder, free_engine)


def run(args: argparse.Namespace) -> int:
    """`bench`: measure every part, or those named, and print a table."""
    console = terminal.screen()
    table = Table("what", "measured", "budget", box=None, pad_edge=False)
    wanted = [part for part in PARTS if not args.parts or part.__name__ in args.parts]
    with server() as used:
        console.print(f"{used.described}, {psutil.cpu_count()} processors, "
                      f"load {psutil.getloadavg()[0]:.1f}")
        for part in wanted:
            with terminal.meter(console, part.__name__.replace("_", " "), unit="rows") as tell:
                try:
                    for number, row in enumerate(part(used), 1):
                        table.add_row(*row)
                        tell(number, row[0])
                except LabError as error:
                    table.add_row(part.__name__.replace("_", " "), error.what, "")
    console.print(table)
    return 0
