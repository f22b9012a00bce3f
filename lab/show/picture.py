"""What all pictures share: size and fonts, one fixed colour a stage and a replica, and the files.

No window system is needed and none is asked for. The colours are Okabe and Ito's and Paul Tol's,
told apart by people who see red and green alike; what matters has a shape or a hatch as well.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from matplotlib import font_manager, style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["BAD", "GOOD", "INK", "MUTED", "REPLICA_COLOURS", "STAGE_COLOURS", "Picture", "banner",
           "drawable", "picture", "save"]

STYLE = Path(__file__).with_name("lab.mplstyle")
INK, MUTED, BAD, GOOD = "#1A1A1A", "#6B6B6B", "#C00020", "#00703C"
# Warm for the attempts that break, cool for those that hold; 06-10 are stories of their own.
STAGE_COLOURS = {
    0: "#D55E00", 1: "#E69F00", 2: "#C7A800", 3: "#009E73", 4: "#0072B2", 5: "#56B4E9",
    6: "#CC79A7", 7: "#882255", 8: "#332288", 9: "#7F7F7F", 10: "#999933",
}
REPLICA_COLOURS = {"A": "#0072B2", "B": "#E69F00", "C": "#009E73", "D": "#CC79A7", "E": "#56B4E9"}


class Picture(Figure):
    """A figure that shows itself in a notebook, without pyplot."""

    def _repr_png_(self) -> bytes:
        with style.context(STYLE):
            return _bytes(self, "png")


@contextmanager
def picture() -> Iterator[Picture]:
    """A new, empty picture; what is drawn inside the block gets the lab's style."""
    with style.context(STYLE):
        figure = Picture()
        FigureCanvasAgg(figure)  # text can be measured before anything is saved
        yield figure


@cache
def _font():
    return font_manager.get_font(font_manager.findfont("DejaVu Sans"))


def drawable(text: str) -> str:
    """The text without what the font lacks, mostly emoji: it would come out as empty boxes."""
    kept = "".join(c for c in text if c.isspace() or _font().get_char_index(ord(c)))
    return re.sub(r"[^\S\n]+", " ", kept).strip()


def banner(figure: Figure, text: str, y: float = 0.94, size: int = 26, colour: str = INK) -> None:
    """Write a line over the picture, smaller when it is long, and cut off when it is very long."""
    line = figure.text(0.02, y, drawable(text), size=size, weight="bold", color=colour)
    room = 0.96 * figure.bbox.width
    if (width := line.get_window_extent().width) > room:
        line.set_size(max(16, int(size * room / width)))
    if (width := line.get_window_extent().width) > room:
        line.set_text(line.get_text()[:int(len(line.get_text()) * 0.95 * room / width)] + " …")


def _bytes(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    nothing = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    figure.savefig(buffer, format=kind, metadata=nothing)
    return buffer.getvalue()


def save(figure: Figure, stem: str, folder: Path = Path("out")) -> tuple[Path, Path]:
    """Write `stem`.png and `stem`.svg, the same bytes for the same picture.

    Args:
        figure: what a function of `lab.show.plots` returned.
        stem: the files' name without the ending, such as "00-timeline".
        folder: made when it is not there.

    Returns:
        The paths of the PNG and of the SVG.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{stem}.png", folder / f"{stem}.svg"
    with style.context(STYLE):
        paths[0].write_bytes(_bytes(figure, "png"))
        # Some renderers end lines with blanks, which version control then complains about.
        svg = re.sub(rb"[ \t]+\n", b"\n", _bytes(figure, "svg"))
        paths[1].write_bytes(svg)
    return paths
