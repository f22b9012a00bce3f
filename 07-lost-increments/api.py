"""The API: a request authenticates a key and counts its use, by the variant that it asks for.

Started as `python api.py`: serves on a free port of this machine and prints it. Needs the extra
`api` (FastAPI, uvicorn).

**Stops:** nothing.
**Lets through:** what the variant lets through. FastAPI runs each request in a thread, so even a
single process of it races with itself.
"""

import importlib
import socket

import uvicorn
from fastapi import FastAPI, HTTPException

from lab.world import clock

import check_then_debit
import guarded_debit

VARIANTS = ("read_modify_write", "atomic_update", "for_update", "version_column", "serializable",
            "repeatable_read")
DEBITS = {"check_then_debit": check_then_debit.debit, "guarded_debit": guarded_debit.debit}

app = FastAPI(title="Transcription")


@app.post("/{variant}/use")
def use(variant: str, secret: str) -> dict[str, int]:
    """Authenticate a key and count its use: 200 with the new count, or 401."""
    if variant not in VARIANTS:
        raise HTTPException(404, f"no such variant: {variant}")
    level = variant.replace("_", " ").upper()
    if variant in ("repeatable_read", "serializable"):
        retry = importlib.import_module("retry")
        count = retry.authenticate(secret, clock.now(), level)
    else:
        count = importlib.import_module(variant).authenticate(secret, clock.now())
    if count is None:
        raise HTTPException(401, "no such key, or revoked")
    return {"use_count": count}


@app.post("/{variant}/debit")
def debit(variant: str, user: int, cents: int) -> dict[str, int]:
    """Charge a user: 200 with what is left, or 402."""
    if variant not in DEBITS:
        raise HTTPException(404, f"no such variant: {variant}")
    left = DEBITS[variant](user, cents)
    if left is None:
        raise HTTPException(402, "the balance does not cover it")
    return {"balance_cents": left}


def main() -> None:
    """Serve until the process is ended; the first line printed is the port."""
    # By its full name: asyncio leaves TCP's delays on for a socket that only says "stream".
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
