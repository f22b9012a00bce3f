"""10: the matrix in the READMEs is the one that was saved, and every cell says how it came out."""

import re
from pathlib import Path

import pytest

from lab.judge.peers import CASES, load
from lab.judge.stage import stage
from lab.show.peers import SAVED, matrix_lines

STAGE = stage(Path(__file__).parent.name)
FOUND = load(STAGE.folder / SAVED)


@pytest.mark.parametrize("readme", ["README.md", "README.es.md"])
def test_the_table_is_the_saved_matrix(readme):
    text = (STAGE.folder / readme).read_text("utf-8")
    assert "\n".join(matrix_lines(FOUND, STAGE.data["peers"])) in text
    assert FOUND["date"] in text


def test_every_cell_is_an_outcome_or_a_reason_why_it_was_not_run():
    assert list(FOUND["peers"]) == list(STAGE.data["peers"])
    for row in FOUND["peers"].values():
        for case in CASES:
            assert re.fullmatch(r"1|M|P|D[23]|not run, because .+", row[case])


def test_the_negative_control_pays_three_times():
    assert FOUND["peers"]["apscheduler-memory"]["alive"] == "D3"
