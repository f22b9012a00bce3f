"""A Postgres in a Docker container, for whoever asks with LAB_POSTGRES=docker."""

import os
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
        from testcontainers.postgres import PostgresContainer
    except ImportError:
        raise LabError(
            "LAB_POSTGRES is docker, but the package testcontainers is not installed.",
            "Run `python3 tools/setup.py docker`, or unset LAB_POSTGRES.",
        ) from None
    image = os.environ.get("LAB_POSTGRES_IMAGE") or IMAGE
    settings = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    try:
        running = PostgresContainer(image, driver=None).with_command(f"postgres {settings}").start()
    except Exception as error:  # testcontainers lets through whatever docker and requests raise
        raise LabError(
            f"Docker does not run {image}: {str(error).strip().splitlines()[-1]}.",
            "Start Docker and check the image's name, or unset LAB_POSTGRES to use the embedded"
            " server.",
        ) from None
    try:
        yield running.get_connection_url()
    finally:
        running.stop()
