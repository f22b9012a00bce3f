"""The stand-in for EventBridge Scheduler: when it fires, what it calls, and when it gives up."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

from lab.engine.cron import Cron
from lab.engine.eventbridge import schedules, watchers
from lab.engine.tasks import run_tasks
from lab.errors import LabError
from lab.world.clock import MX

COMMAND = ["python", "-m", "jobs", "close", "--now", "<aws.scheduler.scheduled-time>"]
NOWHERE = SimpleNamespace(url="postgresql://nowhere")


def firings(text, zone, since, until):
    zone_of = ZoneInfo(zone)
    span = [datetime.fromisoformat(day).replace(tzinfo=zone_of) for day in (since, until)]
    return [f"{at:%Y-%m-%d %H:%M}" for at in Cron.parse(text, zone).firings(*span)]


# When it fires


@pytest.mark.parametrize(("text", "times"), [
    ("cron(0 18 ? * FRI *)", ["2026-05-01 18:00", "2026-05-08 18:00", "2026-05-15 18:00",
                              "2026-05-22 18:00", "2026-05-29 18:00"]),
    ("cron(30 9 ? * 6#2 *)", ["2026-05-08 09:30"]),
    ("cron(30 9 ? * FRIL 2026)", ["2026-05-29 09:30"]),
    ("cron(0 0 L * ? *)", ["2026-05-31 00:00"]),
    ("cron(0/30 8-9 1,3 MAY ? *)", ["2026-05-01 08:00", "2026-05-01 08:30", "2026-05-01 09:00",
                                    "2026-05-01 09:30", "2026-05-03 08:00", "2026-05-03 08:30",
                                    "2026-05-03 09:00", "2026-05-03 09:30"]),
    ("cron(0 12 ? * SUN-MON 2026)", ["2026-05-03 12:00", "2026-05-04 12:00", "2026-05-10 12:00",
                                     "2026-05-11 12:00", "2026-05-17 12:00", "2026-05-18 12:00",
                                     "2026-05-24 12:00", "2026-05-25 12:00", "2026-05-31 12:00"]),
    ("cron(0 18 ? * FRI 2027)", []),
])
def test_an_expression_fires_at_its_times_of_may_2026(text, times):
    assert firings(text, "America/Mexico_City", "2026-05-01", "2026-06-01") == times


def test_the_hour_is_the_zones_own():
    (at,) = Cron.parse("cron(0 18 ? * FRI *)", "America/Mexico_City").firings(
        datetime(2026, 5, 29, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    assert at == datetime(2026, 5, 30, 0, tzinfo=UTC)


def test_an_hour_that_daylight_saving_skips_is_skipped_and_one_that_comes_twice_counts_once():
    skipped = firings("cron(30 2 * * ? *)", "America/New_York", "2026-03-07", "2026-03-10")
    assert skipped == ["2026-03-07 02:30", "2026-03-09 02:30"]
    twice = firings("cron(30 1 * * ? *)", "America/New_York", "2026-11-01", "2026-11-02")
    assert twice == ["2026-11-01 01:30"]


@pytest.mark.parametrize(("text", "said"), [
    ("rate(5 minutes)", "six fields"), ("at(2026-05-29T18:00:00)", "six fields"),
    ("cron(0 18 * * FRI *)", "exactly one"), ("cron(0 18 ? * ? *)", "exactly one"),
    ("cron(0 18 15W * ? *)", "15W is no number"), ("cron(0 24 ? * FRI *)", "not within 0-23"),
    ("cron(0/0 18 ? * FRI *)", "a step of 0"), ("cron(0 18 ? * FRI-MON *)", "not within 1-7"),
])
def test_what_it_does_not_know_is_refused_with_the_reason(text, said):
    with pytest.raises(LabError, match=said):
        Cron.parse(text, "UTC")


def test_a_zone_that_does_not_exist_is_refused():
    with pytest.raises(LabError, match="no time zone 'America/Mexico'"):
        Cron.parse("cron(0 18 ? * FRI *)", "America/Mexico")


# What it reads in the template


def universal(command, **more):
    """The input of the universal target, as the CDK joins it from texts and tokens."""
    call = {"Cluster": "CLUSTER", "Overrides": {"ContainerOverrides": [{"Command": command}]},
            **more}
    before, after = json.dumps(call).split("CLUSTER")
    return {"Fn::Join": ["", [before, {"Fn::GetAtt": ["ClusterEB0386A7", "Arn"]}, after]]}


def template(tmp_path, *, target=None, **fields):
    properties = {
        "ScheduleExpression": "cron(0 18 ? * FRI *)",
        "ScheduleExpressionTimezone": "America/Mexico_City",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {
            "Arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask", "Input": universal(COMMAND),
            "RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 3},
            "DeadLetterConfig": {"Arn": {"Fn::GetAtt": ["DeadE738B711", "Arn"]}},
            **(target or {})},
        **fields}
    path = tmp_path / "template.json"
    path.write_text(json.dumps({"Resources": {
        "CloseC7D24A5E": {"Type": "AWS::Scheduler::Schedule", "Properties": properties},
        "DeadE738B711": {"Type": "AWS::SQS::Queue"}}}), "utf-8")
    return path


def test_the_command_carries_the_time_that_was_planned_in_utc(tmp_path):
    (found,) = schedules(template(tmp_path))
    firing = found.firing("2026-W22")
    assert (found.name, firing) == ("Close", datetime(2026, 5, 29, 18, tzinfo=MX))
    assert found.command_at(firing) == [*COMMAND[:-1], "2026-05-30T00:00:00Z"]
    assert (found.attempts, found.age, found.dead_letters) == (3, timedelta(hours=1),
                                                               "DeadE738B711")


def test_the_input_of_the_ecs_target_is_read_as_well(tmp_path):
    given = json.dumps({"containerOverrides": [{"name": "job", "command": COMMAND}]})
    target = {"Arn": {"Fn::GetAtt": ["Cluster", "Arn"]}, "EcsParameters": {}, "Input": given}
    assert schedules(template(tmp_path, target=target))[0].command == tuple(COMMAND)


def test_a_disabled_schedule_does_not_fire(tmp_path):
    assert schedules(template(tmp_path, State="DISABLED")) == []


def test_a_flexible_window_calls_at_its_end(tmp_path):
    (found,) = schedules(template(tmp_path, FlexibleTimeWindow={
        "Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}))
    firing = found.firing("2026-W22")
    assert found.calls(firing).accepted == firing + timedelta(minutes=15)


@pytest.mark.parametrize(("changes", "said"), [
    ({"StartDate": "2026-01-01T00:00:00Z"}, "StartDate"),
    ({"target": {"Arn": "arn:aws:lambda:us-east-1:1:function:f"}}, "not ecs:RunTask"),
    ({"target": {"Input": universal(COMMAND, Count=3)}}, "Count of 3"),
    ({"target": {"Input": universal([])}}, "no command"),
    ({"target": {"Input": {"Fn::ImportValue": "x"}}}, "no text"),
    ({"target": {"Input": "{}"}}, "Overrides|ContainerOverrides"),
])
def test_what_the_template_asks_for_and_the_stand_in_cannot_do_is_refused(tmp_path, changes, said):
    with pytest.raises(LabError, match=said):
        schedules(template(tmp_path, **changes))


@pytest.mark.parametrize("text", ["not JSON", "[]", "{}"])
def test_a_file_that_is_no_template_is_refused_without_a_traceback(tmp_path, text):
    path = tmp_path / "template.json"
    path.write_text(text, "utf-8")
    with pytest.raises(LabError, match="no template"):
        schedules(path)
    with pytest.raises(LabError, match="cannot be read"):
        schedules(tmp_path / "none.json")


@pytest.mark.parametrize("slot", ["2026-22", "friday", "2026-W60"])
def test_a_slot_that_is_none_is_refused(tmp_path, slot):
    with pytest.raises(LabError, match="is no slot"):
        schedules(template(tmp_path))[0].firing(slot)


def test_a_slot_in_which_it_does_not_fire_is_refused(tmp_path):
    (found,) = schedules(template(tmp_path, ScheduleExpression="cron(0 18 ? * FRI 2027)"))
    with pytest.raises(LabError, match="does not fire in 2026-W22"):
        found.firing("2026-W22")


def test_sunday_evening_in_mexico_is_the_week_that_ends_though_utc_has_the_next(tmp_path):
    (found,) = schedules(template(tmp_path, ScheduleExpression="cron(0 20 ? * SUN *)"))
    firing = found.firing("2026-W22")
    assert f"{firing:%a %d %b}" == "Sun 31 May"
    assert found.command_at(firing)[-1] == "2026-06-01T02:00:00Z"


def test_who_would_tell_a_person_is_read_in_the_template(tmp_path):
    path = tmp_path / "template.json"
    path.write_text(json.dumps({"Resources": {
        "FailedDF6963BE": {"Type": "AWS::Events::Rule", "Properties": {"EventPattern": {
            "detail": {"containers": {"exitCode": [{"anything-but": 0}]}}}}},
        "Waiting": {"Type": "AWS::CloudWatch::Alarm", "Properties": {
            "MetricName": "ApproximateNumberOfMessagesVisible"}}}}), "utf-8")
    assert watchers(path) == {"exit": "Failed", "dead letter": "Waiting"}
    assert watchers(template(tmp_path)) == {}


# When it gives up


def minutes(calls, firing):
    return [int((at - firing).total_seconds()) // 60 for at in calls.failed]


def test_it_calls_again_after_1_2_and_4_minutes(tmp_path):
    (found,) = schedules(template(tmp_path))
    firing = found.firing("2026-W22")
    calls = found.calls(firing, fail=3)
    assert minutes(calls, firing) == [0, 1, 3] and calls.gave_up == ""
    assert calls.accepted == firing + timedelta(minutes=7)


def test_it_gives_up_when_its_attempts_are_used_up(tmp_path):
    (found,) = schedules(template(tmp_path))
    calls = found.calls(found.firing("2026-W22"), fail=4)
    assert (calls.accepted, calls.gave_up) == (None, "MaximumRetryAttempts")
    assert len(calls.failed) == 4, "the first call and three more"


def test_it_gives_up_when_the_event_is_too_old(tmp_path):
    policy = {"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 185}
    (found,) = schedules(template(tmp_path, target={"RetryPolicy": policy}))
    firing = found.firing("2026-W22")
    calls = found.calls(firing, fail=99)
    assert minutes(calls, firing) == [0, 1, 3]
    assert (calls.accepted, calls.gave_up) == (None, "MaximumEventAgeInSeconds")


def test_without_a_retry_policy_it_tries_for_a_day(tmp_path):
    (found,) = schedules(template(tmp_path, target={"RetryPolicy": {}, "DeadLetterConfig": {}}))
    calls = found.calls(found.firing("2026-W22"), fail=999)
    assert calls.gave_up == "MaximumEventAgeInSeconds" and found.dead_letters == ""
    assert calls.failed[-1] - calls.failed[0] > timedelta(hours=23)


# The containers


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/__main__.py").write_text(
        "import os, sys\nfrom lab.world import clock\n"
        "print(sys.argv[1:], clock.now().isoformat()[:16], os.environ['DATABASE_URL'])\n"
        "sys.exit(3)\n", "utf-8")
    (tmp_path / "silent.py").write_text("", "utf-8")
    return tmp_path


def test_a_command_runs_as_a_process_with_the_worlds_time_and_its_exit_code_is_known(folder):
    at = datetime(2026, 5, 29, 18, tzinfo=MX)
    task, silent = run_tasks(NOWHERE, folder, [["python", "-m", "jobs", "a b"],
                                               ["python", "-m", "silent"]], at)
    assert (task.code, silent.code, silent.said) == (3, 0, ())
    assert task.said == ("['a b'] 2026-05-29T18:00 postgresql://nowhere",)


def test_commands_that_are_started_together_run_at_the_same_time(tmp_path):
    """Each waits for the other one's line in a file: one after the other would never end."""
    (tmp_path / "meet.py").write_text(
        "import pathlib, sys, time\nme, other = map(pathlib.Path, sys.argv[1:])\nme.touch()\n"
        "while not other.exists():\n    time.sleep(0.01)  # polls: the other process\n", "utf-8")
    pair = [["python", "-m", "meet", "a", "b"], ["python", "-m", "meet", "b", "a"]]
    assert [task.code for task in run_tasks(NOWHERE, tmp_path, pair,
                                            datetime(2026, 5, 29, tzinfo=MX))] == [0, 0]


@pytest.mark.parametrize("command", [["sh", "-c", "true"], ["python", "-m"],
                                     ["python", "-m", "nothing_of_that_name"]])
def test_a_command_that_cannot_run_here_is_refused_before_any_is_started(folder, command):
    with pytest.raises(LabError):
        run_tasks(NOWHERE, folder, [["python", "-m", "silent"], command],
                  datetime(2026, 5, 29, tzinfo=MX))


def test_the_committed_template_can_be_read_and_starts_every_job_of_the_stage():
    found = schedules(Path(__file__).parents[1] / "05-eventbridge/template.json")
    assert sorted(schedule.command[3] for schedule in found) == [
        "leaderboard_close", "squad_health", "weekly_digest"]
    for schedule in found:
        assert schedule.command[:3] == ("python", "-m", "jobs")
        assert schedule.cron.zone.key == "America/Mexico_City"
        assert schedule.window == timedelta() and schedule.dead_letters
