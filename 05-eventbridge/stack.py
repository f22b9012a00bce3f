"""The service and its database on AWS: where things run. When they run is in schedules.py.

Three replicas of the worker, one task definition for the jobs, one Postgres. The image is named by
a parameter instead of being built here, so that a synth needs no Docker and no hash of a file gets
into the template.
"""

from aws_cdk import CfnOutput, CfnParameter, Duration, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_rds as rds
from constructs import Construct

from schedules import Schedules

REPOSITORY = "community-worker"  # `docker push` goes there before the first deployment
USER, DATABASE = "community", "community"


class Community(Stack):
    """Everything, in one stack. Parameters: ImageTag, AlarmEmail.

    Outputs: ClusterName, SubnetIds, SecurityGroupId, which a person needs to run a job by hand.
    """

    def __init__(self, scope: Construct, name: str, **options) -> None:
        super().__init__(scope, name, **options)
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=1)
        self.tasks = ec2.SecurityGroup(self, "Tasks", vpc=self.vpc)
        self.database = self._database()
        self.cluster = ecs.Cluster(self, "Cluster", vpc=self.vpc)
        self.logs = logs.LogGroup(self, "Logs", retention=logs.RetentionDays.THREE_MONTHS)
        tag = CfnParameter(self, "ImageTag", description=f"The tag of the image in {REPOSITORY}.")
        repository = ecr.Repository.from_repository_name(self, "Repository", REPOSITORY)
        self.image = ecs.ContainerImage.from_ecr_repository(repository, tag.value_as_string)

        self._service()
        # Never run without a command of its own, which is why its default does nothing.
        job = self._task("Job", "job", ["python", "-m", "jobs", "--list"])
        Schedules(self, "Schedules", cluster=self.cluster, job=job, security_group=self.tasks)
        private = self.vpc.select_subnets(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
        for output, value in {"ClusterName": self.cluster.cluster_name,
                              "SubnetIds": Fn.join(",", private.subnet_ids),
                              "SecurityGroupId": self.tasks.security_group_id}.items():
            CfnOutput(self, output, value=value)

    def _database(self) -> rds.DatabaseInstance:
        """Postgres in the private subnets; its password is made by AWS, and stays there."""
        database = rds.DatabaseInstance(
            self, "Database", vpc=self.vpc, database_name=DATABASE,
            engine=rds.DatabaseInstanceEngine.postgres(version=rds.PostgresEngineVersion.VER_18),
            instance_type=ec2.InstanceType("t4g.small"), storage_encrypted=True,
            allocated_storage=20, storage_type=rds.StorageType.GP3,
            credentials=rds.Credentials.from_generated_secret(USER),
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            backup_retention=Duration.days(7), deletion_protection=True)
        database.connections.allow_default_port_from(self.tasks)
        return database

    def _task(self, name: str, container: str, command: list[str]) -> ecs.FargateTaskDefinition:
        """A task definition with one container that can reach the database."""
        task = ecs.FargateTaskDefinition(
            self, name, family=f"community-{container}", cpu=256, memory_limit_mib=512,
            execution_role=self._role(f"{name}ExecutionRole"), task_role=self._role(f"{name}Role"))
        host = self.database.db_instance_endpoint_address
        task.add_container(
            container, image=self.image, command=command,
            # libpq takes the password from PGPASSWORD where the URL has none, so that no text
            # with the password in it is ever put together, here or in the container.
            environment={
                "DATABASE_URL": f"postgresql://{USER}@{host}:5432/{DATABASE}?sslmode=require"},
            secrets={"PGPASSWORD": ecs.Secret.from_secrets_manager(
                self.database.secret, "password")},
            logging=ecs.LogDrivers.aws_logs(stream_prefix=container, log_group=self.logs))
        return task

    def _role(self, name: str) -> iam.Role:
        """A role that containers of ECS may take; what it may do is granted elsewhere."""
        return iam.Role(self, name, assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))

    def _service(self) -> None:
        """Three replicas of the worker, which know nothing of the weekly jobs."""
        ecs.FargateService(
            self, "Service", cluster=self.cluster, desired_count=3, assign_public_ip=False,
            task_definition=self._task("Worker", "worker", ["python", "worker.py"]),
            security_groups=[self.tasks], min_healthy_percent=100, max_healthy_percent=200,
            circuit_breaker=ecs.DeploymentCircuitBreaker(rollback=True))
