"""The piece of a stage's code that a replica is in, and which of its lines come next."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import Any

from lab.engine.where import Frame

__all__ = ["entry", "excerpt"]

Functions = ast.FunctionDef | ast.AsyncFunctionDef


def excerpt(folder: Path, frame: Frame) -> dict[str, Any]:
    """The function that a frame is in.

    Returns:
        Its file, name and lines with their numbers, without the docstring; and the first and last
        line of the statement that is under way.
    """
    path = folder / frame.file
    lines, tree = _parsed(path, path.stat().st_mtime_ns)
    around = [node for node in ast.walk(tree)
              if isinstance(node, Functions) and _has(node, frame.line)]
    function = max(around, key=lambda node: node.lineno, default=None)
    body = function.body if function else tree.body
    start, end = _statement(body, frame) or (frame.line, frame.line)
    return {"file": frame.file, "function": frame.function, "start": start, "end": end,
            "lines": _lines(function or tree, lines)}


def entry(folder: Path, call: str) -> dict[str, Any] | None:
    """The function that a program calls, before it has begun; None if it is not in the folder."""
    module, _, function = call.partition(":")
    path = folder / (module.replace(".", "/") + ".py")
    if not path.exists():
        return None
    lines, tree = _parsed(path, path.stat().st_mtime_ns)
    for node in ast.walk(tree):
        if isinstance(node, Functions) and node.name == function:
            return {"file": path.relative_to(folder).as_posix(), "function": function,
                    "start": 0, "end": 0, "lines": _lines(node, lines)}
    return None


@lru_cache(maxsize=64)
def _parsed(path: Path, changed: int) -> tuple[list[str], ast.Module]:
    source = path.read_text(encoding="utf-8")
    return source.splitlines(), ast.parse(source)


def _lines(node: Functions | ast.Module, lines: list[str]) -> list[tuple[int, str]]:
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", len(lines))
    told = node.body[0] if ast.get_docstring(node) else None
    return [(number, lines[number - 1]) for number in range(first, last + 1)
            if not (told and _has(told, number))]


def _has(node: ast.AST, line: int) -> bool:
    return node.lineno <= line <= node.end_lineno


def _statement(body: list[ast.stmt], frame: Frame) -> tuple[int, int] | None:
    """The lines of the innermost statement; of an `if`, a `with` or a loop only its head."""
    for node in body:
        if not _has(node, frame.line):
            continue
        parts = [part for part in ast.iter_child_nodes(node)
                 if isinstance(part, (ast.stmt, ast.excepthandler, ast.match_case))]
        inside = [inner for part in parts
                  for inner in ([part] if isinstance(part, ast.stmt) else part.body)]
        if found := _statement(inside, frame):
            return found
        if not inside:
            return node.lineno, node.end_lineno
        head = [part for child in ast.iter_child_nodes(node) if child not in parts
                for part in ast.walk(child)]
        return node.lineno, max([node.lineno, *(getattr(p, "end_lineno", 0) for p in head)])
    return None
