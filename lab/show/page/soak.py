"""Plays at random, as no class ever would, and looks whether anything is left behind."""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import psutil

from lab.engine import target
from lab.engine.postgres import server
from lab.errors import LabError
from lab.judge.stage import stages
from lab.show.page.desk import Desk
from lab.show.page.view import view

__all__ = ["left_behind", "play_at_random", "run"]

MOVES = ("", "", "", "", "*2", "..", "..commit", ".start", ".kill", ".restart", ".again", ".freeze",
         ".thaw", ".cut-before", ".cut-after")


def run(seconds: float) -> int:
    """Play at random for so long; the exit code is 1 when something was left behind."""
    seed = random.randrange(10**6)
    print(f"Playing at random for {seconds:.0f} s, seed {seed} …", flush=True)
    desk = Desk()
    done = play_at_random(desk, seconds, seed)
    told = ", ".join(f"{name} {times:,}" for name, times in done.most_common())
    print(f"{done.total():,} orders: {told}.")
    left = left_behind(desk)
    print("\n".join(left) or "Nothing was left behind: no process, no connection, no database.")
    return 1 if left else 0


def play_at_random(desk: Desk, seconds: float, seed: int) -> Counter[str]:
    """Give random orders for so long, then close the desk; answers how many of each were given."""
    chance, done = random.Random(seed), Counter()
    numbers = [found.number for found in stages()]
    names = ["move"] * 60 + ["undo"] * 6 + ["restart"] * 3 + ["cast", "choose", "scenario", "close"]
    ends = time.monotonic() + seconds
    try:
        while time.monotonic() < ends:
            name = chance.choice(names)
            done[name] += 1
            match name:
                case "move":
                    desk.do("move", text=chance.choice(desk.letters) + chance.choice(MOVES))
                case "cast":
                    desk.do("cast", letters="ABC"[:chance.randint(1, 3)])
                case "choose":
                    desk.do("choose", number=chance.choice(numbers))
                case "scenario":
                    told = view(desk)["scenarios"] if desk.stepper else []
                    if told:
                        desk.do("scenario", name=chance.choice(told)["name"])
                case "close":
                    desk.close()
                    desk.open()
                case _:
                    desk.do(name)
            view(desk)
    except LabError:
        print(f"The moves were: {' '.join(map(str, desk.moves))}", flush=True)
        raise
    finally:
        desk.close()
    return done


def left_behind(desk: Desk) -> list[str]:
    """What there still is of a closed desk: processes and databases.

    A connection keeps its database from being dropped: where no database is left, none is either.
    """
    found = [f"Process {child.pid} ({child.name()}) is still there." for child in
             psutil.Process(os.getpid()).children(recursive=True)]
    with server() as used, target.connect(target.parse(used.url)) as conn:
        rows = conn.execute("SELECT datname FROM pg_database WHERE datname = ANY(%s)", [desk.names])
        found += [f"The database {name} is still there." for name, in rows]
    return found
