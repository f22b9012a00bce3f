"""`make stage-10`: the matrix of the libraries, as a table, and what the gate saw of each claim."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from lab.judge import peers

__all__ = ["SAVED", "matrix_lines", "tell_peers"]

SAVED = "matrix.json"  # in the stage's folder: the run that its README shows
HEADS = {"alive": "three alive", "killed": "killed mid-job", "missed": "slot missed",
         "frozen": "winner frozen", "silent": "silent None"}


def tell_peers(told: Any, part: Mapping[str, Any]) -> bool:
    """Run every library in every case; the negative control has to pay three times."""
    def say(peer: str, case: str, outcome: str) -> None:
        where = HEADS.get(case, "at the gate")
        told.console.print(f"  {peer}: {where}: {outcome}", highlight=False)

    found = peers.matrix(told.server, told.stage, say)
    Path("out").mkdir(exist_ok=True)
    peers.save(found, Path("out") / "10-matrix.json")
    rows = matrix_rows(found, told.stage.data["peers"])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for head in rows[0]:
        table.add_column(head, overflow="fold")
    for row in rows[1:]:
        table.add_row(*row)
    told.console.print(table)
    told.console.print(f"{found['date']}, PostgreSQL {found['postgres']}: out/10-matrix.json")
    control = found["peers"]["apscheduler-memory"]["alive"]
    return control == "D3" or control.startswith("not run")


def matrix_rows(found: Mapping[str, Any], declared: Mapping[str, Any]) -> list[list[str]]:
    """A matrix as rows of text, the heads first."""
    rows = [["library", *HEADS.values(), "zone", "claim", "work in its transaction"]]
    for name, row in found["peers"].items():
        gate = row["gate"]
        seen = [gate, ""] if isinstance(gate, str) else [gate["claim"], gate["atomic"]]
        rows.append([f"{declared[name]['title']} ({row['version']})", *(row[c] for c in HEADS),
                     declared[name]["zone"].split("/")[-1].replace("_", " "), *seen])
    return rows


def matrix_lines(found: Mapping[str, Any], declared: Mapping[str, Any]) -> list[str]:
    """A matrix as the lines of a Markdown table."""
    heads, *rows = matrix_rows(found, declared)
    return ["| " + " | ".join(line) + " |" for line in (heads, ["---"] * len(heads), *rows)]
