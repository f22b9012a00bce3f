"""The arguments that each command takes."""

import argparse
from collections.abc import Iterable
from pathlib import Path

ISOLATION = ("read committed", "repeatable read", "serializable")


def stage(parser: argparse.ArgumentParser) -> None:
    """A stage."""
    parser.add_argument("stage", metavar="N", help="the number of the stage: 0, 1, …")


def explore(parser: argparse.ArgumentParser) -> None:
    """Which interleavings, or code of your own."""
    parser.add_argument("stage", metavar="N", nargs="?", help="the number of the stage: 0, 1, …")
    parser.add_argument("--replicas", type=int, help="this many, instead of those of stage.toml")
    parser.add_argument("--seconds", type=float, help="stop after so long, and say so")
    parser.add_argument("--roles", default="", metavar="B=PROGRAM",
                        help="who runs another of the stage's programs than the first")
    parser.add_argument("--all", action="store_true",
                        help="run every single schedule, not one for each class")
    own = parser.add_argument_group("code of your own, instead of a stage")
    own.add_argument("--worker", type=Path, metavar="FILE.py", help="what the replicas run")
    own.add_argument("--call", default="tick", metavar="NAME", help="its function (default: tick)")
    own.add_argument("--schema", type=Path, action="append", default=[], metavar="FILE.sql",
                     help="makes the tables; may be given several times")
    own.add_argument("--invariant", type=Path, metavar="FILE.py",
                     help="has broken(connection), which returns a sentence for each thing that is "
                          "wrong")
    own.add_argument("--schedule", metavar="MOVES", help="run this one instead of all")
    own.add_argument("--isolation", default="read committed", metavar="LEVEL", choices=ISOLATION)


def replay(parser: argparse.ArgumentParser) -> None:
    """A schedule, and who runs what."""
    stage(parser)
    parser.add_argument("schedule", nargs="*", metavar="MOVE", help='such as "A..commit B.. A.."')
    parser.add_argument("--my", metavar="EXERCISE", help="on your answer to this exercise")
    parser.add_argument("--case", default="", metavar="NAME",
                        help="this one of the stage's scenarios, such as A5; with --my: with the "
                             "parts of this case of the exercise")
    parser.add_argument("--everyone", default="", metavar="PROGRAM",
                        help="what the replicas run, if not the stage's first program")
    parser.add_argument("--roles", default="", metavar="B=PROGRAM",
                        help="who runs another program than everyone")
    parser.add_argument("--isolation", default="", metavar="LEVEL", choices=ISOLATION,
                        help="of all transactions (default: read committed)")


def deliver(parser: argparse.ArgumentParser) -> None:
    """How a slot is delivered."""
    stage(parser)
    parser.add_argument("--job", default="leaderboard_close", metavar="NAME")
    parser.add_argument("--slot", default="2026-W22", help="the week that is due")
    parser.add_argument("--twice", action="store_true", help="deliver it twice at once")
    parser.add_argument("--late", default="0m", metavar="3h", help="deliver it so much later")
    parser.add_argument("--again", action="append", default=[], metavar="3d",
                        help="deliver it once more, so long after its time")
    parser.add_argument("--fail", type=int, default=0, metavar="K", help="the first K calls fail")
    parser.add_argument("--never-placed", action="store_true",
                        help="the call is accepted, and no container ever starts")
    parser.add_argument("--read-only", action="store_true",
                        help="the database takes no writes just then, so the job fails")
    parser.add_argument("--by-hand", action="store_true",
                        help="an hour later somebody runs the same command")
    parser.add_argument("--following", action="store_true", help="deliver the next slot as well")
    parser.add_argument("--without-claim", action="store_true", help="a job that claims nothing")
    parser.add_argument("--without-now", action="store_true",
                        help="a command that does not say which time was planned")
    parser.add_argument("--template", type=Path, metavar="FILE",
                        help="read the schedules from here, not from the stage's template")


def run(parser: argparse.ArgumentParser) -> None:
    """A script and its arguments."""
    parser.add_argument("--times", type=int, default=1, metavar="N", help="one after another")
    parser.add_argument("script", type=Path,
                        help="such as 00-the-bug/bug.py, or a package: 04-cli-entrypoint/jobs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="the script's own")


def ladder(parser: argparse.ArgumentParser) -> None:
    """How much of the ladder."""
    parser.add_argument("--quick", action="store_true", help="leave out the interleavings")


def play(parser: argparse.ArgumentParser) -> None:
    """Where the page begins."""
    parser.add_argument("stage", metavar="N", nargs="?",
                        help="the stage to begin with (default: 0)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    parser.add_argument("--port", type=int, default=0, help="on this port (default: any free one)")
    parser.add_argument("--soak", type=float, metavar="SECONDS",
                        help="play at random for so long, and look for what is left behind")


def soak(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--times", type=int, default=100, help="rounds (default: 100)")


def notebooks(parser: argparse.ArgumentParser) -> None:
    """Which notebooks."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, such as 00-the-bug")
    parser.add_argument("--open", action="store_true", help="open JupyterLab instead")


def exercise(parser: argparse.ArgumentParser) -> None:
    """A stage, and one of its exercises."""
    stage(parser)
    parser.add_argument("which", metavar="EXERCISE", nargs="?", default="",
                        help="one of the stage's exercises; without it all of them")


def solution(parser: argparse.ArgumentParser) -> None:
    """An exercise."""
    exercise(parser)
    parser.add_argument("--yes", action="store_true",
                        help="show it although nothing has passed yet")


def check_all(parser: argparse.ArgumentParser) -> None:
    """A folder of answers."""
    parser.add_argument("folder", metavar="DIR", type=Path,
                        help="a folder with a folder of each student, which holds what my/ held")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="so many at a time")


def bench(parser: argparse.ArgumentParser) -> None:
    """Which parts."""
    parser.add_argument("parts", nargs="*", metavar="PART",
                        help="only these, such as isolation_specs")
    parser.add_argument("--save", action="store_true", help="keep the table in docs/bench.md")


def joined(words: Iterable[str]) -> list[str]:
    """The words of a command line, with a duration joined to its option.

    Otherwise argparse takes the -1d of `--late -1d` for an option.
    """
    found: list[str] = []
    for word in words:
        if found and found[-1] in ("--again", "--late"):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found
