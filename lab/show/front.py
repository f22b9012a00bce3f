"""`make pictures`: the pictures of the README, made again by running what they show."""

from __future__ import annotations

import argparse

from rich.console import Console

from lab.engine.postgres import Server, server
from lab.folders import ROOT
from lab.judge.scenarios import scenarios, theatre
from lab.judge.stage import stage
from lab.show import ladder, picture, terminal, timeline
from lab.show.picture import Picture

__all__ = ["FOLDER", "drawn", "run"]

FOLDER = ROOT / "docs" / "pictures"
INCIDENT = 0, "A2"  # the stage and the scenario that the README begins with
TITLE = "Three replicas wake up a minute apart, and each of them pays"


def run(args: argparse.Namespace) -> int:
    """`pictures`: draw them and save them."""
    console = terminal.screen()
    with server() as used:
        for stem, figure in drawn(console, used).items():
            png, svg = picture.save(figure, stem, FOLDER)
            png.unlink()
            console.print(f"Picture: {svg.relative_to(ROOT)}", highlight=False, soft_wrap=True)
    return 0


def drawn(console: Console, used: Server) -> dict[str, Picture]:
    """Each picture by its name: the incident, the ladder, the shares of the interleavings."""
    number, name = INCIDENT
    shown = stage(number)
    with theatre(shown, used) as scene:
        outcome = scene.play(scenarios(shown)[name])
    incident = timeline.timeline(outcome.history, TITLE, outcome.verdict)
    climbed = ladder.climb(console, used)
    return {"incident": incident, "ladder": climbed.heat_map(), "shares": climbed.shares()}
