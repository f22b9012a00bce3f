"""The picture of a run: a lane a replica; what waited, held a lock, committed and went wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from matplotlib.patches import Rectangle

from lab.engine.history import History
from lab.show.flags import Flag, flags_of, levels_of, pack, raise_over
from lab.show.lanes import Bar, Lanes, lay_out
from lab.show.looks import keys_of, look_of, mark_of
from lab.show.picture import (
    BAD,
    GOOD,
    INK,
    MUTED,
    REPLICA_COLOURS,
    Picture,
    banner,
    drawable,
    picture,
)
from lab.show.words import Judged, clock, headline, ordinals, summaries

__all__ = ["timeline"]

# In pixels of the 1600 x 900 picture, which are the units of the vertical axis.
AXES = (0.125, 0.135, 0.863, 0.71)
TOP = 26  # room over the first lane for the clock
BAR, BAND, GAP, UNDER = 36, 12, 24, 16
LINE, SMALL = 22, 15  # height of a line of labels, size of its letters in points
SCALES = (1.6, 1.3, 1.0)  # of all these: a run of few statements is drawn larger


def timeline(history: History, title: str, verdict: Judged | None = None,
             since: str | None = None) -> Picture:
    """Draw a run.

    Args:
        history: of a stepped run (the axis counts moves) or of a free one (the axis is the clock).
        title: one line.
        verdict: marks its witnesses and is told under the title; None draws the run alone.
        since: ISO time; the clock is then told as T=0, T+60 s … from it, as in the post.
    """
    lanes = lay_out(history)
    with picture() as figure:
        draw = _Drawing(figure, lanes, ordinals(verdict, history))
        draw.scenery(summaries(history), since)
        for replica in lanes.replicas:
            draw.lane(replica)
        draw.releases()
        draw.witnesses()
        banner(figure, title)
        if verdict is not None:
            sign, line = headline(verdict)
            colour = {"✓": GOOD, "✗": BAD}.get(sign, MUTED)
            banner(figure, f"{sign} {line}", y=0.888, size=21, colour=colour)
        draw.legend()
    return figure


class _Drawing:
    """One timeline being drawn: y is in pixels from the top, x in columns."""

    def __init__(self, figure: Picture, lanes: Lanes, bad: Mapping[int, str]) -> None:
        self.figure, self.lanes, self.bad = figure, lanes, bad
        self.axes = figure.add_axes(AXES)
        self.height, width = AXES[3] * 900, AXES[2] * 1600
        self.scale = 1.0
        measured = {replica: flags_of(self._bars(replica), self._ends(replica), bad,
                                      self._measure) for replica in lanes.replicas}
        widest = width / (max(lanes.width, 6.0) + 0.3)
        for self.scale in SCALES:
            self.flags = {replica: [replace(flag, width=flag.width * self.scale) for flag in flags]
                          for replica, flags in measured.items()}
            # The widest column that leaves every label inside the picture.
            self.column = min([widest, *((width - flag.width - 10) / (flag.start + 0.3)
                                         for flags in self.flags.values() for flag in flags)])
            if self._fits() and self.column > 0.75 * widest:
                break
        self.tops, self.bases = self._heights()
        self.used: set[str] = set()
        self.axes.set_xlim(-0.3, width / self.column - 0.3)
        self.axes.set_ylim(self.height, 0)

    def _bars(self, replica: str) -> list[Bar]:
        return sorted((b for b in self.lanes.bars if b.replica == replica), key=lambda b: b.start)

    @property
    def bar(self) -> float:
        """The height of a bar."""
        return BAR * self.scale

    @property
    def letters(self) -> float:
        """The size of the labels' letters, in points."""
        return SMALL * self.scale

    def _ends(self, replica: str) -> list[float]:
        return [mark.x for mark in self.lanes.marks if mark.replica == replica]

    def _measure(self, text: str, bold: bool = False) -> float:
        probe = self.figure.text(0, 0, text, size=self.letters,
                                 weight="bold" if bold else "normal")
        width = probe.get_window_extent().width
        probe.remove()
        return width

    def _fits(self) -> bool:
        """Whether each label has a line for itself at this scale."""
        lines = 0
        for flags in self.flags.values():
            raise_over(flags, self.column)
            lines += levels_of(flags)
        return lines * LINE * self.scale <= self._room()

    def _room(self) -> float:
        """The height that is left for labels."""
        return self.height - TOP - len(self.flags) * (BAR + BAND + GAP) * self.scale

    def _heights(self) -> tuple[dict[str, float], dict[str, float]]:
        """The y of each lane's top, and of its bars' top; a lane with more labels is higher."""
        levels = {}
        for replica, flags in self.flags.items():
            raise_over(flags, self.column)
            levels[replica] = levels_of(flags)
        line, room = LINE * self.scale, self._room()
        while sum(levels.values()) * line > room and max(levels.values()) > 1:
            levels[max(levels, key=lambda replica: levels[replica])] -= 1
        spare = (room - sum(levels.values()) * line) / max(1, len(levels))
        tops, bases, y = {}, {}, float(TOP)
        for replica, flags in self.flags.items():
            if levels_of(flags) > levels[replica]:
                pack(flags, self.column, levels[replica])
            tops[replica] = y
            y += (BAR + BAND + GAP) * self.scale + levels[replica] * line + spare
            bases[replica] = y - (BAR + BAND + UNDER) * self.scale - spare / 3
        return tops, bases

    def scenery(self, told: Mapping[str, str], since: str | None) -> None:
        """The lanes' grounds and names, the clock, the axis."""
        axes, lanes = self.axes, self.lanes
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        if lanes.stepped:
            axes.text(-0.012, -0.03, "move", transform=axes.transAxes, ha="right", va="center",
                      size=18)
        else:
            axes.set_xlabel("world clock in Mexico City; statements stretched, pauses cut short")
        free = -1e9
        for x, when in lanes.clocks:
            axes.axvline(x, color=MUTED, lw=1.4, ls=(0, (5, 4)), zorder=0.5)
            if x * self.column > free:
                said = axes.text(x, 13, drawable(clock(when, since)), ha="left", va="center",
                                 size=16, zorder=6, bbox={"fc": "white", "ec": "none", "pad": 1})
                free = x * self.column + said.get_window_extent().width + 12
        ticks = lanes.ticks[::max(1, math.ceil(36 / self.column))]
        axes.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
        bottoms = [*self.tops.values(), self.height][1:]
        for index, replica in enumerate(lanes.replicas):
            if index % 2 == 0:
                axes.axhspan(self.tops[replica], bottoms[index], color="#F3F3F3", zorder=0)
            y = self.bases[replica] + self.bar / 2
            over = {"transform": axes.get_yaxis_transform(), "va": "center", "color": INK}
            axes.text(-0.131, y, replica, size=36, weight="bold", **over)
            axes.text(-0.099, y, told.get(replica, ""), size=15, linespacing=1.15, **over)

    def lane(self, replica: str) -> None:
        """A replica's life, locks, bars, labels and marks."""
        base, colour = self.bases[replica], REPLICA_COLOURS.get(replica, MUTED)
        for band in (b for b in self.lanes.bands if b.replica == replica):
            if band.what == "alive":
                self.axes.plot([band.start, band.end], [base + self.bar / 2] * 2, color=MUTED, lw=3,
                               zorder=1, solid_capstyle="butt")
            else:
                self.used.add("lock")
                self.axes.add_patch(Rectangle(
                    (band.start, base + self.bar + 5), band.end - band.start, BAND * self.scale,
                    fc="white", ec=colour, lw=2.4, zorder=2))
        for bar in self._bars(replica):
            self._bar(bar, base, colour)
        for flag in self.flags[replica]:
            if flag.level is not None:
                self._flag(flag, base)
        for mark in (m for m in self.lanes.marks if m.replica == replica):
            self.used.add(mark.kind)
            self.axes.plot([mark.x], [base + self.bar / 2], ls="", zorder=5,
                           **mark_of(mark.kind, colour, round(25 * self.scale)))

    def _bar(self, bar: Bar, base: float, colour: str) -> None:
        self.used.add(bar.look)
        inset = 0.06 if bar.end - bar.start > 0.3 and bar.look != "waiting" else 0.0
        self.axes.add_patch(Rectangle((bar.start + inset, base), bar.end - bar.start - 2 * inset,
                                      self.bar, zorder=3, **look_of(bar.look, colour)))
        if bar.look == "waiting":
            room = (bar.end - bar.start) * self.column
            if self._measure(bar.note) + 12 < room:
                self.axes.text((bar.start + bar.end) / 2, base + self.bar / 2, bar.note,
                               size=self.letters, ha="center", va="center", zorder=4,
                               bbox={"fc": "white", "ec": "none", "pad": 2})

    def _flag(self, flag: Flag, base: float) -> None:
        x = flag.start + 3 / self.column
        y = base - 6 - (flag.level + 0.5) * LINE * self.scale
        colour = BAD if flag.bad else INK
        self.axes.plot([x, x], [base, y], color=colour, lw=1, zorder=2)
        if flag.count > 1:
            self.axes.plot([x, flag.last], [base - 4] * 2, color=colour, lw=2.5, zorder=2)
        self.axes.text(x + 4 / self.column, y, flag.text, size=self.letters, va="center",
                       color=colour, weight="bold" if flag.bad else "normal", zorder=4,
                       bbox={"fc": "#FFFFFFD0", "ec": "none", "pad": 0.5})

    def releases(self) -> None:
        """A dotted line from the end of a transaction to each wait that it ended."""
        for bar in self.lanes.bars:
            for mark in self.lanes.marks:
                if bar.look == "waiting" and bar.replica != mark.replica and bar.end == mark.x:
                    ys = [self.bases[r] + self.bar / 2 for r in (bar.replica, mark.replica)]
                    self.axes.plot([mark.x] * 2, ys, color=INK, lw=2, ls=":", zorder=2)

    def witnesses(self) -> None:
        """A thick red outline and a sign on every event that proves the violation."""
        for seq, sign in self.bad.items():
            if (place := self.lanes.place(seq)) is None:
                continue
            replica, start, end = place
            base = self.bases[replica]
            self.used.add("violation")
            first = sign == "1×"  # as it should be: the others are too many
            self.axes.add_patch(Rectangle(
                (start, base - 3), end - start, self.bar + 6, fc="none", ec=BAD, zorder=6,
                lw=2 if first else 6, joinstyle="round"))
            self.axes.text((start + end) / 2, base + self.bar / 2, sign, size=self.letters,
                           weight="bold", color=BAD if first else "white", zorder=7,
                           ha="center", va="center",
                           bbox={"boxstyle": "round,pad=0.15", "ec": "white", "lw": 1,
                                 "fc": "white" if first else BAD})

    def legend(self) -> None:
        """Only what the picture uses."""
        keys = keys_of(self.used, self.bad.values())
        if not keys:
            return
        self.figure.legend(*zip(*keys, strict=True), loc="lower center",
                           ncols=len(keys) if len(keys) <= 7 else math.ceil(len(keys) / 2),
                           bbox_to_anchor=(0.5, 0.002), handlelength=1.9, handleheight=1.1,
                           columnspacing=1.3, handletextpad=0.5)
