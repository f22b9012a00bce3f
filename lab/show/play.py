"""`make play`: be the scheduler, on a local page; `--soak` lets chance be it, without a page."""

from __future__ import annotations

import argparse

from lab.engine import postgres
from lab.errors import LabError
from lab.judge.stage import stage

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or play at random for `args.soak` seconds.

    Raises:
        LabError: there is no such stage, no Postgres, or the packages for the page are missing.
    """
    stage(args.stage or 0)
    with postgres.server():  # what is wrong with it is said here, not on the page
        pass
    if args.soak:
        from lab.show.page import soak

        return soak.run(args.soak)
    try:
        from lab.show.page import server
    except ModuleNotFoundError as missing:
        raise LabError(f"The page needs the package {missing.name}, which is not installed.",
                       "Run `make play`, which installs it first.") from missing
    return server.serve(args)
