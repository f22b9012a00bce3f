"""What each of several things makes of each of several cases: a grid of codes, as the ladder's."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from lab.show.picture import Picture, banner, picture
from lab.show.plots import draw_cell, draw_key

__all__ = ["grid"]

NAME, HEAD = 22, 13  # characters a line, of a row's name and of a column's head


def grid(cells: Mapping[str, Mapping[str, str]], title: str) -> Picture:
    """The grid.

    Args:
        cells: row -> column -> code, such as "D3"; the first mention of a column is its place. A
            case that a row does not have stays empty.
        title: one line.
    """
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    with picture() as figure:
        height = min(0.6, 0.12 * len(cells))
        axes = figure.add_axes((0.25, 0.76 - height, 0.72, height))
        used = {draw_cell(axes, columns.index(column), y, code)
                for y, row in enumerate(cells.values()) for column, code in row.items()}
        axes.set_xlim(0, len(columns))
        axes.set_ylim(len(cells), 0)
        axes.set_xticks([x + 0.5 for x in range(len(columns))],
                        [textwrap.fill(column, HEAD) for column in columns], weight="bold")
        axes.set_yticks([y + 0.5 for y in range(len(cells))],
                        [textwrap.fill(row, NAME) for row in cells], weight="bold")
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        codes = [code for row in cells.values() for code in row.values()]
        draw_key(figure, used, errors=any(code.startswith("E ") for code in codes))
        banner(figure, title)
    return figure
