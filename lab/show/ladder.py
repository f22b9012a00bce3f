"""`make ladder`: all stages against all scenarios, and how many interleavings break each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType

from lab.engine.postgres import Server, server
from lab.judge.scenarios import Theatre, scenarios, theatre
from lab.judge.stage import stages
from lab.show import counting, picture, plots, tables, terminal

__all__ = ["Climb", "climb", "run"]



@dataclass
class Climb:
    """What came out of every stage in every scenario.

    Args:
        cells: (stage, scenario) -> code as it came out.
        promised: the same, as stage.toml says.
        broken: stage -> (interleavings that break it, all), in its worst world.
        titles: scenario -> a few words.
        names: stage -> its name.
    """

    cells: dict[tuple[int, str], str] = field(default_factory=dict)
    promised: dict[tuple[int, str], str] = field(default_factory=dict)
    broken: dict[int, tuple[int, int]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def table(self) -> RenderableType:
        """For the terminal."""
        return tables.ladder_table(self.cells, self.promised, self.titles)

    def heat_map(self) -> plots.Picture:
        """Scenarios against stages."""
        return plots.ladder(self.cells, self.promised, stages=self.names)

    def shares(self) -> plots.Picture:
        """How many of each stage's interleavings break it."""
        return plots.shares(self.broken, self.names)


def climb(console: Console, used: Server, *, quick: bool = False) -> Climb:
    """Run every stage of the ladder in every scenario, and, unless `quick`, count interleavings."""
    found = Climb()
    climbed = [stage for stage in stages()
               if stage.data.get("effects") == "community" and stage.data.get("rung", True)]
    apply = dict.fromkeys(name for stage in climbed for name in scenarios(stage))
    with terminal.meter(console, "climbing") as tell:
        for stage in climbed:
            found.names[stage.number] = stage.name[3:]
            with theatre(stage, used) as scene:
                for name in apply:
                    expected = stage.data["expect"].get(name, "-")
                    found.promised[stage.number, name] = found.cells[stage.number, name] = expected
                for name, scenario in scenarios(stage).items():
                    tell(len(found.cells), f"{stage.name} {name}: {scenario.title}")
                    found.titles[name] = scenario.title
                    found.cells[stage.number, name] = scene.play(scenario).code
                if not quick:
                    entries = stage.data.get("explore", ())
                    found.broken[stage.number] = _worst_case(console, scene, entries)
    return found


def run(args: argparse.Namespace) -> int:
    """Run everything stepped; exit code 1 when a cell is not what its stage promises."""
    console = terminal.screen()
    with server() as used:
        found = climb(console, used, quick=args.quick)
    console.print(found.table())
    drawn = {"ladder": found.heat_map()} | ({"shares": found.shares()} if found.broken else {})
    for stem, figure in drawn.items():
        path, _ = picture.save(figure, stem)
        console.print(f"Picture: {path}", highlight=False, soft_wrap=True)
    return 0 if found.cells == found.promised else 1


def _worst_case(console: Console, scene: Theatre,
                entries: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Of all schedules of two replicas, those that do not pay each once; in the worst world.

    What runs another program than the stage's own, such as a mistake to try, does not count.
    """
    counts = []
    for entry in entries:
        if entry["replicas"] == 2 and "everyone" not in entry:
            result = counting.explored(console, scene, entry)
            wrong = sum(size for code, size in result.outcomes.items() if code not in ("1", "P"))
            counts.append((wrong, result.total))
    return max(counts, key=lambda pair: (pair[0] / pair[1], pair[1]), default=(0, 0))
