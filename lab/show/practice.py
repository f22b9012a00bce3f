"""The student's side of an exercise: begin, check, hint, reset, solution, progress.

A student's files are below my/, which git ignores: my/STAGE/EXERCISE/FILE. my/.progress.json keeps
what has passed and how many hints were read.
"""

from __future__ import annotations

import argparse
import os
import shutil
from datetime import datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lab.engine.postgres import server
from lab.errors import LabError
from lab.judge.bench import bench
from lab.judge.checking import Case, Check, check_answer, parts_of, try_case
from lab.judge.exercise import Exercise, exercise, exercises
from lab.judge.stage import stage, stages
from lab.show import diary, tables, terminal

__all__ = ["begin", "check", "hint", "progress", "replay", "reset", "solution", "tell"]

MY = diary.MY


def begin(args: argparse.Namespace) -> int:
    """Copy the starters that are not there yet, and say what to open."""
    console = terminal.screen()
    for found in _chosen(args):
        mine = _mine(found)
        fresh = not mine.exists()
        if fresh:
            _copy(found, mine)
        console.rule(f"{found.place} · {found.data['minutes']} minutes", align="left")
        console.print(Markdown(found.text("task", _spanish())))
        console.print(f"\n{'Open' if fresh else 'You have begun'}: {mine}", highlight=False)
        console.print(f"Then: {_command('check', found)}", highlight=False)
    return 0


def check(args: argparse.Namespace) -> int:
    """Check answers in order; the exit code is 0 when all that were checked have passed."""
    console = terminal.screen()
    found = _chosen(args)
    there = [one for one in found if _mine(one).exists()]
    if not there:
        raise LabError("There is nothing to check yet.",
                       f"Begin with: make exercise-{found[0].stage.number}")
    passed = True
    with server() as used:
        for one in there:
            with bench(one, used) as place, terminal.meter(console, "checking") as tell_how_far:
                result = check_answer(place, _mine(one), lambda title, tell=tell_how_far: tell(
                    0, title))
            tell(console, result)
            passed &= result.passed
            if result.passed:
                diary.remember(one, passed=f"{datetime.now():%Y-%m-%d %H:%M}")
    return 0 if passed else 1


def tell(console: Console, result: Check) -> None:
    """What a check found: each case, the first failure as it happened, and how to see it again."""
    found = result.exercise
    console.rule(f"{found.place}: {found.data['title']}", align="left")
    for case in result.cases:
        sign, style = ("✓", "green") if case.passed else ("✗", "bold red")
        tried = f"{case.tried:,} schedules" if case.tried > 1 else ""
        console.print(Text.assemble((f"{sign} ", style), f"{case.title:<62} ", (tried, "dim")))
    if result.failure:
        _tell_failure(console, found, result.failure)
    else:
        for kind in ("png", "svg"):  # a failure that is over is no longer to be looked at
            Path("out", f"{_picture(found)}.{kind}").unlink(missing_ok=True)
        console.print(Text(f"\nPassed ({result.counts}).", "bold green"))
        console.print(f"A right answer of ours: {_command('solution', found)}", highlight=False)


def _tell_failure(console: Console, found: Exercise, case: Case) -> None:
    console.print()
    _show(console, found, case)
    if case.history is not None:
        again = f'make replay-{found.stage.number} MY={found.name} CASE={case.name}'
        if found.data["kind"] != "schedule":
            again += f' SCHEDULE="{case.schedule}"'
        console.print(f"See it again: {again}", highlight=False, soft_wrap=True)
    console.print(f"Stuck? {_command('hint', found)}", highlight=False)


def _show(console: Console, found: Exercise, case: Case) -> None:
    """A case that did not come out as it must: why, and its run, move by move and as a picture."""
    from lab.show import picture, timeline

    console.print(Panel(Text(case.said), box=box.HEAVY, border_style="red", padding=(0, 1)))
    if case.history is None:
        return
    console.print(Text(f"Schedule: {case.schedule}", "bold"), soft_wrap=True)
    console.print(terminal.transcript(case.history))
    wrong = None if case.verdict.ok else case.verdict  # an error may leave every effect right
    if wrong:
        console.print(tables.verdict(wrong, case.history))
    drawn = timeline.timeline(case.history, f"{found.place}: {case.title}", wrong)
    path, _ = picture.save(drawn, _picture(found))
    console.print(f"Picture: {path}", highlight=False, soft_wrap=True)


def _picture(found: Exercise) -> str:
    """The name of the picture of an exercise's last failure."""
    return f"my-{found.stage.number:02d}-{found.name}"


def replay(args: argparse.Namespace) -> int:
    """Run one schedule on a student's file, with the parts of a case of the exercise."""
    console, found = terminal.screen(), exercise(stage(args.stage), args.my)
    text, written = " ".join(args.schedule).strip(), found.data["kind"] == "schedule"
    if not (text or written):
        raise LabError("There is no schedule to run.", 'Add SCHEDULE="A..commit B.. A..".')
    case = {"name": "replay", "title": text}
    if args.case or written:
        case = parts_of(found.case(args.case or found.data["cases"][0]["name"]), found.stage)
    # What the schedule takes the place of; the one that a check printed has what is standing.
    gone = {"scenario", "kills", "explore", *(["standing"] if "explore" in case else [])}
    case = {key: value for key, value in case.items() if key not in gone}
    if text:
        case["schedule"] = text
    with server() as used, bench(found, used) as place:
        tried = try_case(place, case, place.put(_mine(found)))
    if tried.passed:
        console.print(terminal.transcript(tried.history))
        console.print(tables.verdict(tried.verdict, tried.history))
        console.print("✓ This is what it has to come to.", style="green")
    else:
        _show(console, found, tried)
    return 0


def hint(args: argparse.Namespace) -> int:
    """Give the next hint; once there is none left, all of them again."""
    console, known = terminal.screen(), _chosen(args)
    found = next((one for one in known if not diary.kept(one).get("passed")), known[0])
    hints, before = found.hints(_spanish()), diary.kept(found).get("hints", 0)
    numbers = [before + 1] if before < len(hints) else range(1, len(hints) + 1)
    for number in numbers:
        console.print(Panel(Markdown(hints[number - 1]), title_align="left",
                            title=f"{found.place}: hint {number} of {len(hints)}"))
    if numbers[-1] < len(hints):
        console.print(f"One that says more: {_command('hint', found)}", highlight=False)
    else:
        console.print("There is none after this. Say aloud what it asks, then look at the failing "
                      "schedule again.")
    for other in known:
        if other is not found:
            console.print(f"For {other.name}: {_command('hint', other)}", highlight=False)
    diary.remember(found, hints=numbers[-1])
    return 0


def reset(args: argparse.Namespace) -> int:
    """Put the starter back; what was there stays beside it as a backup."""
    console = terminal.screen()
    for found in _chosen(args):
        mine = _mine(found)
        if mine.exists() and mine.read_bytes() != found.starter.read_bytes():
            backup = _backup(mine)
            console.print(f"Your file is kept as {backup}", highlight=False)
        _copy(found, mine)
        console.print(f"{mine} is as at the beginning.", highlight=False)
    return 0


def solution(args: argparse.Namespace) -> int:
    """Show a right answer once the student's has passed, or when it is asked for a second time."""
    console = terminal.screen()
    for found in _chosen(args):
        if not (diary.kept(found).get("passed") or args.yes):
            raise LabError(
                f"{found.place} has not passed yet, and a solution that you have read cannot be "
                "found any more.",
                f"A hint: {_command('hint', found)}. "
                f"If you are sure: {_command('solution', found)} YES=1")
        console.rule(f"{found.place}/{found.file}", align="left")
        console.print(found.solution.read_text(encoding="utf-8"), highlight=False, soft_wrap=True)
    return 0


def progress(args: argparse.Namespace) -> int:
    """The whole course: what is passed, begun, and how many hints were read."""
    console, table = terminal.screen(), Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("stage", "exercise", "minutes", "state", "hints"):
        table.add_column(name)
    done = every = 0
    for found in (one for each in stages() for one in exercises(each)):
        kept = diary.kept(found)
        state = f"✓ passed {kept['passed']}" if kept.get("passed") else (
            "… begun" if _mine(found).exists() else "")
        table.add_row(found.stage.name, found.name, str(found.data["minutes"]), state,
                      str(kept.get("hints") or ""))
        done, every = done + bool(kept.get("passed")), every + 1
    console.print(table)
    console.print(f"{done} of {every} passed.", highlight=False)
    return 0


def _chosen(args: argparse.Namespace) -> list[Exercise]:
    found = stage(args.stage)
    if args.which:
        return [exercise(found, args.which)]
    known = exercises(found)
    if not known:
        raise LabError(f"Stage {found.number} has no exercise.", "See: make progress")
    return known


def _mine(found: Exercise) -> Path:
    return MY / found.stage.name / found.name / found.file


def _copy(found: Exercise, mine: Path) -> None:
    mine.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found.starter, mine)


def _backup(mine: Path) -> Path:
    number = 1
    while (backup := mine.with_name(f"{mine.name}.{number}.bak")).exists():
        number += 1
    return mine.rename(backup)


def _command(verb: str, found: Exercise) -> str:
    which = f" WHICH={found.name}" if len(exercises(found.stage)) > 1 else ""
    return f"make {verb}-{found.stage.number}{which}"


def _spanish() -> bool:
    return os.environ.get("LAB_LANG", os.environ.get("LANG", "")).startswith("es")
