"""The picture of a crash sweep: one row a placement, one cell a crash point, on one screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from lab.engine.sweep import Outcome, Point, Sweep
from lab.show.picture import INK, MUTED, Picture, banner, picture

__all__ = ["LOOKS", "crashes", "short"]

# Fill, hatch, sign and meaning: without colour told apart by sign and hatch. Only phantom is black.
LOOKS = {
    "nothing": ("white", "", "–", "not bought, nobody told"),
    "once": ("#DDF0E4", "", "1", "bought, told once"),
    "early": ("#FFF3C4", "...", "E", "told before it is there (early)"),
    "duplicated": ("#CFE3F5", "///", "{times}", "told 2 or 3 times"),
    "lost": ("#F3C9A0", "xxx", "L", "bought, never told (lost)"),
    "phantom": (INK, "", "P", "told, and not bought (phantom)"),
}
HOW = ("Cells of a step: killed before it · connection cut before it · its answer lost "
       "(and a COMMIT: refused).",
       "Upper line: nobody tries again. Lower line: the front end does.")
UNKNOWN = ("white", "oo", "?", "could not be judged")
GAP, APART = 0.4, 1.0  # in cells: between steps, between programs
LINE = 0.36  # of a row: the height of a line of cells, and of the names over them


def crashes(sweeps: Mapping[str, Sweep], names: Mapping[str, str] | None = None,
            title: str = "Where the process may die") -> Picture:
    """Placements × crash points. Upper line of a row: nobody tries again; the lower: somebody does.

    Args:
        sweeps: placement -> its sweep, drawn from the top down.
        names: short names of steps, label -> a word.
        title: one line.
    """
    with picture() as figure:
        axes = figure.add_axes((0.165, 0.095, 0.825, 0.75))
        widths = [_row(axes, y, swept, names or {}) for y, swept in enumerate(sweeps.values())]
        axes.set_xlim(-0.1, max(widths))
        axes.set_ylim(len(sweeps) - 0.05, -0.05)
        axes.set_yticks([y + 1.75 * LINE for y in range(len(sweeps))],
                        [name.replace(" + ", " +\n") if " + " in name else
                         name.replace("_", "\n", 1) for name in sweeps],
                        size=18, weight="bold", linespacing=0.95)
        axes.set_xticks([])
        axes.tick_params(axis="y", length=0)
        axes.spines[:].set_visible(False)
        _legend(figure)
        points = sum(len(swept.points) for swept in sweeps.values())
        banner(figure, f"{title}: {points} points, each tried", y=0.945)
        figure.text(0.02, 0.9, HOW[0], size=17)
        figure.text(0.02, 0.868, HOW[1], size=17)
    return figure


def short(label: str, names: Mapping[str, str]) -> str:
    """A step's name in a word: INSERT, COMMIT, POST; a function by its own name."""
    if label in names:
        return names[label]
    verb, _, rest = label.partition(" ")
    return rest.removeprefix("pg_")[:9] if verb == "SELECT" else verb


def _row(axes: Axes, y: float, swept: Sweep, names: Mapping[str, str]) -> float:
    x, last = 0.0, None
    start = 0.0
    for point in swept.points:
        place = point.letter, point.step
        if last and place != last:
            x += APART if place[0] != last[0] else GAP
        if place != last:
            start = x
            _name(axes, point, start, y, names)
        _cell(axes, x, y + LINE, point.alone)
        _cell(axes, x, y + 1.75 * LINE, point.retried)
        x, last = x + 1, place
    return x


def _name(axes: Axes, point: Point, x: float, y: float, names: Mapping[str, str]) -> None:
    said = "end" if point.label == "the end" else short(point.label, names)
    axes.text(x, y + LINE - 0.05, said, size=14, color=INK, ha="left", va="bottom")


def _cell(axes: Axes, x: float, y: float, outcome: Outcome) -> None:
    fill, hatch, sign, _ = LOOKS.get(outcome.name, UNKNOWN)
    height = 0.72 * LINE
    axes.add_patch(Rectangle((x, y), 0.96, height, fc=fill, ec=MUTED, lw=1, hatch=hatch))
    text = sign.format(times=outcome.times)
    if outcome.name == "phantom" and outcome.times > 1:
        text += str(outcome.times)
    plate = {"boxstyle": "round,pad=0.08", "fc": fill, "ec": "none"} if hatch else None
    axes.text(x + 0.48, y + height / 2, text, size=15, weight="bold", ha="center",
              va="center_baseline", color="white" if fill == INK else INK, bbox=plate)


def _legend(figure: Picture) -> None:
    axes = figure.add_axes((0.165, 0.015, 0.825, 0.07))
    axes.set_axis_off()
    axes.set(xlim=(0, 3), ylim=(2, 0))
    for number, (fill, hatch, sign, meaning) in enumerate(LOOKS.values()):
        x, y = number % 3, number // 3
        axes.add_patch(Rectangle((x, y + 0.12), 0.075, 0.72, fc=fill, ec=MUTED, hatch=hatch))
        axes.text(x + 0.0375, y + 0.5, sign.format(times=2), weight="bold", ha="center",
                  va="center_baseline", color="white" if fill == INK else INK, size=14,
                  bbox={"boxstyle": "round,pad=0.05", "fc": fill, "ec": "none"} if hatch else None)
        axes.text(x + 0.09, y + 0.5, meaning, va="center_baseline", size=15)


def strip(points: Sequence[Point], retried: bool = False) -> str:
    """One line of a row as text: a sign a crash point, a blank between steps."""
    text, last = "", None
    for point in points:
        outcome = point.retried if retried else point.alone
        place = point.letter, point.step
        text += (" " if last and place != last else "")
        text += LOOKS.get(outcome.name, UNKNOWN)[2].format(times=outcome.times)
        last = place
    return text
