"""A stage as data: what its folder's stage.toml says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lab import folders
from lab.engine.postgres import Database, Server
from lab.engine.replica import Program
from lab.errors import LabError
from lab.judge.verdict import EffectSpec, load_effects
from lab.world.conditions import SCHEMA, SEED

__all__ = ["Stage", "stage", "stages"]

DEFAULT_PROGRAM = "tick"


@dataclass(frozen=True)
class Stage:
    """A stage folder.

    Args:
        folder: where it is.
        data: its stage.toml.
    """

    folder: Path
    data: Mapping[str, Any]

    @property
    def number(self) -> int:
        """The number at the front of the folder's name."""
        return int(self.folder.name[:2])

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What it is about, in a few words."""
        return self.data["title"]

    @property
    def scripts(self) -> list[Path]:
        """The SQL files that make its database, in order."""
        world = [] if self.data.get("world") == "own" else [SCHEMA, SEED]
        own = [self.folder / name for name in ("schema.sql", "seed.sql")]
        return world + [path for path in own if path.exists()]

    @cached_property
    def effects(self) -> dict[str, EffectSpec]:
        """What is judged after a run."""
        return load_effects(self.data["effects"])

    @cached_property
    def programs(self) -> dict[str, Program]:
        """What a replica may run, by name; the first is what it runs when nothing else is said."""
        declared = self.data.get("programs") or {DEFAULT_PROGRAM: {"call": "worker:tick"}}
        return {name: _program(fields) for name, fields in declared.items()}

    def cast(self, letters: Sequence[str], roles: Mapping[str, str] | None = None,
             everyone: str = "") -> dict[str, Program]:
        """Who runs what.

        Args:
            letters: the replicas.
            roles: letter -> name of its program, where it is not everyone's.
            everyone: name of the program of all others; empty for the stage's first.

        Raises:
            LabError: the stage has no such program.
        """
        default = everyone or next(iter(self.programs))
        names = {letter: (roles or {}).get(letter, default) for letter in letters}
        for name in names.values():
            if name not in self.programs:
                raise LabError(f"Stage {self.number} has no program called {name!r}.",
                               f"Its programs are: {', '.join(self.programs)}.")
        return {letter: self.programs[name] for letter, name in names.items()}

    @contextmanager
    def database(self, server: Server) -> Iterator[Database]:
        """A database of its own on this server, with the stage's tables and rows."""
        with server.database(self.scripts, self.name[:2]) as database:
            yield database


def _program(fields: Mapping[str, Any]) -> Program:
    kwargs = {name: {"$ref": value[4:]} if str(value).startswith("ref:") else value
              for name, value in fields.get("kwargs", {}).items()}
    return Program(fields["call"], tuple(fields.get("args", ("{now}",))), kwargs)


def stages() -> list[Stage]:
    """Every stage that exists, in order."""
    return [Stage(path, tomllib.loads((path / "stage.toml").read_text(encoding="utf-8")))
            for path in folders.stages().values() if (path / "stage.toml").exists()]


def stage(number: str | int) -> Stage:
    """The stage with this number ("3", "03") or folder name.

    Raises:
        LabError: there is none; the remedy lists those there are.
    """
    wanted = str(number).strip("/")
    for found in stages():
        if wanted == found.name or (re.fullmatch(r"\d+", wanted) and int(wanted) == found.number):
            return found
    raise LabError(f"There is no stage {number}.",
                   "The stages are: " + ", ".join(s.name for s in stages()) + ".")
