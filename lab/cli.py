"""The command line: `python -m lab COMMAND`. The Makefile only gives its commands short names.

A command is a line in COMMANDS. Its module is imported when it runs, so `--help` answers at once.
"""

import argparse
import errno
import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from lab.errors import LabError

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


class Command(NamedTuple):
    """A command: what `--help` says, the function that runs it, and the arguments it takes.

    `run` is "module:function"; the function takes the parsed arguments and returns the exit code
    (None counts as 0).
    """

    help: str
    run: str
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


ISOLATION = ("read committed", "repeatable read", "serializable")


def _stage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stage", metavar="N", help="the number of the stage: 0, 1, …")


def _explore(parser: argparse.ArgumentParser) -> None:
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
    own.add_argument("--schedule", default="", metavar="MOVES", help="run this one instead of all")
    own.add_argument("--isolation", default="read committed", metavar="LEVEL", choices=ISOLATION)


def _replay(parser: argparse.ArgumentParser) -> None:
    _stage(parser)
    parser.add_argument("schedule", nargs="*", metavar="MOVE", help='such as "A..commit B.. A.."')
    parser.add_argument("--my", metavar="EXERCISE", help="on your answer to this exercise")
    parser.add_argument("--case", default="", metavar="NAME",
                        help="with the parts of this case of the exercise")
    parser.add_argument("--everyone", default="", metavar="PROGRAM",
                        help="what the replicas run, if not the stage's first program")
    parser.add_argument("--roles", default="", metavar="B=PROGRAM",
                        help="who runs another program than everyone")
    parser.add_argument("--isolation", default="read committed", metavar="LEVEL",
                        choices=ISOLATION)


def _deliver(parser: argparse.ArgumentParser) -> None:
    _stage(parser)
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


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=1, metavar="N", help="one after another")
    parser.add_argument("script", type=Path,
                        help="such as 00-the-bug/bug.py, or a package: 04-cli-entrypoint/jobs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="the script's own")


def _ladder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="leave out the interleavings")


def _play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stage", metavar="N", nargs="?",
                        help="the stage to begin with (default: 0)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    parser.add_argument("--port", type=int, default=0, help="on this port (default: any free one)")
    parser.add_argument("--soak", type=float, metavar="SECONDS",
                        help="play at random for so long, and look for what is left behind")


def _soak(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=100, help="rounds (default: 100)")


def _notebooks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, such as 00-the-bug")
    parser.add_argument("--open", action="store_true", help="open JupyterLab instead")


def _exercise(parser: argparse.ArgumentParser) -> None:
    _stage(parser)
    parser.add_argument("which", metavar="EXERCISE", nargs="?", default="",
                        help="one of the stage's exercises; without it all of them")


def _solution(parser: argparse.ArgumentParser) -> None:
    _exercise(parser)
    parser.add_argument("--yes", action="store_true",
                        help="show it although nothing has passed yet")


def _check_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path,
                        help="a folder with a folder of each student, which holds what my/ held")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="so many at a time")


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parts", nargs="*", metavar="PART",
                        help="only these, such as isolation_specs")
    parser.add_argument("--save", action="store_true", help="keep the table in docs/bench.md")


COMMANDS = {
    "stage": Command("tell the story of stage N by running it", "lab.show.story:run", _stage),
    "explore": Command("count the interleavings that break stage N", "lab.show.counting:explore",
                       _explore),
    "replay": Command("run one schedule of stage N", "lab.show.counting:replay", _replay),
    "play": Command("be the scheduler, on a page in the browser", "lab.show.play:run", _play),
    "exercise": Command("begin the exercises of stage N: copy them to my/",
                        "lab.show.practice:begin", _exercise),
    "check": Command("check your answers to the exercises of stage N", "lab.show.practice:check",
                     _exercise),
    "hint": Command("give the next hint", "lab.show.practice:hint", _exercise),
    "reset": Command("begin an exercise again; your file is kept as a backup",
                     "lab.show.practice:reset", _exercise),
    "solution": Command("show a right answer, once yours has passed", "lab.show.practice:solution",
                        _solution),
    "progress": Command("show what you have passed", "lab.show.practice:progress"),
    "check-all": Command("check a folder of students' work", "lab.show.classroom:check_all",
                         _check_all),
    "mutants": Command("try every wrong answer on its exercise, and write docs/exercises.md",
                       "lab.show.classroom:mutants"),
    "preflight": Command("try everything that a room needs", "lab.show.preflight:run"),
    "soak": Command("keep every stage's promise 100 times, with all processors busy",
                    "lab.show.soak:run", _soak),
    "deliver": Command("deliver a slot of stage N as a scheduler would, or should not",
                       "lab.show.scheduler:run", _deliver),
    "run": Command("run a stage's script by hand, on a database to play with",
                   "lab.show.byhand:run", _run),
    "ladder": Command("run all stages against all scenarios", "lab.show.ladder:run", _ladder),
    "pictures": Command("draw the pictures of the README again", "lab.show.front:run"),
    "bench": Command("measure the budgets on this machine", "lab.show.bench:run", _bench),
    "diff": Command("show what changed from stage N-1 to N", "lab.show.diff:run", _stage),
    "synth": Command("make the template of stage 5 for AWS again", "lab.show.synth:run"),
    "notebooks": Command(
        "execute the notebooks and save their outputs", "lab.show.notebooks:run", _notebooks
    ),
    "book": Command("make a site of all READMEs and notebooks", "lab.show.book:run"),
    "doctor": Command("say which Postgres is used, and what is wrong", "lab.show.care:doctor"),
    "clean": Command("stop and delete what the lab left behind", "lab.show.care:clean"),
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="python -m lab",
        description="Programs that lose, repeat or invent work because they share one Postgres.",
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.help, description=command.help.capitalize(),
                                  allow_abbrev=False)
        own.set_defaults(usage_error=own.error)  # which lists the words that this command knows
        command.arguments(own)
    return top


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The parsed command line; the moves of `replay` may also come after its options."""
    words: list[str] = []
    for word in sys.argv[1:] if argv is None else argv:
        if words and words[-1] in ("--again", "--late"):
            words[-1] += f"={word}"  # else argparse takes -1d for an option, not for a duration
        else:
            words.append(word)
    args, rest = parser().parse_known_args(words)
    if args.command == "replay" and not any(word.startswith("-") for word in rest):
        args.schedule += rest
    elif rest:
        args.usage_error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        Its exit code: 0 when it showed what it promises, 1 when it did not, 2 when it could not
        run, 130 when it was interrupted (Ctrl-C or SIGTERM; it has cleaned up by then).
    """
    args = _arguments(argv)
    if sys.platform != "win32":
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    module, function = COMMANDS[args.command].run.split(":")
    try:
        return getattr(importlib.import_module(module), function)(args) or 0
    except LabError as error:
        print(error, file=sys.stderr)
        return error.code
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        print(f"{error.filename or 'A file'} cannot be written: {error.strerror}.",
              "Make room on the disk, or let the folder be writable; then try again.",
              sep="\n", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted; everything that was started is stopped.", file=sys.stderr)
        return 130
