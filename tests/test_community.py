"""The community: models fit the tables, the seed tells the story, week keys are ISO weeks."""

from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import func, select, text

from lab.engine.postgres import server
from lab.errors import LabError
from lab.world import community
from lab.world.clock import MX
from lab.world.community import Base, Member, Notification, TokenTransaction
from lab.world.conditions import SCHEMA, SEED, conditions

INCIDENT = datetime(2026, 5, 29, 18, tzinfo=MX)
TYPES = {"BIGINT": "bigint", "INTEGER": "integer", "TEXT": "text", "BOOLEAN": "boolean",
         "DATE": "date"}


@pytest.fixture(scope="module")
def database():
    """A fresh community; tests that write roll back."""
    with server() as running, running.database([SCHEMA, SEED], label="community") as made:
        yield made
        community._engine(made.url).dispose()


@pytest.fixture
def db(database, monkeypatch):
    """A session on it, as a stage opens one."""
    monkeypatch.setenv("DATABASE_URL", database.url)
    with community.open_session() as session:
        yield session


@pytest.mark.parametrize(("moment", "key"), [
    (INCIDENT, "2026-W22"),
    (datetime(2026, 5, 30, 0, 0, tzinfo=UTC), "2026-W22"),     # Friday in Mexico, Saturday in UTC
    (datetime(2026, 6, 1, 5, 59, tzinfo=UTC), "2026-W22"),     # Sunday in Mexico, Monday in UTC
    (datetime(2026, 6, 1, 6, 0, tzinfo=UTC), "2026-W23"),
    (datetime(2027, 1, 1, 18, tzinfo=MX), "2026-W53"),         # Friday; the ISO year is the old one
    (datetime(2024, 12, 30, 18, tzinfo=MX), "2025-W01"),       # and here the new one
    (datetime(2021, 1, 3, 23, 59, tzinfo=MX), "2020-W53"),
    (datetime(2026, 1, 2, 18, tzinfo=MX), "2026-W01"),         # one digit is written as two
    (datetime(2022, 7, 4, 5, 30, tzinfo=UTC), "2022-W27"),     # daylight saving: Monday 00:30
    (datetime(2023, 7, 3, 5, 30, tzinfo=UTC), "2023-W26"),     # none any more: Sunday 23:30
])
def test_a_week_key_is_the_iso_week_in_mexico_city(moment, key):
    assert community.week_key(moment) == key


def test_every_friday_has_a_key_of_its_own():
    fridays = [INCIDENT + timedelta(weeks=n) for n in range(-600, 600)]
    assert len({community.week_key(friday) for friday in fridays}) == len(fridays)


def test_the_models_fit_the_tables(db):
    rows = db.execute(text(
        "SELECT table_name, column_name, data_type, is_nullable = 'YES'"
        " FROM information_schema.columns WHERE table_schema = 'public'"))
    tables = {(table, column): (kind, nullable) for table, column, kind, nullable in rows}
    models = {(table.name, column.name): (_type(column), column.nullable)
              for table in Base.metadata.tables.values() for column in table.columns}
    assert {name: kind.replace("bigint", "integer") for name, (kind, _) in tables.items()} == {
        name: kind for name, (kind, _) in models.items()}
    assert {name: nullable for name, (_, nullable) in tables.items()} == {
        name: nullable for name, (_, nullable) in models.items()}


def _type(column) -> str:
    if getattr(column.type, "timezone", False):
        return "timestamp with time zone"
    return TYPES[str(column.type)]


def test_the_podium_is_three_members_and_a_tie_goes_by_name(db):
    podium = [(member.name, points) for member, points in community.podium(db, "2026-W22")]
    assert podium == [("Ximena Robles", 480), ("Mateo Cárdenas", 455), ("Lupita Hernández", 430)]
    fourth = db.scalar(text("SELECT points FROM weekly_points WHERE week = '2026-W22'"
                            " ORDER BY points DESC OFFSET 3 LIMIT 1"))
    assert fourth == 430
    db.execute(text("UPDATE members SET name = 'Abril Pech' WHERE name = 'Nayeli Pech'"))
    assert [member.name for member, _ in community.podium(db, "2026-W22")][2] == "Abril Pech"


def test_the_weeks_around_have_other_winners(db):
    names = {week: [member.name for member, _ in community.podium(db, week)]
             for week in ("2026-W21", "2026-W22", "2026-W23")}
    assert all(len(set(podium)) == 3 for podium in names.values())
    assert len({tuple(podium) for podium in names.values()}) == 3


def test_a_week_without_points_has_no_podium(db):
    assert community.podium(db, "2020-W53") == []


def test_it_starts_with_a_dozen_members_one_bot_and_empty_wallets(db):
    members = db.scalars(select(Member)).all()
    assert sum(not member.is_bot for member in members) >= 12
    assert sum(member.is_bot for member in members) == 1
    assert db.scalar(select(func.count()).select_from(TokenTransaction)) == 0
    assert db.scalar(select(func.count()).select_from(Notification)) == 0
    assert db.scalar(text("SELECT count(*) FROM sections WHERE slug = 'general'")) == 1


def test_nobody_has_an_anniversary_on_the_day_of_the_incident(db):
    joined = db.scalars(select(Member.joined_on)).all()
    assert all(isinstance(day, date) and (day.month, day.day) != (5, 29) for day in joined)


def test_times_come_back_as_the_moment_that_was_written(db):
    db.add(Notification(member_id=1, kind="test", body="", created_at=INCIDENT))
    db.flush()
    assert db.scalar(text("SELECT created_at FROM notifications")) == INCIDENT
    assert db.scalar(text("SELECT extract(epoch FROM created_at)::bigint FROM notifications")) == (
        INCIDENT.timestamp())


def test_a_session_says_nothing_before_the_stage_does(db, database):
    community._engine.cache_clear()  # a process that has not connected yet
    db.bind = community.open_session().bind
    pid = db.connection().connection.driver_connection.info.backend_pid
    with database.connect() as other:
        said = other.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    assert said == ("",)


def test_a_statement_is_never_prepared_on_the_server(db):
    for _ in range(12):
        community.podium(db, "2026-W22")
    assert db.scalar(text("SELECT count(*) FROM pg_prepared_statements")) == 0


def test_an_uncommitted_session_leaves_nothing(db, database):
    db.add(TokenTransaction(member_id=1, amount=10, reason="test", created_at=INCIDENT))
    db.flush()
    db.close()
    with database.connect() as other:
        assert other.execute("SELECT count(*) FROM token_transactions").fetchone() == (0,)


def test_without_a_database_url_the_remedy_is_said(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with pytest.raises(LabError, match="DATABASE_URL"):
        community.open_session()


@pytest.mark.parametrize("name", sorted(conditions()))
def test_every_condition_changes_the_seeded_world_or_undoes_one_that_does(db, name):
    undoes = {"heal-member": "poison-member", "section-back": "no-section"}
    scripts = conditions()
    for statement in scripts.get(undoes.get(name, ""), []):
        db.execute(text(statement))
    assert all(db.execute(text(statement)).rowcount == 1 for statement in scripts[name])
