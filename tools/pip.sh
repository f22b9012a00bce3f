#!/bin/sh
# Runs pip for a virtual environment that has none: sh tools/pip.sh .venv/bin/python install …
# The pip of the Python that made it does the work; where that has none (Debian without
# python3-pip), the virtual environment gets one.
python=$1
shift
base=$("$python" -c 'import sys; print(sys._base_executable)')
if "$python" -m pip --version >/dev/null 2>&1; then
    exec "$python" -m pip --disable-pip-version-check "$@"
elif "$base" -m pip --version >/dev/null 2>&1; then
    exec "$base" -m pip --disable-pip-version-check --python "$python" "$@"
elif "$python" -m ensurepip >/dev/null 2>&1; then
    exec "$python" -m pip --disable-pip-version-check "$@"
fi
echo "This Python has no pip, so nothing can be installed." >&2
echo "On Debian and Ubuntu: apt-get install python3-venv (as root), then run make again." >&2
exit 2
