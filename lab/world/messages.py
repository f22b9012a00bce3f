"""Messages of the push server: their fields, what a subscriber asks for, and what is sent to it.

Source: ntfy's documentation, "Publishing" and "Subscribe via API".
"""

from __future__ import annotations

import json
import re
import secrets
import time
from typing import Any

__all__ = ["KEPT", "NAMES", "TOPIC", "TYPES", "Refused", "checked", "event", "line", "since"]

TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
LONGEST = 4096  # bytes of a message; ntfy makes an attachment of a longer one, which this cannot
KEPT = 12 * 3600  # seconds that ntfy keeps a message by default
PRIORITIES = {"min": 1, "low": 2, "default": 3, "high": 4, "max": 5, "urgent": 5}
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NAMES = {  # the headers and parameters that a field may come in
    "message": ("x-message", "message", "m"), "title": ("x-title", "title", "t"),
    "priority": ("x-priority", "priority", "prio", "p"),
    "tags": ("x-tags", "tags", "tag", "ta"), "click": ("x-click", "click"),
    "sequence_id": ("x-sequence-id", "sequence-id", "sid")}
TYPES = {"json": "application/x-ndjson", "sse": "text/event-stream", "raw": "text/plain"}


class Refused(Exception):
    """A request that ntfy refuses: its own error code and text."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message in their order, as ntfy would keep them.

    Raises:
        Refused: a field is not as it should be.
    """
    fields = {name: given[name] for name in NAMES if given.get(name)}
    fields["message"] = str(fields.get("message", "triggered"))
    if len(fields["message"].encode()) > LONGEST:
        raise Refused(40014, "invalid request: attachments not allowed")
    if "priority" in fields:
        word = str(fields["priority"]).lower()
        fields["priority"] = PRIORITIES.get(word, int(word) if word in set("12345") else 0)
        if not fields["priority"]:
            raise Refused(40007, "invalid priority parameter")
    if isinstance(fields.get("tags"), str):
        fields["tags"] = [tag.strip() for tag in fields["tags"].split(",") if tag.strip()]
    return fields


def since(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """What `?since=` asks for: all, none, latest, a Unix time, a duration or a message's id.

    Raises:
        Refused: it is none of these.
    """
    if text in ("all", "none", "latest"):
        return {"all": messages, "none": [], "latest": messages[-1:]}[text]
    if found := [i for i, message in enumerate(messages) if message["id"] == text]:
        return messages[found[0] + 1:]
    if re.fullmatch(r"\d{1,10}", text):
        return [message for message in messages if message["time"] >= int(text)]
    if parts := re.fullmatch(r"(\d+)([smhd])", text):
        oldest = time.time() - int(parts[1]) * UNITS[parts[2]]
        return [message for message in messages if message["time"] >= oldest]
    if re.fullmatch(r"[A-Za-z0-9]{10,12}", text):
        return messages  # an id that is not known any more: nothing may be missed
    raise Refused(40008, "invalid since parameter")


def event(kind: str, topics: str) -> dict[str, Any]:
    """What a subscriber gets beside messages: "open" or "keepalive"."""
    return {"id": secrets.token_hex(6), "time": int(time.time()), "event": kind, "topic": topics}


def line(event: dict[str, Any], form: str) -> bytes:
    """An event as a subscriber gets it; `form` is json, sse or raw."""
    if form == "raw":
        return event.get("message", "").replace("\n", " ").encode() + b"\n"
    text = json.dumps(event, ensure_ascii=False)
    if form == "json":
        return f"{text}\n".encode()
    name = "" if event["event"] == "message" else f"event: {event['event']}\n"
    return f"{name}data: {text}\n\n".encode()
