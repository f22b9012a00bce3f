"""How fast a stage's relays deliver: rows for the benchmark, and a part of a stage's tale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.engine.postgres import Server
from lab.engine.relays import Delivery, deliver
from lab.judge.stage import Stage

__all__ = ["measure", "rows"]

MESSAGES = 200  # two seconds and more: a hiccup does not matter
PUSH = 0.01  # seconds that a push takes, as one that goes over a network
RELAYS = (1, 2)


def measure(server: Server, stage: Stage, messages: int = MESSAGES,
            relays: Sequence[int] = RELAYS) -> dict[int, Delivery]:
    """Number of relays -> what they delivered of that many pending messages, on new databases.

    Args:
        stage: one with a `[relays]` table: `script` (the relay), `fill` (SQL that makes messages).
    """
    declared: Mapping[str, Any] = stage.data["relays"]
    measured = {}
    for number in relays:
        with stage.database(server) as database:
            measured[number] = deliver(database, stage.folder / declared["script"],
                                       declared["fill"], messages, number, PUSH)
    return measured


def rows(measured: Mapping[int, Delivery]) -> list[tuple[str, str]]:
    """What was measured as (what, how much) for a table."""
    return [(f"{number} relay{'s' if number > 1 else ''}, {one.messages} messages pending",
             f"{one.rate:.0f} messages/s, median lag {one.lag:.2f} s")
            for number, one in measured.items()]
