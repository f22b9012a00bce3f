"""No dead code: what a module of lab/ defines, something else than a test uses.

A use is the name, as code, in lab/, a stage, a notebook or a tool, outside its own definition and
`__all__`; or in a string that names it as "module:function", as the command line and stage.toml do.
"""

import ast
import json
import re
from collections import Counter
from functools import cache

import pytest

from lab import folders
from lab.show.page.desk import ORDERS

ROOT = folders.ROOT
LAB = sorted((ROOT / "lab").rglob("*.py"))
# The page asks for these by name; a README's tables are made by these; a table has its model.
USED = {*ORDERS, "matrix_lines", "SAVED", "Section"}


def words(node):
    """The names that a piece of code uses, as often as it does."""
    found = Counter()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found[name] += 1
            case ast.ImportFrom(names=names):
                found.update(alias.name for alias in names)
            case ast.Constant(value=str(text)):
                found.update(re.findall(r"[\w.]+:(\w+)", text))
    return found


def without_all(tree):
    """A module without the line that says what it exports."""
    tree.body = [node for node in tree.body if not (
        isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__")]
    return tree


def defined(tree):
    """The functions, classes and constants of a module and the methods of its classes, that have a
    name of their own: (name, node)."""
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
        if isinstance(node, ast.ClassDef) and not node.bases:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("__"):
                    yield method.name, method


def dead(source, everywhere):
    """What a module defines and nothing uses.

    Args:
        source: of the module.
        everywhere: the uses in all code, this module's included.
    """
    found = []
    for name, node in defined(without_all(ast.parse(source))):
        if everywhere[name] <= words(node)[name] and name not in USED:
            found.append(name)
    return found


def sources():
    """All code but the tests."""
    for path in [*LAB, *ROOT.glob("[0-9][0-9]-*/**/*.py"), *ROOT.glob("tools/*.py"),
                 *ROOT.glob("docs/**/*.py")]:
        if not path.name.startswith("test_") and "mutants" not in path.parts:
            yield path.read_text("utf-8")
    for path in ROOT.glob("notebooks/*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                yield "".join(cell["source"])


@cache
def uses():
    found = Counter()
    for source in sources():
        found += words(without_all(ast.parse(source)))
    for path in [*ROOT.glob("[0-9][0-9]-*/**/*.toml"), *ROOT.glob("lab/**/*.toml")]:
        found.update(re.findall(r"[\w.]+:(\w+)", path.read_text("utf-8")))
    return found


@pytest.mark.parametrize("path", LAB, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_everything_is_used_by_something_else_than_a_test(path):
    assert dead(path.read_text("utf-8"), uses()) == []


def test_dead_code_is_seen():
    source = ("__all__ = ['used', 'dead']\nLIMIT = 3\ndef used(): return LIMIT\n"
              "def dead(): return dead()\nclass Thing:\n    def spoken(self): pass\n"
              "    def mute(self): pass\n")
    other = "from m import used\nThing().spoken()\nrun = 'm:served'\n"
    everywhere = words(without_all(ast.parse(source))) + words(ast.parse(other))
    assert dead(source, everywhere) == ["dead", "mute"]
    assert words(ast.parse(other))["served"] == 1
