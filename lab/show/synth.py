"""`synth`: make the template that a stage's app.py describes again, without AWS and offline."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from lab import folders
from lab.errors import LabError

__all__ = ["missing", "run"]


def missing() -> LabError | None:
    """What a synth needs and is not here, and where to get it; None if all is here."""
    if not shutil.which("node"):
        return LabError(
            "A synth needs Node (node on the PATH): the CDK's Python packages talk to it.",
            "Install Node 22 or newer, then: make synth. To read template.json needs nothing.",
        )
    if not find_spec("aws_cdk"):
        return LabError(
            "The extra `cdk` is not installed here.",
            "make synth installs it and goes on; without make: python3 tools/setup.py cdk",
        )
    return None


def run(args: argparse.Namespace) -> int:
    """Run each stage's app.py and say what became of its template.json.

    Raises:
        LabError: Node or the extra is missing, or a synth failed.
    """
    if error := missing():
        raise error
    for app in sorted(path / "app.py" for path in folders.stages().values()):
        if app.exists():
            print(_synth(app))
    return 0


def _synth(app: Path) -> str:
    """Run one app.py; returns the line that says what came out."""
    template = app.with_name("template.json")
    before = template.read_bytes() if template.exists() else b""
    # jsii has a banner for each version of Node that it does not know; it is for the failures only.
    done = subprocess.run([sys.executable, app.name], cwd=app.parent, text=True, encoding="utf-8",
                          errors="replace", capture_output=True, check=False)
    if done.returncode:
        raise LabError(f"{app.relative_to(folders.ROOT)} failed:\n{done.stderr.strip()}",
                       "The end of the text above says why.", code=1)
    after = template.read_bytes()
    what = "as it was" if after == before else "written anew"
    return (f"{template.relative_to(folders.ROOT).as_posix()}: "
            f"{len(json.loads(after)['Resources'])} resources, {what}")
