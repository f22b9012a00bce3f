"""`run SCRIPT`: a script of a stage, run as by hand, on a database to play with.

The script gets the database in DATABASE_URL, which is not printed: it has a password in it. The
database has the stage's tables and rows, and is dropped when the last run is over.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from lab.engine.launch import launched
from lab.engine.postgres import server
from lab.engine.stepper import INCIDENT
from lab.errors import LabError
from lab.folders import ROOT
from lab.judge.stage import stage
from lab.show import terminal

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run `args.script`, a file or a package, `args.times` times, one after another.

    Returns the first exit code that is not 0.

    Raises:
        LabError: there is no such script, or it is in no stage's folder.
    """
    script: Path = args.script.resolve()
    if not script.is_file() and not (script / "__main__.py").is_file():
        raise LabError(f"There is no script {args.script}.", "Name one such as 00-the-bug/bug.py.")
    found = stage(script.parent.name)
    console = terminal.screen()
    shown = " ".join([f"{found.name}/{script.name}", *args.arguments])
    with server() as used, found.database(used) as database:
        env = {"LAB_CLOCK": INCIDENT.isoformat()} | os.environ | {
            "DATABASE_URL": database.url, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
        for number in range(1, args.times + 1):
            console.print(terminal.heading(f"python {shown}   ({number} of {args.times})"))
            command = launched(script, *args.arguments)
            with subprocess.Popen(command, cwd=script.parent, env=env, stdin=subprocess.PIPE,
                                  process_group=0) as process:  # Ctrl-C is ours: it is killed
                try:
                    code = process.wait()
                finally:
                    process.kill()
            if code:
                return code
    return 0
