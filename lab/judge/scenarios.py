"""The scenarios as data, and what a stage makes of each: run, judged, held against its promise."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lab.engine import schedule as schedules
from lab.engine.explore import Result, explore
from lab.engine.history import History
from lab.engine.postgres import Database, Server
from lab.engine.redis import RedisPair, missing
from lab.engine.replica import IMPORTS
from lab.engine.schedule import Schedule
from lab.engine.stepper import Stepper
from lab.errors import LabError
from lab.judge import answers
from lab.judge.pushes import Pushes
from lab.judge.stage import Stage
from lab.judge.verdict import Verdict, judge, read

__all__ = ["Outcome", "Scenario", "Theatre", "scenarios", "theatre"]

READ_COMMITTED = "read committed"


@dataclass(frozen=True)
class Scenario:
    """One schedule with its faults, under a name. The fields are those of scenarios.toml."""

    name: str
    title: str
    schedule: Schedule
    everyone: str = ""
    roles: Mapping[str, str] | None = None
    isolation: str = READ_COMMITTED
    error: str = ""
    es: str = ""

    @property
    def letters(self) -> list[str]:
        """The replicas that take part; a scenario in which nobody moves still has one."""
        return self.schedule.letters or ["A"]


@dataclass(frozen=True)
class Outcome:
    """What a stage made of a scenario or a schedule.

    Args:
        code: of the scenario table, such as "D3".
        expected: what stage.toml promises; "" when it promises nothing.
    """

    code: str
    expected: str
    verdict: Verdict
    history: History

    @property
    def as_promised(self) -> bool:
        """Whether it came out as stage.toml says."""
        return self.code == self.expected


@cache
def _shared() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("scenarios.toml").read_text(encoding="utf-8"))


def scenarios(stage: Stage) -> dict[str, Scenario]:
    """The scenarios that apply to a stage, by name: those it has an expectation for."""
    found = {}
    for name, expected in stage.data.get("expect", {}).items():
        fields = {**_shared().get(name, {}), **stage.data.get("scenarios", {}).get(name, {})}
        if not fields:
            raise LabError(f"{stage.name}/stage.toml expects {name}, which is no scenario.",
                           f"Add it there as [scenarios.{name}], or to lab/judge/scenarios.toml.")
        if expected != "-":
            moves = Schedule.parse(fields["schedule"])
            found[name] = Scenario(name, **{**fields, "schedule": moves})
    return found


class Theatre:
    """A stage with its database and replicas, on which scenarios, schedules and explorations run.

    The processes stay warm from one to the next. Use `theatre` to get one. `spares` processes are
    kept ready beside them; `pushes` is there for a stage with a push server.
    """

    spares = 0

    def __init__(self, stage: Stage, database: Database, stack: ExitStack) -> None:
        self.stage, self.database = stage, database
        self.pushes: Pushes | None = None
        self.redis: RedisPair | None = None
        self._stack = stack
        self._steppers: dict[str, Stepper] = {}
        if "push" in stage.data:
            self.pushes = Pushes(database, **stage.data["push"])
            stack.callback(self.pushes.close)
        if stage.data.get("redis") and not missing():  # names of the programs that need it
            self.redis = RedisPair()
            stack.callback(self.redis.close)

    def stepper(self, letters: Sequence[str], everyone: str = "",
                roles: Mapping[str, str] | None = None, isolation: str = READ_COMMITTED,
                standing: Sequence[str] = ()) -> Stepper:
        """Replicas with these parts, in a world under these standing conditions.

        All replicas of one isolation level are the same processes from one call to the next.
        """
        cast = self.stage.cast(letters, roles, everyone)
        if lack := self.lack([(roles or {}).get(letter, everyone) for letter in letters]):
            raise lack
        if isolation not in self._steppers:
            env = {}
            if isolation != READ_COMMITTED:  # libpq's way to set a default for a process's sessions
                level = isolation.replace(" ", r"\ ")
                env["PGOPTIONS"] = f"-c default_transaction_isolation={level}"
            servers = {"NTFY_URL": self.pushes.server.url} if self.pushes else {}
            if self.redis:
                servers["REDIS_URL"] = self.redis.url
            stepper = self._stack.enter_context(
                Stepper(self.database, self.stage.folder, {}, env=env, servers=servers,
                        imports=self.stage.data.get("imports", IMPORTS)))
            stepper.named = self.stage.data.get("conditions", {})
            stepper.gate.shown = self.stage.data.get("shown", ())
            if self.pushes:
                stepper.on_reset = self.pushes.clear
            if self.redis:
                stepper.on_reset, stepper.on_clock = self.redis.reset, self.redis.age
                stepper.outside = {"failover": self.redis.failover, "replica-lags": self.redis.lag}
            self._steppers[isolation] = stepper
        stepper = self._steppers[isolation]
        stepper.stable.spares = self.spares
        stepper.cast(cast, {name: schedules.condition(name, stepper.named) for name in standing})
        return stepper

    def lack(self, programs: Sequence[str]) -> LabError | None:
        """What keeps these programs of the stage from being run here, with the remedy, or None."""
        needed = set(self.stage.data.get("redis", ())) & set(programs)
        return missing() if needed and self.redis is None else None

    def renew(self) -> None:
        """New processes for the next runs: the code in the stage's folder has changed."""
        for stepper in self._steppers.values():
            stepper.renew()

    def play(self, scenario: Scenario) -> Outcome:
        """Run a scenario and judge it."""
        stepper = self.stepper(scenario.letters, scenario.everyone, scenario.roles,
                               scenario.isolation)
        history = schedules.run(stepper, scenario.schedule)
        verdict = self.judge(history)
        code = verdict.code.removeprefix("E ") if scenario.error == "injected" else verdict.code
        expected = self.stage.data.get("expect", {}).get(scenario.name, "")
        return Outcome(code, expected, verdict, history)

    def judge(self, history: History) -> Verdict:
        """The verdict on the run that has just ended on this database."""
        monitor = next(iter(self._steppers.values())).monitor
        if self.pushes:
            self.pushes.show(monitor)
        if self.stage.data.get("answers"):
            answers.show(monitor, history)
        return judge(read(monitor, self.stage.effects), history, self.stage.effects)

    def explore(self, letters: Sequence[str], everyone: str = "",
                roles: Mapping[str, str] | None = None, isolation: str = READ_COMMITTED,
                standing: Sequence[str] = (), **options: Any) -> Result:
        """Every schedule of these replicas; `options` are those of `lab.engine.explore.explore`."""
        stepper = self.stepper(letters, everyone, roles, isolation, standing)

        def verdict_of(history: History) -> tuple[str, bool]:
            verdict = self.judge(history)
            return verdict.code, not verdict.ok

        return explore(stepper, verdict_of, isolation=isolation, **options)


@contextmanager
def theatre(stage: Stage, server: Server) -> Iterator[Theatre]:
    """A stage on a server: its own database, dropped at the end, and its processes, killed then."""
    with stage.database(server) as database, ExitStack() as stack:
        yield Theatre(stage, database, stack)
