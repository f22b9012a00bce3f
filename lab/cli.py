"""The command line: `python -m lab COMMAND`. The Makefile only gives its commands short names.

A command is a line in COMMANDS. Its module is imported when it runs, so `--help` answers at once.
"""

import argparse
import errno
import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lab import options
from lab.engine.launch import end_if_unread
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


COMMANDS = {
    "stage": Command("tell the story of stage N by running it", "lab.show.story:run",
                     options.stage),
    "explore": Command("count the interleavings that break stage N", "lab.show.counting:explore",
                       options.explore),
    "replay": Command("run one schedule of stage N", "lab.show.counting:replay", options.replay),
    "play": Command("be the scheduler, on a page in the browser", "lab.show.play:run",
                    options.play),
    "exercise": Command("begin the exercises of stage N: copy them to my/",
                        "lab.show.practice:begin", options.exercise),
    "check": Command("check your answers to the exercises of stage N", "lab.show.practice:check",
                     options.exercise),
    "hint": Command("give the next hint", "lab.show.practice:hint", options.exercise),
    "reset": Command("begin an exercise again; your file is kept as a backup",
                     "lab.show.practice:reset", options.exercise),
    "solution": Command("show a right answer, once yours has passed", "lab.show.practice:solution",
                        options.solution),
    "progress": Command("show what you have passed", "lab.show.practice:progress"),
    "check-all": Command("check a folder of students' work", "lab.show.classroom:check_all",
                         options.check_all),
    "mutants": Command("try every wrong answer on its exercise, and write docs/exercises.md",
                       "lab.show.classroom:mutants"),
    "preflight": Command("try everything that a room needs", "lab.show.preflight:run"),
    "soak": Command("keep every stage's promise 100 times, with all processors busy",
                    "lab.show.soak:run", options.soak),
    "deliver": Command("deliver a slot of stage N as a scheduler would, or should not",
                       "lab.show.scheduler:run", options.deliver),
    "run": Command("run a stage's script by hand, on a database to play with",
                   "lab.show.byhand:run", options.run),
    "ladder": Command("run all stages against all scenarios", "lab.show.ladder:run",
                      options.ladder),
    "pictures": Command("draw the pictures of the README again", "lab.show.front:run"),
    "bench": Command("measure the budgets on this machine", "lab.show.bench:run", options.bench),
    "diff": Command("show what changed from stage N-1 to N", "lab.show.diff:run", options.stage),
    "synth": Command("make the template of stage 5 for AWS again", "lab.show.synth:run"),
    "notebooks": Command(
        "execute the notebooks and save their outputs", "lab.show.notebooks:run", options.notebooks
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
    words = options.joined(sys.argv[1:] if argv is None else argv)
    args, rest = parser().parse_known_args(words)
    if args.command == "replay" and not any(word.startswith("-") for word in rest):
        args.schedule += rest
    elif rest:
        args.usage_error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _imported(name: str) -> Callable[[argparse.Namespace], int | None]:
    module, function = name.split(":")
    try:
        return getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise LabError(f"This Python has no {error.name}, which the command needs.",
                       "Run `make setup`, then .venv/bin/python -m lab …") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 when it showed what it promises, 1 when it did not, 2 when it could not run, 130 when it
        was interrupted (Ctrl-C, SIGTERM, SIGHUP) and has cleaned up.
    """
    args = _arguments(argv)
    for name in ("SIGTERM", "SIGHUP") if sys.platform != "win32" else ():
        if signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        return _imported(COMMANDS[args.command].run)(args) or 0
    except LabError as error:
        print(error, file=sys.stderr)
        return error.code
    except OSError as error:
        if error.errno == errno.EPIPE:
            end_if_unread()
        if error.errno not in UNWRITABLE:
            raise
        print(f"{error.filename or 'A file'} cannot be written: {error.strerror}.",
              "Make room on the disk, or let the folder be writable; then try again.",
              sep="\n", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted; everything that was started is stopped.", file=sys.stderr)
        return 130
