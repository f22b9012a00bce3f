"""The stepped engine: replicas of unmodified stage code, moved one statement at a time."""

from __future__ import annotations

import math

from lab.engine.company import INCIDENT, Company
from lab.engine.history import label
from lab.engine.link import Link
from lab.engine.replica import Replica
from lab.errors import LabError

__all__ = ["INCIDENT", "Impossible", "Stepper"]


class Impossible(LabError):
    """A move that cannot be made now; the remedy lists what could be."""


class Stepper(Company):
    """The company, and the moves of a schedule. Its arguments are those of `Company`.

    `most` is how many events a run may have before it is taken for an endless one.
    """

    most: float = math.inf

    def start(self, *letters: str) -> None:
        """Begin the runs of these replicas: each comes to its first statement, or to its end."""
        for letter in letters:
            replica = self._replica(letter)
            if replica.started or replica.dead or replica.frozen:
                raise self._impossible(letter, "start a run")
            replica.started, replica.finished = True, False
            self.record.note(letter, "tick", replica.program.call)
            self.stable.run(replica.process, replica.program, self.now)
        self.settle()

    def step(self, letter: str) -> None:
        """Release the statement that the replica is held at."""
        if len(self.history) > self.most:
            raise LabError(f"{self.most:,} statements were run, and the run is not over.\n"
                           f"{self.situation()}", "Look for a loop that never ends.", code=1)
        link, replica = self._held_link(letter, "take a step")
        self.sessions.about_to_move(link, any(r.waits_for for r in self.replicas.values()))
        replica.moved = link.release()
        self.settle(letter)

    def kill(self, letter: str) -> None:
        """SIGKILL the replica's process; the kernel closes its connections."""
        replica = self._replica(letter)
        if replica.dead:
            raise self._impossible(letter, "be killed")
        self.record.note(letter, "kill", "SIGKILL", "killed")
        self._lose_process(replica)
        self.settle(letter)

    def cut(self, letter: str, before: bool) -> None:
        """Break the connection before the held statement arrives, or once it ran but unanswered."""
        link, replica = self._held_link(letter, "have its connection cut")
        where = "before" if before else "after"
        self.record.note(letter, "cut", f"{where} {label(link.held.text)}", "cut")
        if before:
            link.cut_before()
        else:
            replica.moved = link.release()
            replica.moved.cut = True
        self.settle(letter)

    def freeze(self, letter: str) -> None:
        """SIGSTOP: the replica does not go on; its transaction and its locks stay."""
        replica = self._replica(letter)
        if replica.dead or replica.frozen:
            raise self._impossible(letter, "be frozen")
        replica.process.freeze()
        replica.frozen = True
        self.record.note(letter, "freeze", "SIGSTOP")

    def thaw(self, letter: str) -> None:
        """SIGCONT."""
        replica = self._replica(letter)
        if not replica.frozen:
            raise self._impossible(letter, "be thawed")
        replica.process.thaw()
        replica.frozen = False
        self.record.note(letter, "thaw", "SIGCONT")
        self.settle(letter)

    def again(self, letter: str) -> None:
        """Another run of a replica that has finished one."""
        replica = self._replica(letter)
        if not replica.finished or replica.dead:
            raise self._impossible(letter, "run again")
        replica.forget_run()
        self.start(letter)

    def restart(self, letter: str) -> None:
        """A new process in the replica's place: a deploy, or an orchestrator after a crash."""
        replica = self._replica(letter)
        if not replica.dead:
            self.kill(letter)
        replica.forget_run()
        self._give_process(replica)

    def _replica(self, letter: str) -> Replica:
        if letter not in self.replicas:
            raise Impossible(f"There is no replica {letter}.",
                             f"The replicas of this run are {', '.join(self.replicas)}.")
        return self.replicas[letter]

    def _held_link(self, letter: str, what: str) -> tuple[Link, Replica]:
        replica = self._replica(letter)
        link = next((link for link in self.gate.of(letter) if link.held), None)
        if link is None or replica.frozen:
            raise self._impossible(letter, what)
        return link, replica

    def _impossible(self, letter: str, what: str) -> Impossible:
        return Impossible(
            f"{letter} cannot {what}: it is {self.state(letter)}.",
            f"Replicas that can take a step now: {', '.join(self.possible()) or 'none'}.\n"
            f"{self.situation()}")
