"""`stage`, `explore`, `ladder` and `run`: exit code 1 when a promise is not kept, and never else.

Each doctored copy of the checkout breaks one promise, in stage.toml or in the code.
"""

import os
import shutil
import subprocess
import sys

import pytest

from lab import folders
from lab.errors import LabError
from lab.judge import stage as stages
from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from tests.doctored import doctored

BREAK = {
    "a scenario": (1, "stage", "stage.toml", 'A2 = "D3"', 'A2 = "1"',
                   "!! NOT as promised: D3, promised 1"),
    "a schedule": (3, "stage", "stage.toml",
                   'roles = { B = "admin" }\nerror = "injected"\nexpect = "1"',
                   'roles = { B = "admin" }\nerror = "injected"\nexpect = "M"',
                   "!! NOT as promised: 1, promised M"),
    "a free run": (0, "stage", "stage.toml", 'run = "free"\nexpect = "D3"',
                   'run = "free"\nexpect = "1"', "!! NOT as promised: D3, promised 1"),
    "a count": (1, "explore", "stage.toml", '[[explore]]\nreplicas = 2\nbreaks = "some"',
                '[[explore]]\nreplicas = 2\nbreaks = "none"', "2 of 56 interleavings break it"),
    "that anything happens": (3, "stage", "worker.py", "now.weekday() == 4", "now.weekday() == 5",
                              "!! NOT as promised: M, promised 1"),
    "the claim": (3, "explore", "claims.py", " ON CONFLICT (name, key) DO NOTHING RETURNING 1",
                  " ON CONFLICT (name, key) DO UPDATE SET ran_at = now() RETURNING 1", "D2"),
    "a cell": (2, "ladder", "stage.toml", 'A9 = "D2"', 'A9 = "1"', "!! D2"),
}


def lab(root, *args):
    done = subprocess.run(
        [sys.executable, "-m", "lab", *args], cwd=root, env=os.environ | {"COLUMNS": "120"},
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("promise", BREAK)
def test_a_promise_that_is_not_kept_gives_exit_code_1(tmp_path, server, promise):
    number, command, file, old, new, seen = BREAK[promise]
    shutil.copytree(folders.ROOT / "lab", tmp_path / "lab")
    doctored(tmp_path, number, file, old, new)
    arguments = {"ladder": ["--quick"], "explore": [str(number), "--replicas", "2"]}
    code, said, errors = lab(tmp_path, command, *arguments.get(command, [str(number)]))
    assert code == 1, said + errors
    assert seen in said


@pytest.mark.parametrize("arguments", [
    ["explore", "1", "--replicas", "2"], ["replay", "3", "A..commit", "B..", "A.."],
    ["run", "03-claim-row/admin.py", "--times", "2"],
], ids=" ".join)  # fmt: skip
def test_a_promise_that_is_kept_gives_exit_code_0(server, arguments):
    """The tales themselves are told by test_readmes.py."""
    code, said, errors = lab(folders.ROOT, *arguments)
    assert code == 0, said + errors
    assert errors == ""


def test_the_tale_names_its_pictures_and_what_to_type_next(server):
    code, said, _ = lab(folders.ROOT, "stage", "1")
    assert code == 0
    for line in said.splitlines():
        if line.startswith("Picture: "):
            assert (folders.ROOT / line.removeprefix("Picture: ")).stat().st_size > 10_000
    assert said.count("Picture: ") == 3
    assert "Then: make explore-1 · make diff-2 · make stage-2" in said


def test_run_by_hand_a_script_gets_a_database_and_prints_no_password(server):
    code, said, errors = lab(folders.ROOT, "run", "--times", "2", "00-the-bug/bug.py")
    assert (code, errors) == (0, "")
    assert "wallet: +10 (" in said and "wallet: +20 (" in said
    assert "postgresql://" not in said


@pytest.mark.parametrize(("arguments", "said"), [
    (["stage", "77"], "There is no stage 77."),
    (["run", "nothing.py"], "There is no script nothing.py."),
    (["replay", "1", "A..", "--everyone", "nobody"], "Stage 1 has no program called 'nobody'."),
    (["replay", "1", "A..x.y.z!"], "“A..x.y.z!” is not a move of a schedule."),
], ids=["stage", "script", "program", "move"])  # fmt: skip
def test_a_wrong_word_is_said_in_two_sentences_with_exit_code_2(server, arguments, said):
    code, _, errors = lab(folders.ROOT, *arguments)
    assert code == 2
    assert errors.splitlines()[0] == said and len(errors.splitlines()) == 2


# The stage as data


def test_a_stage_is_found_by_number_and_by_name():
    assert stage(3).name == stage("03").name == stage("03-claim-row").name == "03-claim-row"
    assert [found.number for found in stages.stages()][:4] == [0, 1, 2, 3]


def test_every_stage_says_what_it_stops_and_lets_through_and_has_a_tale():
    for found in stages.stages():
        assert all(found.data[key] for key in ("title", "post", "story", "stops", "lets_through"))
        assert found.data["tale"], found.name


def test_an_expectation_of_no_scenario_is_an_error(tmp_path):
    wrong = doctored(tmp_path, 1, "stage.toml", 'A9 = "D2"', 'B9 = "D2"')
    with pytest.raises(LabError, match="expects B9, which is no scenario"):
        scenarios(wrong)


def test_what_does_not_apply_is_not_run():
    assert "A12" not in scenarios(stage(1))
    assert "A11" in scenarios(stage(3)) and "A11" not in scenarios(stage(2))
