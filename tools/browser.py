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
    if os.environ.get("CI") != "true" or (shutil.which("chromium") and shutil.which("chromedriver")):
        return
    if not (shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0):
        return
    print("Installing Chromium for the tests of the page …", file=sys.stderr)
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "update", "-qq"], **quiet)
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES], **quiet)


if __name__ == "__main__":
    main()
