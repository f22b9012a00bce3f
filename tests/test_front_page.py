"""The pictures of the README say what the stages do now."""

import io
import re

import pytest
from rich.console import Console

from lab.show import front, picture


def words(svg):
    """All that is written in a picture, in the order in which it was drawn."""
    return re.findall(r"<!-- (.*?) -->", svg.read_text("utf-8"))


@pytest.fixture(scope="module")
def now(server, tmp_path_factory):
    """Each picture as it comes out now."""
    folder = tmp_path_factory.mktemp("pictures")
    return {stem: picture.save(figure, stem, folder)[1]
            for stem, figure in front.drawn(Console(file=io.StringIO()), server).items()}


@pytest.mark.timeout(400)  # it climbs the whole ladder, and counts
@pytest.mark.parametrize("name", ["incident", "ladder", "shares"])
def test_the_picture_is_what_a_run_draws(now, name):
    assert words(front.FOLDER / f"{name}.svg") == words(now[name]), "make pictures"


def test_there_is_no_other_picture():
    assert {path.stem for path in front.FOLDER.iterdir()} == {"incident", "ladder", "shares"}
