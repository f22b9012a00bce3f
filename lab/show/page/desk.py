"""The run that a room plays: a stage, the moves made so far, and what can be done with them.

All of it belongs to one thread. What was played is the list of moves, as text; undo is a replay of
a shorter one, and a desk that was closed opens again where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from lab.engine import schedule as schedules
from lab.engine.explore import Result
from lab.engine.history import History
from lab.engine.postgres import server
from lab.engine.schedule import Move, Schedule
from lab.engine.stepper import Impossible, Stepper
from lab.errors import LabError
from lab.judge.scenarios import READ_COMMITTED, Theatre, scenarios, theatre
from lab.judge.stage import stage
from lab.show.page.cast import at_first, company
from lab.show.page.rows import Tables
from lab.show.page.tried import Tried, order_of

__all__ = ["ORDERS", "Desk"]

RAN_WRONG = 1  # the code of errors that come from a run, not from what was asked for
COUNTING = 5.0  # seconds that a room waits, unasked, for the number of all schedules
KEPT = ("stage", "moves", "letters", "everyone", "roles", "isolation")
ORDERS = ("move", "undo", "restart", "play", "scenario", "failing", "count", "choose", "cast")


class Desk:
    """A run under way.

    Args:
        number: of the stage to begin with.
        on_progress: is told, while something takes long, how many runs were made.
    """

    def __init__(self, number: str | int = 0,
                 on_progress: Callable[[int], None] = lambda runs: None) -> None:
        self.on_progress = on_progress
        self.theatre: Theatre | None = None
        self.stepper: Stepper | None = None
        self.tables: Tables | None = None
        self.names: list[str] = []  # of all databases it ever had
        self.tried: dict[tuple, Tried] = {}  # by stage and cast, as long as the room is together
        self._stack = ExitStack()
        self._take(number)

    def _take(self, number: str | int) -> None:
        self.stage = stage(number)
        self.letters = at_first(self.stage)
        self.everyone, self.isolation = "", READ_COMMITTED
        self.roles: dict[str, str] = {}
        self.moves: list[Move] = []
        self.failings: list[tuple] | None = None  # what to play, its outcome, the parts
        self.shown: tuple | None = None  # the parts of the failing one that was played last
        self.problem: LabError | None = None
        self.note: dict[str, Any] | None = None
        self.seen = 0  # events that everybody has heard of

    # Processes and database

    def open(self) -> None:
        """Start what the run needs, and bring it to where it was."""
        if self.theatre is None:
            try:
                used = self._stack.enter_context(server())
                self.theatre = self._stack.enter_context(theatre(self.stage, used))
                self.theatre.spares = 1  # so that a class does not wait when one was killed
                self.names.append(self.theatre.database.name)
                self._replay()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Kill the processes and drop the database; the moves are kept."""
        self.theatre = self.stepper = self.tables = None
        stack, self._stack = self._stack, ExitStack()
        stack.close()

    def _replay(self) -> None:
        self.stepper = self.theatre.stepper(self.letters, self.everyone, self.roles, self.isolation)
        self.stepper.reset()
        if self.tables is None:
            own = self.stage.data.get("world") == "own"
            self.tables = Tables(self.stepper.monitor, every=own)
        for number, move in enumerate(self.moves):
            self.stepper.record.move = number
            try:
                schedules.make(self.stepper, move)
            except Impossible:  # it was possible before: the order in which waiters wake differs
                self.moves = self.moves[:number]
                self.problem = LabError(
                    f"This time Postgres woke another replica first, so the run ends before "
                    f"{move}.", "Which of several waiters is first is its choice. Go on from here.")
                return

    def do(self, order: str, **what: Any) -> None:
        """Carry out an order; what went wrong is in `problem` then, and the run as before it."""
        if order not in ORDERS:
            raise LabError(f"There is no order “{order}”.", f"Orders: {', '.join(ORDERS)}.")
        self.problem = self.note = None
        before = {name: getattr(self, name) for name in KEPT} | {"moves": list(self.moves)}
        try:
            self.open()
            self.seen = len(self.stepper.history) if order == "move" else 0
            getattr(self, order)(**what)
        except LabError as problem:
            self.problem = problem
            if isinstance(problem, Impossible) and order == "move" and (
                    len(self.stepper.history) == self.seen):  # nothing happened
                return
            if self.stage != before["stage"] or problem.code == RAN_WRONG:
                self.close()  # the processes may be in any state
            vars(self).update(before)
            self.open()
            self._replay()
        self._count_this_run()

    def move(self, text: str) -> None:
        """Make these moves now."""
        for move in Schedule.parse(text):
            self.stepper.record.move = len(self.moves)
            schedules.make(self.stepper, move)
            self.moves.append(move)

    def undo(self) -> None:
        """Take the last move back."""
        self.moves = self.moves[:-1]
        self._replay()

    def restart(self) -> None:
        """Back to the beginning."""
        self.moves = []
        self._replay()

    def play(self, text: str) -> None:
        """Play a schedule from the beginning."""
        planned = Schedule.parse(text)
        self.letters = company([*self.letters, *planned.letters])
        self.restart()
        for move in planned:
            self.move(str(move))

    def scenario(self, name: str) -> None:
        """Play one of the stage's scenarios, with its parts, and let everybody finish."""
        found = scenarios(self.stage).get(name)
        if found is None:
            raise LabError(f"Stage {self.stage.number} has no scenario {name}.",
                           f"It has: {', '.join(scenarios(self.stage))}.")
        self.cast(found.letters, found.everyone, dict(found.roles or {}), found.isolation)
        self.play(str(found.schedule))
        while possible := self.stepper.possible():
            self.move(f"{possible[0]}..")

    def failing(self) -> None:
        """Play a schedule that breaks the stage; asked again, the next one."""
        if self.failings is None or self._parts() != self.shown:
            self.failings = self._search()
        if not self.failings:
            self._replay()
            self.note = {"kind": "none-fails"}
            return
        name, code, parts = self.failings[0]
        self.failings = self.failings[1:] + self.failings[:1]
        if parts is None:
            self.scenario(name)
        else:
            self.cast(Schedule.parse(name).letters, *parts)
            self.play(name)
        self.shown = self._parts()
        self.note = {"kind": "failing", "schedule": name, "code": code}

    def _parts(self) -> tuple[str, dict[str, str], str]:
        return self.everyone, self.roles, self.isolation

    def _search(self) -> list[tuple]:
        """Failing schedules of these parts; of the stage's own: of two replicas, or scenarios."""
        own, found = self._parts(), []
        if own != ("", {}, READ_COMMITTED):
            result = self._explored(self.letters, *own, seconds=COUNTING)
            return [(str(f.schedule), f.code, own) for f in result.findings if f.breaks]
        for entry in self.stage.data.get("explore", ()):
            if (entry["replicas"] == 2 and entry.get("breaks", "none") != "none"
                    and not entry.keys() & {"everyone", "roles"}):
                result = self._explored("AB", standing=entry.get("standing", ()))
                standing = [f"+{name}" for name in entry.get("standing", ())]
                found += [(" ".join([*standing, str(f.schedule)]), f.code, own)
                          for f in result.findings if f.breaks]
        promised = self.stage.data.get("expect", {})
        return found or [(name, promised[name], None) for name in scenarios(self.stage)
                         if promised[name] not in ("1", "E 1")]

    def count(self, seconds: float | None = None) -> None:
        """Count every schedule of these replicas, for so long or however long it takes."""
        result = self._explored(self.letters, self.everyone, self.roles, self.isolation,
                                seconds=seconds)
        self.tally().counted(result)
        self._replay()

    def _explored(self, *cast: Any, **options: Any) -> Result:
        return self.theatre.explore(
            *cast, on_progress=lambda runs, left, breaking: self.on_progress(runs), **options)

    def choose(self, number: str | int) -> None:
        """Another stage, from its beginning."""
        stage(number)  # raises where there is none
        self.close()
        self._take(number)
        self.open()

    def cast(self, letters: Iterable[str], everyone: str = "",
             roles: Mapping[str, str] | None = None, isolation: str = READ_COMMITTED) -> None:
        """Who takes part, and what each of them runs; begins from the beginning."""
        letters = company(letters)
        self.stage.cast(letters, roles, everyone)  # raises where there is no such program
        self.letters, self.everyone, self.isolation = letters, everyone, isolation
        self.roles = {k: v for k, v in (roles or {}).items() if k in letters}
        self.restart()

    # The count of what the room has tried

    def tally(self) -> Tried:
        """The schedules tried by the replicas as they are cast now."""
        cast = (self.stage.name, self.letters, self.everyone, *sorted(self.roles.items()),
                self.isolation)
        return self.tried.setdefault(cast, Tried())

    def _count_this_run(self) -> None:
        order = order_of(self.stepper, self.moves)
        if order is None:
            return
        tally = self.tally()
        ended = History(self.stepper.history.events, complete=True)
        tally.add(order, self.theatre.judge(ended).ok)
        if tally.total is None and len(self.letters) <= 2 and "explore" in self.stage.data:
            self.count(seconds=COUNTING)
