"""A copy of a stage with one thing changed: a mistake in it, to see whether it is noticed."""

import shutil
import tomllib
from pathlib import Path

from lab.judge.stage import Stage, stage


def doctored(tmp_path: Path, number: int, file: str, old: str, new: str) -> Stage:
    """Copy a stage into `tmp_path`; in one of its files, replace `old`, which is there once."""
    folder = tmp_path / stage(number).name
    shutil.copytree(stage(number).folder, folder,
                    ignore=shutil.ignore_patterns("__pycache__", "exercise"))
    text = (folder / file).read_text("utf-8")
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file}"
    (folder / file).write_text(text.replace(old, new), "utf-8")
    return Stage(folder, tomllib.loads((folder / "stage.toml").read_text("utf-8")))
