"""Every picture of the lab: the timeline of a run, duplicates, the ladder, shares.

Each function returns a figure; `save` writes it as PNG and SVG.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from lab.show.picture import (
    BAD,
    GOOD,
    INK,
    MUTED,
    REPLICA_COLOURS,
    STAGE_COLOURS,
    Picture,
    banner,
    drawable,
    picture,
    save,
)
from lab.show.timeline import timeline
from lab.show.words import natural, outcome_class

__all__ = ["REPLICA_COLOURS", "STAGE_COLOURS", "Picture", "draw_cell", "draw_key", "duplicates",
           "ladder", "save", "shares", "timeline"]

# Fill, hatch and name of each class of cell: told apart in black and white by the hatch.
CELLS = {
    "once": ("#DDF0E4", "", "every effect once"),
    "duplicated": ("#F6B8A8", "///", "D: duplicated"),
    "missed": ("#F3DFA2", "\\\\\\", "M: missed"),
    "partial": ("#E6D3EC", "...", "P: coins once, thread lost"),
    "error": ("#DADADA", "xxx", "E: error"),
    "none": ("white", "", "-: does not apply"),
}


def duplicates(per_member: Mapping[str, int], expected: int = 1,
               title: str = "Times each member was paid", unit: str = "times") -> Picture:
    """How often each member got what was due to them, against how often they should have.

    Args:
        per_member: name -> number of times; drawn in this order, at most a dozen look good.
        expected: the right number, drawn as a line.
        title: one line.
        unit: what the axis counts.
    """
    with picture() as figure:
        axes = figure.add_axes((0.25, 0.13, 0.70, 0.70))
        names = [drawable(name) for name in per_member]
        counts = list(per_member.values())
        most = max([expected, *counts], default=1)
        for y, count in enumerate(counts):
            right = count == expected
            axes.barh(y, count, height=0.62, color="#DDF0E4" if right else "#F6B8A8",
                      edgecolor=GOOD if right else BAD, linewidth=2.5, hatch="" if right else "//")
            axes.text(count + most * 0.015, y, f"{count}×", va="center", size=26, weight="bold",
                      color=GOOD if right else BAD)
        axes.axvline(expected, color=INK, lw=3, ls=(0, (4, 3)))
        axes.annotate(f"expected: {expected}", (expected, 1.0), xycoords=("data", "axes fraction"),
                      xytext=(0, 8), textcoords="offset points", size=18, ha="center")
        axes.set_yticks(range(len(names)), names, size=20)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, most * 1.12)
        axes.set_xticks(range(most + 1) if most <= 12 else axes.get_xticks())
        axes.set_xlim(0, most * 1.12)
        axes.set_xlabel(unit)
        banner(figure, title)
    return figure


def ladder(cells: Mapping[tuple[int, str], str], expected: Mapping[tuple[int, str], str],
           titles: Mapping[str, str] | None = None, stages: Mapping[int, str] | None = None,
           title: str = "What each stage does in each scenario") -> Picture:
    """The heat map of stages and scenarios.

    Args:
        cells: (stage, scenario) -> code as it came out, such as (0, "A2") -> "D3".
        expected: the same for what was promised; a cell that differs is framed and told so.
        titles: scenario -> a few words, written over its column.
        stages: stage -> its name, written beside its row.
        title: one line.
    """
    rows = sorted({stage for stage, _ in cells})
    columns = sorted({scenario for _, scenario in cells}, key=natural)
    with picture() as figure:
        named = bool(titles)
        room = 0.55 if named else 0.73
        height = min(room, 0.13 * len(rows))
        axes = figure.add_axes((0.185, 0.115 + room - height, 0.79, height))
        used = set()
        for (stage, scenario), code in cells.items():
            used.add(draw_cell(axes, columns.index(scenario), rows.index(stage), code,
                               expected.get((stage, scenario), code)))
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(rows), 0)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], columns, weight="bold",
                        size=16 if len(columns) <= 16 else 14)
        axes.set_yticks([y + 0.5 for y in range(len(rows))],
                        [f"{row:02d} {(stages or {}).get(row, '')}".strip() for row in rows],
                        weight="bold")
        axes.tick_params(axis="y", pad=16)
        axes.tick_params(length=0, top=False, labeltop=not named, labelbottom=named)
        for spine in axes.spines.values():
            spine.set_visible(False)
        for y, row in enumerate(rows):
            axes.add_patch(Rectangle((-0.13, y + 0.05), 0.11, 0.9, clip_on=False,
                                     fc=STAGE_COLOURS.get(row, MUTED)))
        for x, column in enumerate(columns if named else ()):
            axes.text(x + 0.35, -0.12, drawable(titles.get(column, "")), rotation=52, size=15,
                      ha="left", va="bottom", rotation_mode="anchor")
        draw_key(figure, used, errors=any(code.startswith("E ") for code in cells.values()))
        banner(figure, title)
    return figure


def draw_cell(axes: Axes, x: float, y: float, code: str, promised: str = "") -> str:
    """Draw a code into the cell whose corner is (x, y); answers its kind, for the key.

    A code that is not the promised one is framed and told so.
    """
    kind = outcome_class(code)
    fill, hatch, _ = CELLS[kind]
    wrong = bool(promised) and code != promised
    axes.add_patch(Rectangle((x, y), 1, 1, fc=fill, ec="#8A8A8A", lw=0, hatch=hatch))
    axes.add_patch(Rectangle((x, y), 1, 1, fc="none", ec="white", lw=4))
    axes.text(x + 0.5, y + (0.4 if wrong else 0.5), code, ha="center", va="center",
              size={1: 22, 2: 22, 3: 19}.get(len(code), 16),
              weight="bold" if kind != "none" else "normal",
              color=MUTED if kind == "none" else INK, bbox=_plate(hatch))
    if wrong:
        axes.add_patch(Rectangle((x + 0.05, y + 0.05), 0.9, 0.9, fc="none", ec=BAD, lw=6,
                                 zorder=5))
        axes.text(x + 0.5, y + 0.76, f"not {promised}", ha="center", va="center", size=14,
                  color=BAD, bbox=_plate("x"))
    return kind


def draw_key(figure: Picture, used: Collection[str], errors: bool = False) -> None:
    """What the colours and hatches of the kinds of cells mean, below the picture."""
    keys = [Patch(fc=fill, hatch=hatch, ec="#8A8A8A", label=name)
            for kind, (fill, hatch, name) in CELLS.items() if kind in used]
    if errors:
        keys.append(Patch(fc="none", ec="none", label="E …: after an error"))
    figure.legend(handles=keys, loc="lower center", ncols=len(keys), columnspacing=1.0,
                  handlelength=1.6, handleheight=1.2)


def _plate(hatch: str) -> dict | None:
    """A white ground for a text that stands on a hatch."""
    return {"fc": "white", "ec": "none", "pad": 3, "boxstyle": "round,pad=0.15"} if hatch else None


def shares(per_stage: Mapping[int, tuple[int, int]], names: Mapping[int, str] | None = None,
           title: str = "Share of all interleavings that break it") -> Picture:
    """How many of a stage's interleavings break it.

    Args:
        per_stage: stage -> (number that break it, number of all).
        names: stage -> its name, under its bar.
        title: one line.
    """
    with picture() as figure:
        axes = figure.add_axes((0.09, 0.17, 0.89, 0.66))
        for x, (stage, (breaking, total)) in enumerate(sorted(per_stage.items())):
            share = 100 * breaking / total if total else 0.0
            axes.bar(x, share, width=0.66, color=STAGE_COLOURS.get(stage, MUTED), ec=INK, lw=1.6)
            axes.text(x, share + 2, f"{breaking:,} of {total:,}", ha="center", size=24,
                      weight="bold", color=BAD if breaking else GOOD)
        axes.axhline(0, color=INK, lw=2)
        ordered = sorted(per_stage)
        axes.set_xticks(range(len(ordered)),
                        [f"{s:02d}\n{(names or {}).get(s, '')}".strip() for s in ordered], size=18)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, max(len(ordered), 3) - 0.4)
        axes.set_ylim(0, 112)
        axes.set_yticks(range(0, 101, 25), [f"{tick} %" for tick in range(0, 101, 25)])
        axes.grid(axis="y", color="#DDDDDD")
        axes.set_ylabel("of all interleavings")
        banner(figure, title)
    return figure
