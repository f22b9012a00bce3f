"""The commands that look after the machine: `doctor` says what is wrong, `clean` takes it away."""

import argparse
import shutil

from lab import folders
from lab.engine import doctor as engine
from lab.show.terminal import screen


def doctor(args: argparse.Namespace) -> int:
    """Print what was checked, with a remedy a line; returns 1 when a stage could not run."""
    checks = engine.doctor()
    console = screen()
    for check in checks:
        console.print(str(check), soft_wrap=True)
    return 0 if all(check.ok for check in checks) else 1


def clean(args: argparse.Namespace) -> int:
    """Stop and drop what the lab left behind, delete out/, and print what was done.

    Returns 1 when a server could not be reached, so that something may still be there.
    """
    done = engine.clean()
    console = screen()
    for check in done:
        console.print(f"{check.what}\n{check.remedy}".strip(), soft_wrap=True)
    if folders.OUT.exists():
        shutil.rmtree(folders.OUT)
        console.print("Deleted out/.")
    elif not done:
        console.print("There was nothing to clean.")
    return 0 if all(check.ok for check in done) else 1
