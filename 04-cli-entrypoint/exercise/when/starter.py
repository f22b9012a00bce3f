"""The command: python -m jobs NAME [--now ISO8601] [--list]

Exit codes, one meaning each: 0 the slot's work is committed (the text says by whom), 1 the job
failed and nothing was kept, 2 the command line is wrong or DATABASE_URL missing: nothing was run.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from datetime import datetime

from lab.world import clock

from jobs import JOBS
from jobs.entry import run_job

DONE, FAILED, USAGE = 0, 1, 2


def when(text: str) -> datetime:
    """The time that `--now` names, with its zone, in Mexico City time.

    Raises argparse.ArgumentTypeError, whose text the user of the command reads.
    """
    return datetime.fromisoformat(text)


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
    if not os.environ.get("DATABASE_URL"):
        print("DATABASE_URL is not set, so there is no database to run this on.\n"
              "Set it to the URL of one that has the tables.", file=sys.stderr)
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
