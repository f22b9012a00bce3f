"""A warm replica: a process of its own that runs the stage's code whenever it is told to.

Started as `python -m lab.engine.warm PARENT PORT TOKEN [MODULE …]`. It enters a stage folder as
`python worker.py` would (the folder is the script's own directory), then runs one call after
another and says how each ended. While a call runs, it can be asked which line of the stage it is
on. The stage's code sees nothing of this: it finds DATABASE_URL, NTFY_URL and the clock in its
environment.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import queue
import socket
import sys
import threading
import traceback
from contextlib import suppress
from datetime import datetime
from typing import Any

from lab.engine.launch import bounded, die_with_parent
from lab.world import clock

WHERE = b'{"where": true}\n'
_speaking = threading.Lock()


def encode(value: Any) -> Any:
    """Make an argument fit for JSON; a datetime keeps its zone."""
    return {"$time": value.isoformat()} if isinstance(value, datetime) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and "$time" in value:
        return datetime.fromisoformat(value["$time"]).astimezone(clock.MX)
    if isinstance(value, dict) and "$ref" in value:
        return _find(value["$ref"])
    return value


def _find(path: str) -> Any:
    module, _, name = path.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _enter(folder: str, env: dict[str, str]) -> None:
    os.environ.update(env)
    os.chdir(folder)
    sys.path.insert(0, folder)


def _run(call: str, args: list, kwargs: dict) -> dict:
    clock.forget_sleep()
    try:
        function = _find(call)
        args, kwargs = [_decode(a) for a in args], {k: _decode(v) for k, v in kwargs.items()}
    except BaseException as error:  # the stage's own module, as it is imported
        _print_error()
        return {"end": "unusable", "message": f"{type(error).__name__}: {error}"}
    try:
        value = function(*args, **kwargs)
        return {"end": "ok", "value": value if isinstance(value, (bool, int, str)) else None}
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if code:
            return {"end": "error", "error": "SystemExit", "message": str(stop.code)}
        return {"end": "ok"}
    except BaseException as error:  # whatever the stage raises is an outcome, and reported as one
        _print_error()
        origin = getattr(error, "orig", None) or error
        name = getattr(origin, "sqlstate", None) or type(origin).__name__
        return {"end": "error", "error": name, "message": str(origin).split("\n")[0],
                "line": _line(error)}


def _print_error() -> None:
    with suppress(OSError):  # the log is full
        traceback.print_exc()


def _line(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__)
              if os.path.dirname(f.filename).startswith(os.getcwd())]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _where() -> list[dict]:
    """The frames of the run under way that are in the stage's folder, innermost first."""
    frame = sys._current_frames()[threading.main_thread().ident]
    found = []
    while frame:
        file, code = frame.f_code.co_filename, frame.f_code
        if os.path.dirname(file).startswith(os.getcwd()):
            found.append({"file": os.path.relpath(file), "line": frame.f_lineno,
                          "function": code.co_name})
        frame = frame.f_back
    return found


def _read(control: socket.socket, orders: queue.SimpleQueue[bytes]) -> None:
    for line in control.makefile("rb"):
        if line == WHERE:  # answered here: the main thread is blocked in the driver
            _say(control, {"where": _where()})
        else:
            orders.put(line)
    os._exit(1)  # the engine is gone, so whatever runs here is nobody's any more


def _say(control: socket.socket, answer: dict) -> None:
    with _speaking:
        control.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Say hello to the engine, then do as told until the connection closes; it never returns."""
    parent, port, token = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    gc.disable()
    for module in sys.argv[4:]:  # ahead, so that the first run does not pay for it
        importlib.import_module(module)
    gc.freeze()  # modules are no garbage, so nobody has to look through them
    gc.enable()
    die_with_parent(parent)
    bounded()
    with socket.create_connection(("127.0.0.1", port)) as control:
        control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        control.sendall(json.dumps({"hello": token, "pid": os.getpid()}).encode() + b"\n")
        orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(control, orders), daemon=True).start()
        while True:
            order = json.loads(orders.get())
            if "enter" in order:
                _enter(order["enter"], order["env"])
                continue
            answer = _run(order["call"], order["args"], order["kwargs"])
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            _say(control, answer)


if __name__ == "__main__":
    main()
