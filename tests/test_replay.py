"""`replay`: one schedule, or one of a stage's scenarios by its name."""

import pytest

from lab import cli


@pytest.fixture
def replay(server, tmp_path, monkeypatch, capsys):
    """Runs `replay` in an empty folder; gives (exit code, what it printed, what it complained)."""
    monkeypatch.chdir(tmp_path)

    def command(*words):
        code = cli.main(["replay", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_a_scenario_is_played_by_the_name_that_the_ladder_has_for_it(replay):
    code, said, _ = replay("3", "--case", "A6")
    assert code == 0 and "A6: the winner rolls back while a rival overlaps" in said
    assert "A: <cut before COMMIT>" in said and "✗ coins, notifications, thread missed" in said


def test_what_is_given_beside_the_name_goes_before_what_the_scenario_has(replay):
    assert "every effect once" in replay("3", "A..", "--case", "A6")[1]
    assert "SELECT token_transactions" in replay("9", "--case", "N3")[1]
    said = replay("9", "--case", "N3", "--everyone", "bell")[1]
    assert "SELECT token_transactions" not in said and "the coins ask" not in said


def test_a_name_that_the_stage_does_not_have_is_answered_with_those_that_it_has(replay):
    code, said, complained = replay("8", "--case", "A6")
    assert (code, said) == (2, "")
    assert complained.splitlines() == [
        "08-lost-cents has no scenario A6.",
        f"It has: {', '.join(f'C{number}' for number in range(1, 16))}."]


def test_a_schedule_with_an_isolation_level_runs_at_that_level(replay):
    words = ["A..commit", "B..", "A..", "B..", "--everyone", "admin"]
    assert "40001" not in replay("3", *words)[1]
    assert "40001" in replay("3", *words, "--isolation", "repeatable read")[1]
