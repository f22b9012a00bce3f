"""Makes .venv and installs what a lock lists: python3 tools/setup.py [NAME …]

Without a NAME it installs the core (requirements.lock); with names also those extras
(locks/NAME.lock). The Makefile calls it; on Windows, or without make, call it yourself.
Needs the standard library only.

uv does the work when it is there, and otherwise pip fetches uv first, because uv installs the core
from a warm cache in about one second where pip takes fifteen. Where uv fails, pip does it all.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")


def say(*lines):
    print(*lines, sep="\n", file=sys.stderr)


def run(*command):
    """Runs a command and returns (succeeded, what it printed)."""
    env = {"UV_HTTP_TIMEOUT": "15", "UV_HTTP_RETRIES": "1", **os.environ}  # pip is there as well
    if "PIP_INDEX_URL" in env:
        env.setdefault("UV_DEFAULT_INDEX", env["PIP_INDEX_URL"])
    done = subprocess.run(
        command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode == 0, done.stdout


def pip_command():
    """The pip of the Python that runs this, pointed at .venv; else one put into .venv."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    if find_spec("ensurepip") and run(str(PYTHON), "-m", "ensurepip")[0]:
        return [str(PYTHON), "-m", "pip"]
    say(
        "This Python has no pip, so nothing can be installed.",
        "On Debian and Ubuntu: apt-get install python3-venv (as root); then try again.",
    )
    sys.exit(2)


def pip_install(lock):
    """Installs a lock with pip; --no-compile leaves byte code to the first import."""
    options = ["-qq", "--disable-pip-version-check", "--no-compile", "--no-warn-conflicts"]
    return run(*pip_command(), "install", *options, "--require-hashes", "-r", lock)


def find_uv():
    """uv on the PATH, or in .venv, put there by pip; None where pip could not get it."""
    found = shutil.which("uv") or shutil.which("uv", path=str(BIN))
    if not found and pip_install("locks/uv.lock")[0]:
        found = shutil.which("uv", path=str(BIN))
    return found


def install(lock):
    """Installs a lock file into .venv and leaves a stamp that make compares with the lock."""
    uv = find_uv()
    done = uv and run(uv, "pip", "install", "--python", PYTHON, "--require-hashes", "-r", lock)[0]
    if not done:
        done, output = pip_install(lock)
        if not done:
            say(
                output.strip(),
                f"The packages of {lock} could not be installed; pip's reason is above.",
                "Check the connection (the first time they are downloaded) and try again.",
            )
            sys.exit(2)


def main(names):
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python gets this far, to be told so
        say(
            f"Python 3.11 or newer is needed; this is {sys.version.split()[0]} ({sys.executable}).",
            "Name a newer one: make PYTHON=python3.12 …",
        )
        return 2
    if not PYTHON.exists():
        say("Making .venv (the first time, about 75 MB of packages are downloaded) …")
        venv.EnvBuilder(symlinks=os.name != "nt", clear=True).create(VENV)
        # `import lab` works in every folder: for worker.py run by hand, and for notebooks.
        packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(VENV)}))
        (packages / "lab.pth").write_text(os.path.relpath(ROOT, packages), "utf-8")
    for name in ["core", *names]:
        lock = "requirements.lock" if name == "core" else f"locks/{name}.lock"
        stamp, wanted = VENV / f".{name}", (ROOT / lock).read_text("utf-8")
        if not stamp.exists() or stamp.read_text("utf-8") != wanted:
            if name != "core":
                say(f"Installing what {lock} lists …")
            install(lock)
            stamp.write_text(wanted, "utf-8")
        else:
            stamp.touch()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        say(
            f"{error.filename or '.venv'} cannot be written: {error.strerror}.",
            "Make room on the disk, or let the folder be writable; then try again.",
        )
        sys.exit(2)
    except KeyboardInterrupt:
        say("Interrupted; the next command goes on from here.")
        sys.exit(130)
