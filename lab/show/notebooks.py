"""Executes the notebooks, and saves their outputs in a form that a second run does not change.

The kernel is the Python that runs this, whatever kernels a user has installed elsewhere.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab import folders
from lab.engine import scratch
from lab.engine.postgres import server
from lab.errors import LabError

CELL_SECONDS = 120
"""How long one cell may run; all notebooks together are meant to take less than 180 s."""

AT_ONCE = 2
"""How many run at a time: while one waits for its processes, another one has the processor."""

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
    return next(executed([path]))[1]


def executed(paths: Sequence[Path]) -> Iterator[tuple[Path, Any]]:
    """Run notebooks, AT_ONCE at a time, each in a thread of its own.

    Yields:
        Each with what `execute` returns, in the order of `paths`.

    Raises:
        LabError, KeyboardInterrupt: as `execute`; the others are stopped then.
    """
    try:
        import nbclient  # noqa: F401 (what is missing is said before a thread begins)
    except ImportError as error:
        raise LabError(
            f"The notebooks need a package that is not installed ({error.name}).",
            "`make notebooks` installs it; without make: python3 tools/setup.py notebooks",
        ) from None
    runs = [_Run(path) for path in paths]
    with scratch.folder() as private, ThreadPoolExecutor(AT_ONCE) as pool:
        os.environ["JUPYTER_RUNTIME_DIR"] = private
        futures = [pool.submit(run.execute, {**os.environ, "IPYTHONDIR": private}) for run in runs]
        try:
            for run, future in zip(runs, futures, strict=True):
                yield run.path, future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for run in runs:
                run.stop()


class _Run:
    """A notebook that runs in a thread, where no signal comes, until it is told to stop."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stopped = False
        self._task: asyncio.Task | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def execute(self, env: Mapping[str, str]):
        """Run it to its end in this environment; the errors are those of `executed`."""
        import nbformat
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

        notebook = nbformat.read(self.path, as_version=4)
        try:
            # The kernel's sockets need a loop with selectors, which Windows has to be asked for.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(self._execute(notebook, env))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            if self._stopped:
                raise KeyboardInterrupt from None
            raise LabError(
                f"{self.path.name} stopped: {_reason(error)}",
                "Open it with `make notebook` and run that cell; the saved outputs are unchanged.",
                code=1,
            ) from None
        normalise(notebook)
        return notebook

    def stop(self) -> None:
        """End it, from another thread; does nothing once it has ended."""
        with self._lock:
            self._stopped = True
            if self._task:
                self._loop.call_soon_threadsafe(self._task.cancel)

    async def _execute(self, notebook, env: Mapping[str, str]) -> None:
        from jupyter_client import AsyncKernelManager
        from jupyter_client.kernelspec import KernelSpecManager
        from nbclient import NotebookClient

        kernel = AsyncKernelManager(
            kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[])
        )
        client = NotebookClient(notebook, km=kernel, timeout=CELL_SECONDS, record_timing=False)
        client.resources = {"metadata": {"path": str(self.path.parent)}}
        with self._lock:
            if self._stopped:
                return
            self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        try:
            # What the kernel itself says goes nowhere; what cells print is captured.
            await client.async_execute(cleanup_kc=True, stderr=subprocess.DEVNULL, env=env)
        finally:
            with self._lock:
                self._task = None
            if kernel.has_kernel:  # stopped before nbclient knew that it had started
                await kernel.shutdown_kernel(now=True)


def _reason(error) -> str:
    if name := getattr(error, "ename", ""):
        return f"{name}: {error.evalue}"
    if type(error).__name__ == "DeadKernelError":
        return "its kernel died."
    return f"a cell took longer than {CELL_SECONDS} s."


def refresh(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Execute notebooks and save them; yields each with whether its file changed.

    Raises:
        LabError: as `execute`; that file stays as it was.
    """
    import nbformat

    for path, notebook in executed(paths):
        text = nbformat.writes(notebook) + "\n"
        changed = path.read_text("utf-8") != text
        if changed:
            path.write_text(text, "utf-8", newline="\n")
        yield path, changed


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
    wanted = chosen(args.names)
    with server():  # once for all of them; what is wrong with it is said before a cell runs
        for path, changed in refresh(wanted):
            print(f"{path.name}: {'outputs saved' if changed else 'as it was'}", flush=True)
    return 0
