"""What a notebook calls: a stage on a bench, real runs of it, and what came out, ready to be shown.

    stage = bench(0)
    run = stage.live()      three processes, as in production
    run.timeline()

The server, the databases and the processes go when the notebook's kernel ends.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

from lab.engine.explore import Result
from lab.engine.free import FreeRun
from lab.engine.history import History
from lab.engine.postgres import Server, server
from lab.engine.schedule import Schedule
from lab.judge.scenarios import READ_COMMITTED, Scenario, Theatre, scenarios, theatre
from lab.judge.stage import Stage
from lab.judge.stage import stage as find
from lab.judge.verdict import Verdict, judge, read
from lab.show import counting, ladder, phone, plots, rush, sweep, terminal, timeline
from lab.show.notebook_jobs import Delivered, Deliveries, Race, race
from lab.show.notebook_text import Text, console
from lab.show.picture import Picture
from lab.show.words import headline

__all__ = ["Bench", "Crashes", "Crowd", "Live", "Run", "Text", "bench", "climb", "shares"]

_kernel = ExitStack()
atexit.register(_kernel.close)


@cache
def _server() -> Server:
    return _kernel.enter_context(server())


class Run:
    """A run and what came of it. A notebook shows its transcript.

    Args:
        title: for the picture.
        history: what happened.
        verdict: what was judged of it.
        code: the outcome, as in the table of scenarios: "1", "D3", "M", "P", "E " with an error.
    """

    def __init__(self, title: str, history: History, verdict: Verdict, code: str) -> None:
        self.title, self.history, self.verdict, self.code = title, history, verdict, code

    def __repr__(self) -> str:
        sign, line = headline(self.verdict)
        return f"{Text.of(terminal.transcript(self.history))}\n{sign} {line}"

    def times(self, effect: str) -> list[int]:
        """How often an effect reached each of those it is for: coins, notifications or thread."""
        return [found.times for found in self.verdict.effects if found.name == effect]

    def errors(self) -> list[str]:
        """The code of each error, in order."""
        return [event.outcome.split()[1] for event in self.history if event.failed]

    def timeline(self, since: str | None = None) -> Picture:
        """The picture, a lane a replica; its clock counts from `since` (ISO), if that is given."""
        return timeline.timeline(self.history, self.title, self.verdict, since)


class Live(Run):
    """A run of the free engine, and what a member sees afterwards.

    Args:
        phone: the member who came third, 17 minutes after the last payment was due.
        paid: name -> how often, for the members on the podium.
    """

    phone: Text
    paid: dict[str, int]

    def duplicates(self) -> Picture:
        """How often each member of the podium was paid."""
        return plots.duplicates(self.paid)


class Crashes:
    """A crash sweep. `bad` is placement -> the outcomes that should not be, each once, in order."""

    def __init__(self, scene: Theatre) -> None:
        self._scene, self._done = scene, sweep.swept(scene)
        self.bad = {one.entry["name"]: sorted(one.bad) for one in self._done if one.result}

    def picture(self) -> Picture:
        """Placements × crash points."""
        return sweep.drawn(self._scene, self._done)


class Crowd:
    """A rush of buyers. `seen` is placement -> `lab.engine.rush.Rush`."""

    def __init__(self, stage: Stage, part: Mapping[str, Any]) -> None:
        self._part, self.seen = part, rush.rushes(_server(), stage, part)

    def picture(self) -> Picture:
        """What the buyers wait for, over time."""
        return rush.plot(self.seen, self._part)


class Bench:
    """A stage, ready to run. Use `bench` to get one."""

    def __init__(self, stage: Stage, scene: Theatre) -> None:
        self.stage, self.scene = stage, scene

    def live(self) -> Live:
        """Three processes run the stage's worker.py, a minute of the world's clock apart."""
        with self.stage.database(_server()) as database, database.connect() as conn:
            with FreeRun(database, self.stage.folder) as free:
                history = free.run()
                later = free.now
            verdict = judge(read(conn, self.stage.effects), history, self.stage.effects)
            run = Live(f"{self.stage.name}: {self.stage.title}", history, verdict, verdict.code)
            run.phone = Text.of(phone.phone_of(conn, phone.third(conn), later))
            run.paid = phone.paid(conn)
        return run

    def play(self, name: str) -> Run:
        """Run a scenario of the table, such as "A2"."""
        scenario = scenarios(self.stage)[name]
        return self._run(scenario, f"{self.stage.name}, {name}: {scenario.title}")

    def replay(self, schedule: str, **fields) -> Run:
        """Run a schedule, such as "A..commit B.. A.."; `fields` are those of a Scenario."""
        scenario = Scenario("own", schedule, Schedule.parse(schedule), **fields)
        return self._run(scenario, f"{self.stage.name}: {schedule}")

    def count(self, replicas: int = 2, standing: Sequence[str] = (),
              isolation: str = READ_COMMITTED) -> Result:
        """Run every interleaving of so many replicas, in a world under these conditions."""
        return self.scene.explore(counting.LETTERS[:replicas], standing=standing,
                                  isolation=isolation)

    def sweep(self) -> Crashes:
        """Every placement of the stage, every crash point."""
        return Crashes(self.scene)

    def rush(self, *placements: str, buyers: int, pool: int, push: float) -> Crowd:
        """So many buyers at once on a pool of connections, with a push of so many real seconds."""
        return Crowd(self.stage, {"placements": placements, "buyers": buyers, "pool": pool,
                                  "push": push})

    def race(self, replicas: int, *command: str) -> Race:
        """So many processes at once run a command, such as "python", "-m", "jobs", "NAME"."""
        return race(self.stage, _server(), replicas, command)

    def deliver(self, **fields) -> Delivered:
        """Deliver a slot; `fields` are those of `lab.judge.deliveries.Plan`, times as "3d"."""
        return Delivered(self.stage, _server(), fields)

    def deliveries(self, **kinds) -> Deliveries:
        """Deliver a slot in each of these ways, with the job's claim and without it."""
        return Deliveries(self.stage, _server(), kinds)

    def _run(self, scenario: Scenario, title: str) -> Run:
        outcome = self.scene.play(scenario)
        return Run(title, outcome.history, outcome.verdict, outcome.code)


def bench(number: int) -> Bench:
    """A stage by its number, on a database of its own, with warm processes."""
    found = find(number)
    return Bench(found, _kernel.enter_context(theatre(found, _server())))


def climb() -> ladder.Climb:
    """Every stage of the ladder in every scenario, and its interleavings counted."""
    return ladder.climb(console(), _server())


def shares(*counted: tuple[Bench, Result]) -> Picture:
    """A bar a stage: how many of its interleavings break it."""
    return plots.shares({b.stage.number: (r.breaking, r.total) for b, r in counted},
                        {b.stage.number: b.stage.name[3:] for b, _ in counted})
