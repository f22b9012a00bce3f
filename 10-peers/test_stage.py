"""10: no README shows a matrix that was not saved whole, and each library has its file."""

from pathlib import Path

import pytest

from lab.judge.stage import stage
from lab.show.peers import SAVED, matrix_lines

STAGE = stage(Path(__file__).parent.name)


@pytest.mark.parametrize("readme", ["README.md", "README.es.md"])
def test_the_table_is_the_saved_matrix_or_there_is_none(readme):
    text = (STAGE.folder / readme).read_text("utf-8")
    if not (STAGE.folder / SAVED).exists():
        assert "\n| " not in text
        return
    from lab.judge.peers import load

    found = load(STAGE.folder / SAVED)
    assert "\n".join(matrix_lines(found, STAGE.data["peers"])) in text
    assert found["date"] in text


def test_each_library_has_its_file():
    for name, peer in STAGE.data["peers"].items():
        assert (STAGE.folder / peer['script']).exists(), name
