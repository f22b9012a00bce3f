"""A page of `make play` in a real Chromium, and the server behind it."""

import re
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress

import psutil
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from lab import folders

QUIET = [f"--{option}" for option in (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync",
    "disable-background-networking", "disable-component-update", "disable-dev-shm-usage")]
LONG = 30  # seconds: a busy machine starts processes slowly


@contextmanager
def chromium(tmp_path_factory):
    """A browser of its own, with nothing remembered; skips the test where there is none."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("no chromium or chromedriver on the PATH: the page was not tried in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in [*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


class Served:
    """`python -m lab play`, running."""

    def __init__(self, number):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lab", "play", str(number), "--no-browser"],
            cwd=folders.ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.url = re.search(r"http\S+", self.process.stdout.readline())[0]
        self.port = int(re.search(r":(\d+)/", self.url)[1])

    def replicas(self):
        """The replica processes that are alive."""
        found = []
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):
                found += [child] if "lab.engine.warm" in " ".join(child.cmdline()) else []
        return found


class Page:
    """The page as its reader has it: what can be pressed, and what can be read."""

    def __init__(self, driver, url):
        self.driver, self.url = driver, url
        self.size(1280, 720)
        self.load()

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 800})

    def load(self):
        self.driver.get(self.url)
        self.until(lambda: self.find("[data-version]"))

    def until(self, happens):
        return WebDriverWait(self.driver, LONG, poll_frequency=0.03).until(lambda _: happens())

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.driver.execute_script(
            "return document.querySelector(arguments[0]).textContent", selector)

    @property
    def version(self):
        return int(self.find("body")[0].get_attribute("data-version"))

    def change(self, act):
        """Do something and wait until its result is on the screen."""
        before = self.version
        act()
        self.until(lambda: self.version > before)

    def press(self, *keys):
        """Type, without looking where the focus is; each key gives an order."""
        for key in keys:
            self.change(ActionChains(self.driver).send_keys(key).perform)

    def click(self, selector):
        self.change(self.find(selector)[0].click)

    def choose(self, selector, value):
        self.change(lambda: Select(self.find(selector)[0]).select_by_value(str(value)))

    def stage(self, number, replicas):
        """A stage from its beginning, with so many replicas."""
        self.driver.execute_script("document.activeElement.blur()")
        if self.find("#stage")[0].get_property("value") != str(number):
            self.choose("#stage", number)
        else:
            self.press("\ue011")  # Home
        if len(self.find(".replica")) != replicas:
            self.change(lambda: Select(self.find("#many")[0]).select_by_visible_text(str(replicas)))
        self.driver.execute_script("document.activeElement.blur()")

    def state(self, letter):
        return self.find(f"#replica-{letter}")[0].get_attribute("data-state")

    @property
    def verdict(self):
        """Whether it is certain, and its code."""
        shown = self.find("#verdict")[0]
        return shown.get_attribute("data-certain") == "true", shown.get_attribute("data-code")

    def bars(self, look=""):
        return [bar.text for bar in self.find(f"#timeline .bar{look and '.look-' + look} .label")]
