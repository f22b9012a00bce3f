"""What the terminal and the plots say in the same words: a verdict's headline, and who did what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

from lab.engine.history import Event, History, label
from lab.show.lanes import WRITES, no_row

__all__ = ["Judged", "clock", "headline", "holds", "kept", "natural", "ordinals", "outcome_class",
           "outcome_of", "summaries"]

IDLE = "found\nnothing"


class Judged(Protocol):
    """What is shown of a verdict; `lab.judge.verdict.Verdict` has it."""

    effects: Sequence[Any]  # each with name, subject, outcome, times, expected, witnesses
    unknown: bool
    code: str  # such as "D3"; "E " before it: a run ended in an error that nobody injected


def holds(code: str) -> bool:
    """Whether a scenario's outcome is the wanted one: each effect once ("1", also after "E")."""
    return code.split()[-1:] == ["1"]


def kept(code: str, promised: str) -> str:
    """What a result is against its promise: "held", "broke, as promised" or "NOT as promised"."""
    if code != promised:
        return "NOT as promised"
    return "held" if holds(code) else "broke, as promised"


def headline(verdict: Judged) -> tuple[str, str]:
    """A verdict's sign (✓, ✗ or ?) and one line: the effects that went wrong, or that none did."""
    if verdict.unknown:
        return "?", "unknown: this run could not be judged"
    wrong: dict[str, dict[str, None]] = {}
    for effect in verdict.effects:
        if effect.outcome != "once":
            wrong.setdefault(_wrong(effect), {})[effect.name] = None
    if not wrong:
        failed = ", and a run ended in an error" if verdict.code.startswith("E ") else ""
        return "✓", f"every effect once{failed}"
    return "✗", "; ".join(f"{', '.join(names)} {said}" for said, names in wrong.items())


def _wrong(effect: Any) -> str:
    """What is wrong with an effect, with its numbers where the word does not tell them."""
    times, expected = effect.times, effect.expected
    if effect.outcome == "duplicated":
        return f"{times}× instead of {expected}×"
    if effect.outcome == "phantom":
        return f"phantom {times}×" if times > 1 else "phantom"
    if times == expected:
        return f"{effect.outcome}, {times}" if times < 0 else effect.outcome
    return effect.outcome if effect.outcome == "missed" else (
        f"{effect.outcome}, {times} instead of {expected}")


def ordinals(verdict: Judged | None, history: History) -> dict[int, str]:
    """The sign for each event that witnesses a violation: "1×", "2×" … in a duplicate, else "!".

    A run may bring an effect about in several statements, one a member: each is counted against the
    same statement of the other runs.
    """
    signs: dict[int, str] = {}
    runs = _runs(history)
    for effect in verdict.effects if verdict is not None else ():
        if effect.outcome == "once":
            continue
        in_run: Counter = Counter()
        so_far: Counter = Counter()
        for seq in sorted(effect.witnesses):
            place = in_run[runs[seq]]
            in_run[runs[seq]] += 1
            so_far[place] += 1
            sign = f"{so_far[place]}×" if effect.outcome == "duplicated" else "!"
            signs[seq] = max(signs.get(seq, ""), sign)
    return signs


def _runs(history: History) -> dict[int, tuple[str, int]]:
    """The run that each event belongs to: the replica, and how many ticks it has had."""
    ticks: Counter = Counter()
    runs = {}
    for event in history:
        ticks[event.replica] += event.kind == "tick"
        runs[event.seq] = event.replica, ticks[event.replica]
    return runs


def outcome_of(event: Event) -> str:
    """How a statement ended, in a few words: its command tag, "false", an error's code."""
    if event.failed:
        return " ".join(event.outcome.split()[:2])
    if event.outcome not in ("ok", "refused"):
        return event.outcome
    value = event.detail.get("value")
    if isinstance(value, bool):
        return "true" if value else "false"
    tag = event.detail.get("tag", "")
    last = tag.split()[-1:]  # a tag that is not the label's own is that of the last part of a WITH
    parts = event.label.startswith(WRITES) and tag.split()[:1] != event.label.split()[:1]
    if event.kind == "request":
        return tag
    if no_row(event):
        return "no row" if parts and tag else f"{tag}: no row" if tag else "refused"
    if parts and last:
        tag = f"{last[0]} row" if last == ["1"] else f"{last[0]} rows"
    return event.values or tag


def clock(when: str, since: str | None = None) -> str:
    """A world time as "18:01", or as "T+60 s" from `since`; what is no time as it is."""
    try:
        at = datetime.fromisoformat(when)
    except ValueError:
        return when
    if since is None:
        return f"{at:%H:%M}"
    seconds = round((at - datetime.fromisoformat(since)).total_seconds())
    return f"T+{seconds} s" if seconds else "T=0"


def summaries(history: History) -> dict[str, str]:
    """What became of each replica, in a few words over at most two lines."""
    runs: dict[tuple[str, int], list[Event]] = {}
    for seq, run in _runs(history).items():
        runs.setdefault(run, []).append(history[seq])
    told: dict[str, list[str]] = {}
    for (replica, _), events in sorted(runs.items()):
        if replica:
            told.setdefault(replica, []).append(_summary(events))
    lines = {}
    for replica, said in told.items():
        busy = [line for line in said if line != IDLE] or [IDLE]
        lines[replica] = busy[0] if len(busy) == 1 else (
            f"{_short(busy[0])},\nthen {_short(busy[-1])}")
    return lines


def _short(said: str) -> str:
    return re.split(r"[,:\n]", said)[0]


def _summary(events: Iterable[Event]) -> str:
    events = list(events)
    kinds = {event.kind for event in events}
    refused = next((event for event in events if no_row(event)), None)
    failed = next((event for event in events if event.failed), None)
    wrote = any(event.kind == "statement" and event.outcome == "ok" and not no_row(event)
                and label(event.statement).startswith(WRITES) for event in events)
    if "kill" in kinds:
        return "killed"
    if "cut" in kinds:
        return "cut off"
    if failed:
        return f"error\n{failed.outcome.split()[1]}"
    if wrote:
        return "worked,\n" + ("committed" if "commit" in kinds else
                              "rolled back" if "rollback" in kinds else "no end")
    if refused:
        what = ("the lock" if "advisory" in refused.label else
                "the key" if refused.kind == "request" else refused.label.split()[-1])
        return f"refused:\n{what}"
    return IDLE


def outcome_class(code: str) -> str:
    """The class of a scenario's code: once, duplicated, missed, partial, error or none."""
    words = code.split()
    if not words or words == ["-"]:
        return "none"
    kinds = {"1": "once", "D": "duplicated", "M": "missed", "P": "partial"}
    return kinds.get(words[-1][0], "error")


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """A sort key that puts A2 before A10."""
    return tuple((letters, int(digits or 0)) for letters, digits in
                 re.findall(r"(\D*)(\d*)", name) if letters or digits)
