"""`make ladder`: all stages against all scenarios, and the share of interleavings that break each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.engine.postgres import server
from lab.judge.scenarios import Theatre, scenarios, theatre
from lab.judge.stage import stages
from lab.show import counting, picture, plots, tables, terminal

__all__ = ["run"]

OUT = Path("out")


def run(args: argparse.Namespace) -> int:
    """Run everything stepped; exit code 1 when a cell is not what its stage promises."""
    console = terminal.screen()
    cells: dict[tuple[int, str], str] = {}
    promised: dict[tuple[int, str], str] = {}
    broken: dict[int, tuple[int, int]] = {}
    climbed = [stage for stage in stages() if stage.data.get("effects") == "community"]
    with server() as used, terminal.meter(console, "climbing") as tell:
        for stage in climbed:
            with theatre(stage, used) as scene:
                for name, expected in stage.data["expect"].items():
                    promised[stage.number, name] = cells[stage.number, name] = expected
                for name, scenario in scenarios(stage).items():
                    tell(len(cells), f"{stage.name} {name}: {scenario.title}")
                    cells[stage.number, name] = scene.play(scenario).code
                if not args.quick:
                    broken[stage.number] = _worst_case(console, scene, stage.data.get("explore", ()))
    titles = {name: scenario.title for stage in climbed
              for name, scenario in scenarios(stage).items()}
    console.print(tables.ladder_table(cells, promised, titles))
    names = {stage.number: stage.name[3:] for stage in climbed}
    drawn = {"ladder": plots.ladder(cells, promised, stages=names)}
    if broken:
        drawn["shares"] = plots.shares(broken, names)
    for stem, figure in drawn.items():
        path, _ = picture.save(figure, stem, OUT)
        console.print(f"Picture: {path}", highlight=False, soft_wrap=True)
    return 0 if cells == promised else 1


def _worst_case(console: Console, scene: Theatre,
                entries: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Of all schedules of two replicas, those that do not pay each winner once; in the worst world."""
    counts = []
    for entry in entries:
        if entry["replicas"] == 2:
            result = counting.explored(console, scene, entry)
            wrong = sum(size for code, size in result.outcomes.items() if code not in ("1", "P"))
            counts.append((wrong, result.total))
    return max(counts, key=lambda pair: (pair[0] / pair[1], pair[1]), default=(0, 0))
