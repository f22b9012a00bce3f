"""Gets what some tests drive and pip cannot install: a browser, and a Redis server.

`make test` calls it. It installs Debian's packages where CI=true, this is root and there is
apt-get; anywhere else it does nothing, and the tests that need them say that they are skipped.
"""

import os
import shutil
import subprocess
import sys

PACKAGES = {  # a package: a program that is on PATH once it is there
    "chromium": "chromium",
    "chromium-driver": "chromedriver",
    "fonts-noto-color-emoji": "chromium",
    "redis-server": "redis-server",
}


def main():
    wanted = [package for package, program in PACKAGES.items() if not shutil.which(program)]
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if not wanted or os.environ.get("CI") != "true" or not (root and shutil.which("apt-get")):
        return
    print(f"Installing for the tests: {', '.join(wanted)} …", file=sys.stderr)
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *wanted]):
        subprocess.run(["apt-get", "-qq", *command], env=env, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
