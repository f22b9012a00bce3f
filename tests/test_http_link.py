"""Requests through the gate: held, released, cut, and framed as HTTP says."""

import http.client
import socket
import threading
from urllib.parse import urlsplit

import pytest

from lab.engine.http_link import HttpLink, Stream
from lab.engine.wire import Gate
from lab.world.ntfy import PushServer
from tests.wiring import held, pump_until


@pytest.fixture
def push():
    with PushServer() as server:
        yield server


@pytest.fixture
def gate():
    gate = Gate("postgresql://nobody@127.0.0.1:1/none")
    yield gate
    gate.close()


class Client:
    """A client in a thread of its own, as a replica is a process of its own."""

    def __init__(self, url, *requests):
        self.answers = []
        self.thread = threading.Thread(target=self._run, args=(urlsplit(url), requests))
        self.thread.start()

    def _run(self, where, requests):
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=10)
        for method, path, body in requests:
            try:
                connection.request(method, path, body)
                answer = connection.getresponse()
                self.answers.append((answer.status, answer.read()))
            except (OSError, http.client.HTTPException) as error:
                self.answers.append(type(error).__name__)
        connection.close()


def test_a_request_is_held_until_it_is_released(gate, push):
    client = Client(gate.outside_url("A", push.url, "ntfy"), ("POST", "/ta050", b"hola"))
    link = held(gate)
    assert (link.replica, link.held.text, link.held.segment.kind) == (
        "A", "POST http://ntfy/ta050", "request")
    assert push.messages == [] and client.answers == []
    step = link.release()
    pump_until(gate, client.thread)
    assert [m["message"] for m in push.messages] == ["hola"]
    assert (step.outcome, step.tags) == ("ok", ["200 OK"])
    assert client.answers[0][0] == 200


def test_cut_before_nothing_arrives_and_the_client_sees_a_broken_connection(gate, push):
    client = Client(gate.outside_url("A", push.url, "ntfy"), ("POST", "/ta050", b"x"))
    held(gate).cut_before()
    pump_until(gate, client.thread)
    assert push.messages == [] and client.answers == ["RemoteDisconnected"]


def test_cut_after_the_server_has_it_and_the_client_does_not_know(gate, push):
    client = Client(gate.outside_url("A", push.url, "ntfy"), ("POST", "/ta050", b"x"))
    step = held(gate).release()
    step.cut = True
    pump_until(gate, client.thread)
    assert len(push.messages) == 1 and client.answers == ["RemoteDisconnected"]
    assert step.outcome == "cut" and gate.links == []


def test_requests_on_one_connection_are_steps_one_after_another(gate, push):
    gate.passing = True
    steps = []
    gate.on_done = lambda link, step: steps.append((step.text, step.outcome))
    client = Client(gate.outside_url("A", push.url, "ntfy"), ("POST", "/ta050", b"x"),
                    ("GET", "/ta050/json?poll=1", None), ("GET", "/what/is/this", None))
    pump_until(gate, client.thread)
    assert [status for status, _ in client.answers] == [200, 200, 404]
    assert steps == [("POST http://ntfy/ta050", "ok"),
                     ("GET http://ntfy/ta050/json?poll=1", "ok"),
                     ("GET http://ntfy/what/is/this", "error: 404 Not Found")]


def test_a_server_that_is_away_looks_away(gate):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    client = Client(gate.outside_url("A", f"http://127.0.0.1:{port}", "ntfy"), ("GET", "/", None))
    pump_until(gate, client.thread)
    assert client.answers[0] in ("RemoteDisconnected", "ConnectionResetError")


def test_what_is_no_request_is_strange(gate, push):
    where = urlsplit(gate.outside_url("A", push.url, "ntfy"))
    with socket.create_connection((where.hostname, where.port)) as sock:
        sock.sendall(b"hello\r\n\r\n")
        while not gate.odd:
            gate.pump(0.1)
    assert "no HTTP request" in gate.odd


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(("sent", "whole"), [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 1),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1),
    (b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 500 X\r\ncontent-length:1\r\n\r\na", 2),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n", 1),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 1),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", 0),
    (b"HTTP/1.0 200 OK\r\n\r\nabc", 0)])
def test_an_answer_ends_where_http_says_whatever_the_packets(size, sent, whole):
    stream = Stream(answers=True)
    found = [m for at in range(0, len(sent), size) for m in stream.feed(sent[at:at + size])]
    assert len(found) == whole
    if not whole and sent.startswith(b"HTTP/1.0"):
        assert [m.data for m in stream.feed(b"", ended=True)] == [sent]


def test_it_looks_like_a_link_to_the_engine(gate, push):
    Client(gate.outside_url("A", push.url, "ntfy"), ("POST", "/ta050", b"x"))
    link = held(gate)
    assert isinstance(link, HttpLink) and link.pid is None and link.status == "I"
    link.close()
    assert gate.links == []
