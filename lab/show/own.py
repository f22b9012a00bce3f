"""`explore --worker …`: the gate on code from outside this repo (docs/how-the-gate-works.md)."""

from __future__ import annotations

import argparse
import shlex

from rich.text import Text

from lab.engine import schedule as schedules
from lab.engine.explore import explore
from lab.engine.postgres import server
from lab.engine.schedule import Schedule
from lab.errors import LabError
from lab.judge.own import own_code
from lab.show import terminal

__all__ = ["run"]

SHOWN = 3


def run(args: argparse.Namespace) -> int:
    """Count the interleavings that break the invariant, or run one; exit code 1 if one does."""
    console = terminal.screen()
    if not args.schema or not args.invariant:
        raise LabError("Code of your own needs its tables and what must hold.",
                       "Add --schema FILE.sql and --invariant FILE.py.")
    code = own_code(args.worker, args.call, args.schema, args.invariant)
    letters = "ABCDEFGH"[:args.replicas or 2]
    with server() as used, code.stepper(used, letters, args.isolation) as stepper:
        if args.schedule:
            history = schedules.run(stepper, Schedule.parse(args.schedule))
            outcome, breaks = code.judge(stepper.monitor, history)
            console.print(terminal.transcript(history))
            console.print(Text(f"{'✗' if breaks else '✓'} {outcome}", "bold"))
            return int(breaks)
        with terminal.meter(console, "exploring", unit="runs") as tell:
            found = explore(
                stepper, lambda history: code.judge(stepper.monitor, history),
                reduce=not args.all, seconds=args.seconds, isolation=args.isolation,
                on_progress=lambda runs, left, breaking: tell(
                    runs, f"{left:,} branches left, {breaking:,} ends break it"))
    console.print(Text.assemble((found.headline, "bold"), " interleavings break it "
                                f"({found.runs:,} runs, {found.seconds:.1f} s)"))
    for outcome, size in found.outcomes.most_common():
        console.print(f"  {size:>8,} × {outcome}", highlight=False)
    words = ["python", "-m", "lab", "explore", "--worker", args.worker, "--call", args.call,
             *(word for path in args.schema for word in ("--schema", path)),
             "--invariant", args.invariant]
    for finding in [f for f in found.findings if f.breaks][:SHOWN]:
        command = shlex.join([*map(str, words), "--schedule", str(finding.schedule)])
        console.print(f"  {command}", highlight=False, soft_wrap=True)
    return int(found.breaking > 0)
