"""10: the READMEs show a run that was saved whole, and each library has its file."""

from pathlib import Path

import pytest

from lab import folders
from lab.judge.peers import CASES, load
from lab.judge.stage import stage
from lab.show.peers import SAVED, matrix_lines

STAGE = stage(Path(__file__).parent.name)


FOUND = load(STAGE.folder / SAVED)


@pytest.mark.parametrize("readme", ["README.md", "README.es.md"])
def test_the_tables_are_those_of_the_saved_run(readme):
    text = (STAGE.folder / readme).read_text("utf-8")
    language = "es" if ".es." in readme else "en"
    for table in "\n".join(matrix_lines(FOUND, STAGE.data["peers"], language)).split("\n\n"):
        assert table in text, f"{readme} has to show:\n{table}"
    assert f"{FOUND['date']}, PostgreSQL {FOUND['postgres']}" in text


def test_the_saved_run_is_whole_and_of_the_versions_that_are_locked():
    locked = (folders.ROOT / "locks/peers.lock").read_text("utf-8")
    for name, peer in STAGE.data["peers"].items():
        row = FOUND["peers"][name]
        assert {*CASES, "gate"} <= row.keys()
        assert f"{peer['package']}=={row['version']} " in locked


def test_the_negative_control_paid_three_times_and_with_the_claim_once():
    control, claimed = (FOUND["peers"][f"apscheduler-{way}"] for way in ("memory", "claim"))
    assert (control["alive"], claimed["alive"]) == ("D3", "1")
    assert claimed["killed"] == claimed["frozen"] == "1"
    assert claimed["gate"] == {
        "claim": "INSERT worker_runs", "got": ["A: INSERT 0 1", "B: INSERT 0 0"], "atomic": "yes"}


def test_each_library_has_its_file():
    for name, peer in STAGE.data["peers"].items():
        assert (STAGE.folder / peer["script"]).exists(), name
