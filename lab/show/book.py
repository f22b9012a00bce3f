"""`make book`: every README and every executed notebook as one static site, in out/book.

Sphinx builds it, with search, and nothing in it asks the network for anything: it opens from a
memory stick. Diagrams are drawn by Mermaid where npm can fetch it; elsewhere their text is shown.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

from rich.text import Text

from lab.engine import scratch
from lab.errors import LabError
from lab.folders import ROOT
from lab.show import terminal

__all__ = ["run"]

BOOK = ROOT / "out" / "book"
SKIPPED = shutil.ignore_patterns("__pycache__", "cdk.out", "node_modules", ".ipynb_checkpoints")
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")
TITLE = re.compile(r'"# ([^"\\]+)')  # the first of a notebook, as its file has it
MERMAID = re.compile(r"```mermaid\n(.*?)```", re.S)
CONF = '''
project = "One Postgres, three processes"
html_title = project
extensions = ["myst_nb"]
html_theme = "furo"
root_doc = "index"
nb_execution_mode = "off"
nb_merge_streams = True
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
html_static_path = ["_static"]
html_js_files = {scripts!r}
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # a page cannot read others from a memory stick
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure", "toc.not_included",
                     "mystnb.unknown_mime_type"]
'''
DRAW = "mermaid.initialize({startOnLoad: true, theme: 'neutral'});\n"


def run(args: argparse.Namespace) -> int:
    """Build the site; the exit code is 0 when every page was built without a warning.

    Raises:
        LabError: the packages of the extra are missing, or Sphinx gave up.
    """
    if not (find_spec("sphinx") and find_spec("myst_nb")):
        raise LabError("Sphinx is not installed in this environment.", "Run: make book")
    console = terminal.screen()
    with scratch.folder() as temporary:
        source = Path(temporary)
        pages = _collect(source)
        scripts = _mermaid(source / "_static")
        for page in pages:
            _adapt(source, page, drawn=bool(scripts))
        _contents(source, pages)
        (source / "conf.py").write_text(CONF.format(scripts=scripts), encoding="utf-8")
        shutil.rmtree(BOOK, ignore_errors=True)
        done = subprocess.run([sys.executable, "-m", "sphinx", "-b", "html", "-q", "-j", "auto",
                               "-d", str(source / ".doctrees"), str(source), str(BOOK)],
                              text=True, capture_output=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if line.strip()]
    console.print("\n".join(line.replace(temporary, "") for line in complaints), highlight=False)
    if done.returncode:
        raise LabError("Sphinx could not build the site; its reason is above.",
                       "Correct the page that it names.")
    console.print(Text(f"{len(pages)} pages. Open {(BOOK / 'index.html').relative_to(ROOT)}"))
    return int(any("WARNING" in line for line in complaints))


def _collect(source: Path) -> list[Path]:
    """Copy what is shown and what is linked to; returns the pages, relative to `source`."""
    for folder in [*sorted(ROOT.glob("[0-9][0-9]-*")), ROOT / "docs", ROOT / "notebooks"]:
        if folder.is_dir():
            shutil.copytree(folder, source / folder.name, ignore=SKIPPED)
    shutil.copytree(ROOT / "lab", source / "lab", ignore=SKIPPED)
    for path in [*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "Makefile"]:
        shutil.copyfile(path, source / path.name)
    for name in ("README.md", "README.es.md"):
        (source / name).rename(source / name.replace("README", "index"))
    (source / "_static").mkdir()
    found = [*source.rglob("*.md"), *source.glob("notebooks/*.ipynb")]
    return sorted(path.relative_to(source) for path in found)


def _adapt(source: Path, page: Path, drawn: bool) -> None:
    """Let a page's links to folders and to the front page lead to pages of the site."""
    path = source / page
    spanish = ".es" in page.suffixes
    front = "index.es.md" if spanish else "index.md"

    def lead(found: re.Match[str]) -> str:
        target = (path.parent / found[2]).resolve()
        if target.is_dir():
            name = "README.es.md" if spanish and (target / "README.es.md").exists() else "README.md"
            target = source.resolve() / front if target == source.resolve() else target / name
        if target.parent == source.resolve() and target.name in ("README.md", "README.es.md"):
            target = target.with_name(target.name.replace("README", "index"))
        if not target.exists():
            return found[0]
        return f"{found[1]}{_relative(target, path.parent.resolve())}{found[3]}"

    text = LINK.sub(lead, path.read_text(encoding="utf-8"))
    if path.suffix == ".ipynb":  # else the search finds two pages of one name
        text = TITLE.sub(r'"# \1 (notebook)', text, count=1)
    if drawn:
        text = MERMAID.sub(r'<pre class="mermaid">\n\1</pre>', text)
    path.write_text(text, encoding="utf-8")


def _relative(target: Path, folder: Path) -> str:
    up = 0
    while not target.is_relative_to(folder):
        folder, up = folder.parent, up + 1
    return "../" * up + target.relative_to(folder).as_posix()


def _contents(source: Path, pages: list[Path]) -> None:
    """Give the two front pages their tables of contents."""
    names = [page.with_suffix("").as_posix() for page in pages]
    stages = [name for name in names if re.match(r"\d\d-[^/]+/README(\.es)?$", name)]
    notebooks = [name for name in names if name.startswith("notebooks/")]
    others = [name for name in names if name.startswith(("docs/", "CONTRIBUTING"))]
    for front, captions, own in (
            ("index.md", ("Stages", "Notebooks", "More"), lambda name: not name.endswith(".es")),
            ("index.es.md", ("Etapas", "", "Más"), lambda name: name.endswith(".es"))):
        parts = [(captions[0], [n for n in stages if own(n)]),
                 (captions[1], notebooks if captions[1] else []),
                 (captions[2], [n for n in others if own(n)])]
        if front == "index.md":
            parts.append(("Español", ["index.es"]))
        with (source / front).open("a", encoding="utf-8") as file:
            for caption, entries in parts:
                if entries:
                    file.write("\n\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n"
                               + "\n".join(entries) + "\n```\n")


def _mermaid(static: Path) -> list[str]:
    """Put Mermaid's script into the site; returns the scripts, none where npm cannot fetch it."""
    npm = shutil.which("npm")
    if not npm:
        return []
    with scratch.folder() as temporary:
        done = subprocess.run([npm, "pack", "--silent", "mermaid@11"], cwd=temporary, text=True,
                              capture_output=True, check=False)
        packed = list(Path(temporary).glob("*.tgz"))
        if done.returncode or not packed:
            return []
        with tarfile.open(fileobj=io.BytesIO(packed[0].read_bytes())) as package:
            script = package.extractfile("package/dist/mermaid.min.js").read()
    (static / "mermaid.min.js").write_bytes(script)
    (static / "draw.js").write_text(DRAW, encoding="utf-8")
    return ["mermaid.min.js", "draw.js"]
