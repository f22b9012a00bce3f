"""06: no placement of the push is right; a row in the same transaction, and a relay, is."""

import re
from pathlib import Path

import pytest

from lab.engine.relays import relay, until
from lab.engine.rush import rush
from lab.engine.schedule import Schedule, make
from lab.engine.schedule import run as play_on
from lab.judge import sweeps
from lab.judge.scenarios import scenarios
from lab.judge.stage import stage
from lab.world.ntfy import PushServer
from tests.playing import counts, ids, play, promised, run

HERE = Path(__file__).parent
STAGE = stage(HERE.name)
SWEEPS = [entry["name"] for entry in STAGE.data["sweep"]]
FILL = STAGE.data["relays"]["fill"]


@pytest.mark.parametrize("name", scenarios(STAGE))
def test_the_scenario_comes_out_as_promised(theatre_of, name):
    outcome = play(theatre_of(6), name)
    assert outcome.code == outcome.expected


def pushes(outcome):
    """Subject -> (outcome, times) of the pushes."""
    return {e.subject: (e.outcome, e.times) for e in outcome.verdict.effects if e.name == "push"}


# No placement is right


def test_each_attempt_of_the_front_end_is_a_phantom_of_its_own(theatre_of):
    assert pushes(play(theatre_of(6), "N2")) == {"o-1": ("phantom", 3)}


def test_told_before_the_commit_the_user_looks_and_finds_nothing(theatre_of):
    history = play(theatre_of(6), "N3").history
    assert [e.detail["value"] for e in history if e.replica == "B" and e.kind == "end"] == [False]
    later = run(theatre_of(6), "A.. B..", roles={"B": "reader"}).history
    assert [e.detail["value"] for e in later if e.replica == "B" and e.kind == "end"] == [True]


def test_told_after_the_commit_the_user_always_finds_it(theatre_of):
    for placement in ("after_commit", "outbox"):
        roles = {"A": placement, "B": "reader", "R": "relay"}
        for before in range(1, 5):
            found = run(theatre_of(6), f"A*{before} R.. B.. A.. R.again R..", roles=roles)
            assert list(theatre_of(6).pushes.found.values()) == [True]
            assert pushes(found) == {"o-1": ("once", 1)}


@pytest.fixture(scope="module")
def swept(theatre_of):
    theatre_of(6).spares = 2
    done = {one.entry["name"]: one for one in sweeps.run(theatre_of(6))}
    for one in done.values():
        if one.result is None:
            print(f"NOT swept: {one.entry['name']}: {one.entry['otherwise']}")
    return done


@pytest.mark.parametrize("name", SWEEPS)
def test_the_sweep_finds_exactly_the_promised_outcomes(swept, name):
    if swept[name].result is None:
        pytest.skip(swept[name].entry["otherwise"])
    assert swept[name].bad == set(swept[name].entry["outcomes"])


def test_the_sweep_tries_every_fault_at_every_step_and_death_after_the_last(swept):
    for one in (one for one in swept.values() if one.result):
        for letter, steps in one.result.steps.items():
            tried = [(p.step, p.fault) for p in one.result.points if p.letter == letter]
            due = [(n, fault) for n in range(len(steps)) for fault in
                   ("kill", "cut-before", "cut-after")] + [(len(steps), "kill")]
            due += [(n, "fail") for n, step in enumerate(steps) if step == "COMMIT"]
            assert sorted(tried) == sorted(due) and steps


@pytest.mark.parametrize("name", ["outbox + relay", "WAL + wal_relay"])
def test_duplicates_come_only_from_a_relay_between_push_and_mark(swept, name):
    if swept[name].result is None:
        pytest.skip(swept[name].entry["otherwise"])
    result = swept[name].result
    for point in result.points:
        if "duplicated" in (point.alone.name, point.retried.name):
            assert point.letter == "B"
            assert (point.step, point.fault) in [(1, "cut-after"), (2, "kill"), (2, "cut-before")]


def test_a_crash_point_can_be_replayed_from_its_schedule(theatre_of, swept):
    point = next(p for p in swept["outbox + relay"].result.points
                 if (p.letter, p.step, p.fault) == ("B", 2, "kill"))
    again = run(theatre_of(6), point.schedule, roles={"A": "outbox", "B": "relay"})
    assert pushes(again) == {"o-1": ("duplicated", 2)}


# The receiver


def test_with_its_key_the_receiver_shows_a_repeated_push_once(theatre_of):
    verdict = play(theatre_of(6), "N7").verdict
    assert {(e.name, e.outcome, e.times) for e in verdict.effects} == {
        ("push", "duplicated", 2), ("shown", "once", 1)}  # the leftover: the phone rang twice


def test_the_receiver_may_die_anywhere_and_still_shows_it_once(theatre_of):
    roles = {"A": "outbox", "R": "relay", "S": "receiver"}
    twice = "A.. R*2 R.kill R.restart @19:00 R.. "
    for step in range(4):
        dies = f"S*{step} S.kill S.restart S.." if step else "S.."
        verdict = run(theatre_of(6), twice + dies, roles=roles).verdict
        assert [(e.outcome, e.times) for e in verdict.effects if e.name == "shown"] == [("once", 1)]


# The relay


@pytest.mark.parametrize("entry", STAGE.data["explore"], ids=ids)
def test_two_relays_deliver_each_message_once_in_every_order(theatre_of, entry):
    assert promised(counts(theatre_of(6), entry), entry["breaks"])


def test_a_late_lower_id_is_lost_by_the_cursor_and_found_by_the_relay(theatre_of):
    assert pushes(play(theatre_of(6), "N8")) == {"o-1": ("lost", 0), "o-2": ("once", 1)}
    assert pushes(play(theatre_of(6), "N9")) == {"o-1": ("once", 1), "o-2": ("once", 1)}


def test_a_late_lower_id_is_in_the_log_where_it_was_committed(theatre_of):
    scene = theatre_of(6)
    entry = next(entry for entry in STAGE.data["sweep"] if "needs" in entry)
    with scene.database.connect() as conn:
        if not conn.execute(entry["needs"]).fetchone()[0]:
            pytest.skip(entry["otherwise"])
    stepper = scene.stepper("ABR", roles={"A": "outbox", "B": "outbox_2", "R": "wal_relay"},
                            standing=["new-slot"])
    history = play_on(stepper, Schedule.parse("A..commit B.. R.. A.. R.again R.."))
    assert scene.judge(history).code == "1"
    assert [m["sequence_id"] for m in scene.pushes.server.messages] == ["o-2", "o-1"]


@pytest.fixture
def shop(server):
    with STAGE.database(server) as database, database.connect() as conn:
        yield database, conn


def state(conn):
    """How many messages are sent, pending, set aside; and the most attempts of one."""
    return conn.execute("""
        SELECT count(sent_at), count(*) FILTER (WHERE sent_at IS NULL AND set_aside_at IS NULL),
               count(set_aside_at), max(attempts) FROM outbox""").fetchone()


def said(process, pattern):
    """Wait for a line of the relay's that matches; returns it."""
    for line in process.stdout:
        if re.search(pattern, line):
            return line.rstrip()
    raise AssertionError(f"it never said {pattern!r}")


def test_a_user_gets_their_messages_in_order_from_two_real_relays(shop):
    database, conn = shop
    with PushServer() as push, relay(database, HERE / "relay.py", push.url), \
            relay(database, HERE / "relay.py", push.url):
        conn.execute(FILL, (300,))
        conn.execute("NOTIFY outbox")
        until(push, 300, 60)
        order = [int(message["sequence_id"][2:]) for message in push.messages]
    assert sorted(order) == list(range(1, 301))
    for user in range(100):
        mine = [number for number in order if number % 100 == user]
        assert mine == sorted(mine)


@pytest.mark.parametrize("trouble", ["fail", "malformed", "hang up"])
def test_a_server_in_trouble_loses_nothing_and_costs_no_attempts(shop, trouble):
    database, conn = shop
    conn.execute(FILL, (3,))
    with PushServer() as push:
        push.trouble = trouble
        with relay(database, HERE / "relay.py", push.url) as process:
            assert "attempt 1" in said(process, "attempt")
            assert said(process, "next try") == "next try in 1 s"
            assert said(process, "next try") == "next try in 2 s"
            push.trouble = ""
            conn.execute("NOTIFY outbox")
            with push.changed:
                assert push.changed.wait_for(lambda: {
                    message["sequence_id"] for message in push.messages
                } == {"p-1", "p-2", "p-3"}, 60)


def test_ten_thousand_pending_behind_a_server_that_is_away_are_all_kept(shop):
    database, conn = shop
    conn.execute(FILL, (10_000,))
    with PushServer() as push:
        port = int(push.url.rsplit(":", 1)[1])
    with relay(database, HERE / "relay.py", f"http://127.0.0.1:{port}") as process:
        assert re.search(r"p-\d+, attempt 1: .*refused", said(process, "attempt"))
        assert said(process, "next try") == "next try in 1 s"
        assert state(conn)[:3] == (0, 10_000, 0)
        with PushServer(port) as push:  # it is back
            until(push, 200, 60)
            process.kill()
            process.wait()
            sent, pending, aside, _ = state(conn)
            assert sent + pending == 10_000 and aside == 0 and sent in (len(push.messages),
                                                                       len(push.messages) - 1)
            assert len({m["sequence_id"] for m in push.messages}) == len(push.messages)


def test_a_slow_server_is_waited_for(shop):
    database, conn = shop
    conn.execute(FILL, (2,))
    with PushServer() as push:
        push.slow = 0.3
        with relay(database, HERE / "relay.py", push.url):
            until(push, 2, 60)
    assert [m["sequence_id"] for m in push.messages] == ["p-1", "p-2"]


def test_a_purchase_wakes_the_relay_that_would_look_by_itself_only_later(shop):
    database, conn = shop
    with PushServer() as push, relay(database, HERE / "relay.py", push.url):
        conn.execute(FILL, (1,))
        conn.execute("NOTIFY outbox")
        until(push, 1, limit=4)  # IDLE is 5


@pytest.mark.parametrize("step", range(4))
def test_of_two_relays_one_may_die_at_any_step_and_nothing_is_lost(theatre_of, step):
    roles = {"A": "outbox", "B": "outbox_2", "R": "relay", "Q": "relay"}
    dies = f"R*{step} " if step else ""
    outcome = run(theatre_of(6), f"A.. B.. {dies}R.kill Q.. @19:00 Q.again Q..", roles=roles)
    assert {name for name, _ in pushes(outcome).values()} <= {"once", "duplicated"}
    assert pushes(outcome)["o-2"] == ("once", 1)
    assert pushes(outcome)["o-1"][1] == (2 if step == 2 else 1)


def moves(stepper, text):
    """Go on with a run under way."""
    for move in Schedule.parse(text):
        make(stepper, move)


def test_a_refused_message_is_set_aside_and_its_user_goes_on(theatre_of):
    scene = theatre_of(6)
    stepper = scene.stepper("ABR", roles={"A": "outbox", "B": "another", "R": "relay"})
    stepper.reset()
    moves(stepper, "A.. B..")  # two purchases of one user
    scene.pushes.server.trouble = "refuse"
    for hour in range(18, 23):
        moves(stepper, f"@{hour}:30 R.. R.restart")
        assert state(stepper.monitor) == (0, 2, 0, hour - 17)
    scene.pushes.server.trouble = ""
    moves(stepper, "@23:30 R..")
    assert state(stepper.monitor) == (1, 0, 1, 6)
    assert [m["sequence_id"] for m in scene.pushes.server.messages] == ["o-3"]


def test_a_message_whose_push_kills_the_relay_is_set_aside_too(theatre_of):
    deaths = "".join(f"@{hour}:30 R R.kill R.restart " for hour in range(18, 23))
    roles = {"A": "outbox", "R": "relay"}
    outcome = run(theatre_of(6), f"A.. {deaths}@23:30 R..", roles=roles)
    assert state(theatre_of(6).stepper("AR", roles=roles).monitor) == (0, 0, 1, 6)
    assert pushes(outcome) == {"o-1": ("lost", 0)}  # not sent, and kept to be looked at


# Resources


def test_a_push_inside_the_transaction_makes_buyers_queue_for_the_pool_and_the_row(server):
    seen = {}
    for placement in ("inside_transaction", "after_commit"):
        with STAGE.database(server) as database, PushServer() as push:
            push.slow = 0.1
            seen[placement] = rush(database, HERE / "rush.py", [placement, "12", "3"], push.url)
            assert len(push.messages) == 12
    inside = seen["inside_transaction"]
    assert inside.seconds > 12 * 0.1  # one after another: the row is held while each push takes
    assert max(sample.waiting for sample in inside.samples) == 2
    assert sum(sample.idle for sample in inside.samples) > len(inside.samples) / 2
    assert max(inside.queued(sample.at) for sample in inside.samples) >= 9


def test_placements_differ_in_the_line_that_is_the_lesson():
    def code(name):
        lines = (HERE / f"{name}.py").read_text("utf-8").split("def buy", 1)[1].splitlines()
        return [line.split("  #")[0].rstrip() for line in lines[2:]]

    inside, after, before = (code(n) for n in
                             ("inside_transaction", "after_commit", "before_transaction"))
    assert {line.strip() for line in inside} == {line.strip() for line in after}
    assert {line.strip() for line in inside} == {line.strip() for line in before}
    assert len(set(code("outbox")) ^ set(inside)) == 2
