"""The pair of Redis servers: each test starts real ones."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import redis as client

from lab.engine.redis import RedisPair, missing


@pytest.fixture
def pair() -> Iterator[RedisPair]:
    if lack := missing():
        pytest.skip(str(lack))
    made = RedisPair()
    yield made
    made.close()


def test_a_failover_hands_the_replicas_keys_to_the_known_address(pair):
    with client.Redis.from_url(pair.url) as known:
        known.set("held", "A")
    pair.failover()
    with client.Redis.from_url(pair.url) as known:
        assert known.get("held") == b"A"


def test_what_the_replica_did_not_receive_is_lost_with_the_primary(pair):
    pair.lag()
    with client.Redis.from_url(pair.url) as known:
        known.set("held", "A")
    pair.failover()
    with client.Redis.from_url(pair.url) as known:
        assert known.get("held") is None


def test_a_pair_starts_again_though_another_program_took_the_port_that_a_failover_freed(pair):
    freed = pair._replica.connection_pool.connection_kwargs["port"]
    pair.failover()
    with socket.create_server(("127.0.0.1", freed)):
        pair.reset()
    with client.Redis.from_url(pair.url) as known:
        assert known.dbsize() == 0
