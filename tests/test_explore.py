"""The count is exact, the reduction loses no outcome, and what is found can be replayed."""

import random
from math import comb, factorial

import psycopg
import pytest

from lab.engine import explore as exploring
from lab.engine import isolationtester
from lab.engine.explore import explore
from lab.engine.footprint import Footprints, dependent
from lab.engine.isolationtester import SPECS, Spec
from lab.engine.link import Step
from lab.engine.protocol import Segment
from lab.engine.schedule import Schedule, run
from lab.engine.stepper import Stepper
from lab.judge.scenarios import theatre
from lab.judge.stage import stages
from tests.sampling import CASES, cast, left, sampler

ALL = 80  # schedules of a stage that are all run one by one; of more, a sample is
SAMPLE = 30


@pytest.fixture(scope="module")
def stepper(server):
    with sampler(server, imports=("psycopg",)) as made:
        yield made


def explored(stepper, case: dict[str, tuple], **options):
    """Explore a case; the outcome is everything that a run leaves behind."""
    cast(stepper, **case)
    return explore(stepper, lambda history: (left(stepper, history), False), **options)


def took_steps(history) -> str:
    """The letters of a run's steps, in order."""
    return "".join(e.replica for e in history if e.kind in ("statement", "commit", "rollback")
                   and e.resumes is None)


def preemptions(stepper, path: str) -> int:
    """How often a replica that could have gone on had to give way, as seen in a real run."""
    stepper.reset()
    stepper.start(*stepper.replicas)
    count = 0
    for before, letter in zip(" " + path, path, strict=False):
        count += before != letter and before in stepper.possible()
        stepper.step(letter)
    return count


# No outcome is lost


@pytest.mark.parametrize("name", CASES)
def test_the_reduction_loses_no_outcome_and_no_schedule(stepper, name):
    full = explored(stepper, CASES[name], reduce=False)
    reduced = explored(stepper, CASES[name])
    assert full.complete and reduced.complete
    assert full.runs == full.total == reduced.total
    assert reduced.outcomes == full.outcomes
    assert reduced.runs <= full.runs


def test_of_two_who_wait_for_one_transaction_either_may_go_first_when_it_is_rolled_back(stepper):
    """Postgres wakes both: which of them wins is not the schedule's to say, all else is."""
    case = {"A": ("claim", "A", True), "B": ("claim", "B"), "C": ("claim", "C")}
    full, reduced = explored(stepper, case, reduce=False), explored(stepper, case)
    assert (full.total, set(full.outcomes)) == (reduced.total, set(reduced.outcomes))
    assert len(full.outcomes) == 2


def test_the_reduction_saves_runs_where_order_cannot_be_seen(stepper):
    assert explored(stepper, CASES["rows that nobody looks at"]).runs == 1
    assert explored(stepper, CASES["a cascade that somebody sees"]).runs < 30


def test_an_isolation_level_that_the_code_asks_for_turns_the_reduction_off(stepper):
    assert not explored(stepper, CASES["a lost update, refused"]).reduced
    assert explored(stepper, CASES["a lost update"]).reduced


def entries(stage) -> list[dict]:
    """What the stage explores with two replicas."""
    return [entry for entry in stage.data.get("explore", ()) if entry["replicas"] == 2]


@pytest.mark.parametrize("stage", [s for s in stages() if entries(s)], ids=lambda stage: stage.name)
def test_the_reduction_loses_no_outcome_on_a_stage(server, stage):
    with theatre(stage, server) as scene:
        for entry in entries(stage):
            parts = {key: entry[key] for key in ("everyone", "roles", "isolation", "standing")
                     if key in entry}
            reduced = scene.explore("AB", **parts)
            if reduced.total <= ALL:
                full = scene.explore("AB", reduce=False, **parts)
                assert (full.total, full.outcomes) == (reduced.total, reduced.outcomes), entry
            else:
                check_some_paths(scene, parts)


def check_some_paths(scene, parts) -> None:
    """Schedules drawn at random end as the graph says, when every step of them is really taken."""
    stepper = scene.stepper("AB", **{"everyone": "", **parts})
    explorer = exploring._Explorer(
        stepper, lambda h: (scene.judge(h).code, False), True,
        Footprints(stepper.monitor, parts.get("isolation", "read committed")), lambda *_: None)
    while True:
        try:
            explorer.run(0.0, None)
            break
        except exploring.Learned:
            explorer = exploring._Explorer(
                stepper, explorer.judge, True, explorer.footprints, lambda *_: None)
    dice = random.Random(20260529)
    for _ in range(SAMPLE):
        stepper.reset()
        stepper.start("A", "B")
        node = explorer.nodes[explorer.root]
        while node.children:
            assert list(node.held) == stepper.possible()
            letter = dice.choice(list(node.children))
            stepper.step(letter)
            node = explorer.nodes[node.children[letter]]
        stepper.history.complete = stepper.over
        assert scene.judge(stepper.history).code == node.code


# The count


@pytest.mark.parametrize("replicas", [2, 3, 4])
def test_where_nothing_waits_the_count_is_the_multinomial(stepper, replicas):
    result = explored(stepper, {letter: ("note", letter) for letter in "ABCD"[:replicas]})
    assert result.total == factorial(2 * replicas) // 2 ** replicas
    assert result.headline == f"0 of {result.total:,}"


def test_of_00_every_interleaving_breaks_and_all_are_counted(server):
    stage = stages()[0]
    with theatre(stage, server) as scene:
        result = scene.explore("AB")
    assert (result.breaking, result.total, result.unknown) == (comb(12, 6), comb(12, 6), 0)


def test_ends_that_cannot_be_judged_are_counted_apart(stepper):
    cast(stepper, **CASES["locks that nobody releases"])
    result = explore(stepper, lambda h: ("1", False) if h.complete else ("unknown", True))
    assert result.unknown == result.total > 0


def test_an_exploration_tells_how_it_goes(stepper):
    told = []
    result = explored(stepper, CASES["two claims on one key"],
                      on_progress=lambda *now: told.append(now))
    assert [runs for runs, _, _ in told] == list(range(1, result.runs + 1))


@pytest.mark.parametrize("reduce", [True, False])
@pytest.mark.parametrize("seconds", [0.0, 0.2, 0.5])
def test_when_time_is_up_it_says_at_least_and_the_bound_it_names_is_kept(stepper, seconds, reduce):
    case = CASES["a cascade that somebody sees"]
    every = []
    cast(stepper, **case)
    explore(stepper, lambda h: (every.append(took_steps(h)) or "", False), reduce=False)
    tried = []

    def judge(history):
        tried.append(took_steps(history))
        return "x", False

    result = explore(stepper, judge, reduce=reduce, seconds=seconds)
    if result.complete:
        return
    assert result.headline.startswith("0 of at least ") and result.total < len(every) == 60
    if result.preemptions is not None and not reduce:
        for path in set(every) - set(tried):
            assert preemptions(stepper, path) > result.preemptions


# What is found can be replayed


@pytest.mark.parametrize("name", ["a lost update", "two claims on one key",
                                  "a cascade that somebody sees", "two updates in opposite order"])
def test_every_finding_is_replayed_to_its_outcome_from_its_text(stepper, name):
    for finding in explored(stepper, CASES[name]).findings:
        history = run(stepper, Schedule.parse(str(finding.schedule)))
        assert left(stepper, history) == finding.code


def test_failures_come_first_and_the_plainest_of_them_at_the_front(stepper):
    cast(stepper, **CASES["a lost update"])

    def lost(history):
        (balance,) = stepper.monitor.execute("SELECT balance FROM wallets WHERE id = 1").fetchone()
        return str(balance), balance != 120

    result = explore(stepper, lost)
    breaks = [finding.breaks for finding in result.findings]
    assert breaks == sorted(breaks, reverse=True)
    assert str(result.findings[0].schedule) == "A B.. A.."
    assert result.breaking == sum(f.size for f in result.findings if f.breaks) == 12


# What a statement touches


def footprint(prints: Footprints, text: str):
    return prints.of(Step(Segment("step", b"", [text], [()])))


@pytest.fixture
def prints(stepper):
    return Footprints(stepper.monitor)


@pytest.mark.parametrize(("text", "reads", "keys", "writes", "appends"), [
    ("SELECT balance FROM wallets", "wallets", "", "", ""),
    ("SELECT * FROM wallets FOR UPDATE", "", "", "wallets", ""),
    ("UPDATE wallets SET balance = 0 WHERE id IN (SELECT wallet_id FROM spends)",
     "spends", "spends", "spends wallets", ""),
    ("INSERT INTO log (who) VALUES ('A')", "", "", "", "log"),
    ("INSERT INTO log (id, who) OVERRIDING SYSTEM VALUE VALUES (1, 'A')", "", "", "log", ""),
    ("INSERT INTO LOG (ID, who) OVERRIDING SYSTEM VALUE VALUES (1, 'A')", "", "", "log", ""),
    ("INSERT INTO log (who) VALUES ('A') ON CONFLICT DO NOTHING", "", "", "log", ""),
    ("INSERT INTO spends (wallet_id, who) VALUES (1, 'A')", "", "wallets", "", "spends"),
    ("INSERT INTO claims VALUES ('a', 'b')", "", "", "claims", ""),
    ("DELETE FROM wallets", "", "spends wallets", "spends wallets", ""),
    ("SELECT pg_try_advisory_xact_lock(1)", "", "", "advisory-locks", ""),
    ("WITH gone AS (DELETE FROM spends RETURNING who) INSERT INTO seen SELECT who, '' FROM gone",
     "", "wallets", "seen spends", ""),
])
def test_a_footprint_is_what_postgres_would_lock(prints, text, reads, keys, writes, appends):
    found = footprint(prints, text)
    assert not found.everything
    assert found.reads - found.writes == set(reads.split()) - set(writes.split())
    assert (found.writes, found.appends) == (set(writes.split()), set(appends.split()))
    assert set(keys.split()) <= found.keys | found.writes


@pytest.mark.parametrize("text", [
    "SELECT nextval('log_id_seq')", "SELECT pg_advisory_lock(1)", "NOTIFY jobs", "LISTEN jobs",
    "TRUNCATE log", "LOCK TABLE log", "SAVEPOINT a", "ROLLBACK TO SAVEPOINT a", "COMMIT AND CHAIN",
    "SELECT count(*) FROM pg_locks", "SELECT clock_timestamp()", "SELECT broken FROM nowhere",
    "DO $$ BEGIN END $$", "COPY log FROM STDIN",
    "SELECT pg_sleep(0)"])  # interrupted: it is never sent
def test_what_cannot_be_known_depends_on_everything(prints, text):
    assert footprint(prints, text).everything


def test_a_table_that_is_looked_at_after_rows_were_added_is_learned(prints):
    added = footprint(prints, "INSERT INTO log (who) VALUES ('A')")
    assert not dependent(added, added)
    with pytest.raises(exploring.Learned):
        footprint(prints, "SELECT who FROM log")
    added = footprint(prints, "INSERT INTO log (who) VALUES ('A')")
    assert dependent(added, added)


@pytest.mark.parametrize(("sql", "text"), [
    ("CREATE FUNCTION peek() RETURNS int LANGUAGE sql AS 'SELECT 1'", "SELECT peek()"),
    ("CREATE FUNCTION peek() RETURNS int LANGUAGE sql AS 'SELECT 1';"
     "CREATE VIEW peeks AS SELECT peek() AS p", "SELECT p FROM peeks"),
    ("CREATE FUNCTION peek() RETURNS int LANGUAGE sql AS 'SELECT 1';"
     "ALTER TABLE seen ADD extra int DEFAULT peek()", "INSERT INTO seen VALUES ('a', 'b')"),
    ("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
     "CREATE TRIGGER t BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION f()",
     "INSERT INTO seen VALUES ('a', 'b')"),
    ("ALTER TABLE seen ADD UNIQUE (what) DEFERRABLE INITIALLY DEFERRED",
     "INSERT INTO seen VALUES ('a', 'b')"),
    ("CREATE TABLE part () INHERITS (seen)", "SELECT * FROM seen"),
], ids=["function", "view", "default", "trigger", "deferred", "inheritance"])
def test_what_hides_behind_a_table_makes_it_depend_on_everything(stepper, sql, text):
    with stepper.monitor.transaction(force_rollback=True):
        stepper.monitor.execute(sql)
        assert footprint(Footprints(stepper.monitor), text).everything


# PostgreSQL's own tester


@pytest.mark.parametrize("name", sorted(path.stem for path in SPECS.glob("*.spec")))
def test_the_outcomes_are_those_of_postgresqls_isolationtester(server, name):
    program = isolationtester.find()
    if not program:
        pytest.skip("isolationtester is not installed here")
    spec, ours = Spec.read(name), {}
    with spec.database(server) as database, \
            Stepper(database, SPECS, spec.programs(), imports=("psycopg",)) as stepper:

        def judge(history):
            rows = stepper.monitor.execute(spec.look).fetchall()
            steps, outcome = isolationtester.outcome_of(spec, history, rows)
            ours[steps] = outcome
            return str((outcome.errors, outcome.rows)), False

        full = explore(stepper, judge, reduce=False)
        everything = dict(ours)
        assert explore(stepper, judge).outcomes == full.outcomes
        try:
            with database.connect() as admin:
                admin.execute(f"ALTER DATABASE {database.name} SET deadlock_timeout = '100ms'")
        except psycopg.errors.InsufficientPrivilege:
            pass
        theirs = isolationtester.permute(program, spec, list(everything), database.url)
    assert len(theirs) == len(everything) == full.total
    assert {(t.errors, t.rows) for t in theirs} == {(o.errors, o.rows) for o in everything.values()}
    if name != "deadlock":  # there, which of the two Postgres ends is a matter of time
        assert theirs == list(everything.values())
