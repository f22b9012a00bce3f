"""Many buyers at once, in one service with a small pool of connections: what a slow push costs.

Started as `python rush.py PLACEMENT BUYERS POOL`; prints a line of JSON for each buyer: seconds
from the start of the rush until it had a connection, and until it was done.

**Stops:** nothing.
**Lets through:** with the push inside the transaction, a queue for the pool and one for the row.
"""

import importlib
import json
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from lab.world import clock

import shop


def main(placement: str, buyers: int, size: int) -> None:
    """Let every buyer buy the same product, all at once; then print how long each took."""
    module = importlib.import_module(placement)
    pool: queue.Queue[psycopg.Connection] = queue.Queue()
    for _ in range(size):
        pool.put(shop.connect())
    ready = threading.Barrier(buyers + 1)
    local, told = threading.local(), []

    @contextmanager
    def pooled() -> Iterator[psycopg.Connection]:
        db = pool.get()
        local.connected = time.perf_counter()
        try:
            yield db
        finally:
            db.rollback()  # of what was not committed
            pool.put(db)

    def buy(number: int) -> None:
        ready.wait()
        module.buy(f"o-{number}", 1 + number % 4, 1, clock.now())
        told.append((local.connected, time.perf_counter()))

    module.connect = pooled  # where the placement takes its connection from
    threads = [threading.Thread(target=buy, args=(number,)) for number in range(buyers)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    print("rush started", flush=True)
    for thread in threads:
        thread.join()
    for connected, done in told:
        print(json.dumps({"connected": connected - began, "done": done - began}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
