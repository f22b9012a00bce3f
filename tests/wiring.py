"""A gate that is pumped: by a thread of its own, between taps that record every byte; or here."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

from lab.engine import target
from lab.engine.wire import Gate
from tests.messages import GSS, SSL


class Tap:
    """A forwarder that keeps what it forwards: `sent` and `received`, by connection."""

    def __init__(self, host: str, port: int) -> None:
        self.upstream = host, port
        self.sent: list[bytearray] = []
        self.received: list[bytearray] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        """Wait for what is still on its way."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "a connection was left open"

    def _start(self, target, *args) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self.upstream)
                for record, one, other in ((self.sent, client, server),
                                           (self.received, server, client)):
                    record.append(bytearray())
                    self._start(self._copy, one, other, record[-1])

    @staticmethod
    def _copy(one: socket.socket, other: socket.socket, record: bytearray) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                record += data
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)


class Bench:
    """A gate under way. `steps` are (text, outcome, tags) of all steps, in the order of their ends.

    Args:
        gate: it is pumped until `close`.
        hold: every statement is held, and released at the next turn of the loop.
    """

    def __init__(self, gate: Gate, hold: bool = True) -> None:
        self.gate = gate
        self.held: list[str] = []
        self._steps: list[tuple[str, str, list[str]]] = []
        self.values: list[bool | int | None] = []
        self._turns = 0
        gate.passing = not hold
        gate.on_done = self._done
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def address(self, replica: str) -> tuple[str, int]:
        """Where the gate listens for this replica."""
        parts = target.parse(self.gate.database_url(replica))
        return parts["host"], int(parts["port"])

    @property
    def steps(self) -> list[tuple[str, str, list[str]]]:
        """All of them, once the loop has seen what a client has seen."""
        goal = self._turns + 2
        while self._turns < goal:
            time.sleep(0.002)  # polls: the loop of another thread
        return self._steps

    def close(self) -> None:
        """Let what is on its way arrive, then close the gate."""
        self._stop.set()
        self._thread.join(10)
        assert not self._thread.is_alive(), "the gate hangs"
        self.gate.close()

    def _done(self, link, step) -> None:
        self._steps.append((step.text, step.outcome, step.tags))
        self.values.append(step.value)

    def _pump(self) -> None:
        while self.gate.pump(0.02) or not self._stop.is_set():
            self._turns += 1
            for link in list(self.gate.links):
                if link.held:
                    self.held.append(link.held.text)
                    link.release()


def plain(sent: bytes, received: bytes) -> tuple[bytes, bytes]:
    """A connection's bytes without the requests for encryption, which the gate itself declines."""
    while sent[4:8] in (struct.pack("!I", code) for code in (SSL, GSS)):
        assert received[:1] == b"N"
        sent, received = sent[8:], received[1:]
    return sent, received


@contextmanager
def wired(url: str, hold: bool = True):
    """A bench on a database, with `url` for clients; in the end both sides' bytes are compared."""
    server = target.parse(url)
    with ExitStack() as stack:
        behind = Tap(server["host"], int(server["port"]))
        stack.callback(behind.close)
        there = server | dict(zip(("host", "port"), map(str, behind.address), strict=True))
        bench = Bench(Gate(target.url_for(there, server["dbname"])), hold)
        stack.callback(bench.close)
        bench.before = before = Tap(*bench.address("A"))
        here = server | dict(zip(("host", "port"), map(str, before.address), strict=True))
        bench.url = target.url_for(here, server["dbname"])
        yield bench
        before.close()
    there = list(zip(map(bytes, behind.sent), map(bytes, behind.received), strict=True))
    here = [plain(bytes(s), bytes(r)) for s, r in zip(before.sent, before.received, strict=True)]
    assert sorted(here) == sorted(there), "the gate changed something"


def held(gate: Gate):
    """Pump a gate until something is held there; returns its link."""
    while not (links := [link for link in gate.links if link.held]):
        gate.pump(1)
    return links[0]


def pump_until(gate: Gate, thread: threading.Thread) -> None:
    """Pump a gate until a thread has ended."""
    while thread.is_alive():
        gate.pump(0.01)
