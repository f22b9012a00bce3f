"""`make stage-10`: the matrix of the libraries, as tables: what happened, and what was promised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from lab.judge import peers

__all__ = ["SAVED", "matrix_lines", "tell_peers"]

SAVED = "matrix.json"  # in the stage's folder: the run that its README shows
HEADS = {
    "en": {"library": "library", "version": "version", "alive": "three alive",
           "killed": "killed in mid-job", "missed": "all down at the slot",
           "frozen": "winner frozen", "silent": "silent None", "zone": "zone of its cron",
           "claim": "claim", "got": "A and B got for it",
           "atomic": "work in the claim's transaction"},
    "es": {"library": "biblioteca", "version": "versión", "alive": "tres vivos",
           "killed": "muerto a medio trabajo", "missed": "todos caídos en la ranura",
           "frozen": "ganador congelado", "silent": "None silencioso", "zone": "zona de su cron",
           "claim": "reclamo", "got": "A y B recibieron",
           "atomic": "trabajo en la transacción del reclamo"},
}
WIDEST = 24  # characters of a library's name on a line
WORDS = {"en": {}, "es": {"yes": "sí", "no": "no", "none": "ninguno"}}


def tell_peers(told: Any, part: Mapping[str, Any]) -> bool:
    """Run every library in every case; the negative control has to pay three times."""
    def say(peer: str, case: str, outcome: Any) -> None:
        where = HEADS["en"].get(case, "behind the gate")
        told.console.print(f"  {peer}, {where}: {_brief(outcome)}", highlight=False)

    declared = told.stage.data["peers"]
    found = peers.matrix(told.server, told.stage, say)
    Path("out").mkdir(exist_ok=True)
    peers.save(found, Path("out") / "10-matrix.json")
    told_below = HEADS["en"]["version"], HEADS["en"]["zone"]
    for (heads, *rows), width in zip(_tables(found, declared), (8, None), strict=True):
        shown = [number for number, head in enumerate(heads) if head not in told_below]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        for number in shown:
            table.add_column(heads[number], overflow="fold", width=width if number else WIDEST)
        for row in rows:
            table.add_row(*(row[number] for number in shown))
        told.console.print(table)
    for name, peer in declared.items():
        told.console.print(
            f"{peer['title']} ({found['peers'][name]['version']}, times in {peer['zone']}): "
            f"{peer['promise']}\n  {peer['source']}", highlight=False)
    told.console.print(
        "\nD3, D2: paid three times, twice · 1: once · M: not at all · P: paid, no thread\n"
        f"{found['date']}, PostgreSQL {found['postgres']}: out/10-matrix.json", highlight=False)
    control = found["peers"][part["control"]]["alive"]
    return control == "D3" or control.startswith("not run")


def matrix_lines(found: Mapping[str, Any], declared: Mapping[str, Any],
                 language: str = "en") -> list[str]:
    """A matrix as two Markdown tables: what happened in each case, and what the gate saw."""
    lines: list[str] = []
    for heads, *rows in _tables(found, declared, language):
        lines += ["| " + " | ".join(line) + " |" for line in (heads, ["---"] * len(heads), *rows)]
        lines.append("")
    return lines[:-1]


def _tables(found: Mapping[str, Any], declared: Mapping[str, Any],
            language: str = "en") -> list[list[list[str]]]:
    """Two tables of text, each with its heads first."""
    heads, words = HEADS[language], WORDS[language]
    cases, claims = [[heads[name] for name in names] for names in (
        ("library", *peers.CASES, "zone"), ("library", "version", "claim", "got", "atomic"))]
    tables = [[cases], [claims]]
    for name, row in found["peers"].items():
        peer, gate = declared[name], row["gate"]
        title = peer.get(language, peer)["title"]
        tables[0].append([title, *(row[case] for case in peers.CASES),
                          peer["zone"].split("/")[-1].replace("_", " ")])
        seen = [gate, "", ""] if isinstance(gate, str) else [
            words.get(gate["claim"], gate["claim"]), " · ".join(gate["got"]),
            words.get(gate["atomic"], gate["atomic"])]
        tables[1].append([title, row["version"], *seen])
    return tables


def _brief(outcome: Any) -> str:
    return outcome if isinstance(outcome, str) else ", ".join([outcome["claim"], *outcome["got"]])
