"""What the terminal would show, as text that a notebook shows and saves: no colour, one width."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

__all__ = ["Text", "console"]


def console() -> Console:
    """A console that writes plain text into memory, whatever a notebook's environment asks for."""
    return Console(file=io.StringIO(), width=96, color_system=None, force_terminal=False,
                   force_jupyter=False, highlight=False, markup=False, emoji=False)


class Text(str):
    """Text that a notebook shows as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)

    @classmethod
    def of(cls, shown: RenderableType) -> Text:
        """What the terminal would show, without colour."""
        plain = console()
        plain.print(shown)
        return cls("\n".join(line.rstrip() for line in plain.file.getvalue().splitlines()))
