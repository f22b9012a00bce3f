"""The browsers that look at one run: each order is carried out in turn, each result goes to all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from lab.errors import LabError
from lab.show.page.desk import Desk
from lab.show.page.view import view

__all__ = ["Room"]

ALIVE = 10.0  # seconds between two signs of life to a browser


class Room:
    """A desk, the one thread that it lives in, and the browsers that watch.

    Args:
        number: of the stage to begin with.
        patience: seconds after the last browser has gone until processes and database are freed.
    """

    def __init__(self, number: str | int, patience: float = 5.0) -> None:
        self.patience = patience
        self._thread = ThreadPoolExecutor(1, "desk")
        self.desk = Desk(number, self._progress)
        self._watchers: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task] = set()
        self._version = 0
        self._latest = ""

    async def order(self, name: str, what: dict[str, Any]) -> int:
        """Carry out an order and tell everybody; returns the version of what they are told."""
        await self._in_thread(lambda: self.desk.do(name, **what))
        return self._version

    async def watch(self) -> AsyncIterator[str]:
        """The run as server-sent events: at once as it is, and then whenever it changes."""
        news: asyncio.Queue[str | None] = asyncio.Queue()
        self._watchers.add(news)
        if self._leaving:
            self._leaving.cancel()
        try:
            yield "retry: 1000\n\n"
            opened = asyncio.ensure_future(self._in_thread(self.desk.open))
            while True:
                try:
                    told = await asyncio.wait_for(news.get(), ALIVE)
                except TimeoutError:
                    told = ": still here\n\n"
                if told is None:
                    return
                yield told
        finally:
            with suppress(UnboundLocalError):
                opened.cancel()
            self._watchers.discard(news)
            if not self._watchers:
                self._leaving = asyncio.get_running_loop().call_later(self.patience, self._leave)

    def end(self) -> None:
        """Let every browser go; may be called from a signal's handler."""
        if self._loop:
            for news in self._watchers:
                self._loop.call_soon_threadsafe(news.put_nowait, None)

    async def close(self) -> None:
        """Free everything."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self.desk.close)
        self._thread.shutdown()

    def _leave(self) -> None:
        task = asyncio.ensure_future(
            asyncio.get_running_loop().run_in_executor(self._thread, self.desk.close))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _in_thread(self, work: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._tell(await self._loop.run_in_executor(self._thread, self._worked, work))

    def _worked(self, work: Callable[[], None]) -> dict[str, Any]:
        try:
            work()
            return view(self.desk)
        except LabError as problem:
            return {"problem": {"what": problem.what, "remedy": problem.remedy}}

    def _tell(self, state: dict[str, Any]) -> None:
        self._version += 1
        text = json.dumps({"version": self._version, **state}, ensure_ascii=False)
        for news in self._watchers:
            news.put_nowait(f"event: state\nid: {self._version}\ndata: {text}\n\n")

    def _progress(self, runs: int) -> None:
        """Called in the desk's thread."""
        if self._loop and runs % 20 == 0:
            self._loop.call_soon_threadsafe(self._tell_progress, runs)

    def _tell_progress(self, runs: int) -> None:
        for news in self._watchers:
            news.put_nowait(f"event: progress\ndata: {runs}\n\n")
