"""Commands to Redis through the gate: held, released, cut, and framed as RESP says."""

import socket
import threading
from urllib.parse import urlsplit

import pytest

from lab.engine.redis import RedisPair, missing
from lab.engine.redis_link import Refusal, split
from lab.engine.wire import Gate
from tests.wiring import held, pump_until

client = pytest.importorskip("redis", reason="the redis extra is not installed: make .venv/.redis")


@pytest.fixture(scope="module")
def pair():
    if lack := missing():
        pytest.skip(str(lack))
    made = RedisPair()
    yield made
    made.close()


@pytest.fixture
def gate():
    gate = Gate("postgresql://nobody@127.0.0.1:1/none")
    yield gate
    gate.close()


@pytest.fixture
def known(pair):
    pair.reset()
    with client.Redis.from_url(pair.url) as known:
        yield known


class Replica:
    """A client in a thread of its own, as a replica is a process of its own."""

    def __init__(self, gate, pair, *commands, protocol=2):
        self.answers = []
        self.url = gate.outside_url("A", pair.url, "redis")
        self.thread = threading.Thread(target=self._run, args=(commands, protocol))
        self.thread.start()

    def _run(self, commands, protocol):
        with client.Redis.from_url(self.url, protocol=protocol, retry=None) as store:
            for command in commands:
                try:
                    self.answers.append(store.execute_command(*command))
                except client.RedisError as error:
                    self.answers.append(type(error).__name__)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_command_is_held_until_it_is_released_and_the_clients_own_are_not(
        gate, pair, known, protocol):
    replica = Replica(gate, pair, ("SET", "lock", "token", "PX", 5000, "NX"), protocol=protocol)
    link = held(gate)
    assert (link.replica, link.held.text, link.held.segment.kind) == (
        "A", "SET NX redis://lock", "request")
    assert known.get("lock") is None and replica.answers == []
    step = link.release()
    pump_until(gate, replica.thread)
    assert known.get("lock") == b"token"
    assert (step.outcome, step.tags) == ("ok", ["OK"])


def test_cut_before_nothing_arrives_and_the_client_sees_a_broken_connection(gate, pair, known):
    replica = Replica(gate, pair, ("SET", "lock", "token"))
    held(gate).cut_before()
    pump_until(gate, replica.thread)
    assert known.get("lock") is None and replica.answers == ["ConnectionError"]


def test_cut_after_the_server_has_it_and_the_client_does_not_know(gate, pair, known):
    replica = Replica(gate, pair, ("SET", "lock", "token"))
    step = held(gate).release()
    step.cut = True
    pump_until(gate, replica.thread)
    assert known.get("lock") == b"token" and replica.answers == ["ConnectionError"]
    assert step.outcome == "cut" and gate.links == []


def test_what_was_refused_and_what_was_answered_are_told_and_no_value_is(gate, pair, known):
    known.set("lock", "secret")
    gate.passing = True
    steps = []
    gate.on_done = lambda link, step: steps.append((step.text, step.tags, step.outcome))
    script = "return redis.call('del', KEYS[1])"
    replica = Replica(
        gate, pair, ("SET", "lock", "other", "NX"), ("GET", "lock"), ("LPUSH", "lock", "x"),
        ("EVAL", script, 1, "lock"), ("RPUSH", "list", "a", "b"), ("LRANGE", "list", 0, -1))
    pump_until(gate, replica.thread)
    wrong = "WRONGTYPE Operation against a key holding the wrong kind of value"
    assert steps == [
        ("SET NX redis://lock", ["nil"], "ok"), ("GET redis://lock", ["a value"], "ok"),
        ("LPUSH redis://lock", [wrong], f"error: {wrong}"), ("EVAL redis://lock", ["1"], "ok"),
        ("RPUSH redis://list", ["2"], "ok"), ("LRANGE redis://list", ["2 values"], "ok")]
    assert replica.answers == [None, b"secret", "ResponseError", 1, 2, [b"a", b"b"]]


def test_what_is_no_command_is_strange(gate, pair):
    where = urlsplit(gate.outside_url("A", pair.url, "redis"))
    with socket.create_connection((where.hostname, where.port)) as sock:
        sock.sendall(b"hello\r\n\r\n")
        while not gate.odd:
            gate.pump(0.1)
    assert "no Redis command" in gate.odd


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("sent", "values"), [
    (b"+OK\r\n:7\r\n$-1\r\n_\r\n", ["OK", 7, None, None]),
    (b"-ERR no\r\n!6\r\nERR so\r\n", [Refusal("ERR no"), Refusal("ERR so")]),
    (b"$4\r\na\r\nb\r\n*-1\r\n$0\r\n\r\n", [b"a\r\nb", None, b""]),
    (b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n", [[b"a", [1, None]]]),
    (b"%1\r\n+a\r\n:1\r\n~1\r\n#t\r\n*0\r\n", [["a", 1], ["t"], []])])
def test_a_value_ends_where_resp_says_whatever_the_packets(size, sent, values):
    found, rest = [], b""
    for at in range(0, len(sent), size):
        more, rest = split(rest + sent[at:at + size])
        found += more
    assert [value for value, _ in found] == values
    assert [type(value) for value, _ in found] == [type(value) for value in values]
    assert b"".join(whole for _, whole in found) == sent and rest == b""


def test_what_redis_pushes_unasked_is_no_answer(gate, pair, known):
    listener = Replica(gate, pair, ("CLIENT", "TRACKING", "ON"), ("GET", "lock"), ("GET", "other"),
                       protocol=3)
    first = held(gate)
    first.release()
    while not (first.held and first.held.text == "GET redis://other"):
        gate.pump(0.1)
    known.set("lock", "x")  # Redis tells the listener that what it had read is no longer so
    known.set("lock", "y")
    gate.pump(0.2)
    assert first.running is None and first.held.tags == []
    first.release()
    pump_until(gate, listener.thread)
    assert listener.answers[1:] == [None, None]
