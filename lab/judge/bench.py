"""Where a student's answer is tried: a copy of the stage, its database, its processes.

Nothing that a student's code does outlasts it: the folder and the database are thrown away, a
replica that does not come to rest is killed, and so is whatever it started.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from lab.engine import schedule as schedules
from lab.engine import scratch
from lab.engine.history import History
from lab.engine.postgres import Server
from lab.engine.schedule import Schedule
from lab.engine.stepper import Stepper
from lab.errors import LabError
from lab.judge.exercise import Exercise
from lab.judge.scenarios import READ_COMMITTED, Theatre, theatre
from lab.judge.verdict import Verdict

__all__ = ["PATIENCE", "Bench", "bench", "crowd"]

NOT_PART = shutil.ignore_patterns("exercise", "__pycache__", "test_stage.py", "*.md", "infra")
HANG = 5.0  # seconds in which a replica must come to its next statement
PATIENCE = {"explore": 25.0, "kills": 15.0}  # seconds for a case of a kind that runs many schedules
SHORT = 8.0  # seconds for a case of one schedule, which takes a hundredth of it
MARK = "LAB_CHECK"  # in the environment of every process of a check, and of all that they start


def crowd() -> float:
    """How much longer things may take because the machine is busy: 1 when it is not, 4 at most."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 1.0
    return min(max(1.0, load / (os.cpu_count() or 1)), 4.0)


@contextmanager
def bench(exercise: Exercise, server: Server) -> Iterator[Bench]:
    """A bench for an exercise; nothing of it is left when the block ends."""
    with scratch.folder() as temporary:
        made = Bench(exercise, server, Path(temporary))
        try:
            yield made
        finally:
            made.close()


class Bench:
    """One answer after another can be tried on it. Use `bench` to get one."""

    def __init__(self, exercise: Exercise, server: Server, temporary: Path) -> None:
        self.exercise, self.server = exercise, server
        self.folder = temporary / exercise.stage.name
        shutil.copytree(exercise.stage.folder, self.folder, ignore=NOT_PART)
        data = {**exercise.stage.data, **exercise.data.get("stage", {})}
        self.stage = replace(exercise.stage, folder=self.folder, data=data)
        self.mark = secrets.token_hex(8)
        self._stack = ExitStack()
        self._scene: Theatre | None = None

    def close(self) -> None:
        """Drop the database, end the processes and whatever they started. It can be used again."""
        self._stack.close()
        self._scene = None
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.pid != os.getpid() and process.environ().get(MARK) == self.mark:
                    process.kill()

    def put(self, answer: Path) -> str:
        """Take an answer; returns its text. Code is run by new processes from here on.

        Raises:
            LabError: it cannot be read.
        """
        try:
            text = answer.read_text(encoding="utf-8")
        except OSError as error:
            raise LabError(f"{answer} cannot be read: {error.strerror}.",
                           "Begin with make exercise-N, which puts it there.") from error
        except UnicodeDecodeError as error:
            raise LabError(f"{answer} is not UTF-8 text.", "Save it as UTF-8.") from error
        if self.exercise.data["kind"] == "repair":
            shutil.copyfile(answer, self.folder / self.exercise.file)
            for compiled in [*self.folder.rglob("__pycache__")]:
                shutil.rmtree(compiled, ignore_errors=True)
            if self._scene:
                self._scene.renew()
        return text

    @property
    def scene(self) -> Theatre:
        """The theatre, opened when it is first wanted."""
        if self._scene is None:
            self._scene = self._stack.enter_context(theatre(self.stage, self.server))
        return self._scene

    @contextmanager
    def stepper(self, case: Mapping[str, Any], letters: Sequence[str]) -> Iterator[Stepper]:
        """The replicas of a case, held to its time.

        Processes that start meanwhile carry a mark, also those that a student's code starts.
        """
        os.environ[MARK] = self.mark
        try:
            stepper = self.scene.stepper(
                letters, case.get("everyone", ""), case.get("roles"),
                case.get("isolation", READ_COMMITTED), case.get("standing", ()))
            kind = next((kind for kind in PATIENCE if kind in case), "")
            stepper.limit = HANG * crowd()
            stepper.until = time.monotonic() + PATIENCE.get(kind, SHORT) * crowd()
            yield stepper
        finally:
            del os.environ[MARK]

    def play(self, case: Mapping[str, Any], schedule: Schedule) -> tuple[History, Verdict]:
        """Run one schedule with the parts of a case."""
        with self.stepper(case, schedule.letters or ["A"]) as stepper:
            history = schedules.run(stepper, schedule)
        return history, self.scene.judge(history)
