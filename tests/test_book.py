"""The site of all READMEs and notebooks: built for real, and read in a real browser, offline."""

import os
import re
from importlib.util import find_spec

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.browsing import LONG, chromium
from tests.checkouts import copy_checkout, done

pytestmark = pytest.mark.skipif(
    not find_spec("sphinx"), reason="sphinx is not installed: python3 tools/setup.py book")
FETCHED = re.compile(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//|'
                     r'<link[^>]+rel="(?:stylesheet|preload)"[^>]+href="(?:https?:)?//|@import')


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of the site, and what `make book` said of it."""
    folder = copy_checkout(tmp_path_factory.mktemp("book") / "lab")
    return folder / "out" / "book", done(folder, "book", seconds=110)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory) as driver:
        yield driver


def found(browser, book, words):
    """The titles that the site's search finds, best first."""
    browser.get((book[0] / "search.html").as_uri() + f"?q={words}")
    WebDriverWait(browser, LONG).until(  # its summary is written when all are found
        lambda page: re.search(r"found \d|did not match",
                               page.find_element(By.ID, "search-results").text))
    return [link.text for link in browser.find_elements(By.CSS_SELECTOR, "#search-results li > a")]


def test_it_is_built_without_a_warning(book):
    folder, (code, out, errors) = book
    assert (code, errors) == (0, "")
    assert re.fullmatch(r"\s*\d+ pages\. Open out/book/index\.html\s*", out)
    assert (folder / "index.es.html").exists()


def test_no_page_fetches_anything_from_another_place(book):
    pages = list(book[0].rglob("*.html"))
    assert FETCHED.search('<script src="https://unpkg.com/x.js">')
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.example/x.css">')
    assert [str(page) for page in pages if FETCHED.search(page.read_text(encoding="utf-8"))] == []
    assert len(pages) > 50


@pytest.mark.parametrize(("words", "title"), [
    ("advisory", "01 · A lock per tick"),
    ("sentinel", "02 · Look for the thread first"),
    ("claim", "03 · A claim in the transaction of the work"),
    ("EventBridge", "05 · A scheduler owns the when"),
    ("outbox", "06 · The notification and the transaction"),
    ("invoice", "08 · Lost cents"),
])  # fmt: skip
def test_a_stage_is_found_by_its_word_and_no_two_results_look_alike(browser, book, words, title):
    titles = found(browser, book, words)
    assert title in titles
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("page", ["index", "index.es", "03-claim-row/README", "docs/bench",
                                  "notebooks/07-lost-increments"])
def test_it_fits_a_phone(browser, book, page):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
    try:
        browser.get((book[0] / f"{page}.html").as_uri())
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        if folder := os.environ.get("LAB_PICTURES"):  # to be looked at
            browser.save_screenshot(f"{folder}/book-{page.replace('/', '-')}.png")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide == 390
