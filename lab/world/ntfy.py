"""A push server that speaks ntfy's HTTP interface, as far as a publisher and the phone app need it.

Publish by POST, PUT or GET, with headers, parameters or JSON; subscribe as JSON lines, SSE or raw
text, or poll. It keeps messages in memory, listens on the loopback only, and can be told to be
slow, to fail, or to answer with nonsense. `python -m lab.world.ntfy PORT` runs one by itself.

Source: ntfy's documentation, "Publishing" and "Subscribe via API".
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.header import decode_header, make_header
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.world.messages import KEPT, NAMES, TOPIC, TYPES, Refused, checked, event, line, since

__all__ = ["PushServer"]

KEEPALIVE = 45.0  # seconds between keepalive events, ntfy's default


class PushServer:
    """A running server. Use it as a context manager: leaving it closes the port.

    Attributes:
        url: its address, for NTFY_URL.
        messages: every message accepted so far, oldest first, as subscribers get them.
        trouble: "" (none), "fail" (answers 500 and keeps nothing), "refuse" (400, keeps nothing),
            "malformed" (keeps the message and answers what is no JSON), or "hang up" (keeps it and
            closes the connection without an answer).
        slow: real seconds that every publication takes.
        on_message: gets each message before it is kept and answered.
    """

    def __init__(self, port: int = 0) -> None:
        self.messages: list[dict[str, Any]] = []
        self.trouble, self.slow = "", 0.0
        self.on_message: Callable[[dict[str, Any]], None] = lambda message: None
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.push = self
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> PushServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the port and end every subscription."""
        self.closing.set()
        with self.changed:
            self.changed.notify_all()
        self._http.shutdown()
        self._http.server_close()

    def clear(self) -> None:
        """Forget every message and every trouble."""
        with self.changed:
            self.messages.clear()
        self.trouble, self.slow = "", 0.0

    def of(self, topics: str) -> list[dict[str, Any]]:
        """The messages of a topic, or of several separated by commas, oldest first."""
        return [message for message in list(self.messages) if message["topic"] in topics.split(",")]

    def publish(self, topic: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep a message and tell the subscribers; returns it.

        Raises:
            Refused: the topic or a field is not as it should be.
        """
        if not TOPIC.fullmatch(topic):
            raise Refused(40009, "invalid request: topic invalid")
        now = int(time.time())
        message = {"id": secrets.token_hex(6), "time": now, "expires": now + KEPT,
                   "event": "message", "topic": topic, **checked(fields)}
        self.on_message(message)
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()
        return message


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # who comes while the queue is full tries again only a second later


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._answer(self._publish)

    do_PUT = do_POST

    def do_GET(self) -> None:
        self._answer(self._get)

    def log_message(self, *_: object) -> None:
        """Nothing is printed: the screen belongs to the lesson."""

    def _answer(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Refused as error:
            self._send(error.code // 100, {"code": error.code, "http": error.code // 100,
                                           "error": str(error)})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client is gone

    def _send(self, status: int, body: dict[str, Any] | bytes) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # Publishing

    def _publish(self) -> None:
        body = self._body()
        topic, _, sequence = urlsplit(self.path).path.strip("/").partition("/")
        if topic:
            fields = self._fields() | ({"sequence_id": sequence} if sequence else {})
            fields.setdefault("message", body.decode("utf-8", "replace").rstrip("\n"))
        else:
            try:
                fields = json.loads(body)
                topic = str(fields.get("topic", ""))
            except (ValueError, AttributeError):
                raise Refused(40017, "invalid request: request body must be message JSON") from None
        self._keep(topic, fields)

    def _keep(self, topic: str, fields: dict[str, Any]) -> None:
        push: PushServer = self.server.push
        trouble = push.trouble
        if push.slow:
            push.closing.wait(push.slow)
        if trouble in ("fail", "refuse"):
            raise Refused(50001 if trouble == "fail" else 40000,
                          "internal server error" if trouble == "fail" else "invalid request")
        message = push.publish(topic, fields)
        if trouble == "hang up":
            self.close_connection = True
        else:
            self._send(200, b"<html>OK" if trouble == "malformed" else message)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _fields(self) -> dict[str, Any]:
        parameters = parse_qs(urlsplit(self.path).query)
        given = {}
        for field, names in NAMES.items():
            for name in names:
                if value := self.headers.get(name):
                    text = value.encode("latin-1").decode("utf-8", "replace")
                    given.setdefault(field, str(make_header(decode_header(text))))
                elif name in parameters:
                    given.setdefault(field, parameters[name][-1])
        return given

    # Subscribing

    def _get(self) -> None:
        push: PushServer = self.server.push
        topics, _, what = urlsplit(self.path).path.strip("/").partition("/")
        if (topics, what) == ("v1", "health"):
            self._send(200, {"healthy": True})
        elif what in ("publish", "send", "trigger"):
            self._keep(topics, self._fields())
        elif what == "auth":
            self._send(200, {"success": True})
        elif what in TYPES and all(TOPIC.fullmatch(topic) for topic in topics.split(",")):
            self._subscribe(push, topics, what)
        else:
            raise Refused(40401, "page not found")

    def _subscribe(self, push: PushServer, topics: str, form: str) -> None:
        asked = {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}
        poll = asked.get("poll") in ("1", "true", "yes")
        with push.changed:  # what comes from here on is news
            seen = len(push.messages)
            missed = since(push.of(topics), asked.get("since") or ("all" if poll else "none"))
        self.send_response(200)
        self.send_header("Content-Type", f"{TYPES[form]}; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for told in missed if poll else self._stream(push, topics, missed, seen):
            self._chunk(line(told, form))
        self.wfile.write(b"0\r\n\r\n")

    def _stream(self, push: PushServer, topics: str, missed: list[dict[str, Any]],
                seen: int) -> Iterator[dict[str, Any]]:
        yield event("open", topics)
        yield from missed
        while not push.closing.is_set():
            with push.changed:
                push.changed.wait_for(
                    lambda seen=seen: len(push.messages) > seen or push.closing.is_set(), KEEPALIVE)
                new, seen = push.messages[seen:], len(push.messages)
            wanted = [message for message in new if message["topic"] in topics.split(",")]
            yield from wanted or ([] if new else [event("keepalive", topics)])

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


if __name__ == "__main__":
    with PushServer(int(sys.argv[1]) if sys.argv[1:] else 0) as server:
        print(f"NTFY_URL={server.url}", flush=True)
        server.closing.wait()
