"""Gets the browser that the tests of the page drive, on a machine that is there for tests only.

`make test` calls it. It installs Debian's Chromium where CI=true, this is root and there is
apt-get; anywhere else it does nothing, and the tests that need a browser say that they are skipped.
"""

import os
import shutil
import subprocess
import sys

PACKAGES = ["chromium", "chromium-driver", "fonts-noto-color-emoji"]


def main():
    there = shutil.which("chromium") and shutil.which("chromedriver")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if there or os.environ.get("CI") != "true" or not (root and shutil.which("apt-get")):
        return
    print("Installing Chromium for the tests of the page …", file=sys.stderr)
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        subprocess.run(["apt-get", "-qq", *command], env=env, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
