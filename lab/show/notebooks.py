"""Executes the notebooks, and saves their outputs in a form that a second run does not change.

The kernel is the Python that runs this, whatever kernels a user has installed elsewhere.
"""

import argparse
import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from lab import folders
from lab.engine import scratch
from lab.engine.postgres import server
from lab.errors import LabError

CELL_SECONDS = 120
"""How long one cell may run; all notebooks together are meant to take less than 180 s."""

CHANGING = (
    (re.compile(r"\blab_[a-z0-9_]*\d[a-z0-9_]*"), "lab_…"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x…"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), r"\1:…"),
    (re.compile(r"\b\d+\.\d+ (m?s)\b"), r"… \1"),
    (re.compile(r"\b(PostgreSQL|Python|psycopg|SQLAlchemy) \d+(\.\d+)+"), r"\1 …"),
    (re.compile(r"\b(pid|PID) \d+"), r"\1 …"),
)
"""What differs from run to run: databases, addresses, ports, times taken, versions, processes."""


def normal_text(text: str) -> str:
    """Return printed text without what differs from run to run or from machine to machine."""
    for path, short in (
        (str(folders.ROOT), "."),
        (tempfile.gettempdir(), "/tmp"),
        (str(Path("~").expanduser()), "~"),
    ):
        text = text.replace(path, short) if len(path) > 1 else text
    text = re.sub(r"[^\n]*\r(?!\n)", "", text)  # a progress line shows its last state only
    for pattern, replacement in CHANGING:
        text = pattern.sub(replacement, text)
    return text


def normalise(notebook) -> None:
    """Remove from an executed notebook (in place) what a second run would change."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        merged = []
        for output in cell.get("outputs", []):
            last = merged[-1] if merged else {}
            if output.output_type == "stream" and output.name == last.get("name"):
                last["text"] += output.text
            else:
                merged.append(output)
        for output in merged:
            if output.output_type == "stream":
                output.text = normal_text(output.text)
            for kind, value in output.get("data", {}).items():
                if kind.startswith("text/") and isinstance(value, str):
                    output.data[kind] = normal_text(value)
        if "outputs" in cell:
            cell.outputs = merged


def execute(path: Path):
    """Run a notebook from its first cell, in its own folder.

    Returns:
        The executed notebook, normalised (nothing is saved).

    Raises:
        LabError: a cell raised an error or took longer than CELL_SECONDS, or the kernel died.
        KeyboardInterrupt: it was interrupted; the kernel is stopped.
    """
    try:
        import nbformat
        from jupyter_client import AsyncKernelManager
        from jupyter_client.kernelspec import KernelSpecManager
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    except ImportError as error:
        raise LabError(
            f"The notebooks need a package that is not installed ({error.name}).",
            "`make notebooks` installs it; without make: python3 tools/setup.py notebooks",
        ) from None
    notebook = nbformat.read(path, as_version=4)
    with scratch.folder() as private:
        os.environ["JUPYTER_RUNTIME_DIR"] = private
        kernel = AsyncKernelManager(
            kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[])
        )
        client = NotebookClient(notebook, km=kernel, timeout=CELL_SECONDS, record_timing=False)
        client.resources = {"metadata": {"path": str(path.parent)}}
        interrupt = _Interrupt()
        client.on_notebook_start = interrupt.listen
        try:
            client.execute(
                cleanup_kc=True,
                stderr=subprocess.DEVNULL,  # of the kernel itself; what cells print is captured
                env={**os.environ, "IPYTHONDIR": private},
            )
        except asyncio.CancelledError:  # an interrupt, before there is a cell to report it
            raise KeyboardInterrupt from None
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            if interrupt.happened:
                raise KeyboardInterrupt from None
            raise LabError(
                f"{path.name} stopped: {_reason(error)}",
                "Open it with `make notebook` and run that cell; the saved outputs are unchanged.",
                code=1,
            ) from None
    normalise(notebook)
    return notebook


class _Interrupt:
    """Cancels a run on Ctrl-C and SIGTERM, where nbclient would report that the kernel died."""

    happened = False

    async def listen(self, **_: object) -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def cancel() -> None:
            self.happened = True
            task.cancel()

        with contextlib.suppress(NotImplementedError):  # Windows raises KeyboardInterrupt itself
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, cancel)


def _reason(error) -> str:
    if name := getattr(error, "ename", ""):
        return f"{name}: {error.evalue}"
    if type(error).__name__ == "DeadKernelError":
        return "its kernel died."
    return f"a cell took longer than {CELL_SECONDS} s."


def refresh(path: Path) -> bool:
    """Execute a notebook and save it; returns whether the file changed.

    Raises:
        LabError: as `execute`; the file stays as it was.
    """
    import nbformat

    executed = nbformat.writes(execute(path)) + "\n"
    if path.read_text("utf-8") == executed:
        return False
    path.write_text(executed, "utf-8", newline="\n")
    return True


def chosen(names: list[str]) -> list[Path]:
    """Return the notebooks with these names (with or without .ipynb), or all of them.

    Raises:
        LabError: there is no such notebook.
    """
    every = {path.stem: path for path in sorted((folders.ROOT / "notebooks").glob("*.ipynb"))}
    wanted = [Path(name).stem if name.endswith(".ipynb") else name for name in names]
    for name in wanted:
        if name not in every:
            raise LabError(f"There is no notebook {name}.", f"There are: {', '.join(every)}.")
    return [every[name] for name in wanted or every]


def run(args: argparse.Namespace) -> int:
    """Execute `args.names` (all when empty) and save them; or open JupyterLab with `args.open`."""
    if args.open:
        as_root = ["--allow-root"] if hasattr(os, "getuid") and os.getuid() == 0 else []
        return subprocess.call(
            [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1", *as_root, "notebooks"],
            cwd=folders.ROOT,
            env={**os.environ, "JUPYTER_PREFER_ENV_PATH": "1"},
        )
    if os.name == "nt":  # the kernel's sockets need a loop with selectors
        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
    wanted = chosen(args.names)
    with server():  # once for all of them; what is wrong with it is said before a cell runs
        for path in wanted:
            changed = refresh(path)
            print(f"{path.name}: {'outputs saved' if changed else 'as it was'}", flush=True)
    return 0
