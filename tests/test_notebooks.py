"""The notebooks: executed by the lab's own Python, and saved so that a re-run changes nothing."""

import argparse
import os
import signal
import subprocess
import sys

import pytest

from lab import folders
from lab.errors import LabError
from lab.show import notebooks

MISSING = "the notebooks extra is not installed: make .venv/.notebooks"
nbformat = pytest.importorskip("nbformat", reason=MISSING)
pytest.importorskip("nbclient", reason=MISSING)

NOTEBOOKS = sorted((folders.ROOT / "notebooks").glob("*.ipynb"))
CHANGING = """\
import os, sys, time, tempfile, lab
print(lab.__file__)
print(object(), os.getpid() and f"pid {os.getpid()}")
print(f"took {time.perf_counter():.3f} s on 127.0.0.1:{os.getpid()} in lab_00_{os.getpid()}")
print(tempfile.gettempdir(), file=sys.stderr)
for done in range(3):
    print(f"\\r{done} of 3", end="")
print()
sys.executable
"""


def notebook(path, *cells):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    for number, cell in enumerate(book.cells):
        cell.id = f"cell-{number}"
    nbformat.write(book, path)
    return path


def printed(book):
    """What the cells printed and showed as text, output by output."""
    return [
        output.get("text") or output.get("data", {}).get("text/plain") or output.output_type
        for cell in book.cells
        for output in cell.get("outputs", [])
    ]


def test_the_kernel_is_this_python_and_finds_the_lab(tmp_path):
    book = notebooks.execute(notebook(tmp_path / "a.ipynb", "import sys, lab", "sys.executable"))
    assert printed(book) == [repr(notebooks.normal_text(sys.executable))]


def test_a_second_run_changes_nothing_in_the_file(tmp_path):
    path = notebook(tmp_path / "a.ipynb", CHANGING)
    assert list(notebooks.refresh([path])) == [(path, True)]
    saved = path.read_text("utf-8")
    assert list(notebooks.refresh([path])) == [(path, False)]
    assert "2 of 3" in saved
    assert "0 of 3" not in saved
    assert str(folders.ROOT) not in saved
    assert "./lab/__init__.py" in saved


def test_times_of_the_world_and_counts_are_left_alone():
    text = "18:01 A INSERT token_transactions · 3 of 32 · +30 · 240 schedules/s · lab_show.txt"
    assert notebooks.normal_text(text) == text


def test_a_cell_that_fails_leaves_the_file_as_it_was_and_says_what_failed(tmp_path):
    path = notebook(tmp_path / "a.ipynb", "1 / 0")
    before = path.read_bytes()
    with pytest.raises(LabError) as caught:
        list(notebooks.refresh([path]))
    assert caught.value.what == "a.ipynb stopped: ZeroDivisionError: division by zero"
    assert caught.value.code == 1
    assert path.read_bytes() == before


def test_two_run_at_a_time_and_come_in_their_order(tmp_path):
    """Each waits for the other: one after the other they would never end."""
    one, other = tmp_path / "one", tmp_path / "other"
    waits = "open({!r}, 'w').close()\nimport pathlib\nwhile not pathlib.Path({!r}).exists(): pass"
    paths = [notebook(tmp_path / "b.ipynb", waits.format(str(one), str(other))),
             notebook(tmp_path / "a.ipynb", waits.format(str(other), str(one)))]
    assert [path for path, _ in notebooks.executed(paths)] == paths


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_one_that_fails_stops_the_one_beside_it(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    paths = [notebook(tmp_path / "a.ipynb", f"pid = open({str(fifo)!r}).read()\n1 / 0"),
             notebook(tmp_path / "b.ipynb", f"import os, threading\n"
                      f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
                      f"open({str(fifo)!r}, 'w').close()\nthreading.Event().wait()")]
    with pytest.raises(LabError, match="stopped: ZeroDivisionError"):
        list(notebooks.executed(paths))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_kernel_and_exits_with_130(tmp_path, number):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waits = f"import threading, os\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\n"
    path = notebook(tmp_path / "a.ipynb", waits + "threading.Event().wait()")
    run = f"""
from pathlib import Path
from lab import cli
from lab.show import notebooks
notebooks.chosen = lambda names: [Path({str(path)!r})]
raise SystemExit(cli.main(["notebooks"]))
"""
    running = subprocess.Popen(
        [sys.executable, "-c", run], cwd=folders.ROOT, stderr=subprocess.PIPE, text=True
    )
    with running:
        kernel = int(fifo.read_text())
        running.send_signal(number)
        assert running.communicate(timeout=30)[1].splitlines() == [
            "Interrupted; everything that was started is stopped."
        ]
    assert running.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)


def test_an_unknown_name_lists_the_notebooks():
    with pytest.raises(LabError, match="There is no notebook 99-none"):
        notebooks.run(argparse.Namespace(names=["99-none"], open=False))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_saved_outputs_are_those_of_the_code(path):
    assert printed(notebooks.execute(path)) == printed(nbformat.read(path, as_version=4))
