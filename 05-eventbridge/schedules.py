"""When the jobs run, and who hears of it when one does not. The scheduler's part of the stack.

**Stops:** a replica that decides when; a late start from taking the next week's slot (--now).
**Lets through:** a second delivery, which the claim stops; a task that was accepted and never ran.
"""

from aws_cdk import CfnParameter, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

ZONE = "America/Mexico_City"
JOBS = {  # the post names the first time only; the other two end their week as well
    "leaderboard_close": "cron(0 18 ? * FRI *)",
    "squad_health": "cron(0 19 ? * FRI *)",
    "weekly_digest": "cron(0 20 ? * SUN *)",
}
# Replaced by the scheduler at each call with the time that was planned, in UTC, also on a retry.
# Documented for "the payload you pass to the target", with a universal target as the example:
# docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
PLANNED = "<aws.scheduler.scheduled-time>"


class Schedules(Construct):
    """One schedule a job, its role, its dead letters and the alarms."""

    def __init__(self, scope: Construct, name: str, *, cluster: ecs.Cluster,
                 job: ecs.FargateTaskDefinition, security_group: ec2.SecurityGroup) -> None:
        super().__init__(scope, name)
        self.cluster, self.job, self.security_group = cluster, job, security_group
        self.dead_letters = sqs.Queue(
            self, "DeadLetters", encryption=sqs.QueueEncryption.SQS_MANAGED, enforce_ssl=True,
            retention_period=Duration.days(14))
        self.role = self._role()
        for job_name, expression in JOBS.items():
            self._schedule(job_name, expression)
        self._alarms()

    def _role(self) -> iam.Role:
        """What the scheduler may do: start this task in this cluster, and no more."""
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal(
            "scheduler.amazonaws.com",
            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}))
        role.add_to_policy(iam.PolicyStatement(
            actions=["ecs:RunTask"], resources=[self.job.task_definition_arn],
            conditions={"ArnEquals": {"ecs:cluster": self.cluster.cluster_arn}}))
        # Both roles: without the right to pass the execution role every call is denied.
        role.add_to_policy(iam.PolicyStatement(
            actions=["iam:PassRole"],
            resources=[self.job.task_role.role_arn, self.job.execution_role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}))
        role.add_to_policy(iam.PolicyStatement(
            actions=["sqs:SendMessage"], resources=[self.dead_letters.queue_arn]))
        return role

    def _schedule(self, job_name: str, expression: str) -> None:
        """Call ecs:RunTask at the job's time in Mexico City, within that minute."""
        call = {
            "Cluster": self.cluster.cluster_arn,
            "TaskDefinition": self.job.task_definition_arn,
            "LaunchType": "FARGATE",
            "NetworkConfiguration": {"AwsvpcConfiguration": {
                "Subnets": self.cluster.vpc.select_subnets(
                    subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS).subnet_ids,
                "SecurityGroups": [self.security_group.security_group_id],
                "AssignPublicIp": "DISABLED"}},
            "Overrides": {"ContainerOverrides": [{
                "Name": "job",
                "Command": ["python", "-m", "jobs", job_name, "--now", PLANNED]}]},
        }
        scheduler.CfnSchedule(
            self, "".join(word.title() for word in job_name.split("_")),
            schedule_expression=expression, schedule_expression_timezone=ZONE,
            flexible_time_window={"mode": "OFF"},
            target={
                # A universal target: its input is the request of the API, in full.
                "arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask",
                "roleArn": self.role.role_arn,
                "input": Stack.of(self).to_json_string(call),
                # An hour, then a person is called. Without a bound it would be tried for a day.
                "retryPolicy": {"maximumEventAgeInSeconds": 3600, "maximumRetryAttempts": 10},
                "deadLetterConfig": {"arn": self.dead_letters.queue_arn}})

    def _alarms(self) -> None:
        """Tell a person: of a call that failed for good, and of a task that did."""
        email = CfnParameter(Stack.of(self), "AlarmEmail", description="Who is told of failures.")
        topic = sns.Topic(self, "Alarms")
        topic.add_subscription(subscriptions.EmailSubscription(email.value_as_string))
        # The rules below give the topic a policy of its own, and with it goes the default one.
        topic.grant_publish(iam.ServicePrincipal("cloudwatch.amazonaws.com"))
        self.dead_letters.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(1), statistic="Maximum",
        ).create_alarm(
            self, "DeadLetterAlarm", threshold=1, evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        ).add_alarm_action(actions.SnsAction(topic))
        # The scheduler is done once ECS has accepted the call. What becomes of the task, only ECS
        # says; and of a call that is answered without a task, nobody: see deploy.md.
        for name, what in {"JobFailed": {"containers": {"exitCode": [{"anything-but": 0}]}},
                           "JobNotStarted": {"stopCode": ["TaskFailedToStart"]}}.items():
            events.Rule(self, name, targets=[targets.SnsTopic(topic)], event_pattern={
                "source": ["aws.ecs"], "detail_type": ["ECS Task State Change"],
                "detail": {"clusterArn": [self.cluster.cluster_arn], "lastStatus": ["STOPPED"],
                           "group": [f"family:{self.job.family}"], **what}})
