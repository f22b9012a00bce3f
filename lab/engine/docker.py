"""A Postgres in a Docker container, for whoever asks with LAB_POSTGRES=docker."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from lab.errors import LabError

IMAGE = "postgres:17"
SETTINGS = {"wal_level": "logical", "fsync": "off", "max_connections": "200"}


@contextmanager
def container() -> Iterator[str]:
    """Give the URL of a server in a container of its own, which ends with the `with` block.

    The image is `LAB_POSTGRES_IMAGE`, or else postgres:17. A container that a killed process leaves
    is removed by testcontainers' own reaper.

    Raises:
        LabError: the package is missing, or Docker does not answer or does not start the image.
    """
    try:
        from testcontainers.community.postgres import PostgresContainer
    except ImportError:
        raise LabError(
            "LAB_POSTGRES is docker, but the package testcontainers is not installed.",
            "Run `python3 tools/setup.py docker`, or unset LAB_POSTGRES.",
        ) from None
    image = os.environ.get("LAB_POSTGRES_IMAGE") or IMAGE
    settings = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    # A password that nobody knows: Docker publishes the port on all the machine's addresses.
    secret = secrets.token_hex(16)
    try:
        running = PostgresContainer(image, password=secret, driver=None)
        running.with_command(f"postgres {settings}").start()
    except Exception as error:  # testcontainers lets through whatever docker and requests raise
        said = (str(error).strip() or type(error).__name__).splitlines()[-1].rstrip(".")
        raise LabError(
            f"Docker does not run {image}: {said}.",
            "Start Docker and check the image's name, or unset LAB_POSTGRES to use the embedded"
            " server.",
        ) from None
    try:
        yield running.get_connection_url()
    finally:
        running.stop()
