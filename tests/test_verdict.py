"""A verdict passes only what happened, once, and was seen; every other world makes it fail."""

from dataclasses import replace

import pytest

from lab.engine.history import History
from lab.engine.postgres import server
from lab.errors import LabError
from lab.judge.verdict import EffectSpec, Row, judge, load_effects, read
from lab.world.conditions import SCHEMA, SEED, conditions

COMMUNITY = load_effects("community")
WINNERS = ("Ximena Robles", "Mateo Cárdenas", "Lupita Hernández")
WRITES = ("INSERT INTO notifications (id) VALUES (1)", "INSERT INTO token_transactions SELECT 1",
          "INSERT INTO threads SELECT 1")


def rows(coins: int = 1, notifications: int = 1, thread: int = 1) -> dict[str, list[Row]]:
    """What the database says when everything happened so many times."""
    return {"coins": [Row(name, coins, 1) for name in WINNERS],
            "notifications": [Row(name, notifications, 1) for name in WINNERS],
            "thread": [Row("2026-W22", thread, 1)]}


def add(history: History, replica: str, kind: str, statement: str = "", outcome: str = "ok",
        **more) -> int:
    """Append an event; returns its seq."""
    return history.add(replica=replica, kind=kind, statement=statement, started=0.0, ended=0.0,
                       outcome=outcome, **more).seq


def run(*fates: str) -> History:
    """A complete history of one tick a replica; its fate is commit, rollback, kill or error."""
    history = History(complete=True)
    for letter, fate in zip("ABC", fates, strict=False):
        add(history, letter, "tick", "worker:tick")
        for statement in WRITES:
            add(history, letter, "statement", statement, detail={"tag": "INSERT 0 3"})
        if fate == "error":
            add(history, letter, "rollback", "ROLLBACK")
            add(history, letter, "end", "end", "error: AttributeError no attribute 'year'")
        elif fate == "kill":
            add(history, letter, "kill", "SIGKILL", "killed")
        else:
            add(history, letter, fate, fate.upper())
            add(history, letter, "end", "end")
    return history


def test_everything_once_is_the_one_verdict_that_is_ok():
    verdict = judge(rows(), run("commit"), COMMUNITY)
    assert (verdict.ok, verdict.worst, verdict.code, verdict.unknown) == (True, "once", "1", False)
    assert {effect.outcome for effect in verdict.effects} == {"once"}


@pytest.mark.parametrize("times", [0, 2, 3])
@pytest.mark.parametrize("effect", ["coins", "notifications", "thread"])
def test_one_effect_of_one_subject_gone_wrong_is_enough_to_fail(effect, times):
    for position, row in enumerate(rows()[effect]):
        seen = rows()
        seen[effect][position] = row._replace(times=times)
        verdict = judge(seen, run("commit"), COMMUNITY)
        wrong = [e for e in verdict.effects if e.outcome != "once"]
        assert not verdict.ok and not verdict.unknown
        assert [(e.name, e.subject, e.times) for e in wrong] == [(effect, row.subject, times)]
        assert verdict.worst == wrong[0].outcome == ("missed" if times == 0 else "duplicated")


def test_nothing_happened_is_missed_and_not_free_of_duplicates():
    verdict = judge(rows(0, 0, 0), History(complete=True), COMMUNITY)
    assert (verdict.ok, verdict.worst, verdict.code) == (False, "missed", "M")


@pytest.mark.parametrize("seen", [{}, {"coins": []}, {**rows(), "thread": []}])
def test_what_nobody_looked_at_is_unknown(seen):
    verdict = judge(seen, run("commit"), COMMUNITY)
    assert (verdict.ok, verdict.unknown, verdict.code) == (False, True, "unknown")


def test_a_history_that_is_not_complete_is_unknown_however_good_the_rows_are():
    history = run("commit")
    history.complete = False
    verdict = judge(rows(), history, COMMUNITY)
    assert (verdict.ok, verdict.unknown, verdict.worst) == (False, True, "unknown")


def test_a_history_cut_off_on_disk_is_unknown(tmp_path):
    path = run("commit").save(tmp_path / "history.jsonl")
    assert judge(rows(), History.load(path), COMMUNITY).ok
    path.write_text("\n".join(path.read_text(encoding="utf-8").splitlines()[:-1]), encoding="utf-8")
    assert judge(rows(), History.load(path), COMMUNITY).unknown


@pytest.mark.parametrize(("seen", "code"), [
    (rows(), "1"), (rows(3, 3, 3), "D3"), (rows(2, 2, 0), "D2"), (rows(0, 0, 0), "M"),
    (rows(1, 1, 0), "P"), (rows(1, 0, 1), "P"), (rows(1, 2, 0), "D2"), (rows(0, 0, 1), "M")])
def test_the_code_tells_the_coins_first(seen, code):
    assert judge(seen, run("commit"), COMMUNITY).code == code


def test_the_code_names_the_member_who_got_most():
    seen = rows()
    seen["coins"] = [Row(WINNERS[0], 2, 1), Row(WINNERS[1], 3, 1), Row(WINNERS[2], 0, 1)]
    assert judge(seen, run("commit"), COMMUNITY).code == "D3"


def test_more_than_one_due_is_counted_against_what_was_due():
    assert judge({"searches": [Row("a", 3, 3)]}, run("commit")).code == "1"
    assert judge({"searches": [Row("a", 6, 3)]}, run("commit")).code == "D2"
    assert judge({"searches": [Row("a", 4, 3)]}, run("commit")).code == "D2"
    assert judge({"searches": [Row("a", 2, 3)]}, run("commit")).code == "M"


def test_an_effect_that_was_not_due_is_a_phantom():
    seen = rows()
    seen["coins"].append(Row("Iker Salinas", 1, 0))
    verdict = judge(seen, run("commit"), COMMUNITY)
    assert (verdict.ok, verdict.worst, verdict.code) == (False, "phantom", "phantom")


def test_a_subject_with_nothing_due_and_nothing_done_is_no_effect():
    seen = rows()
    seen["coins"].append(Row("Iker Salinas", 0, 0))
    verdict = judge(seen, run("commit"), COMMUNITY)
    assert verdict.ok
    assert "Iker Salinas" not in {effect.subject for effect in verdict.effects}


@pytest.mark.parametrize("outcome", ["late", "early", "lost", "negative", "a word of its own"])
def test_an_effect_may_name_its_own_outcome(outcome):
    verdict = judge({"push": [Row("a", 1, 1), Row("b", 1, 1, outcome)]}, run("commit"))
    assert (verdict.ok, verdict.worst, verdict.code) == (False, outcome, outcome)


def test_an_error_of_its_own_is_told_before_the_effects():
    assert judge(rows(0, 0, 0), run("error", "error"), COMMUNITY).code == "E M"
    assert judge(rows(), run("error", "commit"), COMMUNITY).code == "E 1"


def test_an_error_that_the_schedule_caused_is_not_the_programs_own():
    history = run("commit")
    add(history, "B", "tick", "worker:tick")
    add(history, "B", "cut", "before COMMIT", "cut")
    add(history, "B", "end", "end", "error: OperationalError the connection is closed")
    assert judge(rows(), history, COMMUNITY).code == "1"
    add(history, "B", "tick", "worker:tick")
    add(history, "B", "end", "end", "error: AttributeError no attribute 'year'")
    assert judge(rows(), history, COMMUNITY).code == "E 1"


def witnesses(verdict, name: str) -> set[tuple[int, ...]]:
    """The witnesses named for an effect, whoever its subject."""
    return {effect.witnesses for effect in verdict.effects if effect.name == name}


def test_a_duplicate_is_witnessed_by_the_committed_inserts():
    history = run("commit", "kill", "commit")
    verdict = judge(rows(2, 2, 2), history, COMMUNITY)
    for name, effect in COMMUNITY.items():
        (seqs,) = witnesses(verdict, name)
        assert [history[seq].label for seq in seqs] == [effect.witness] * 2
        assert [history[seq].replica for seq in seqs] == ["A", "C"]


def test_what_is_missed_is_witnessed_by_the_inserts_that_came_to_nothing():
    history = run("rollback")
    (seqs,) = witnesses(judge(rows(0, 0, 0), history, COMMUNITY), "coins")
    assert [history[seq].label for seq in seqs] == ["INSERT token_transactions"]


def test_a_thread_that_was_not_written_is_witnessed_by_the_insert_of_no_row():
    history = History(complete=True)
    add(history, "A", "tick", "worker:tick")
    seq = add(history, "A", "statement", WRITES[2], detail={"tag": "INSERT 0 0"})
    add(history, "A", "commit", "COMMIT")
    add(history, "A", "end", "end")
    assert witnesses(judge(rows(1, 1, 0), history, COMMUNITY), "thread") == {(seq,)}


def test_what_nobody_tried_is_witnessed_by_the_ends_of_the_runs():
    history = History(complete=True)
    add(history, "A", "tick", "worker:tick")
    end = add(history, "A", "end", "end")
    assert witnesses(judge(rows(0, 0, 0), history, COMMUNITY), "coins") == {(end,)}


def test_a_commit_whose_answer_was_lost_is_believed_when_the_rows_say_so():
    history = History(complete=True)
    add(history, "A", "tick", "worker:tick")
    seq = add(history, "A", "statement", WRITES[1], detail={"tag": "INSERT 0 3"})
    add(history, "A", "cut", "after COMMIT", "cut")
    add(history, "A", "commit", "COMMIT", "cut")
    assert witnesses(judge(rows(), history, COMMUNITY), "coins") == {(seq,)}


def test_an_insert_that_waited_is_one_witness_and_not_two():
    history = History(complete=True)
    add(history, "A", "tick", "worker:tick")
    first = add(history, "A", "statement", WRITES[1], "waiting", waits_for=("B",))
    second = add(history, "A", "statement", WRITES[1], resumes=first)
    add(history, "A", "commit", "COMMIT")
    assert witnesses(judge(rows(), history, COMMUNITY), "coins") == {(second,)}


def test_an_insert_that_waited_and_was_rolled_back_is_one_vain_attempt():
    history = History(complete=True)
    add(history, "A", "tick", "worker:tick")
    first = add(history, "A", "statement", WRITES[1], "waiting", waits_for=("B",))
    second = add(history, "A", "statement", WRITES[1], resumes=first)
    add(history, "A", "rollback", "ROLLBACK")
    assert witnesses(judge(rows(0, 0, 0), history, COMMUNITY), "coins") == {(second,)}


@pytest.mark.parametrize(("kind", "outcome"), [
    ("commit", "error: 40001 could not serialize access"), ("rollback", "ok"), ("cut", "cut")])
def test_what_was_undone_and_done_again_is_witnessed_by_what_was_committed(kind, outcome):
    history = History(complete=True)
    add(history, "A", "tick", "worker:tick")
    add(history, "A", "statement", WRITES[1])
    add(history, "A", kind, kind.upper(), outcome)
    seq = add(history, "A", "statement", WRITES[1])
    add(history, "A", "commit", "COMMIT")
    assert witnesses(judge(rows(), history, COMMUNITY), "coins") == {(seq,)}


def test_without_effects_no_witness_is_named():
    assert all(not e.witnesses for e in judge(rows(), run("commit")).effects)


def test_an_unknown_set_of_effects_is_refused_with_those_there_are():
    with pytest.raises(LabError, match="community"):
        load_effects("comunity")


@pytest.mark.parametrize("fields", [{"title": "x", "sql": "SELECT"},
                                    {"title": "x", "sql": "", "witness": "", "colour": "red"}])
def test_a_declaration_with_a_missing_or_foreign_field_is_refused(fields):
    with pytest.raises(LabError, match="declared"):
        load_effects({"push": fields})


def test_a_stage_may_declare_its_own_effects():
    declared = {"push": {"title": "push", "sql": "SELECT 'a', 1, 1", "witness": "POST /"}}
    assert load_effects(declared) == {"push": EffectSpec("push", **declared["push"])}


@pytest.fixture
def conn():
    """A connection to a fresh community."""
    with server() as running, running.database([SCHEMA, SEED], label="verdict") as database, \
            database.connect() as connection:
        yield connection


def coins(conn, member: str) -> None:
    """Write the coins of one member."""
    conn.execute("INSERT INTO token_transactions (member_id, amount, reason, created_at)"
                 " SELECT id, 10, 'leaderboard_top3', now() FROM members WHERE name = %s", [member])


def notification(conn, member: str) -> None:
    """Write the notification of one member."""
    conn.execute("INSERT INTO notifications (member_id, kind, body, created_at)"
                 " SELECT id, 'leaderboard_top3', '', now() FROM members WHERE name = %s", [member])


def pay(conn, member: str) -> None:
    """Write both."""
    coins(conn, member)
    notification(conn, member)


def post(conn) -> None:
    """Write the thread of the week."""
    conn.execute("INSERT INTO threads (section_id, author_id, title, body_md, created_at)"
                 " SELECT 1, 1, '🏆 Top 3 de la semana — 29 May 2026', '', now()")


def test_the_communitys_effects_see_every_change_of_the_rows(conn):
    complete = History(complete=True)

    def code() -> str:
        return judge(read(conn, COMMUNITY), complete, COMMUNITY).code

    assert code() == "M"
    for winner in WINNERS:
        pay(conn, winner)
    assert code() == "P"
    post(conn)
    assert code() == "1"
    for effect, table in ((coins, "token_transactions"), (notification, "notifications")):
        effect(conn, "Nayeli Pech")
        assert code() == "phantom"
        conn.execute(f"DELETE FROM {table} WHERE member_id = 4")
        assert code() == "1"
    post(conn)
    assert code() == "D2"
    conn.execute("DELETE FROM threads")
    post(conn)
    pay(conn, WINNERS[2])
    pay(conn, WINNERS[2])
    assert code() == "D3"


def test_another_jobs_rows_are_no_effect_of_the_leaderboard(conn):
    for winner in WINNERS:
        pay(conn, winner)
    post(conn)
    conn.execute("INSERT INTO notifications (member_id, kind, body, created_at)"
                 " VALUES (1, 'anniversary', '', now())")
    conn.execute("INSERT INTO token_transactions (member_id, amount, reason, created_at)"
                 " VALUES (1, 5, 'referral', now())")
    conn.execute("INSERT INTO threads (section_id, author_id, title, body_md, created_at)"
                 " VALUES (1, 1, '¡Hola!', '', now())")
    conn.execute(conditions()["poison-member"][0])
    assert judge(read(conn, COMMUNITY), History(complete=True), COMMUNITY).ok


def test_the_verdict_is_the_same_for_an_equal_history():
    history = run("commit", "commit")
    again = History([replace(event, started=9.0) for event in history], complete=True)
    assert judge(rows(2, 2, 2), history, COMMUNITY) == judge(rows(2, 2, 2), again, COMMUNITY)
