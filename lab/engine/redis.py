"""A real Redis for the stages that need one: a primary and its replica, on loopback, thrown away.

Redis has a clock of its own, which the lab cannot stop. So keys get a time to live that no run
comes near, and when a schedule moves the world's clock, `age` takes the same time off every key.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from lab.engine import scratch
from lab.engine.launch import die_with_parent
from lab.errors import LabError

__all__ = ["RedisPair", "missing"]

LIMIT = 10.0  # real seconds for a server to start, to answer, or to catch up
NOWHERE = ("127.0.0.1", 1)  # where no primary answers: the cable to the replica is pulled


def missing() -> LabError | None:
    """What Redis lacks here, with the remedy; None when it can be started."""
    if shutil.which("redis-server") is None:
        return LabError("There is no redis-server here, so what needs Redis is not run.",
                        "Debian and Ubuntu: apt-get install redis-server. "
                        "macOS: brew install redis.")
    if find_spec("redis") is None:
        return LabError("The client for Redis is not installed, so what needs Redis is not run.",
                        "make .venv/.redis installs it.")
    return None


class RedisPair:
    """A primary and a replica. Clients know one address, which a failover hands to the replica.

    Raises:
        LabError: Redis is not here, is older than 7, or does not start.
    """

    def __init__(self) -> None:
        if lack := missing():
            raise lack
        self._folder = scratch.folder()
        self._port = _free_port()
        self._servers: list[subprocess.Popen] = []
        self._clients: list[Any] = []
        self._disturbed = False
        self._start()

    @property
    def url(self) -> str:
        """The address that clients know."""
        return f"redis://127.0.0.1:{self._port}/0"

    def reset(self) -> None:
        """Both empty, the replica in step."""
        if self._disturbed:
            self._stop()
            self._start()
        else:
            self._primary.flushall()

    def lag(self) -> None:
        """From now on nothing reaches the replica."""
        self._in_step()
        self._disturbed = True
        self._replica.replicaof(*NOWHERE)

    def failover(self) -> None:
        """The primary dies (SIGKILL); the replica, with what it has received, takes its address."""
        if not self._disturbed:
            self._in_step()
        self._disturbed = True
        self._servers[0].kill()
        self._servers[0].wait()
        self._replica.replicaof("NO", "ONE")
        self._replica.config_set("port", self._port)

    def age(self, seconds: float) -> list[str]:
        """Take time off every key's time to live; returns what this ended."""
        client = self._client(self._port)
        ended = []
        for key in client.keys():  # noqa: SIM118 - the command KEYS; this is no dict
            left = client.pttl(key)
            if left >= 0:  # -1: it has no end
                client.pexpire(key, max(0, int(left - seconds * 1000)))
                if not client.exists(key):
                    ended.append(f"redis://{key.decode()} expires")
        return ended

    def close(self) -> None:
        """Stop both servers and delete their folder."""
        self._stop()
        self._folder.cleanup()

    def _start(self) -> None:
        self._disturbed = False
        self._primary = self._server(self._port)
        if int(self._primary.info("server")["redis_version"].split(".")[0]) < 7:
            raise LabError("This redis-server is older than 7.", "Install Redis 7 or newer.")
        # A new port each time: after a failover the old one was free for any other process to take.
        self._replica = self._server(_free_port(), "--replicaof", "127.0.0.1", str(self._port))
        self._in_step()

    def _stop(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
        for server in self._servers:
            server.kill()
            server.wait()
        self._servers.clear()

    def _in_step(self) -> None:
        """Wait until the replica has all that the primary has."""
        wanted = self._primary.info("replication")["master_repl_offset"]

        def reached() -> bool:
            said = self._replica.info("replication")
            return said["master_link_status"] == "up" and said["slave_repl_offset"] >= wanted

        _until(reached, "The replica did not catch up")

    def _server(self, port: int, *options: str) -> Any:
        """Start a server and return its client, once it is this server that answers there."""
        parent = os.getpid()
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--dir", self._folder.name, "--repl-diskless-sync-delay", "0",
             *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=(lambda: die_with_parent(parent)) if sys.platform == "linux" else None)
        self._servers.append(server)
        client = self._client(port)
        _until(lambda: client.info("server")["process_id"] == server.pid, "Redis did not start")
        return client

    def _client(self, port: int) -> Any:
        import redis  # an extra: only the stages that are about it need it

        client = redis.Redis(host="127.0.0.1", port=port, socket_timeout=LIMIT)
        self._clients.append(client)
        return client


def _until(holds: Callable[[], object], otherwise: str) -> None:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        with suppress(Exception):  # a server that is starting refuses, or says that it is loading
            if holds():
                return
        time.sleep(0.01)  # polls: the Redis server
    raise LabError(f"{otherwise} within {LIMIT:.0f} s.", "Run redis-server by hand to see why.", 1)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
