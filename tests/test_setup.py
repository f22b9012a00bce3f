"""Setting up .venv: what is said when it cannot be done. A fresh clone tests that it can."""

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest

from lab import folders

SETUP = folders.ROOT / "tools" / "setup.py"


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a space and an accent in its name, without .venv."""
    there = tmp_path / "otra máquina"
    shutil.copytree(SETUP.parent, there / "tools")
    shutil.copytree(folders.ROOT / "locks", there / "locks")
    shutil.copy(folders.ROOT / "requirements.lock", there)
    return there


def test_without_a_connection_the_reason_and_the_remedy_are_shown(checkout):
    done = subprocess.run(
        [sys._base_executable, "tools/setup.py"],
        cwd=checkout,
        env={**os.environ, "PATH": "/nowhere", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "tools"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Making .venv")
    assert any("No matching distribution found" in line for line in lines)
    assert lines[-2:] == [
        "The packages of requirements.lock could not be installed; pip's reason is above.",
        "Check the connection (the first time they are downloaded) and try again.",
    ]
    assert "Traceback" not in done.stderr
    assert not (checkout / ".venv" / ".core").exists(), "the next try would install nothing"


def test_an_old_python_is_told_which_one_is_needed(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("setup_of_the_lab", SETUP)
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    monkeypatch.setattr(sys, "version_info", (3, 10, 9))
    assert setup.main([]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("Python 3.11 or newer is needed")
    assert second == "Name a newer one: make PYTHON=python3.12 …"


def test_what_is_installed_already_is_left_alone(checkout):
    python = checkout / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    python.parent.mkdir(parents=True)
    python.touch()
    shutil.copy(checkout / "requirements.lock", checkout / ".venv" / ".core")
    done = subprocess.run(
        [sys._base_executable, "tools/setup.py"], cwd=checkout, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
