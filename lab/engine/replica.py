"""Replicas as real operating-system processes: warm ones that the stepped engine tells to run."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from lab.engine import scratch
from lab.engine.channel import Channel
from lab.engine.link import Step
from lab.engine.warm import encode
from lab.engine.wire import Gate
from lab.errors import LabError
from lab.folders import ROOT

__all__ = ["Process", "Program", "Replica", "Stable"]

IMPORTS = ("psycopg", "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.orm")


@dataclass(frozen=True)
class Program:
    """What a replica runs when it is told to.

    Args:
        call: "module:function", found as if the stage folder were the script's own directory.
        args: arguments; "{now}" stands for the world's time when the run begins, and in a list (a
            command line) for the same as ISO 8601 text.
        kwargs: keyword arguments; {"$ref": "module:attribute"} is looked up in the process.
    """

    call: str = "worker:tick"
    args: tuple = ("{now}",)
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class Process:
    """One warm process and the connection on which it takes orders."""

    def __init__(self, gate: Gate, port: int, token: str, log: Path,
                 imports: Sequence[str] = ()) -> None:
        self.log = log
        self._output = log.open("ab")
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "lab.engine.warm", str(os.getpid()), str(port), token,
             *imports],
            cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT)
        self._gate = gate
        self._channel: Channel | None = None
        self._buffer = b""
        self._waiting_orders: list[dict] = []
        self.answers: list[dict] = []
        self.ready_since = 0.0  # of the monotonic clock
        self.frames: list[dict] | None = None  # where it is; None until it has said so

    def attach(self, sock: socket.socket) -> None:
        """Its control connection has come in."""
        self.ready_since = time.monotonic()
        self._channel = Channel(self._gate.selector, sock, self._said, lambda: None)
        for order in self._waiting_orders:
            self._send(order)

    def order(self, **order: Any) -> None:
        """Tell the process something; kept until it has said hello."""
        if self._channel:
            self._send(order)
        else:
            self._waiting_orders.append(order)

    def _send(self, order: dict) -> None:
        self._channel.send(json.dumps(order).encode() + b"\n")

    def _said(self, data: bytes) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for answer in map(json.loads, lines):
            if "where" in answer:
                self.frames = answer["where"]
            else:
                self.answers.append(answer)

    @property
    def ready(self) -> bool:
        """Whether it has started and can take orders."""
        return self._channel is not None

    @property
    def alive(self) -> bool:
        """Whether the operating system still runs it."""
        return self.popen.poll() is None

    @property
    def last_words(self) -> str:
        """The last line that it printed."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it printed nothing")

    def kill(self) -> None:
        """SIGKILL (TerminateProcess on Windows): no handler, no cleanup, on whatever line it is."""
        self.popen.kill()
        self.popen.wait()
        self._output.close()
        if self._channel:
            self._channel.close()

    def freeze(self) -> None:
        """SIGSTOP: it stays where it is, with its connections open."""
        psutil.Process(self.popen.pid).suspend()

    def thaw(self) -> None:
        """SIGCONT."""
        psutil.Process(self.popen.pid).resume()


@dataclass
class Replica:
    """One replica of a run, as the stepped engine sees it.

    Args:
        letter: its name.
        program: what it runs.
        process: its process; None while it is dead.
        waits_for: letters of the replicas that its statement waits for.
        moved: the step that was released and has not been answered.
        waiting_seq: seq of the event that says so, once it was found to wait.
        ghosts: backends whose client is gone and that Postgres has not ended yet.
    """

    letter: str
    program: Program
    process: Process | None = None
    started: bool = False
    finished: bool = False
    frozen: bool = False
    waits_for: tuple[str, ...] = ()
    moved: Step | None = None
    waiting_seq: int | None = None
    ghosts: set[int] = field(default_factory=set)

    @property
    def dead(self) -> bool:
        """Whether its process was killed and no other took its place."""
        return self.process is None

    @property
    def under_way(self) -> bool:
        """Whether a run was begun that has not come to its end."""
        return self.started and not self.finished and not self.dead

    def forget_run(self) -> None:
        """As before its first run."""
        self.started = self.finished = self.frozen = False
        self.waits_for, self.moved, self.waiting_seq = (), None, None


def _filled(argument: Any, now: datetime) -> Any:
    """An argument with the time in its place: as a datetime, or as ISO 8601 in a command line."""
    if argument == "{now}":
        return encode(now)
    return [part.replace("{now}", now.isoformat()) if isinstance(part, str) else part
            for part in argument] if isinstance(argument, list) else argument


class Stable:
    """Starts processes, keeps spares warm, and sees to it that none outlives it.

    Args:
        gate: the loop on which the processes' control connections are served.
        spares: processes kept ready beside those in use, so that a kill costs no start-up.
        imports: modules that a process imports before it is told to run anything.
    """

    def __init__(self, gate: Gate, spares: int = 0, imports: Sequence[str] = IMPORTS) -> None:
        self.gate, self.spares, self.imports = gate, spares, imports
        self._folder = scratch.folder()
        self._token = secrets.token_hex(16)
        self._starting: dict[int, Process] = {}
        self._idle: list[Process] = []
        self._all: list[Process] = []
        _, self._port = gate.listen(self._connected)

    @property
    def folder(self) -> Path:
        """A temporary folder that lives as long as the stable."""
        return Path(self._folder.name)

    def take(self, folder: Path, env: Mapping[str, str]) -> Process:
        """A process that has entered the folder with this environment."""
        process = self._idle.pop(0) if self._idle else self._start()
        while len(self._idle) < self.spares:
            self._idle.append(self._start())
        process.order(enter=str(folder), env=dict(env))
        return process

    def run(self, process: Process, program: Program, now: datetime) -> None:
        """Tell the process to run the program with the world's time `now`."""
        args = [_filled(arg, now) for arg in program.args]
        process.order(call=program.call, args=args, kwargs=dict(program.kwargs))

    def close(self) -> None:
        """Kill every process that is left."""
        for process in self._all:
            if process.alive:
                process.kill()
        self._folder.cleanup()

    def _start(self) -> Process:
        try:
            process = Process(self.gate, self._port, self._token,
                              self.folder / f"process-{len(self._all)}.log", self.imports)
        except OSError as error:
            raise LabError(
                f"A replica process could not be started: {error.strerror}.",
                "Close other programs or raise the limit on processes (ulimit -u).") from error
        self._all.append(process)
        self._starting[process.popen.pid] = process
        return process

    def _connected(self, sock: socket.socket) -> None:
        # A venv's python may be a launcher with another process id, so the token decides.
        sock.settimeout(5)
        try:
            hello = json.loads(sock.makefile("rb", buffering=0).readline())
        except (OSError, ValueError):
            hello = {}
        if hello.get("hello") != self._token:
            sock.close()
            return
        process = self._starting.pop(hello["pid"], None)
        if process is None:  # Windows' venv launcher: the python that speaks is its child
            parent = psutil.Process(hello["pid"]).ppid()
            process = self._starting.pop(parent)
        process.attach(sock)
