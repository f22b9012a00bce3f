"""Schedules: a planned order of moves, as text that fits on a line, prints back and can be run.

    A            one statement of replica A (its first move starts its run)
    A*3          three statements
    A..          to the end of its run, or until it waits
    A..commit    until COMMIT is its next statement; any word of a label does: A..insert:worker_runs
    A.start      begin its run: it is held at its first statement
    A.kill       SIGKILL;  A.restart  a new process;  A.again  another run of the same process
    A.cut-before break the connection before the next statement reaches the server
    A.cut-after  break it after the statement ran, before the answer arrives
    A.freeze     SIGSTOP;  A.thaw  SIGCONT
    @18:01       set the clock, that day;  @2026-05-30T18:00  another day (Mexico City time)
    +no-section  change the world as an operator would (lab/world/conditions.toml)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from lab.engine.history import History, label
from lab.engine.stepper import Impossible, Stepper
from lab.errors import LabError
from lab.world.clock import MX
from lab.world.conditions import conditions

__all__ = ["Move", "Schedule", "run"]

NOTHING: Mapping[str, list[str]] = {}
ACTIONS = ("start", "kill", "restart", "again", "cut-before", "cut-after", "freeze", "thaw")
_MOVE = re.compile(r"(?P<letter>[A-Z])(?:\*(?P<count>[1-9]\d*)|(?P<run>\.\.)(?P<point>[\w:.\-]*)"
                   r"|\.(?P<action>[a-z][a-z-]*))?$")


@dataclass(frozen=True)
class Move:
    """One move of a schedule.

    Args:
        kind: step, run (to the end or to a point), one of ACTIONS, clock or condition.
        letter: the replica; "" for clock and condition.
        argument: the count, the point, the time or the condition's name.
    """

    kind: str
    letter: str = ""
    argument: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "step":
                return self.letter + (f"*{self.argument}" if self.argument not in ("", "1") else "")
            case "run":
                return f"{self.letter}..{self.argument}"
            case "clock":
                return f"@{self.argument}"
            case "condition":
                return f"+{self.argument}"
        return f"{self.letter}.{self.kind}"


class Schedule(tuple[Move, ...]):
    """Moves in their order; `str` gives the text back."""

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read a schedule.

        Raises:
            LabError: a word is no move; the message names it.
        """
        return cls(_move(word) for word in text.split())

    @classmethod
    def of(cls, letters: Iterable[str]) -> Schedule:
        """The schedule of single steps in this order, with repeats drawn together (A*3)."""
        moves: list[Move] = []
        for letter in letters:
            if moves and moves[-1].letter == letter:
                moves[-1] = Move("step", letter, str(int(moves[-1].argument) + 1))
            else:
                moves.append(Move("step", letter, "1"))
        return cls(moves)

    def __str__(self) -> str:
        return " ".join(map(str, self))

    @property
    def letters(self) -> list[str]:
        """The replicas it names, in order."""
        return sorted({move.letter for move in self if move.letter})


def _move(word: str) -> Move:
    if word[0] == "@":
        try:
            if not re.fullmatch(r"(\d{4}-\d\d-\d\dT)?\d\d:\d\d(:\d\d)?", word[1:]):
                raise ValueError
            _time(datetime.min, word[1:])
        except ValueError:
            raise LabError(f"“{word}” is not a time.",
                           "Write @18:01 or @2026-05-30T18:00.") from None
        return Move("clock", "", word[1:])
    if word[0] == "+" and word[1:]:
        return Move("condition", "", word[1:])
    found = _MOVE.match(word)
    if not found or (found["action"] and found["action"] not in ACTIONS):
        raise LabError(f"“{word}” is not a move of a schedule.",
                       "Write A, A*3, A.., A..commit, A." + ", A.".join(ACTIONS)
                       + ", @18:01 or +condition.")
    if found["run"]:
        return Move("run", found["letter"], found["point"])
    return Move(found["action"] or "step", found["letter"], found["count"] or "1"
                if not found["action"] else "")


def condition(name: str, own: Mapping[str, list[str]] = NOTHING) -> list[str]:
    """The SQL of a named change to the world; `own` are the stage's.

    Raises:
        LabError: there is no such name; the remedy lists those there are.
    """
    known = {**conditions(), **own}
    if name not in known:
        raise LabError(f"There is no condition “{name}”.", "Known: " + ", ".join(known) + ".")
    return known[name]


def run(stepper: Stepper, schedule: Schedule, finish: bool = True) -> History:
    """Run a schedule from the beginning.

    Args:
        stepper: the replicas; it is reset first.
        schedule: the moves.
        finish: let replicas that were started and are not done run to their end, in name order.

    Returns:
        The history; complete when every run that was begun has come to an end.

    Raises:
        Impossible: a move cannot be made; the message says what could be.
    """
    stepper.reset()
    for number, move in enumerate(schedule):
        stepper.record.move = number
        make(stepper, move)
    if finish:
        while letters := stepper.possible():
            stepper.record.move += 1
            stepper.step(letters[0])
    stepper.history.complete = stepper.over
    return stepper.history


def make(stepper: Stepper, move: Move) -> None:
    """Make one move now."""
    letter = move.letter
    match move.kind:
        case "step":
            for _ in range(int(move.argument or 1)):
                _begin(stepper, letter)
                stepper.step(letter)
        case "run":
            _begin(stepper, letter)
            _run_to(stepper, letter, move.argument)
        case "clock":
            stepper.set_clock(_time(stepper.now, move.argument))
        case "condition":
            stepper.condition(move.argument, condition(move.argument, stepper.named))
        case "cut-before" | "cut-after":
            _begin(stepper, letter)
            stepper.cut(letter, before=move.kind == "cut-before")
        case _:
            getattr(stepper, move.kind)(letter)


def _begin(stepper: Stepper, letter: str) -> None:
    replica = stepper.replicas.get(letter)
    if replica and not replica.started:
        stepper.start(letter)


def _run_to(stepper: Stepper, letter: str, point: str) -> None:
    words = [word for word in re.split(r"[:]", point.lower()) if word]
    while (step := stepper.held_step(letter)) is not None:
        name = label(step.text).lower()
        if words and all(word in name for word in words):
            return
        stepper.step(letter)
    if words and not stepper.replicas[letter].waits_for:
        end = next((e.outcome for e in reversed(stepper.history.events)
                    if e.replica == letter and e.kind == "end"), stepper.state(letter))
        raise Impossible(f"{letter} never came to “{point}”; its run ended: {end}.",
                         "Its statements were: " + ", ".join(
                             e.label for e in stepper.history if e.replica == letter
                             and e.kind not in ("tick", "end")) + ".")


def _time(now: datetime, text: str) -> datetime:
    if "T" in text:
        return datetime.fromisoformat(text).replace(tzinfo=MX)
    hours, minutes, *seconds = map(int, text.split(":"))
    return now.replace(hour=hours, minute=minutes, second=seconds[0] if seconds else 0,
                       microsecond=0)
