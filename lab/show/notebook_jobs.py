"""What a notebook shows of commands: several at once, and a slot that a scheduler delivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.engine.postgres import Server
from lab.engine.stepper import INCIDENT
from lab.engine.tasks import Task, run_tasks
from lab.judge.deliveries import play
from lab.judge.stage import Stage
from lab.show import phone, plots, scheduler
from lab.show.notebook_text import Text
from lab.show.picture import Picture

__all__ = ["Delivered", "Deliveries", "Race", "race"]


class Race:
    """One command, several times at once. A notebook shows how each ended and what it said.

    Args:
        tasks: the commands, those that worked first.
        paid: name -> how often, for the members on the podium.
    """

    def __init__(self, tasks: Sequence[Task], paid: dict[str, int]) -> None:
        self.tasks, self.paid = tasks, paid

    def __repr__(self) -> str:
        return "\n".join(f"exit {task.code}  {line}" for task in self.tasks for line in task.said)

    def duplicates(self) -> Picture:
        """How often each member of the podium was paid."""
        return plots.duplicates(self.paid)


class Delivered:
    """A slot that a scheduler delivered. A notebook shows what happened, in order.

    `paid` is slot -> how often, `exits` are the exit codes, `code` is the outcome.
    """

    def __init__(self, stage: Stage, server: Server, fields: Mapping[str, Any]) -> None:
        self._played = play(stage, server, scheduler.planned(fields))
        self.paid, self.code = self._played.paid, self._played.verdict.code
        self.exits = [task.code for entry in self._played.entries for task in entry.tasks]

    def __repr__(self) -> str:
        return Text.of(scheduler.shown(self._played))


class Deliveries:
    """Ways to deliver a slot. `paid` is way -> how often, with the job's claim and without it."""

    def __init__(self, stage: Stage, server: Server,
                 kinds: Mapping[str, Mapping[str, Any]]) -> None:
        named = [{"name": name.replace("_", " "), **kind} for name, kind in kinds.items()]
        self.paid = scheduler.matrix(stage, server, named)

    def picture(self) -> Picture:
        """Two bars a way."""
        return scheduler.plot(self.paid)


def race(stage: Stage, server: Server, replicas: int, command: Sequence[str]) -> Race:
    """So many processes at once run a command of the stage, on a database of its own."""
    with stage.database(server) as database, database.connect() as conn:
        tasks = run_tasks(database, stage.folder, [command] * replicas, INCIDENT)
        paid = phone.paid(conn)
    return Race(sorted(tasks, key=lambda task: "already" in " ".join(task.said)), paid)
