"""The other files that stage 05 is run with: the image, the compose file, the CronJob, owners.md.

Where Docker is missing they are held against their schemas, and the image is rehearsed: what the
Dockerfile copies runs in a folder of its own, with no other packages than those it installs.
"""

import copy
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from zoneinfo import ZoneInfo

import jsonschema
import pytest
import yaml

from lab import folders
from tests.test_house import shape
from tests.test_readmes import blocks, found

HERE = folders.stage(5)
SCHEMAS = folders.ROOT / "tests" / "schemas"
FRIDAY = datetime.fromisoformat("2026-06-05T18:00:00-06:00")
NO_SHELL = pytest.mark.skipif(os.name == "nt", reason="needs a Unix shell")


def loaded(name):
    return yaml.safe_load((HERE / name).read_text("utf-8"))


def complaints(schema, document):
    """What a schema says against a document."""
    known = json.loads((SCHEMAS / schema).read_text("utf-8"))
    return [error.message
            for error in jsonschema.Draft201909Validator(known).iter_errors(document)]


def spoilt(document, path, value):
    """A copy in which the value at a path is another one; None takes it away."""
    changed = copy.deepcopy(document)
    *way, last = path
    place = changed
    for key in way:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


# compose.yaml


def test_the_compose_file_is_one():
    assert complaints("compose.json", loaded("compose.yaml")) == []


@pytest.mark.parametrize(("path", "value"), [
    (("services", "worker", "deploy", "replicas"), "three"),
    (("services", "worker", "deploi"), {"replicas": 3}),
    (("services", "postgres", "healthcheck", "tests"), ["CMD", "true"]),
    (("services", "worker", "depends_on", "schema", "condition"), "service_done"),
])
def test_a_mistake_in_the_compose_file_is_seen(path, value):
    assert complaints("compose.json", spoilt(loaded("compose.yaml"), path, value))


def test_docker_compose_takes_the_compose_file(tmp_path):
    asked = shutil.which("docker") and subprocess.run(
        ["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    if not asked:
        pytest.skip("docker compose is not on this machine; compose.yaml was held against its "
                    "schema only")
    folder = Path(shutil.copytree(HERE, tmp_path / "05"))
    (folder / "password.txt").write_text("sesame", "utf-8")
    done = subprocess.run(["docker", "compose", "config"], cwd=folder, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sesame" not in done.stdout


def test_the_tables_are_made_once_and_three_replicas_start_after_that():
    services = loaded("compose.yaml")["services"]
    assert services["worker"]["deploy"]["replicas"] == 3
    assert services["worker"]["depends_on"]["schema"] == {
        "condition": "service_completed_successfully"}
    assert services["schema"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert "restart" not in services["schema"] and "healthcheck" in services["postgres"]


def test_the_compose_file_publishes_on_this_machine_only_and_names_no_password():
    services = loaded("compose.yaml")["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:5433:5432"]
    for service in services.values():
        assert [name for name in service["environment"] if "PASSWORD" in name] in (
            [], ["POSTGRES_PASSWORD_FILE"])
        assert not re.search(r"//\w+:", service["environment"].get("DATABASE_URL", ""))
        assert ":latest" not in service["image"]
    ignored = (folders.ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "/05-eventbridge/password.txt" in ignored


@NO_SHELL
def test_the_replicas_get_the_password_from_the_file_and_run_the_command_as_it_stands(tmp_path):
    (tmp_path / "password").write_text("se sa'me", "utf-8")
    shell = [part.replace("$$", "$").replace("/run/secrets/password", str(tmp_path / "password"))
             for part in loaded("compose.yaml")["services"]["worker"]["entrypoint"]]
    shown = subprocess.run([*shell, "printenv", "PGPASSWORD"], capture_output=True, text=True)
    assert shown.stdout == "se sa'me\n"


# Dockerfile


def dockerfile():
    """The instructions of the Dockerfile, as (word, rest), with continued lines joined."""
    joined = re.sub(r"\\\n", "", (HERE / "Dockerfile").read_text("utf-8"))
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def installed_by_the_image():
    """The packages that the RUN line takes out of requirements.lock, with what it wrote of each."""
    (run,) = [rest for word, rest in dockerfile() if word == "RUN"]
    program = re.search(r"awk '(.*?)'", run)[1]
    lock = (folders.ROOT / "requirements.lock").read_text("utf-8")
    done = subprocess.run(["awk", program], input=lock, capture_output=True, text=True, check=True)
    blocks = re.split(r"\n(?=[a-z])", done.stdout.strip())
    return {block.split("==")[0]: block for block in blocks}


@pytest.mark.skipif(not shutil.which("awk"), reason="needs awk")
def test_the_image_installs_what_the_service_needs_with_hashes_and_no_more():
    installed = installed_by_the_image()
    assert all("--hash=sha256:" in block for block in installed.values())
    assert set(installed) == {  # that they are enough, the rehearsal below shows
        "greenlet", "psycopg", "psycopg-binary", "sqlalchemy", "typing-extensions", "tzdata"}


def test_the_image_does_not_run_as_root_and_is_pinned():
    words = dict(dockerfile())
    assert words["USER"].isdigit() and int(words["USER"]) > 0  # Kubernetes checks only numbers
    assert re.fullmatch(r"python:3\.\d+-slim", words["FROM"])
    assert json.loads(words["CMD"]) == ["python", "worker.py"]


@pytest.fixture
def image(tmp_path):
    """Runs a command on what the Dockerfile copies, with the packages that it installs."""
    if os.name == "nt" or not shutil.which("awk"):
        pytest.skip("the image is rehearsed with a Unix shell and awk")
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in installed_by_the_image():
        for file in {Path(f).parts[0] for f in metadata.files(name)} - {"..", "__pycache__"}:
            (packages / file).symlink_to(metadata.distribution(name).locate_file(file))
    root, work = tmp_path / "app", tmp_path / "app" / "05-eventbridge"
    for word, rest in dockerfile():
        if word == "COPY" and "requirements.lock" not in rest:
            *sources, target = rest.split()
            there = root / target[5:] if target.startswith("/app/") else work / target
            for source in [found for pattern in sources for found in folders.ROOT.glob(pattern)]:
                if source.is_dir():
                    shutil.copytree(source, there)
                else:
                    there.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, there)

    def run(*command, url):
        done = subprocess.run(
            [sys.executable, "-S", *command], cwd=work, capture_output=True, text=True, check=False,
            env={"PYTHONPATH": f"{packages}:{root}", "DATABASE_URL": url, "PATH": ""})
        return done.returncode, done.stdout + done.stderr

    return run


def test_what_the_image_holds_is_enough_to_make_the_tables_and_close_a_week(image, server):
    with server.database([], "05") as database:
        assert image("load_schema.py", url=database.url) == (0, "tables made\n")
        assert image("load_schema.py", url=database.url) == (0, "the tables are there already\n")
        close = ["-m", "jobs", "leaderboard_close", "--now", FRIDAY.isoformat()]
        code, said = image(*close, url=database.url)
        assert code == 0 and said.startswith("leaderboard closed")
        assert "already claimed" in image(*close, url=database.url)[1]
        question, = fenced("deploy.md", "sql")
        with database.connect() as conn:
            assert conn.execute(question).fetchone() == (1,)
        assert image("-c", "import worker", url=database.url) == (0, "")


# cronjob.yaml

SPEC = ("spec", "jobTemplate", "spec", "template", "spec")
CONTAINER = (*SPEC, "containers", 0)


def container():
    found = loaded("cronjob.yaml")
    for key in CONTAINER:
        found = found[key]
    return found


def test_the_cronjob_is_one():
    assert complaints("cronjob.json", loaded("cronjob.yaml")) == []


@pytest.mark.parametrize(("path", "value"), [
    (("spec", "timezone"), "America/Mexico_City"),
    (("spec", "concurrencyPolicy"), "Forbidden"),
    (("spec", "startingDeadlineSeconds"), "3600"),
    (("spec", "schedule"), None),
    (("apiVersion",), "batch/v1beta1"),
    ((*SPEC, "restartPolicy"), "never"),
    ((*CONTAINER, "command"), "python -m jobs"),
    (("spec", "jobTemplate", "spec", "podFailurePolicy", "rules", 0, "action"), "Fail"),
    (("spec", "jobTemplate", "spec", "podFailurePolicy", "rules", 0, "onExitCodes", "values"), 2),
    ((*CONTAINER, "env", 0, "value"), 5),
    ((*CONTAINER, "env", 0, "valueFrom", "fieldRef", "field"), "metadata.name"),
])
def test_a_mistake_in_the_cronjob_is_seen(path, value):
    assert complaints("cronjob.json", spoilt(loaded("cronjob.yaml"), path, value))


def test_the_cronjob_has_the_hour_and_the_zone_of_the_template():
    template = json.loads((HERE / "template.json").read_text("utf-8"))
    schedule, = [r["Properties"] for r in template["Resources"].values()
                 if r["Type"] == "AWS::Scheduler::Schedule"
                 and "leaderboard_close" in json.dumps(r["Properties"]["Target"]["Input"])]
    spec = loaded("cronjob.yaml")["spec"]
    assert spec["timeZone"] == schedule["ScheduleExpressionTimezone"]
    assert (spec["schedule"], schedule["ScheduleExpression"]) == (
        "0 18 * * 5", "cron(0 18 ? * FRI *)")
    assert spec["concurrencyPolicy"] == "Forbid" and spec["startingDeadlineSeconds"] == 3600


def started(tmp_path, command, **env):
    """(exit code, what python was given, what was said) of a command with a python of its own."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', "utf-8")
    python.chmod(0o755)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **env})
    return done.returncode, done.stdout.split(), done.stderr


def started_by_the_cronjob(tmp_path, job):
    return started(tmp_path, container()["command"], JOB=job, TZ="Asia/Tokyo")


GNU_DATE = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("date") or "GNU" not in subprocess.run(
        ["date", "--version"], capture_output=True, text=True).stdout,
    reason="date is not that of the image (GNU)")


@GNU_DATE
@pytest.mark.parametrize("again", ["", "-2", "-by-hand"])
def test_a_late_start_on_kubernetes_is_told_the_time_it_was_planned_for(tmp_path, again):
    planned = datetime.fromisoformat(last_friday())
    job = f"leaderboard-close-{int(planned.timestamp()) // 60}{again}"
    assert started_by_the_cronjob(tmp_path, job) == (
        0, ["-m", "jobs", "leaderboard_close", "--now", f"{planned.astimezone(UTC):%FT%TZ}"], "")


@NO_SHELL
@pytest.mark.parametrize("job", [
    "leaderboard-close-by-hand", "manual-1", "", "leaderboard-close-", "leaderboard-close-2",
    "leaderboard-close-20260605", "leaderboard-close-00000009", "leaderboard-close-1780704000",
    f"leaderboard-close-{int(datetime.now(UTC).timestamp()) // 60 + 60}"])
def test_a_job_named_after_no_time_or_none_that_can_be_meant_is_refused(tmp_path, job):
    code, arguments, said = started_by_the_cronjob(tmp_path, job)
    assert (code, arguments) == (2, [])
    assert said.startswith(f"The Job {job} is named after no time between 2020 and now.\n")
    assert said.count("\n") == 2


def test_the_name_in_the_comment_of_the_cronjob_is_that_of_the_friday_in_the_texts():
    text = (HERE / "cronjob.yaml").read_text("utf-8") + "".join(fenced("owners.md", "sh"))
    (minutes,) = set(re.findall(r"leaderboard-close-(\d+)", text))
    assert int(minutes) * 60 == FRIDAY.timestamp()


def test_what_ran_nothing_is_not_tried_again_on_kubernetes():
    """A wrong command line and a missing database end in 2; so does a Job of a wrong name."""
    job = loaded("cronjob.yaml")["spec"]["jobTemplate"]["spec"]
    (rule,) = job["podFailurePolicy"]["rules"]
    assert rule == {"action": "FailJob", "onExitCodes": {
        "containerName": container()["name"], "operator": "In", "values": [2]}}
    assert job["template"]["spec"]["restartPolicy"] == "Never", "else the policy is refused"


# owners.md and deploy.md


def fenced(name, language):
    """The blocks of a language in one of the folder's texts."""
    text = (HERE / name).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def last_friday(zone=FRIDAY.tzinfo):
    """The last Friday at 18:00 that is over, found by going back day by day."""
    at = datetime.now(zone).replace(hour=18, minute=0, second=0, microsecond=0)
    while at > datetime.now(zone) or at.isoweekday() != 5:
        at -= timedelta(days=1)
    return at.strftime("%FT%T-06:00")


@pytest.mark.parametrize("name", ["owners", "deploy"])
def test_both_languages_of_a_text_say_the_same(name):
    english, spanish = ((HERE / f"{name}{end}").read_text("utf-8") for end in (".md", ".es.md"))
    assert shape(english.replace("](deploy", "](deploy.es")) == shape(spanish)


@pytest.mark.parametrize("name", ["owners.md", "deploy.md"])
def test_what_a_text_quotes_from_a_file_is_there(name):
    quoted = [(source, body) for source, body in blocks((HERE / name).read_text("utf-8"))
              if source.startswith(HERE.name)]
    for source, body in quoted:
        assert found(body, (folders.ROOT / source).read_text("utf-8")), f"not in {source}"


AWS = """#!/bin/sh
case "$*" in
  *describe-stacks*ClusterName*) echo the-cluster;;
  *describe-stacks*SubnetIds*) echo subnet-1,subnet-2;;
  *describe-stacks*SecurityGroupId*) echo sg-1;;
  *get-login-password*) echo sesame;;
  *create-repository*) echo 1.dkr.ecr.example.com/community-worker;;
  *) printf '%s\\n' "$@";;
esac
"""


@pytest.fixture
def typed(tmp_path):
    """Types blocks of deploy.md into a shell whose aws and docker only print what they are told."""
    for name, script in {"aws": AWS, "docker": "#!/bin/sh\necho docker \"$@\"\n"}.items():
        (tmp_path / name).write_text(script, "utf-8")
        (tmp_path / name).chmod(0o755)

    def run(*lines):
        done = subprocess.run(["/bin/sh", "-eu", "-c", "".join(lines)], capture_output=True,
                              text=True, check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


@NO_SHELL
def test_the_image_is_pushed_under_the_address_that_the_repository_has(typed):
    said = typed(fenced("deploy.md", "sh")[0])
    assert [line for line in said if line.startswith("docker")] == [
        "docker login --username AWS --password-stdin 1.dkr.ecr.example.com",
        "docker build --platform linux/amd64 -f 05-eventbridge/Dockerfile"
        " -t 1.dkr.ecr.example.com/community-worker:1 .",
        "docker push 1.dkr.ecr.example.com/community-worker:1"]
    template = json.loads((HERE / "template.json").read_text("utf-8"))
    assert set(template["Parameters"]) == {line.split("=")[0] for line in said[-2:]}


@NO_SHELL
def test_a_job_by_hand_runs_where_the_stack_says_and_is_told_the_planned_time(typed):
    _, makes_tables, again = fenced("deploy.md", "sh")
    template = json.loads((HERE / "template.json").read_text("utf-8"))
    assert set(re.findall(r"\$\(output (\w+)", makes_tables)) == set(template["Outputs"])
    once = typed(makes_tables)
    first, second = (dict(zip(words[2::2], words[3::2], strict=True))
                     for words in (once, typed(makes_tables, again)[len(once):]))
    for given in (first, second):
        assert given["--cluster"] == "the-cluster"
        assert given["--network-configuration"] == (
            "awsvpcConfiguration={subnets=[subnet-1,subnet-2],securityGroups=[sg-1],"
            "assignPublicIp=DISABLED}")
    commands = [json.loads(given["--overrides"])["containerOverrides"] for given in (first, second)]
    assert commands == [[{"name": "job", "command": words.split()}] for words in (
        "python load_schema.py", f"python -m jobs leaderboard_close --now {FRIDAY.isoformat()}")]
    families = {r["Properties"]["Family"] for r in template["Resources"].values()
                if r["Type"] == "AWS::ECS::TaskDefinition"}
    assert first["--task-definition"] in families


@GNU_DATE
def test_the_crontab_line_has_the_hour_of_the_cronjob_and_hands_over_todays(tmp_path):
    line = fenced("owners.md", "cron")[0].splitlines()[-1]
    *hour, user, command = line.split(" ", 6)
    assert " ".join(hour) == loaded("cronjob.yaml")["spec"]["schedule"] and user == "community"
    assert not re.search(r"(?<!\\)%", command)  # cron ends the command at a bare one
    command = command.replace(r"\%", "%").replace("/srv/05-eventbridge", ".")
    command = command.replace("flock --nonblock /run/lock/leaderboard-close ", "")
    today = datetime.now(FRIDAY.tzinfo).strftime("%FT18:00:00-06:00")
    assert started(tmp_path, ["/bin/sh", "-c", command], TZ="America/Mexico_City") == (
        0, ["-m", "jobs", "leaderboard_close", "--now", today], "")


def units(tmp_path):
    """The units of owners.md, written to a folder under the names that they begin with."""
    paths = []
    for body in fenced("owners.md", "ini"):
        path = tmp_path / re.match(r"# (\S+)", body)[1]
        path.write_text(body, "utf-8")
        paths.append(path)
    return paths


@GNU_DATE
def test_the_service_is_told_of_the_last_friday_at_18_on_whatever_day_it_starts(tmp_path):
    service = units(tmp_path)[1].read_text("utf-8")
    line = re.search(r"^ExecStart=(.*)$", service, re.M)[1]
    assert not re.search(r"(?<![$])[$](?![$])", line.replace("$$", "")), "systemd would replace it"
    command = shlex.split(line.replace("$$", "$").replace("%%", "%"))
    assert started(tmp_path, command, TZ="America/Mexico_City") == (
        0, ["-m", "jobs", "leaderboard_close", "--now", last_friday()], "")


def systemd_analyze(*arguments):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not on this machine; the units were not looked at")
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True,
                          check=False, env={**os.environ, "TZ": "UTC", "LC_ALL": "C"})
    if "unrecognized option" in done.stderr or "Unknown command" in done.stderr:
        pytest.skip(f"this systemd-analyze is too old: {done.stderr.strip()}")
    return done


def test_systemd_takes_both_units_and_notices_a_misspelt_one(tmp_path):
    paths = units(tmp_path)
    service = paths[1].read_text("utf-8").replace("WorkingDirectory=/srv/05-eventbridge\n", "")
    paths[1].write_text(service, "utf-8")  # the folder is on another machine
    done = systemd_analyze("verify", *map(str, paths))
    assert (done.returncode, done.stderr) == (0, "")
    paths[0].write_text(paths[0].read_text("utf-8").replace("OnCalendar=Fri", "OnCalendar=Fry"))
    assert "Fry" in systemd_analyze("verify", *map(str, paths)).stderr


@pytest.mark.parametrize(("since", "expression", "elapses"), [
    ("2026-06-01 00:00 UTC", "Fri 18:00 America/Mexico_City",
     ["2026-06-06 00:00", "2026-06-13 00:00"]),
    ("2026-03-07 12:00 UTC", "02:30 America/New_York", ["2026-03-09 06:30", "2026-03-10 06:30"]),
    ("2026-10-31 12:00 UTC", "01:30 America/New_York", ["2026-11-01 05:30", "2026-11-02 06:30"]),
], ids=["the job", "an hour that is skipped", "an hour that comes twice"])
def test_systemd_starts_the_timer_when_owners_md_says(since, expression, elapses):
    done = systemd_analyze("calendar", f"--base-time={since}", "--iterations=2", expression)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"(\d{4}-\d\d-\d\d \d\d:\d\d):00 UTC", done.stdout) == elapses


def test_mexico_city_has_had_no_summer_time_since_2022():
    zone = ZoneInfo("America/Mexico_City")
    offsets = {datetime(year, month, 1, tzinfo=zone).utcoffset()
               for year in range(2023, 2027) for month in range(1, 13)}
    assert offsets == {timedelta(hours=-6)}
    assert datetime(2022, 7, 1, tzinfo=zone).utcoffset() == timedelta(hours=-5)
