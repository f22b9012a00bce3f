"""What 05 deploys: each property of template.json, and a change to it that its check must see.

The checks read the committed template, so they need neither Node nor the CDK. One test makes it
again where both are there.
"""

import copy
import json
import re
import shutil
import subprocess
import sys

import pytest

from lab import folders
from lab.show import synth

HERE = folders.stage(5)
TEMPLATE = HERE / "template.json"
PLANNED = "<aws.scheduler.scheduled-time>"
CHECKS = {}


def check(function):
    """Add a function of the template to CHECKS; it raises AssertionError where it does not hold."""
    CHECKS[function.__name__] = function
    return function


# Reading a template


def of(template, kind):
    """The properties of the resources of a type, by their logical id: of(t, "ECS::Service")."""
    return {name: resource.get("Properties", {}) for name, resource in template["Resources"].items()
            if resource["Type"] == f"AWS::{kind}"}


def only(found):
    assert len(found) == 1
    return next(iter(found.values()))


def text(value):
    """A value as text; what is known only on AWS reads ${LogicalId} or ${LogicalId.Attribute}."""
    if not isinstance(value, dict):
        return value
    (function, argument), = value.items()
    if function == "Ref":
        return f"${{{argument}}}"
    if function == "Fn::GetAtt":
        return f"${{{'.'.join(argument)}}}"
    assert function == "Fn::Join", function
    return argument[0].join(text(part) for part in argument[1])


def texts(value):
    """Values or one value, as a sorted list of texts."""
    return sorted(text(one) for one in (value if isinstance(value, list) else [value]))


def calls(template):
    """What each schedule asks of ECS."""
    return [json.loads(text(schedule["Target"]["Input"])) for schedule in schedules(template)]


def schedules(template):
    return list(of(template, "Scheduler::Schedule").values())


def task(template, container):
    """(logical id, properties) of the task definition with this container."""
    found = [(name, task) for name, task in of(template, "ECS::TaskDefinition").items()
             if task["ContainerDefinitions"][0]["Name"] == container]
    assert len(found) == 1
    return found[0]


def statements(template, role):
    """What the policies of a role (its logical id) allow."""
    return [statement for policy in of(template, "IAM::Policy").values()
            if f"${{{role}}}" in texts(policy["Roles"])
            for statement in policy["PolicyDocument"]["Statement"]]


def allowed(template, role, action):
    """The one statement that allows an action to a role."""
    found = [s for s in statements(template, role) if s["Action"] == action]
    assert len(found) == 1 and found[0]["Effect"] == "Allow"
    return found[0]


def scheduler_role(template):
    roles = {text(schedule["Target"]["RoleArn"]) for schedule in schedules(template)}
    assert len(roles) == 1
    return re.fullmatch(r"\$\{(\w+)\.Arn\}", roles.pop())[1]


def queue(template):
    (name,) = of(template, "SQS::Queue")
    return name


def topic(template):
    (name,) = of(template, "SNS::Topic")
    return f"${{{name}}}"


# The properties


@check
def one_schedule_a_job(template):
    listed = subprocess.run(
        [sys.executable, "-m", "jobs", "--list"], cwd=HERE, capture_output=True, text=True,
        env={"PYTHONPATH": str(folders.ROOT), "PATH": ""}, check=True).stdout.split()
    assert sorted(command(call)[3] for call in calls(template)) == sorted(listed)


def command(call):
    (override,) = call["Overrides"]["ContainerOverrides"]
    return override["Command"]


@check
def the_leaderboard_is_closed_on_friday_at_18(template):
    found = [schedule["ScheduleExpression"] for schedule in schedules(template)
             if "leaderboard_close" in text(schedule["Target"]["Input"])]
    assert found == ["cron(0 18 ? * FRI *)"]


@check
def the_hour_is_that_of_mexico_city(template):
    assert {s["ScheduleExpressionTimezone"] for s in schedules(template)} == {"America/Mexico_City"}


@check
def there_is_no_flexible_window(template):
    assert all(s["FlexibleTimeWindow"] == {"Mode": "OFF"} for s in schedules(template))


@check
def the_call_is_run_task_on_the_jobs_container(template):
    name, _ = task(template, "job")
    (cluster,) = of(template, "ECS::Cluster")
    for schedule, call in zip(schedules(template), calls(template), strict=True):
        assert schedule["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:ecs:runTask"
        assert call["Cluster"] == f"${{{cluster}.Arn}}"
        assert call["TaskDefinition"] == f"${{{name}}}"
        assert call["LaunchType"] == "FARGATE"
        assert call["Overrides"]["ContainerOverrides"][0]["Name"] == "job"


@check
def the_command_is_told_the_planned_time(template):
    """As the argument of --now, and with its < and > as they are: escaped, it stays as it is."""
    for schedule, call in zip(schedules(template), calls(template), strict=True):
        assert command(call)[:3] == ["python", "-m", "jobs"]
        assert command(call)[4:] == ["--now", PLANNED]
        assert PLANNED in text(schedule["Target"]["Input"])


@check
def the_task_runs_in_the_private_subnets(template):
    private = {f"${{{name}}}" for name, subnet in of(template, "EC2::Subnet").items()
               if not subnet["MapPublicIpOnLaunch"]}
    for call in calls(template):
        network = call["NetworkConfiguration"]["AwsvpcConfiguration"]
        assert set(network["Subnets"]) == private and len(private) == 2
        assert network["AssignPublicIp"] == "DISABLED"


@check
def the_task_can_reach_the_database(template):
    ingress = only(of(template, "EC2::SecurityGroupIngress"))
    database = only(of(template, "RDS::DBInstance"))
    assert texts(ingress["GroupId"]) == texts(database["VPCSecurityGroups"])
    for call in calls(template):
        groups = call["NetworkConfiguration"]["AwsvpcConfiguration"]["SecurityGroups"]
        assert groups == [text(ingress["SourceSecurityGroupId"])]


@check
def the_scheduler_may_run_this_task_in_this_cluster(template):
    allow = allowed(template, scheduler_role(template), "ecs:RunTask")
    assert texts(allow["Resource"]) == [f"${{{task(template, 'job')[0]}}}"]
    (cluster,) = of(template, "ECS::Cluster")
    assert text(allow["Condition"]["ArnEquals"]["ecs:cluster"]) == f"${{{cluster}.Arn}}"


@check
def the_scheduler_may_pass_both_roles_to_ecs_only(template):
    _, job = task(template, "job")
    allow = allowed(template, scheduler_role(template), "iam:PassRole")
    assert texts(allow["Resource"]) == texts([job["TaskRoleArn"], job["ExecutionRoleArn"]])
    assert len(set(texts(allow["Resource"]))) == 2
    assert allow["Condition"] == {"StringEquals": {
        "iam:PassedToService": "ecs-tasks.amazonaws.com"}}


@check
def only_the_scheduler_of_this_account_takes_its_role(template):
    role = of(template, "IAM::Role")[scheduler_role(template)]
    (allow,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert allow["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert text(allow["Condition"]["StringEquals"]["aws:SourceAccount"]) == "${AWS::AccountId}"


@check
def retries_end_within_an_hour(template):
    for schedule in schedules(template):
        policy = schedule["Target"]["RetryPolicy"]
        assert 60 <= policy["MaximumEventAgeInSeconds"] <= 3600
        assert 1 <= policy["MaximumRetryAttempts"] <= 185


@check
def what_is_given_up_goes_to_an_encrypted_queue(template):
    arn = f"${{{queue(template)}.Arn}}"
    assert all(text(s["Target"]["DeadLetterConfig"]["Arn"]) == arn for s in schedules(template))
    assert only(of(template, "SQS::Queue"))["SqsManagedSseEnabled"] is True
    allow = allowed(template, scheduler_role(template), "sqs:SendMessage")
    assert texts(allow["Resource"]) == [arn]


@check
def a_queue_that_is_not_empty_raises_an_alarm(template):
    alarm = only(of(template, "CloudWatch::Alarm"))
    assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
    (dimension,) = alarm["Dimensions"]
    assert text(dimension["Value"]) == f"${{{queue(template)}.QueueName}}"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
    assert alarm["Statistic"] == "Maximum" and alarm["EvaluationPeriods"] == 1
    assert texts(alarm["AlarmActions"]) == [topic(template)]


def rules_that_tell(template, what):
    """How many rules tell the topic of a job that stopped in this way."""
    (cluster,) = of(template, "ECS::Cluster")
    family = task(template, "job")[1]["Family"]
    found = 0
    for rule in of(template, "Events::Rule").values():
        pattern = rule["EventPattern"]
        detail = dict(pattern["detail"])
        if [text(target["Arn"]) for target in rule["Targets"]] != [topic(template)]:
            continue
        common = (pattern["source"], pattern["detail-type"], texts(detail.pop("clusterArn")),
                  detail.pop("group"), detail.pop("lastStatus"))
        expected = (["aws.ecs"], ["ECS Task State Change"], [f"${{{cluster}.Arn}}"],
                    [f"family:{family}"], ["STOPPED"])
        found += common == expected and detail == what and rule["State"] == "ENABLED"
    return found


@check
def a_job_that_ends_in_another_code_than_0_raises_an_alarm(template):
    what = {"containers": {"exitCode": [{"anything-but": 0}]}}
    assert rules_that_tell(template, what) == 1


@check
def a_task_that_never_started_raises_an_alarm(template):
    assert rules_that_tell(template, {"stopCode": ["TaskFailedToStart"]}) == 1


@check
def alarms_reach_a_person(template):
    policy = only(of(template, "SNS::TopicPolicy"))["PolicyDocument"]["Statement"]
    assert all((s["Effect"], s["Action"]) == ("Allow", "sns:Publish") for s in policy)
    assert {s["Principal"]["Service"] for s in policy} == {
        "events.amazonaws.com", "cloudwatch.amazonaws.com"}
    subscription = only(of(template, "SNS::Subscription"))
    assert (text(subscription["TopicArn"]), subscription["Protocol"],
            text(subscription["Endpoint"])) == (topic(template), "email", "${AlarmEmail}")


@check
def the_outputs_are_what_a_job_by_hand_needs_and_the_scheduler_uses(template):
    told = {name: text(output["Value"]) for name, output in template["Outputs"].items()}
    (cluster,) = of(template, "ECS::Cluster")
    assert told.pop("ClusterName") == f"${{{cluster}}}"
    for call in calls(template):
        network = call["NetworkConfiguration"]["AwsvpcConfiguration"]
        assert told == {"SubnetIds": ",".join(network["Subnets"]),
                        "SecurityGroupId": network["SecurityGroups"][0]}


@check
def three_replicas_run_the_worker(template):
    service = only(of(template, "ECS::Service"))
    name, worker = task(template, "worker")
    assert service["DesiredCount"] == 3
    assert text(service["TaskDefinition"]) == f"${{{name}}}"
    assert worker["ContainerDefinitions"][0]["Command"] == ["python", "worker.py"]
    network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert network["AssignPublicIp"] == "DISABLED"


@check
def both_write_to_a_log_that_is_kept_for_a_time(template):
    (group,) = of(template, "Logs::LogGroup")
    assert of(template, "Logs::LogGroup")[group]["RetentionInDays"] == 90
    for container in ("job", "worker"):
        options = task(template, container)[1]["ContainerDefinitions"][0]["LogConfiguration"]
        assert options["LogDriver"] == "awslogs"
        assert text(options["Options"]["awslogs-group"]) == f"${{{group}}}"


@check
def the_password_is_in_the_secret_only(template):
    (secret,) = of(template, "SecretsManager::Secret")
    database = only(of(template, "RDS::DBInstance"))
    assert text(database["MasterUserPassword"]) == (
        f"{{{{resolve:secretsmanager:${{{secret}}}:SecretString:password::}}}}")
    (attachment,) = of(template, "SecretsManager::SecretTargetAttachment")
    for container in ("job", "worker"):
        definition = task(template, container)[1]["ContainerDefinitions"][0]
        (password,) = definition["Secrets"]
        assert password["Name"] == "PGPASSWORD"
        assert text(password["ValueFrom"]) == f"${{{attachment}}}:password::"
        (url,) = definition["Environment"]
        assert url["Name"] == "DATABASE_URL"
        assert re.fullmatch(r"postgresql://\w+@\$\{\w+\.Endpoint\.Address\}:5432/\w+\?sslmode=require",
                            text(url["Value"]))


@check
def the_database_is_private_and_encrypted(template):
    database = only(of(template, "RDS::DBInstance"))
    assert database["PubliclyAccessible"] is False
    assert database["StorageEncrypted"] is True and database["DeletionProtection"] is True


@check
def nothing_of_the_machine_that_made_it_is_in_it(template):
    assert sorted(template) == ["Outputs", "Parameters", "Resources"]
    assert sorted(template["Parameters"]) == ["AlarmEmail", "ImageTag"]
    assert not [name for name, resource in template["Resources"].items() if "Metadata" in resource]
    assert not of(template, "CDK::Metadata")
    whole = json.dumps(template)
    assert not re.search(r"cdk-[a-z0-9]+-assets|\b\d{12}\b", whole)
    assert len(whole) < 51_200  # what `aws cloudformation deploy` takes without a bucket


# What each check must see

MUTANTS = {}


def mutant(sees):
    """Add a function that spoils a template; the check named `sees` must notice it."""
    def add(function):
        MUTANTS[function.__name__] = (sees, function)
        return function
    return add


def schedule_of(template):
    return schedules(template)[0]


def edit_call(template, edit):
    """Change what the first schedule asks of ECS."""
    target = schedule_of(template)["Target"]
    call = json.loads(text(target["Input"]))
    edit(call)
    target["Input"] = json.dumps(call)


def network(call):
    return call["NetworkConfiguration"]["AwsvpcConfiguration"]


def statement(template, action):
    return allowed(template, scheduler_role(template), action)


def rule_with(template, key):
    return next(rule for rule in of(template, "Events::Rule").values()
                if key in rule["EventPattern"]["detail"])


@mutant("one_schedule_a_job")
def a_job_without_a_schedule(t):
    t["Resources"].pop(next(iter(of(t, "Scheduler::Schedule"))))


@mutant("the_leaderboard_is_closed_on_friday_at_18")
def another_hour(t):
    for schedule in schedules(t):
        schedule["ScheduleExpression"] = "cron(0 0 ? * FRI *)"


@mutant("the_hour_is_that_of_mexico_city")
def the_hour_of_utc(t):
    schedule_of(t)["ScheduleExpressionTimezone"] = "UTC"


@mutant("there_is_no_flexible_window")
def a_flexible_window(t):
    schedule_of(t)["FlexibleTimeWindow"] = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}


@mutant("the_call_is_run_task_on_the_jobs_container")
def a_container_that_is_not_there(t):
    edit_call(t, lambda call: call["Overrides"]["ContainerOverrides"][0].update(Name="backend"))


@mutant("the_command_is_told_the_planned_time")
def no_time(t):
    edit_call(t, lambda call: command(call).__delitem__(slice(4, None)))


@mutant("the_command_is_told_the_planned_time")
def an_escaped_time(t):
    target = schedule_of(t)["Target"]
    target["Input"] = text(target["Input"]).replace("<", "\\u003c").replace(">", "\\u003e")


@mutant("the_task_runs_in_the_private_subnets")
def a_public_address(t):
    edit_call(t, lambda call: network(call).update(AssignPublicIp="ENABLED"))


@mutant("the_task_can_reach_the_database")
def another_security_group(t):
    edit_call(t, lambda call: network(call).update(SecurityGroups=["${Other.GroupId}"]))


@mutant("the_scheduler_may_run_this_task_in_this_cluster")
def any_task(t):
    statement(t, "ecs:RunTask")["Resource"] = "*"


@mutant("the_scheduler_may_run_this_task_in_this_cluster")
def any_cluster(t):
    statement(t, "ecs:RunTask")["Condition"]["ArnEquals"]["ecs:cluster"] = "*"


@mutant("the_scheduler_may_pass_both_roles_to_ecs_only")
def the_execution_role_is_not_passed(t):
    statement(t, "iam:PassRole")["Resource"].pop()


@mutant("the_scheduler_may_pass_both_roles_to_ecs_only")
def passed_to_anybody(t):
    del statement(t, "iam:PassRole")["Condition"]["StringEquals"]["iam:PassedToService"]


@mutant("only_the_scheduler_of_this_account_takes_its_role")
def anybodys_role(t):
    role = of(t, "IAM::Role")[scheduler_role(t)]
    role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] = {"AWS": "*"}


@mutant("retries_end_within_an_hour")
def retried_for_a_day(t):
    schedule_of(t)["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"] = 86_400


@mutant("what_is_given_up_goes_to_an_encrypted_queue")
def no_dead_letters(t):
    del schedule_of(t)["Target"]["DeadLetterConfig"]


@mutant("what_is_given_up_goes_to_an_encrypted_queue")
def a_queue_in_clear(t):
    only(of(t, "SQS::Queue"))["SqsManagedSseEnabled"] = False


@mutant("what_is_given_up_goes_to_an_encrypted_queue")
def a_queue_that_may_not_be_written_to(t):
    for policy in of(t, "IAM::Policy").values():
        document = policy["PolicyDocument"]
        document["Statement"] = [
            s for s in document["Statement"] if s["Action"] != "sqs:SendMessage"]


@mutant("a_queue_that_is_not_empty_raises_an_alarm")
def an_alarm_above_the_first_letter(t):
    only(of(t, "CloudWatch::Alarm"))["Threshold"] = 10


@mutant("a_queue_that_is_not_empty_raises_an_alarm")
def an_alarm_that_tells_nobody(t):
    only(of(t, "CloudWatch::Alarm"))["AlarmActions"] = []


@mutant("a_job_that_ends_in_another_code_than_0_raises_an_alarm")
def an_alarm_for_success(t):
    rule_with(t, "containers")["EventPattern"]["detail"]["containers"]["exitCode"] = [0]


@mutant("a_task_that_never_started_raises_an_alarm")
def no_alarm_for_a_start_that_failed(t):
    rule_with(t, "stopCode")["Targets"] = []


@mutant("alarms_reach_a_person")
def nobody_subscribed(t):
    t["Resources"].pop(next(iter(of(t, "SNS::Subscription"))))


@mutant("alarms_reach_a_person")
def the_alarm_may_not_publish(t):
    only(of(t, "SNS::TopicPolicy"))["PolicyDocument"]["Statement"].pop(0)


@mutant("the_outputs_are_what_a_job_by_hand_needs_and_the_scheduler_uses")
def another_subnet_for_a_job_by_hand(t):
    t["Outputs"]["SubnetIds"]["Value"]["Fn::Join"][1].pop()


@mutant("three_replicas_run_the_worker")
def one_replica(t):
    only(of(t, "ECS::Service"))["DesiredCount"] = 1


@mutant("both_write_to_a_log_that_is_kept_for_a_time")
def a_log_for_ever(t):
    del only(of(t, "Logs::LogGroup"))["RetentionInDays"]


@mutant("the_password_is_in_the_secret_only")
def a_password_in_the_template(t):
    only(of(t, "RDS::DBInstance"))["MasterUserPassword"] = "hunter2"


@mutant("the_password_is_in_the_secret_only")
def a_password_in_the_url(t):
    definition = task(t, "job")[1]["ContainerDefinitions"][0]
    definition["Environment"][0]["Value"] = "postgresql://community:hunter2@db:5432/community"


@mutant("the_database_is_private_and_encrypted")
def a_public_database(t):
    only(of(t, "RDS::DBInstance"))["PubliclyAccessible"] = True


@mutant("nothing_of_the_machine_that_made_it_is_in_it")
def a_path_of_the_construct(t):
    next(iter(t["Resources"].values()))["Metadata"] = {"aws:cdk:path": "Community/Vpc"}


# The tests


@pytest.fixture(scope="module")
def committed():
    return json.loads(TEMPLATE.read_text("utf-8"))


@pytest.mark.parametrize("name", CHECKS)
def test_the_template(committed, name):
    CHECKS[name](committed)


def seen(name, template):
    """Whether a check fails on a template, by an assertion or for want of what it looks for."""
    try:
        CHECKS[name](template)
    except (AssertionError, KeyError, TypeError, ValueError, StopIteration):
        return True
    return False


@pytest.mark.parametrize("name", MUTANTS)
def test_a_spoilt_template_is_seen(committed, name):
    sees, spoil = MUTANTS[name]
    spoilt = copy.deepcopy(committed)
    spoil(spoilt)
    assert spoilt != committed and seen(sees, spoilt)


def test_every_check_has_something_that_it_sees():
    assert {sees for sees, _ in MUTANTS.values()} == set(CHECKS)


@pytest.mark.timeout(300)
def test_the_committed_template_is_what_the_code_makes(tmp_path):
    if error := synth.missing():
        pytest.skip(f"the template was not made again: {error.what} {error.remedy}")
    for name in ("app.py", "stack.py", "schedules.py"):
        shutil.copy(HERE / name, tmp_path)
    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True,
                          encoding="utf-8", errors="replace", check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "template.json").read_bytes() == TEMPLATE.read_bytes(), (
        "make synth writes the template anew")


@pytest.mark.parametrize(("absent", "said"), [("node", "needs Node"), ("aws_cdk", "extra `cdk`")])
def test_a_synth_says_what_is_missing_and_where_to_get_it(monkeypatch, absent, said):
    monkeypatch.setattr(synth.shutil, "which", lambda name: None if name == absent else name)
    monkeypatch.setattr(synth, "find_spec", lambda name: None if name == absent else name)
    error = synth.missing()
    assert said in error.what and "make synth" in error.remedy and error.code == 2
