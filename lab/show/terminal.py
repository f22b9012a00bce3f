"""What a person reads while the lab runs: events, transcripts, a phone, verdicts, the ladder.

Every function returns something for `screen().print`. Colour only repeats what signs and words say,
so a pipe, NO_COLOR and a terminal that knows no more than ASCII lose nothing.
"""

from __future__ import annotations

import codecs
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from lab.engine.history import Event, History
from lab.show.tables import ladder_table, verdict
from lab.show.words import kept, outcome_of

__all__ = ["event_line", "heading", "ladder_table", "meter", "phone", "result", "screen",
           "transcript", "verdict"]

REPLICA_STYLES = {"A": "bright_blue", "B": "yellow", "C": "green", "D": "magenta", "E": "cyan"}
REPLICA_MARKS = {"A": "●", "B": "■", "C": "▲", "D": "◆", "E": "★"}
PLAIN = str.maketrans({"●": "o", "■": "#", "▲": "^", "◆": "*", "★": "+", "✓": "+", "✗": "X",
                       "…": ".", "×": "x", "·": ".", "→": ">", "≥": ">", "–": "-", "—": "-",
                       "🥇": "1.", "🥈": "2.", "🥉": "3.", "¡": "!", "¿": "?"})


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What to write for what the terminal cannot show: as wide, so that boxes stay in shape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    shown = []
    for sign in error.object[error.start:error.end].translate(PLAIN):
        bare = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
        wide = unicodedata.east_asian_width(sign) in "WF"
        shown.append(bare or ("  " if wide else "" if unicodedata.combining(sign) else "?"))
    return "".join(shown), error.end


codecs.register_error("lab-plain", _plain)


def screen(file: TextIO | None = None) -> Console:
    """The console that everything is printed on: 80 columns when piped, ASCII where it must be."""
    stream = file or sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="lab-plain")
    return Console(file=file, highlight=False, markup=False, emoji=False)


def _replica(letter: str) -> Text:
    if not letter:
        return Text("   ")
    return Text(f"{letter} {REPLICA_MARKS.get(letter, ' ')}",
                f"bold {REPLICA_STYLES.get(letter, 'white')}")


def _what(event: Event) -> str:
    words = {"tick": "wakes up", "end": "done", "kill": "KILLED", "cut": "CONNECTION CUT",
             "freeze": "FROZEN", "thaw": "goes on"}
    return words.get(event.kind, event.label or event.kind)


def event_line(event: Event) -> Text:
    """One event as it happens: world clock, replica, what it did, how that ended. One line."""
    at = f"{datetime.fromisoformat(event.clock):%H:%M:%S}" if event.clock else " " * 8
    what = _what(event)
    line = Text.assemble((f"{at}  ", "dim"), _replica(event.replica), "  ",
                         (f"{what[:37]:<38}", "bold" if event.kind == "commit" else ""),
                         no_wrap=True, overflow="ellipsis")
    ended = outcome_of(event)
    if event.outcome == "waiting":
        ended = f"waiting for {', '.join(event.waits_for)}" if event.waits_for else "waiting"
    bad = event.failed or event.kind in ("kill", "cut")
    line.append("" if ended == what else ended, "bold red" if bad else "dim")
    line.rstrip()
    return line


def transcript(history: History) -> Text:
    """A stepped run in the manner of PostgreSQL's isolationtester: one line a move.

    The number is the move's, counted from 1; a line without one belongs to the move above it.
    """
    lines, last, idle = Text(), None, set()  # idle: whose run has come to no statement yet
    telling = {event.move for event in history if event.kind != "tick"}
    ran: set[str] = set()
    for event in history:
        if event.kind == "tick":
            idle.add(event.replica)
            if event.move >= 0 and event.move not in telling:
                said = "runs again" if event.replica in ran else "starts"
                lines.append(f"{event.move + 1:>3}  ", "dim")
                lines.append(f"{event.replica}: ", f"bold {REPLICA_STYLES.get(event.replica, '')}")
                lines.append(f"<{said}>\n", "bold")
            ran.add(event.replica)
            continue
        if event.kind == "end" and not event.failed and event.replica not in idle:
            continue
        idle.discard(event.replica)
        number = f"{event.move + 1:>3}" if event.move >= 0 and event.move != last else "   "
        last = event.move
        lines.append(f"{number}  ", "dim")
        style = REPLICA_STYLES.get(event.replica, "")
        lines.append(f"{event.replica}: " if event.replica else "", f"bold {style}")
        lines.append_text(_move(event))
        lines.append("\n")
    lines.rstrip()
    return lines


def _move(event: Event) -> Text:
    ended = outcome_of(event)
    red = "bold red" if event.failed else ""
    if event.kind == "clock":
        return Text(f"-- {datetime.fromisoformat(event.clock):%a %d %b %Y, %H:%M}", "italic")
    if event.kind in ("condition", "expiry"):
        return Text(f"-- {event.statement}", "italic")
    if event.kind in ("kill", "cut", "freeze", "thaw", "end"):
        said = {"kill": "killed", "freeze": "frozen", "thaw": "goes on",
                "cut": f"cut {event.statement}",
                "end": f"ends with {ended}" if event.failed else "ends without a statement",
                }[event.kind]
        bad = event.failed or event.kind in ("kill", "cut")
        return Text(f"<{said}>", "bold red" if bad else "bold")
    if event.outcome == "waiting":
        whom = f" for {', '.join(event.waits_for)}" if event.waits_for else ""
        return Text.assemble(f"{event.label} ... ", (f"<waiting{whom}>", "bold yellow"))
    if event.resumes is not None:
        return Text.assemble(("<... completed>", "bold yellow"), " ", (ended or "ok", red))
    if ended in ("", event.label):
        return Text(event.label, "bold" if event.kind == "commit" else "")
    return Text.assemble(f"{event.label:<40} ", (ended, red or "dim"))


def phone(member: str, notifications: Sequence[tuple[str, float]], wallet: int,
          expected: int) -> RenderableType:
    """A member's phone: what they were told, and what is in the wallet.

    Args:
        member: the name.
        notifications: (text, age in minutes), in the order shown.
        wallet: coins they have.
        expected: coins they should have.
    """
    cards = [Panel(Group(Text(text), Text(f"hace {age:.0f} min", "dim")), box=box.ROUNDED,
                   padding=(0, 1)) for text, age in notifications]
    right = wallet == expected
    money = Text.assemble("Wallet ", (f"{wallet:+d}", "bold" if right else "bold red"))
    money.append("" if right else f" (expected {expected:+d})")
    nothing = Text("\nsin notificaciones\n", "dim")
    inside = Group(Text(member, "bold"), *(cards or [nothing]), money)
    return Panel(inside, box=box.HEAVY, width=50, padding=(0, 1), title="o =====", subtitle="( )")


@contextmanager
def meter(console: Console, what: str, total: int | None = None,
          unit: str = "") -> Iterator[Callable[..., None]]:
    """A progress display that is gone when the block ends; nothing at all when piped.

    Args:
        console: from `screen`.
        what: what is being done, in a few words.
        total: how many there will be; None while nobody knows.
        unit: what is counted; a rate is shown when it is given.

    Yields:
        tell(done, note="", total=None): how many are done, and what to add, such as "71 breaking".
    """
    rate = [TextColumn("{task.fields[rate]}")] if unit else []
    bar = Progress(TextColumn("{task.description}"), BarColumn(bar_width=20),
                   TextColumn("{task.fields[count]}"), *rate,
                   TextColumn("[bold]{task.fields[note]}"),
                   console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(what, total=total, count="", rate="", note="")
    whole = total

    def tell(done: int, note: str = "", total: int | None = None) -> None:
        nonlocal whole
        whole = total or whole
        speed = bar.tasks[0].speed
        bar.update(task, completed=done, total=whole, note=note,
                   count=f"{done:,} of {whole:,}" if whole else f"{done:,}",
                   rate=f"{speed:,.0f} {unit}/s" if speed else "")

    with bar:
        yield tell


def heading(say: str) -> RenderableType:
    """A step of a stage's tale."""
    return Text(f"\n== {say}", "bold")


def result(code: str, promised: str) -> Text:
    """How a step of the tale came out against its promise."""
    said = kept(code, promised)
    if code != promised:
        return Text(f"!! {said}: {code}, promised {promised}", "bold reverse red")
    if said != "held":
        return Text(f"✗ {said} ({code})", "bold red")
    error = ", and a run ended in an error" if code.startswith("E ") else ""
    return Text(f"✓ {said} ({code}: every effect once{error})", "bold green")
