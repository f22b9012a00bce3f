"""The same weekly close on libraries that a team would pick: what each makes of each case.

A library is data in stage.toml ([peers.NAME]); a case is a function here. What comes out is a code
of the scenario table, read from the rows that are left, or "not run, because …".

Longer than 250 lines because every case of the matrix is a function of its own.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from lab.engine.crew import Crew, Late, NotRun, Stopped
from lab.engine.history import History, label
from lab.engine.link import Step
from lab.engine.postgres import Server
from lab.engine.wire import Gate
from lab.judge.stage import Stage
from lab.judge.verdict import judge, read
from lab.world.conditions import conditions

__all__ = ["CASES", "load", "matrix", "save"]

TABLE = "token_transactions"  # the work's first write
WATCH = 8.0  # real seconds in which nothing more happened
LIMIT = 20.0  # real seconds for a job to begin
LEADS = (10.0, 25.0, 50.0)  # real seconds from the start of the processes to the slot; more if late
NAMES = ("A", "B", "C")
SETUP = 5.0  # real seconds that a library's set-up may take before that
AT_ONCE = 5  # cases under way at the same time: fifteen processes


class Run:
    """One case of one library under way."""

    def __init__(self, crew: Crew, peer: Mapping[str, Any]) -> None:
        self.crew, self.peer = crew, peer

    def to_the_slot(self, *names: str) -> None:
        """Start these processes; they are ready, and the slot is known, before it comes."""
        self.crew.start(*names)
        known = self.peer.get("known", "SELECT true")
        self.crew.wait_for(lambda: self.crew.monitor.execute(known).fetchone()[0], LIMIT)
        self.crew.ready(before=self.crew.slot)

    def past_the_slot(self, seconds: float = 0.0) -> None:
        """Wait for the slot's time, and so many real seconds more."""
        left = (self.crew.slot - datetime.now(UTC)).total_seconds()
        self.crew.pause(max(0.0, left) + seconds)

    def until_at_work(self) -> str:
        """A process whose job has begun, once each that wants to has had time to begin it."""
        self.past_the_slot()
        if not self.crew.wait_for(lambda: self.crew.at_work(TABLE), LIMIT):
            raise NotRun(f"no job began within {LIMIT:.0f} s after the slot")
        self.crew.wait_for(lambda: len(self.crew.at_work(TABLE)) == len(NAMES), WATCH / 2)
        return self.crew.at_work(TABLE)[0]

    def age(self) -> None:
        """What the library counts as a sign of life is old now, as after a longer wait."""
        self.crew.monitor.execute(self.peer.get("age", "SELECT 1"))


def alive(run: Run) -> None:
    """Three processes, and nothing happens to them."""
    run.to_the_slot(*NAMES)
    run.past_the_slot()
    paid = f"SELECT count(*) FROM {TABLE}"
    run.crew.wait_for(lambda: run.crew.monitor.execute(paid).fetchone()[0], LIMIT)
    run.crew.pause(WATCH)


def killed(run: Run) -> None:
    """Who works is killed in the middle, and started again in the same place."""
    with run.crew.held(TABLE) as hold:
        run.to_the_slot(*NAMES)
        first = run.until_at_work()
        run.crew.kill(first)
        run.age()
        hold.commit()
    run.crew.start(first)
    run.crew.ready()
    run.crew.pause(WATCH)


def missed(run: Run) -> None:
    """All were down when the slot came; they are up again within a minute."""
    run.to_the_slot("A")
    run.crew.kill("A")
    run.past_the_slot(3.0)
    run.crew.start(*NAMES)
    run.crew.ready()
    run.crew.pause(WATCH)


def frozen(run: Run) -> None:
    """Who works stands still; another one is restarted meanwhile; then the first goes on."""
    with run.crew.held(TABLE) as hold:
        run.to_the_slot(*NAMES)
        first = run.until_at_work()
        run.crew.freeze(first)
        run.age()
        hold.commit()
    if not run.crew.wait_for(lambda: set(run.crew.busy()) <= {first}, LIMIT):
        raise NotRun(f"its other processes were still at work after {LIMIT:.0f} s")
    other = next(name for name in reversed(NAMES) if name != first)
    run.crew.kill(other)
    run.crew.start(other)
    run.crew.ready()
    run.crew.pause(WATCH)
    run.crew.thaw(first)
    run.crew.pause(WATCH)


def silent(run: Run) -> None:
    """The section is missing, and post_thread returns None."""
    for statement in conditions()["no-section"]:
        run.crew.monitor.execute(statement)
    alive(run)


CASES: dict[str, Callable[[Run], None]] = {
    "alive": alive, "killed": killed, "missed": missed, "frozen": frozen, "silent": silent}
LONGEST_FIRST = ("frozen", "killed", "missed", "gate", "alive", "silent")


def matrix(server: Server, stage: Stage,
           on_cell: Callable[[str, str, str], None] = lambda peer, case, code: None) -> dict:
    """Every library in every case, and what the gate sees of each.

    `on_cell` gets (library, case, outcome) as each is known. Returns {"date", "postgres",
    "peers": {name: {"version", case: outcome, …, "gate": {"claim", "got", "atomic"}}}}.
    """
    peers = stage.data["peers"]
    found: dict[str, dict[str, Any]] = {name: {"version": _version(peer)}
                                        for name, peer in peers.items()}

    stop = threading.Event()

    def cell(name: str, case: str) -> None:
        peer = peers[name]
        found[name][case] = outcome = _tried(
            (lambda lead: _gate(server, stage, peer, lead, stop)) if case == "gate" else
            (lambda lead: _play(server, stage, peer, CASES[case], lead, stop)))
        on_cell(name, case, outcome)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = [pool.submit(cell, name, case) for case in LONGEST_FIRST for name in peers]
        try:
            for future in as_completed(done):
                future.result()
        except BaseException:  # an interrupt among them: nobody waits for what is under way
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    order = ["version", *CASES, "gate"]
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "postgres": server.version,
            "peers": {name: {key: row[key] for key in order} for name, row in found.items()}}


def save(found: dict, path: Path) -> None:
    """Write a matrix down."""
    path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")


def load(path: Path) -> dict:
    """A matrix that was saved."""
    return json.loads(path.read_text(encoding="utf-8"))


def _version(peer: Mapping[str, Any]) -> str:
    try:
        return version(peer["package"])
    except PackageNotFoundError:
        return "not installed"


def _tried(play: Callable[[float], Any]) -> Any:
    for lead in LEADS:
        try:
            return play(lead)
        except Late:
            continue
        except NotRun as reason:
            return f"not run, because {reason}"
    return f"not run, because it was not ready within {LEADS[-1]:.0f} s"


def _slot(peer: Mapping[str, Any], lead: float) -> tuple[datetime, str]:
    """A slot `lead` real seconds away, after the set-up, and how the library is told of it."""
    slot = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=lead + SETUP)
    return slot, f"{slot.astimezone(ZoneInfo(peer['zone'])):{peer['notation']}}"


def _play(server: Server, stage: Stage, peer: Mapping[str, Any], case: Callable[[Run], None],
          lead: float, stop: threading.Event) -> str:
    with stage.database(server) as database, Crew(
            database, stage.folder / peer["script"], *_slot(peer, lead), stop=stop) as crew:
        if peer.get("setup", True):
            crew.setup()
        case(Run(crew, peer))
        history = History()
        history.complete = True
        return judge(read(crew.monitor, stage.effects), history, stage.effects).code


def _gate(server: Server, stage: Stage, peer: Mapping[str, Any], lead: float,
          stop: threading.Event) -> dict[str, Any]:
    """The library behind the gate: two processes are held at their claim, and let go in turn."""
    slot, close_at = _slot(peer, lead)
    with stage.database(server) as database, closing(Gate(database.url)) as gate:
        ended: list[tuple[str, int, Step, str]] = []
        gate.on_done = lambda link, step: ended.append((link.replica, link.pid, step, link.status))
        urls = {name: gate.database_url(name) for name in NAMES[:2]}
        claim = re.compile(peer["claim"], re.S)
        with Crew(database, stage.folder / peer["script"], slot, close_at, urls,
                  stop) as crew:
            if peer.get("setup", True):
                crew.setup()
            crew.start(*NAMES[:2])
            while (now := datetime.now(UTC)) < slot + timedelta(seconds=WATCH):
                gate.pump(0.02)
                if stop.is_set():
                    raise Stopped
                if slot > now > slot - timedelta(seconds=1) and crew.not_ready():
                    raise Late
                at_claim = {}
                for link in [link for link in gate.links if link.held]:
                    if now >= slot and claim.search(link.held.text):
                        at_claim.setdefault(link.replica, link)
                    else:
                        link.release()
                if len(at_claim) == 2 or now > slot + timedelta(seconds=WATCH / 2):
                    for name in sorted(at_claim):
                        at_claim[name].release()
        return _account(ended, claim, slot)


def _account(ended: Sequence[tuple[str, int, Step, str]], claim: re.Pattern,
             slot: datetime) -> dict[str, Any]:
    """What was seen: the claim, what each process got for it, and whether the work was inside."""
    began = time.monotonic() - (datetime.now(UTC) - slot).total_seconds()
    claims, inside, atomic = [], set(), False
    for replica, pid, step, status in ended:
        if step.released >= began and claim.search(step.text):
            claims.append((replica, step))
            inside |= {pid} if status == "T" else set()
        elif status == "I":
            inside.discard(pid)
        elif "INSERT INTO token_transactions" in step.text:
            atomic |= pid in inside
    first = dict(reversed(claims))
    got = [f"{replica}: {_answer(first[replica])}" for replica in sorted(first)]
    return {"claim": label(claims[0][1].text) if claims else "none", "got": got,
            "atomic": "yes" if atomic else "no"}


def _answer(step: Step) -> str:
    return f"error {step.error[0]}" if step.error else step.tags[-1] if step.tags else "nothing"
