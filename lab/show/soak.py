"""`make soak`: every promise of every stage, again and again, with all processors busy."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.text import Text

from lab.engine.launch import launched
from lab.engine.postgres import server
from lab.judge.scenarios import scenarios, theatre
from lab.judge.stage import stages
from lab.show import terminal

__all__ = ["busy", "run"]

OUT = Path("out")
SPIN = Path(__file__).parents[1] / "engine" / "spin.py"  # not imported: it never returns


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processors busy until the block ends."""
    command = launched(SPIN)
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)  # Ctrl-C is ours
               for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()
            process.stdin.close()


def run(args: argparse.Namespace) -> int:
    """Run each stage's scenarios `--times` times; exit code 1 when one came out otherwise once.

    A run that differs is saved under out/ as soak-STAGE-SCENARIO-ROUND.jsonl.
    """
    console = terminal.screen()
    failed = 0
    with server() as used, busy(os.cpu_count() or 2):
        for stage in filter(scenarios, stages()):
            kept = dict.fromkeys(scenarios(stage), 0)
            with theatre(stage, used) as scene, terminal.meter(
                    console, stage.name, args.times, "rounds") as tell:
                for number in range(args.times):
                    for name, scenario in scenarios(stage).items():
                        outcome = scene.play(scenario)
                        kept[name] += outcome.as_promised
                        if not outcome.as_promised:
                            failed += 1
                            path = OUT / f"soak-{stage.number:02d}-{name}-{number}.jsonl"
                            outcome.history.save(path)
                            console.print(f"{stage.name} {name}: {outcome.code}, promised "
                                          f"{outcome.expected}; see {path}", highlight=False)
                    tell(number + 1)
            words = ", ".join(f"{name} {count}" for name, count in kept.items())
            whole = all(count == args.times for count in kept.values())
            console.print(Text(f"{'✓' if whole else '✗'} {stage.name}: of {args.times} times each: "
                               f"{words}"))
    return int(failed > 0)
