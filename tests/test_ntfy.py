"""The push server is driven with the request shapes of ntfy's documentation."""

import http.client
import json
import threading
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from lab.world.ntfy import PushServer


@pytest.fixture
def push():
    with PushServer() as server:
        yield server


def ask(push, path, method="GET", body=None, **headers):
    request = urllib.request.Request(push.url + path, body and body.encode(), method=method,
                                     headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_body_sent_to_a_topic_is_published(push, method):
    status, text = ask(push, "/mytopic", method, "Backup successful 😀")
    answer = json.loads(text)
    assert status == 200
    assert answer | {"id": "", "time": 0, "expires": 0} == {
        "id": "", "time": 0, "expires": 0, "event": "message", "topic": "mytopic",
        "message": "Backup successful 😀"}
    assert push.messages == [answer]


@pytest.mark.parametrize("headers", [
    {"Title": "Unauthorized access detected", "Priority": "urgent", "Tags": "warning,skull"},
    {"X-Title": "Unauthorized access detected", "X-Priority": "5", "X-Tags": "warning, skull"},
    {"t": "Unauthorized access detected", "p": "max", "ta": "warning,skull"},
    {"Title": "=?UTF-8?B?VW5hdXRob3JpemVkIGFjY2VzcyBkZXRlY3RlZA==?=", "prio": "5",
     "tag": "warning,skull"},
])
def test_title_priority_and_tags_come_in_headers(push, headers):
    ask(push, "/phil_alerts", "POST", "Remote access to phils-laptop detected.", **headers)
    (message,) = push.messages
    assert (message["title"], message["priority"], message["tags"]) == (
        "Unauthorized access detected", 5, ["warning", "skull"])


def test_a_title_in_plain_utf8_is_read(push):
    ask(push, "/ta050", "POST", "x", Title="¡Compra!".encode().decode("latin-1"))
    assert push.messages[0]["title"] == "¡Compra!"


def test_a_whole_message_can_be_json_at_the_root(push):
    status, _ = ask(push, "/", "POST", json.dumps({
        "topic": "mytopic", "message": "Disk space is low at 5.1 GB",
        "title": "Low disk space alert", "tags": ["warning", "cd"], "priority": 4,
        "click": "https://homecamera.lan/xasds1h2xsSsa/"}))
    assert status == 200
    assert push.messages[0]["tags"] == ["warning", "cd"]
    assert push.messages[0]["priority"] == 4


def test_a_webhook_publishes_by_get(push):
    ask(push, "/mywebhook/trigger")
    ask(push, "/mywebhook/publish?message=Webhook+triggered&priority=high&tags=warning,skull")
    assert [m["message"] for m in push.messages] == ["triggered", "Webhook triggered"]
    assert push.messages[1]["priority"] == 4


@pytest.mark.parametrize(("path", "headers"), [
    ("/mytopic/download-42", {}), ("/mytopic", {"X-Sequence-ID": "download-42"}),
    ("/mytopic?sid=download-42", {})])
def test_a_sequence_id_comes_in_the_path_a_header_or_a_parameter(push, path, headers):
    ask(push, path, "POST", "Downloading", **headers)
    assert push.messages[0]["sequence_id"] == "download-42"


@pytest.mark.parametrize(("path", "body", "headers", "status", "code"), [
    ("/no%20topic", "x", {}, 400, 40009), ("/a", "x", {"Priority": "9"}, 400, 40007),
    ("/", "no json", {}, 400, 40017), ("/", '{"message": "no topic"}', {}, 400, 40009),
    ("/a", "x" * 4097, {}, 400, 40014)])
def test_what_ntfy_refuses_is_refused_with_its_code(push, path, body, headers, status, code):
    said, text = ask(push, path, "POST", body, **headers)
    assert (said, json.loads(text)["code"], json.loads(text)["http"]) == (status, code, status)
    assert push.messages == []


def test_polling_returns_what_is_kept_and_ends(push):
    for text in ("one", "two", "three"):
        ask(push, "/ta050", "POST", text)
    ask(push, "/other", "POST", "not mine")

    def polled(query):
        lines = ask(push, f"/ta050/json?poll=1{query}")[1].splitlines()
        return [json.loads(line)["message"] for line in lines]

    assert polled("") == polled("&since=all") == polled("&since=10m") == ["one", "two", "three"]
    assert polled(f"&since={push.messages[1]['id']}") == ["three"]
    assert polled("&since=latest") == ["three"]
    assert polled("&since=none") == polled("&since=9999999999") == []
    assert polled("&since=unknownid12") == ["one", "two", "three"]
    assert json.loads(ask(push, "/ta050/json?poll=1&since=x")[1])["code"] == 40008


@pytest.mark.parametrize(("form", "opened", "told"), [
    ("json", b'"event": "open"', b'"message": "Hi!"'),
    ("sse", b"event: open\n", b'data: {"id": "'), ("raw", b"\n", b"Hi!\n")])
def test_a_subscriber_is_told_as_it_happens(push, form, opened, told):
    where = urlsplit(push.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=10)
    connection.request("GET", f"/ta050,other/{form}")
    stream = connection.getresponse()
    assert opened in stream.readline()
    if form == "sse":
        stream.readline(), stream.readline()
    threading.Thread(target=ask, args=(push, "/ta050", "POST", "Hi!")).start()
    assert told in stream.readline()
    connection.close()


def test_in_trouble_it_does_what_it_is_told(push):
    push.trouble = "fail"
    assert ask(push, "/ta050", "POST", "x")[0] == 500
    push.trouble = "refuse"
    assert ask(push, "/ta050", "POST", "x")[0] == 400
    assert push.messages == []
    push.trouble = "malformed"
    assert ask(push, "/ta050", "POST", "x") == (200, "<html>OK")
    push.trouble = "hang up"
    with pytest.raises(http.client.RemoteDisconnected):
        ask(push, "/ta050", "POST", "x")
    assert len(push.messages) == 2


def test_the_app_finds_a_healthy_server_that_lets_it_in(push):
    assert ask(push, "/v1/health") == (200, '{"healthy": true}')
    assert ask(push, "/ta050/auth") == (200, '{"success": true}')
    assert ask(push, "/nothing/here")[0] == 404
