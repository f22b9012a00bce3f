"""EventBridge Scheduler, stood in for: reads a CloudFormation template, says what is called when.

From the template's AWS::Scheduler::Schedule: the expression and its zone, the flexible window, the
command of the container that ecs:RunTask starts, the retry policy, whether there are dead letters.
What it does not know it refuses. Nothing here waits: the world's times are computed.

Simpler than the real one: it fires on the second (AWS: within the minute), at the end of a flexible
window (AWS: somewhere in it), and waits 1, 2, 4 … minutes between two calls, at most an hour (AWS
does not say how long). A call fails when it is told to; roles, network and capacity are not looked
at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lab.engine.cron import Cron
from lab.errors import LabError
from lab.world.community import week_key

__all__ = ["SCHEDULED_TIME", "Calls", "Schedule", "schedules", "watchers"]

SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
RUN_TASK = "arn:aws:scheduler:::aws-sdk:ecs:runTask"
ATTEMPTS, AGE = 185, 86400  # what counts where the template has no retry policy
BACK_OFF, LONGEST = timedelta(minutes=1), timedelta(hours=1)
KNOWN = {"Name", "GroupName", "Description", "State", "ScheduleExpression",
         "ScheduleExpressionTimezone", "FlexibleTimeWindow", "Target"}


@dataclass(frozen=True)
class Calls:
    """What the scheduler did for one firing.

    Args:
        failed: the times of the calls that failed (aware).
        accepted: the time of the call that did not; None when it gave up.
        gave_up: what was used up then: "MaximumRetryAttempts" or "MaximumEventAgeInSeconds".
    """

    failed: tuple[datetime, ...]
    accepted: datetime | None
    gave_up: str = ""


@dataclass(frozen=True)
class Schedule:
    """A schedule of the template.

    Args:
        name: its name, or its logical id without the hash.
        cron: when it fires.
        window: how much later it may call (FlexibleTimeWindow); 0 when that is off.
        command: of the container; SCHEDULED_TIME stands in it for the time that was planned.
        attempts: calls after the first one (MaximumRetryAttempts).
        age: for how long it tries (MaximumEventAgeInSeconds).
        dead_letters: logical id of the queue of what could not be delivered; "" without a queue.
    """

    name: str
    cron: Cron
    window: timedelta
    command: tuple[str, ...]
    attempts: int
    age: timedelta
    dead_letters: str

    def firing(self, slot: str) -> datetime:
        """When it fires for a slot, such as "2026-W22": its first time in that week.

        Raises:
            LabError: it does not fire then, or that is no slot.
        """
        try:
            year, week = slot.split("-W")
            monday = datetime.fromisocalendar(int(year), int(week), 1).replace(
                tzinfo=self.cron.zone)
        except ValueError:
            raise LabError(f"{slot!r} is no slot.", "Write it as 2026-W22.") from None
        around = monday - timedelta(days=1), monday + timedelta(days=8)  # the zones may differ
        for at in self.cron.firings(*around):
            if week_key(at) == slot:
                return at
        raise LabError(f"{self.name} does not fire in {slot}.",
                       f"It is {self.cron.text}, {self.cron.zone.key}.")

    def command_at(self, firing: datetime) -> list[str]:
        """The command that is started for a firing; its time is the planned one, however late."""
        planned = f"{firing.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return [word.replace(SCHEDULED_TIME, planned) for word in self.command]

    def calls(self, firing: datetime, fail: int = 0) -> Calls:
        """The calls for a firing of which the first `fail` fail."""
        failed: list[datetime] = []
        at, wait = firing + self.window, BACK_OFF
        while len(failed) < fail:
            failed.append(at)
            if len(failed) > self.attempts:
                return Calls(tuple(failed), None, "MaximumRetryAttempts")
            at, wait = at + wait, min(2 * wait, LONGEST)
            if at - firing > self.age:
                return Calls(tuple(failed), None, "MaximumEventAgeInSeconds")
        return Calls(tuple(failed), at)


def schedules(template: Path) -> list[Schedule]:
    """The schedules of a template that are enabled.

    Raises:
        LabError: the file cannot be read, or a schedule has something that this does not know.
    """
    try:
        return [_schedule(name, fields) for name, fields in
                _resources(template, "AWS::Scheduler::Schedule")
                if fields.get("State") != "DISABLED"]
    except OSError as error:
        raise LabError(f"The template {template} cannot be read: {error.strerror}.",
                       "Name a CloudFormation template in JSON.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(f"{template.name} is no template that can be understood: {error!r}.",
                       "It has to be a CloudFormation template in JSON, as `cdk synth` writes it."
                       ) from error


def watchers(template: Path) -> dict[str, str]:
    """Who tells a person: "exit" (a task's exit code) and "dead letter" -> name in the template."""
    found = {}
    for name, fields in _resources(template, "AWS::Events::Rule"):
        if "exitCode" in json.dumps(fields.get("EventPattern", {})):
            found["exit"] = name
    for name, fields in _resources(template, "AWS::CloudWatch::Alarm"):
        if fields.get("MetricName") == "ApproximateNumberOfMessagesVisible":
            found["dead letter"] = name
    return found


def _resources(template: Path, kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    resources = json.loads(template.read_text(encoding="utf-8"))["Resources"]
    # Without the hash that the CDK puts behind its logical ids.
    return [(re.sub(r"(?<=[a-z])[0-9A-F]{8}$", "", name), resource["Properties"])
            for name, resource in resources.items() if resource["Type"] == kind]


def _schedule(logical: str, fields: Mapping[str, Any]) -> Schedule:
    name = fields.get("Name", logical)
    if unknown := fields.keys() - KNOWN:
        raise _refused(name, f"{', '.join(sorted(unknown))}, which the stand-in does not know")
    target, window = fields["Target"], fields["FlexibleTimeWindow"]
    retry = target.get("RetryPolicy", {})
    minutes = window["MaximumWindowInMinutes"] if window["Mode"] == "FLEXIBLE" else 0
    return Schedule(
        name, Cron.parse(fields["ScheduleExpression"],
                         fields.get("ScheduleExpressionTimezone", "UTC")),
        timedelta(minutes=minutes), _command(name, target),
        retry.get("MaximumRetryAttempts", ATTEMPTS),
        timedelta(seconds=retry.get("MaximumEventAgeInSeconds", AGE)),
        _text(target.get("DeadLetterConfig", {}).get("Arn", "")).strip("${}"))


def _command(name: str, target: Mapping[str, Any]) -> tuple[str, ...]:
    """The command in the target's input: that of ecs:RunTask itself, or of the ECS target."""
    given = json.loads(_text(target.get("Input", "{}")))
    if _text(target["Arn"]) == RUN_TASK:
        if given.get("Count", 1) != 1:
            raise _refused(name, f"a Count of {given['Count']}, and the stand-in starts one task")
        overrides = [o.get("Command") for o in given.get("Overrides", {})["ContainerOverrides"]]
    elif "EcsParameters" in target:
        if target["EcsParameters"].get("TaskCount", 1) != 1:
            raise _refused(name, "a TaskCount, and the stand-in starts one task")
        overrides = [o.get("command") for o in given["containerOverrides"]]
    else:
        raise _refused(name, "a target that is not ecs:RunTask")
    if len(overrides) != 1 or not overrides[0]:
        raise _refused(name, "no command for one container in its input")
    return tuple(overrides[0])


def _refused(name: str, what: str) -> LabError:
    return LabError(f"The schedule {name} has {what}.",
                    "Take it out, or run this one on AWS: guessing would show what is not so.")


def _text(value: Any) -> str:
    """A value of the template as text: what CloudFormation will know stands in it as ${name}."""
    match value:
        case str():
            return value
        case {"Fn::Join": [between, parts]}:
            return between.join(map(_text, parts))
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            return f"${{{name}}}"
    raise ValueError(f"{json.dumps(value)[:60]} is no text")
