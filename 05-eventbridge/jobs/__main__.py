"""The command: python -m jobs NAME [--now ISO8601] [--list]

Exit codes, one meaning each: 0 the slot's work is committed (the text says by whom), 1 the job
failed and nothing was kept, 2 the command line or DATABASE_URL is wrong: nothing was run.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from lab.world import clock

from jobs import JOBS
from jobs.entry import run_job

DONE, FAILED, USAGE = 0, 1, 2


def when(text: str) -> datetime:
    """A time with its zone, in Mexico City time.

    A time without a zone is refused: 18:00 in the container's zone is another day's slot somewhere.
    """
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time; write 2026-06-05T18:00:00-06:00") from None
    if given.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no zone, so its slot is anybody's guess; add -06:00 or Z")
    try:
        return given.astimezone(clock.MX)
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is outside the calendar") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job that the arguments name; returns the exit code."""
    parser = argparse.ArgumentParser("python -m jobs", description="Run one job, once.",
                                     allow_abbrev=False)
    parser.add_argument("name", nargs="?", metavar="NAME", choices=JOBS, help=", ".join(JOBS))
    parser.add_argument("--now", type=when, metavar="ISO8601",
                        help="the time whose slot is meant, with its zone (default: this moment)")
    parser.add_argument("--list", action="store_true", help="list the jobs")
    args = parser.parse_args(argv)
    if args.list:
        print(*JOBS, sep="\n")
        return DONE
    if not args.name:
        parser.error(f"which job? one of: {', '.join(JOBS)}")
    url = os.environ.get("DATABASE_URL", "")
    try:
        make_url(url)
    except (ArgumentError, ValueError):  # the latter for a port that is no number
        print(f"DATABASE_URL is {'no address of a database' if url else 'not set'}, so there is "
              "nothing to run this on.\nSet it to postgresql://user:password@host:port/database.",
              file=sys.stderr)
        return USAGE
    try:
        did = run_job(JOBS[args.name], args.now or clock.now())
    except Exception:
        logging.exception("%s failed; nothing was kept, it can be run again", args.name)
        return FAILED
    print("\n".join(did) or f"{args.name}: already claimed, nothing to do", flush=True)
    return DONE


def command(argv: Sequence[str] | None = None) -> None:
    """`main` as a process runs it: ends with the exit code."""
    sys.exit(main(argv))


if __name__ == "__main__":
    command()
