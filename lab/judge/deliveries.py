"""A slot of a schedule, delivered in this or that way to a stage's own command, and what was paid.

A stage says in stage.toml what this needs:

    [delivery]             template: the CloudFormation template with the schedules
    [delivery.jobs.NAME]   paid: SQL that gives (slot, how often it was paid, when first);
                           without_claim: a module that runs the job without its claim
    [conditions]           read-only, writable: the database fails over, and is back
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from lab.engine.eventbridge import SCHEDULED_TIME, Schedule, schedules, watchers
from lab.engine.history import History
from lab.engine.postgres import Database, Server
from lab.engine.schedule import condition
from lab.engine.tasks import Task, run_tasks
from lab.errors import LabError
from lab.judge.stage import Stage
from lab.judge.verdict import Row, Verdict, judge
from lab.world.community import week_key

__all__ = ["Entry", "Plan", "Played", "play"]

WEEK = timedelta(days=7)
HAND = timedelta(hours=1)  # until somebody has read the alarm


@dataclass(frozen=True)
class Plan:
    """What happens to a slot.

    Args:
        job: whose schedule it is.
        slot: such as "2026-W22".
        twice: it is delivered twice at once.
        late: how long after its time it is delivered.
        again: it is delivered once more, so long after its time.
        fail: so many calls fail before one is accepted.
        never_placed: the call is accepted, and no container ever starts.
        read_only: the database is read-only when the container starts, so that the job fails.
        by_hand: an hour later somebody runs the command again, with the same time.
        following: the slot after it is delivered as well, on time.
        claim: the job claims its slot.
        planned: the command carries the time that was planned; else the job takes the clock's.
        template: another template than the stage's.
    """

    job: str = "leaderboard_close"
    slot: str = "2026-W22"
    twice: bool = False
    late: timedelta = timedelta()
    again: tuple[timedelta, ...] = ()
    fail: int = 0
    never_placed: bool = False
    read_only: bool = False
    by_hand: bool = False
    following: bool = False
    claim: bool = True
    planned: bool = True
    template: Path | None = None


@dataclass(frozen=True)
class Entry:
    """One thing that happened: the world's time, what it was, and the commands that ran then."""

    at: datetime
    what: str
    tasks: tuple[Task, ...] = ()


@dataclass
class Played:
    """What became of a plan.

    Args:
        schedule: the one of the template.
        watchers: what in the template would tell a person of a failure.
        firing: when it was due.
        entries: what happened, in order.
        paid: slot -> how often.
        verdict: on the slots: paid once, missed, duplicated, or early.
    """

    schedule: Schedule
    watchers: Mapping[str, str]
    firing: datetime
    entries: list[Entry] = field(default_factory=list)
    paid: dict[str, int] = field(default_factory=dict)
    verdict: Verdict | None = None


def play(stage: Stage, server: Server, plan: Plan) -> Played:
    """Deliver a slot as planned, on a database of its own.

    Raises:
        LabError: the stage has no such job, the template no such schedule, or the plan cannot be.
    """
    job = _job(stage, plan)
    template = plan.template or stage.folder / stage.data["delivery"]["template"]
    schedule = _schedule(template, plan.job)
    played = Played(schedule, watchers(template), schedule.firing(plan.slot))
    with stage.database(server) as database, database.connect() as conn:
        deliveries = _Deliveries(stage, database, conn, plan, job, played)
        deliveries.owed()
        deliveries.further()
        if plan.by_hand:
            deliveries.start(played.entries[-1].at + HAND, "by hand, the same command",
                             played.firing)
        _look(conn, job, played, plan)
    return played


@dataclass(frozen=True)
class _Deliveries:
    """The deliveries of a plan, which add what happens to `played`; `conn` is an operator's."""

    stage: Stage
    database: Database
    conn: psycopg.Connection
    plan: Plan
    job: Mapping[str, str]
    played: Played

    def owed(self) -> None:
        """What the scheduler owes: the calls for the slot, up to one that is accepted."""
        plan, played, schedule = self.plan, self.played, self.played.schedule
        calls = schedule.calls(played.firing, plan.fail)
        played.entries += [Entry(at, f"RunTask fails, attempt {number}")
                           for number, at in enumerate(calls.failed, 1)]
        if calls.accepted is None:
            self._needs("a call that is accepted, and here none is", f"--fail {plan.fail}",
                        "twice", "late", "read_only", "never_placed")
            kept = (f"a dead letter; {_told(played, 'dead letter')}" if schedule.dead_letters
                    else "there is no dead-letter queue, so nothing is left of it")
            played.entries.append(Entry(calls.failed[-1], f"given up: {calls.gave_up}\n{kept}"))
            return
        at = calls.accepted + plan.late
        if plan.never_placed:
            self._needs("a container that starts, and here none does", "--never-placed",
                        "twice", "read_only")
            played.entries.append(Entry(at, "RunTask accepted, and no container ever starts\n"
                                            "no error, no dead letter, nobody is told"))
            return
        what = _how(schedule, plan.late) + (f", {_long(plan.late)} late" if plan.late else "")
        what += ", delivered twice at once" if plan.twice else ""
        if plan.read_only:
            self._change("read-only")
        self.start(at, what, played.firing, copies=1 + plan.twice)
        if plan.read_only:
            self._change("writable")

    def further(self) -> None:
        """The deliveries after that, in order: of the same slot again, and of the one after it."""
        schedule, firing = self.played.schedule, self.played.firing
        rest = [(firing + later, f"once more, {_long(later)} late: {_how(schedule, later)}", firing)
                for later in self.plan.again]
        if self.plan.following:
            following = schedule.firing(week_key(firing + WEEK))
            rest.append((following, "RunTask accepted: the slot after it, on time", following))
        for delivery in sorted(rest):
            self.start(*delivery)

    def start(self, at: datetime, what: str, firing: datetime, copies: int = 1) -> None:
        """Start the command for a firing at the world's time `at`, and wait for its end."""
        command = _command(self.played.schedule, firing, self.job, self.plan)
        tasks = run_tasks(self.database, self.stage.folder, [command] * copies, at)
        tasks.sort(key=lambda task: (task.code, "already" in " ".join(task.said)))
        self.played.entries.append(Entry(at, what, tuple(tasks)))
        if any(task.code for task in tasks):
            self.played.entries.append(Entry(at, "not tried again: the call was accepted\n"
                                                 f"no dead letter; {_told(self.played, 'exit')}"))

    def _needs(self, what: str, against: str, *names: str) -> None:
        """Raises LabError: the plan has one of `names`, which would be without effect."""
        if said := [f"--{name.replace('_', '-')}" for name in names if getattr(self.plan, name)]:
            raise LabError(f"{said[0]} needs {what}.", f"Leave out {said[0]}, or {against}.")

    def _change(self, name: str) -> None:
        for statement in condition(name, self.stage.data.get("conditions", {})):
            self.conn.execute(statement)


def _told(played: Played, of: str) -> str:
    rule = played.watchers.get(of)
    return f"{rule} tells a person" if rule else "nobody is told"


def _how(schedule: Schedule, late: timedelta) -> str:
    """Who can start a task so late: past the event's age the scheduler does not try any more."""
    return "sent again by hand" if late > schedule.age else "RunTask accepted"


def _long(time: timedelta) -> str:
    units = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
    unit = next(unit for unit, size in units.items() if not time % size)
    return f"{time // units[unit]} {unit}{'s' * (time != units[unit])}"


def _job(stage: Stage, plan: Plan) -> Mapping[str, str]:
    jobs = stage.data.get("delivery", {}).get("jobs", {})
    if plan.job not in jobs:
        raise LabError(f"Stage {stage.number} has no job {plan.job!r} that a scheduler starts.",
                       f"Those it has: {', '.join(jobs) or 'none; deliver is for stage 5'}.")
    if not plan.claim and "without_claim" not in jobs[plan.job]:
        raise LabError(f"Stage {stage.number} has no {plan.job} without its claim.",
                       "Try it with " + ", ".join(n for n in jobs if "without_claim" in jobs[n])
                       + ".")
    return jobs[plan.job]


def _schedule(template: Path, job: str) -> Schedule:
    found = schedules(template)
    for schedule in found:
        if job in schedule.command:
            return schedule
    raise LabError(f"No schedule in {template.name} starts {job}.",
                   f"Its schedules are: {', '.join(s.name for s in found) or 'none'}.")


def _command(schedule: Schedule, firing: datetime, job: Mapping[str, str],
             plan: Plan) -> list[str]:
    command = schedule.command_at(firing)
    if not plan.claim:
        command[2] = job["without_claim"]
    if not plan.planned and SCHEDULED_TIME in schedule.command:
        at = schedule.command.index(SCHEDULED_TIME)
        del command[at - 1:at + 1]
    return command


def _look(conn: psycopg.Connection, job: Mapping[str, str], played: Played, plan: Plan) -> None:
    """Count what was paid, slot by slot, and judge it."""
    due = {plan.slot} | ({week_key(played.firing + WEEK)} if plan.following else set())
    seen = {slot: (times, first) for slot, times, first in conn.execute(job["paid"])}
    rows = []
    for slot in sorted(due | seen.keys()):
        times, first = seen.get(slot, (0, None))
        early = first is not None and first < played.schedule.firing(slot)
        rows.append(Row(slot, times, int(slot in due), "early" if early else None))
        played.paid[slot] = times
    played.verdict = judge({"payments": rows}, History(complete=True))
