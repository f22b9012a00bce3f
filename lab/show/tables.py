"""The tables of the terminal: a verdict, effect by effect, and the ladder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.engine.history import History
from lab.show.words import Judged, headline, holds, natural

__all__ = ["ladder_table", "verdict"]

SIGN = {True: "✓", False: "✗"}


def verdict(judged: Judged, history: History | None = None) -> RenderableType:
    """A verdict's headline, then each effect: its outcome, how often, the events that prove it.

    Args:
        judged: the verdict.
        history: names the witnesses by replica and move (or time, in a free run), not by number.
    """
    sign, line = headline(judged)
    style = {"✓": "bold green", "✗": "bold red"}.get(sign, "bold yellow")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    where = "" if not history else " (move)" if history[0].move >= 0 else " (time)"
    for name in ("effect", "for", "outcome", "found", f"witnesses{where}"):
        table.add_column(name, overflow="fold", no_wrap=name in ("outcome", "found"))
    alike: dict[tuple, list[str]] = {}
    for effect in judged.effects:
        alike.setdefault((effect.name, effect.outcome, effect.times, effect.expected,
                          tuple(effect.witnesses)), []).append(effect.subject)
    for (name, outcome, times, expected, witnesses), subjects in alike.items():
        right = outcome == "once"
        table.add_row(name, "\n".join(subjects),
                      Text(f"{SIGN[right]} {outcome}", "green" if right else "bold red"),
                      f"{times} of {expected}",
                      _shortened(dict.fromkeys(_witness(seq, history) for seq in witnesses)))
    head = Text(f"{sign} {line}", style)
    return Group(head, table) if judged.effects else head


def _shortened(lines: Iterable[str], most: int = 4) -> str:
    lines = list(lines)
    if len(lines) > most:
        lines[most - 1:] = [f"and {len(lines) - most + 1} more"]
    return "\n".join(lines)


def _witness(seq: int, history: History | None) -> str:
    if history is None:
        return f"#{seq}"
    event = history[seq]
    if event.move >= 0:
        return f"{event.replica} {event.move + 1}"
    return f"{event.replica} {datetime.fromisoformat(event.clock):%H:%M}"


def ladder_table(cells: Mapping[tuple[int, str], str],
                 expected: Mapping[tuple[int, str], str] | None = None,
                 titles: Mapping[str, str] | None = None) -> RenderableType:
    """Scenarios against stages, and how many came out otherwise than promised.

    Args:
        cells: (stage, scenario) -> code as it came out, such as (0, "A2") -> "D3".
        expected: the same for what was promised; a cell that differs says so.
        titles: scenario -> a few words.
    """
    stages = sorted({stage for stage, _ in cells})
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("", no_wrap=True)
    table.add_column("scenario", max_width=max(16, 72 - 8 * len(stages)))
    for stage in stages:
        table.add_column(f"{stage:02d}", no_wrap=True, min_width=5)
    different = 0
    for scenario in sorted({scenario for _, scenario in cells}, key=natural):
        row = [Text(scenario), Text((titles or {}).get(scenario, ""))]
        for stage in stages:
            code = cells.get((stage, scenario), "")
            promised = (expected or {}).get((stage, scenario), code)
            different += code != promised
            row.append(_cell(code, promised))
        table.add_row(*row)
    legend = Text("✓ every effect once  ✗ D3 coins 3 times, M missed, P thread lost, "
                  "E an error", "dim")
    if not different:
        return Group(table, legend)
    return Group(table, legend, Text(f"!! {different} not as promised", "bold reverse red"))


def _cell(code: str, promised: str) -> Text:
    if code != promised:
        return Text(f"!! {code}\nnot {promised}", "bold reverse red")
    if code in ("", "-"):
        return Text(f"  {code}", "dim")
    return Text(f"✓ {code}", "green") if holds(code) else Text(f"✗ {code}", "red")
