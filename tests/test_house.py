"""The rules of the house, checked on every file; each check is also fed a sample that breaks it."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter

import pytest

from lab import folders

ROOT = folders.ROOT
ROOMS = ["errors folders", "world", "engine", "judge", "show", "cli __main__"]
RANK = {name: rank for rank, names in enumerate(ROOMS) for name in names.split()}
STAGE_IMPORTS = {"psycopg", "sqlalchemy", "lab.world"}
# What a stage is about may need a library of its own; its folder's number and that library.
STAGE_LIBRARIES = {
    "05": {"aws_cdk", "constructs"},
    "07": {"fastapi", "httpx", "psycopg_pool", "starlette", "uvicorn"},
    "09": {"redis"},
    "10": {"apscheduler", "dbos", "pgqueuer", "procrastinate"},
}
LONG = "Longer than 250 lines because "
LAB = sorted((ROOT / "lab").rglob("*.py"))
STAGE_CODE = [
    path
    for folder in folders.stages().values()
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.sql")])
    if path.name != "test_stage.py"
]
TESTS = sorted([*(ROOT / "tests").rglob("*.py"), *ROOT.glob("[0-9][0-9]-*/test_stage.py")])
READMES = sorted([*ROOT.glob("README.md"), *ROOT.glob("[0-9][0-9]-*/**/README.md")])


def name(path):
    return path.relative_to(ROOT).as_posix()


def each(paths):
    return pytest.mark.parametrize("path", paths, ids=name)


# Imports


def imports(source, package="lab"):
    """The modules that a source imports, anywhere in it: `from lab.world import clock` gives
    lab.world and lab.world.clock."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(filter(None, [*parents[: len(parents) - node.level + 1], base]))
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def module(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def upward(importer, source):
    """The imports of a lab module that lead to a room above its own."""
    own = RANK[importer.split(".")[1]]
    targets = imports(source, importer.rpartition(".")[0])
    rooms = {found: RANK.get(found.split(".")[1], 0) for found in targets if found[:4] == "lab."}
    return sorted(found for found, rank in rooms.items() if rank > own)


def circle(graph):
    """A circle in {module: modules it imports}, as a list that begins and ends alike, or None."""
    done = set()

    def visit(node, trail):
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node not in done:
            for target in sorted(graph.get(node, ())):
                if target in graph and (found := visit(target, [*trail, node])):
                    return found
            done.add(node)
        return None

    return next(filter(None, (visit(node, []) for node in sorted(graph))), None)


def foreign(source, siblings, libraries=frozenset()):
    """What a stage's file imports and may not."""
    allowed = STAGE_IMPORTS | libraries | siblings | sys.stdlib_module_names
    return sorted(
        found
        for found in imports(source)
        if not any(f"{found}.".startswith(f"{prefix}.") for prefix in allowed)
        and found != "lab"  # `from lab import …` also gives lab.…, which is judged
    )


@each([path for path in LAB if path.parent.name != "lab" or path.stem in RANK])
def test_imports_go_down_only(path):
    if path.name == "__init__.py" and path.parent.name == "lab":
        return
    assert upward(module(path), path.read_text("utf-8")) == []


def test_an_import_that_goes_up_is_seen():
    assert upward("lab.engine.wire", "from lab.show import plots") == ["lab.show", "lab.show.plots"]
    assert upward("lab.world.clock", "def f():\n    import lab.engine.wire") == ["lab.engine.wire"]
    assert upward("lab.world.clock", "from ..judge.verdict import judge")
    assert not upward("lab.show.page", "import lab.engine.wire, lab.errors, lab.show.terminal")


def test_no_circle_of_imports():
    assert circle({module(p): imports(p.read_text("utf-8")) for p in LAB}) is None


def test_a_circle_of_imports_is_seen():
    graph = {"a": {"b"}, "b": {"c", "os"}, "c": {"b"}}
    assert circle(graph) == ["b", "c", "b"]
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) is None


@each([path for path in STAGE_CODE if path.suffix == ".py"])
def test_stage_code_imports_only_what_production_would_have(path):
    folder = next(folder for folder in folders.stages().values() if folder in path.parents)
    siblings = {found.stem for found in [*folder.iterdir(), *path.parent.iterdir()]}
    libraries = STAGE_LIBRARIES.get(folder.name[:2], set())
    assert foreign(path.read_text("utf-8"), siblings, libraries) == []


def test_a_foreign_import_in_a_stage_is_seen():
    source = "import os, numpy, lab.engine.wire\nfrom lab.world import clock\nimport claims"
    assert foreign(source, {"claims"}) == ["lab.engine.wire", "numpy"]
    assert foreign("import claims", set()) == ["claims"]
    assert foreign("from lab import judge", set()) == ["lab.judge"]


# Size


def too_long(text, most, excuse=None):
    """Whether a file has more than `most` lines and its docstring does not say why."""
    return len(text.splitlines()) > most and not (excuse and excuse in text.split('"""')[1])


@each(LAB)
def test_lab_modules_are_short_or_say_why_not(path):
    assert not too_long(path.read_text("utf-8"), 250, LONG)


@each(STAGE_CODE)
def test_stage_files_fit_on_a_few_screens(path):
    assert not too_long(path.read_text("utf-8"), 120)


def test_a_long_file_is_seen():
    assert too_long("x\n" * 121, 120)
    assert not too_long("x\n" * 120, 120)
    assert too_long('"""Long."""\n' * 251, 250, LONG)
    assert not too_long(f'"""{LONG}it is a table."""\n' * 251, 250, LONG)


# Sleep

# The clock, its test (which counts how often the clock sleeps), and the samples below.
MAY_SLEEP = {"lab/world/clock.py", "tests/test_clock.py", "tests/test_house.py"}


def sleeps(source):
    """The lines that call something named sleep, or that let Postgres sleep.

    A line may say why it must wait for another program: `# polls: …`, or that its statement is only
    there to be interrupted: `# interrupted: …`. A race is never a reason.
    """
    lines, found = source.splitlines(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
            polls = "# polls: " in lines[node.lineno - 1]
            found |= {node.lineno} if called == "sleep" and not polls else set()
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            meant = "# interrupted: " in lines[node.lineno - 1]
            asleep = re.search(r"pg_sleep\w*\s*\(", node.value)
            found |= {node.lineno} if asleep and not meant else set()
    return sorted(found)


@each([p for p in [*LAB, *STAGE_CODE, *TESTS] if p.suffix == ".py" and name(p) not in MAY_SLEEP])
def test_nothing_sleeps(path):
    assert sleeps(path.read_text("utf-8")) == []


def test_a_sleep_is_seen():
    assert sleeps("import time\ntime.sleep(1)") == [2]
    assert sleeps("from time import sleep\n\nsleep(1)") == [3]
    assert sleeps("db.execute('SELECT pg_sleep(1)')") == [1]
    assert sleeps("db.execute('SELECT pg_sleep(1)')  # interrupted: by a cancel request") == []
    assert sleeps("time.sleep(0.01)  # so that B comes second") == [1]
    assert sleeps("clock.sleep_until(t)\ntime.sleep(0.01)  # polls: initdb has no callback") == []


# What may not be in a tracked file

HOSTS = ["pypi" + ".org", "python" + "hosted.org", "registry." + "npmjs", "deb.debian" + ".org"]
PATHS = ["/work" + "/", "/root" + "/", "/opt/" + "wheels", "/home" + "/"]


def machine_words(text):
    """The registry hosts and the paths of somebody's machine that a text names."""
    return [word for word in [*HOSTS, *PATHS] if re.search(rf"(?<![\w.]){re.escape(word)}", text)]


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: " + listed.stderr.strip())
    return [ROOT / line for line in listed.stdout.split("\0") if line and (ROOT / line).is_file()]


def test_no_tracked_file_names_a_registry_or_a_machine():
    found = {}
    for path in tracked():
        try:
            words = machine_words(path.read_text("utf-8"))
        except UnicodeDecodeError:  # a picture
            continue
        if words:
            found[name(path)] = words
    assert found == {}


def test_a_registry_and_a_machine_path_are_seen():
    assert machine_words("--index-url https://" + HOSTS[0]) == [HOSTS[0]]
    assert machine_words("File '" + PATHS[0] + "main/x.py'") == [PATHS[0]]
    assert machine_words("the network" + "/disk, my/work" + "/x") == []


# Locks


def pins(lock):
    """The versions that a lock pins, {name: {version, …}}, and how many pins have no hash."""
    blocks = re.split(r"\n(?=\S)", lock.strip())
    found, bare = {}, 0
    for block in blocks:
        distribution, version = re.match(r"([\w.-]+)==([^ \\]+)", block).groups()
        found.setdefault(distribution, set()).add(version)
        bare += "--hash=sha256:" not in block
    return found, bare


LOCKS = sorted([ROOT / "requirements.lock", *(ROOT / "locks").glob("*.lock")])


@each(LOCKS)
def test_every_pin_has_a_hash_and_agrees_with_the_other_locks(path):
    found, bare = pins(path.read_text("utf-8"))
    assert bare == 0
    every = pins((ROOT / "locks/all.txt").read_text("utf-8"))[0]
    assert {d: v for d, v in found.items() if d != "uv" and v != every[d]} == {}


def test_every_dependency_is_in_its_lock():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needs = {"requirements": project["dependencies"], **project["optional-dependencies"]}
    for extra, wanted in needs.items():
        lock = ROOT / ("requirements.lock" if extra == "requirements" else f"locks/{extra}.lock")
        locked = pins(lock.read_text("utf-8"))[0]
        assert [w for w in wanted if re.match(r"[\w.-]+", w)[0] not in locked] == []


def test_a_pin_without_a_hash_is_seen():
    assert pins("a==1 \\\n    --hash=sha256:00\nb==2 ; os_name == 'nt'")[1] == 1


# READMEs

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)


def shape(text):
    """What two languages of a README have in common: heading levels, code, numbers."""
    fences = FENCE.findall(text)
    prose = FENCE.sub("", text)
    return {
        "headings": [len(marks) for marks in re.findall(r"^(#+) ", prose, re.M)],
        "blocks": [body if language != "mermaid" else language for language, body in fences],
        "code": Counter(re.findall(r"`([^`\n]+)`", prose)),
        "numbers": Counter(re.findall(r"\d+(?:[.,:]\d+)*", prose)),
        "pictures": re.findall(r"!\[[^\]]*\]\(([^)]+)\)", prose),
    }


def make_targets(makefile):
    """The targets that a Makefile declares as .PHONY, stage-0 … stage-10 and the like included."""
    numbers = re.search(r"^STAGES := (.*)$", makefile, re.M)[1].split()
    targets = set()
    for word in re.findall(r"\S+", " ".join(re.findall(r"^\.PHONY: (.*)$", makefile, re.M))):
        pattern = re.fullmatch(r"\$\(STAGES:%=([\w-]+)-%\)", word)
        targets |= {f"{pattern[1]}-{n}" for n in [*numbers, "N"]} if pattern else {word}
    return targets


def unknown_targets(readme, makefile):
    """The `make X` of a README's code for which the Makefile has no target."""
    code = [body for _, body in FENCE.findall(readme)]
    code += re.findall(r"`([^`\n]+)`", FENCE.sub("", readme))
    word = re.compile(r"(?:^|[ ;&$])make ([a-z][\w-]*)(?![\w=-])", re.M)
    called = {target for text in code for target in word.findall(text)}
    return sorted(called - make_targets(makefile))


@each(READMES)
def test_both_languages_say_the_same(path):
    spanish = path.with_name("README.es.md")
    assert spanish.exists(), f"{name(spanish)} is missing"
    assert shape(spanish.read_text("utf-8")) == shape(path.read_text("utf-8"))


@each([p for r in READMES for p in (r, r.with_name("README.es.md")) if p.exists()])
def test_every_make_command_of_a_readme_exists(path):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert unknown_targets(path.read_text("utf-8"), makefile) == []


def test_a_difference_between_the_languages_is_seen():
    english = "# A\n\nThree times: `make x`, 18:00.\n\n```sh\nmake x\n```\n\n## B\n"
    assert shape(english) == shape(english.replace("Three times", "Tres veces"))
    changes = [("18:00", "18:01"), ("## B", "### B"), ("`make x`", "`make y`"), ("x\n`", "y\n`")]
    for change in changes:
        assert shape(english) != shape(english.replace(*change))


def test_a_command_that_does_not_exist_is_seen():
    makefile = "STAGES := 0 1\n.PHONY: setup\n.PHONY: $(STAGES:%=stage-%)\n"
    readme = "`make stage-1`, `make stage-7`, and make sure.\n\n```sh\nmake setup\nmake tea\n```\n"
    assert unknown_targets(readme, makefile) == ["stage-7", "tea"]
