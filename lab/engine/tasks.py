"""Containers, stood in for: their commands as operating-system processes, run to their end.

A command runs in the stage's folder, as the container's image would run it in its own. It starts at
once (ECS: half a minute later), with its clock at the world's time of the start.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lab.engine.launch import launched
from lab.engine.postgres import Database
from lab.errors import LabError
from lab.folders import ROOT

__all__ = ["Task", "run_tasks"]


@dataclass(frozen=True)
class Task:
    """A command that has run: its exit code, and the lines that it printed."""

    command: tuple[str, ...]
    code: int
    said: tuple[str, ...]


def run_tasks(database: Database, folder: Path, commands: Sequence[Sequence[str]],
              at: datetime) -> list[Task]:
    """Run these commands, all at once, and wait until they have ended.

    Args:
        database: what they work on.
        folder: the stage's, which has the modules that the commands name.
        commands: each `python -m MODULE …`.
        at: the world's time at which they start (aware).

    Raises:
        LabError: a command is another one, or names a module that is not there.
    """
    lines = [_command_line(folder, command) for command in commands]
    env = os.environ | {"DATABASE_URL": database.url, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1",
                        "LAB_CLOCK": at.isoformat()}
    started: list[subprocess.Popen] = []
    try:
        for line in lines:
            started.append(subprocess.Popen(
                line, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"))
        said = [process.stdout.read().splitlines() for process in started]
        return [Task(tuple(command), process.wait(), tuple(lines))
                for command, process, lines in zip(commands, started, said, strict=True)]
    finally:
        for process in started:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


def _command_line(folder: Path, command: Sequence[str]) -> list[str]:
    """The command for this machine: the same module, in a process that cannot outlive this one."""
    if len(command) < 3 or list(command[:2]) != ["python", "-m"]:
        raise LabError(f"The command is {' '.join(command)!r}.",
                       "The stand-in for a container can only run: python -m MODULE …")
    module = folder / command[2].replace(".", "/")
    script = module if (module / "__main__.py").is_file() else module.with_suffix(".py")
    if not script.exists():
        raise LabError(f"{folder.name} has no module {command[2]}.",
                       "The command would fail in the container as well: correct the template.")
    return launched(script, *command[3:])
