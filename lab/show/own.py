"""`explore --worker …`: the gate on code from outside this repo (docs/how-the-gate-works.md)."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lab.engine import schedule as schedules
from lab.engine.explore import Result, explore
from lab.engine.history import History
from lab.engine.postgres import server
from lab.engine.schedule import Schedule
from lab.engine.stepper import Stepper
from lab.errors import LabError
from lab.judge.own import OwnCode, own_code
from lab.show import terminal

__all__ = ["run"]

LETTERS = "ABCDEFGH"
SHOWN = 3
MOST = 20_000  # events of one run


def run(args: argparse.Namespace) -> int:
    """Count the interleavings that break the invariant, or run one; exit code 1 if one does."""
    console = terminal.screen()
    if not args.schema or not args.invariant:
        raise LabError("Code of your own needs its tables and what must hold.",
                       "Add --schema FILE.sql and --invariant FILE.py.")
    if args.stage is not None or args.roles:
        raise LabError("Code of your own is no stage, and all of its replicas run --call.",
                       "Leave the stage's number and --roles out.")
    count = 2 if args.replicas is None else args.replicas
    if not 1 <= count <= len(LETTERS):
        raise LabError(f"{count} replicas cannot be stepped.", f"From 1 to {len(LETTERS)} can.")
    code = own_code(args.worker, args.call, args.schema, args.invariant)
    planned = None if args.schedule is None else Schedule.parse(args.schedule)
    letters = LETTERS[:count] if planned is None else "".join(planned.letters) or "A"
    try:
        with server() as used, code.stepper(used, letters, args.isolation) as stepper:
            stepper.most = MOST
            ends = _Ends(code, stepper)
            if planned is not None:
                return _one(console, ends, planned)
            found = _all(console, ends, args)
            if not found.breaking:
                ends.check(args.worker.name)
    except LabError as error:  # its code 1 would say that an interleaving breaks the invariant
        raise LabError(error.what, error.remedy) from error
    _tell(console, found, args)
    return int(found.breaking > 0)


class _Ends:
    """Judges the ends of runs, and remembers whether the worker ever worked."""

    def __init__(self, code: OwnCode, stepper: Stepper) -> None:
        self.code, self.stepper = code, stepper
        self.stepped = self.worked = False
        self.error = ""

    def judge(self, history: History) -> tuple[str, bool]:
        """What the code's own judge says of a history."""
        ended = [event for event in history if event.kind == "end"]
        self.stepped |= any(event.kind in ("statement", "request") for event in history)
        self.worked |= any(not event.failed for event in ended) or not ended
        failed = [event.outcome.removeprefix("error: ") for event in ended if event.failed]
        self.error = failed[0] if failed else self.error
        return self.code.judge(self.stepper.monitor, history)

    def check(self, name: str) -> None:
        """Raise when nothing was tried: a worker that never works breaks nothing."""
        if not self.worked:
            raise LabError(f"Every run of {name} ended in an error: {self.error.rstrip('.')}.",
                           "Correct it; with --schedule A.. one replica runs alone.")
        if not self.stepped:
            raise LabError(f"No statement of {name} came through the gate.",
                           "Let it connect to DATABASE_URL, which each replica finds in its own "
                           "environment.")


def _one(console: Console, ends: _Ends, planned: Schedule) -> int:
    history = schedules.run(ends.stepper, planned)
    outcome, breaks = ends.judge(history)
    console.print(terminal.transcript(history))
    sign = "✗" if breaks else "✓" if outcome == "ok" else "!"
    console.print(Text(f"{sign} {outcome}", "bold"))
    return int(breaks)


def _all(console: Console, ends: _Ends, args: argparse.Namespace) -> Result:
    with terminal.meter(console, "exploring", unit="runs") as tell:
        return explore(
            ends.stepper, ends.judge, reduce=not args.all, seconds=args.seconds,
            isolation=args.isolation,
            on_progress=lambda runs, left, breaking: tell(
                runs, f"{left:,} branches left, {breaking:,} ends break it"))


def _tell(console: Console, found: Result, args: argparse.Namespace) -> None:
    """The count, each outcome, and how to run the plainest failing schedules again."""
    console.print(Text.assemble((found.headline, "bold"), " interleavings break it "
                                f"({found.runs:,} runs, {found.seconds:.1f} s)"))
    if not found.complete:
        console.print(f"  {found.shortfall}", highlight=False)
    for outcome, size in found.outcomes.most_common():
        console.print(f"  {size:>8,} × {outcome}", highlight=False)
    isolation = [] if args.isolation == "read committed" else ["--isolation", args.isolation]
    words = [_python(), "-m", "lab", "explore", "--worker", args.worker, "--call", args.call,
             *(word for path in args.schema for word in ("--schema", path)),
             "--invariant", args.invariant, *isolation]
    for finding in [f for f in found.findings if f.breaks][:SHOWN]:
        command = shlex.join([*map(str, words), "--schedule", str(finding.schedule)])
        console.print(f"  {command}", highlight=False, soft_wrap=True)


def _python() -> str:
    """The Python that runs this, as it is typed here."""
    here, program = Path.cwd(), Path(sys.executable)
    return str(program.relative_to(here) if program.is_relative_to(here) else program)
