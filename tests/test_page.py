"""The live page in a real browser: what a room does on it, and what it sees."""

import json
import os
import signal
import statistics
import time
import urllib.error
import urllib.request

import pytest

from lab import folders
from tests.browsing import Page, Served, chromium

BACKSPACE, HOME, DELETE = "\ue003", "\ue011", "\ue017"
STAGES = folders.stages()


@pytest.fixture(scope="module")
def served():
    running = Served(0)
    yield running
    if running.process.poll() is None:
        running.process.send_signal(signal.SIGINT)
        running.process.wait(20)
    running.process.stdout.close()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory) as one:
        yield one


@pytest.fixture(scope="module")
def opened(driver, served):
    return Page(driver, served.url)


@pytest.fixture
def page(opened):
    opened.size(1280, 720)
    return opened


def keep(page, name):
    """A picture of the page under out/; what sticks out or lies on something else."""
    folders.OUT.mkdir(exist_ok=True)
    page.driver.save_screenshot(str(folders.OUT / f"page-{name}.png"))
    return page.driver.execute_script("""
        const boxes = [...document.querySelectorAll(
            "header > *, .replica > *, .buttons > *, main > section, nav > *")]
            .filter((e) => e.offsetParent && getComputedStyle(e).position === "static")
            .map((e) => [e, e.getBoundingClientRect()]);
        const bad = [];
        if (document.documentElement.scrollWidth > innerWidth) bad.push("wider than the screen");
        for (const [a, r] of boxes) for (const [b, q] of boxes) {
            const over = Math.min(r.right, q.right) - Math.max(r.left, q.left) > 1
                && Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top) > 1;
            if (a !== b && over && !a.contains(b) && !b.contains(a))
                bad.push(`${a.id || a.className} on ${b.id || b.className}`);
        }
        return bad;""")


def test_three_replicas_that_overlap_pay_three_times_in_00(page):
    page.stage(0, 3)
    page.press("a", "b", "c")
    assert {page.state(letter) for letter in "ABC"} == {"held"}
    assert page.text("#replica-A .here").lstrip("▶0123456789").strip() == (
        "winners = podium(db, week_key(now))")
    page.press("a", ",", "b", ",", "c", ",")
    assert page.verdict == (False, "M")
    assert "not committed" in page.text("#replica-A .open") and "+3 notifications" in page.text(
        "#replica-A .open")
    page.press("a", "b")
    assert page.verdict == (True, "D2"), "a second payment cannot be taken back"
    page.press("c")
    assert page.verdict == (True, "D3")
    assert "3× instead of 1×" in page.text("#verdict")
    assert "+30" in page.text("#phone") and len(page.find("#phone li")) == 3
    assert page.find("#schedule")[0].get_property("value") == (
        "A A..commit B B..commit C C..commit A B C")
    assert keep(page, "00-triple-1280x720") == []


def test_in_01_the_tick_that_comes_a_minute_later_walks_past_the_lock(page):
    page.stage(1, 3)
    page.press("a", ".", "t", "b", ".")
    assert page.bars("no-row") == []
    assert page.verdict == (True, "D2")
    assert "Fri 18:01" in page.text("#clock")


def test_in_03_the_second_claim_waits_and_is_refused(page):
    page.stage(3, 2)
    page.choose("#replica-B .program", "admin")
    page.driver.execute_script("document.activeElement.blur()")
    page.press("a", ",", "b", ".")
    assert page.state("B") == "waiting"
    assert "waits for A" in page.text("#replica-B .state")
    assert "B waits for it" in page.text("#replica-A .relations")
    assert "ON CONFLICT" in page.text("#replica-B .code")
    assert "A INSERT × 1 — not committed" in page.text("#tables")
    page.driver.find_element("id", "projector").click()
    assert keep(page, "03-waits-projector") == []
    page.driver.find_element("id", "projector").click()
    page.press("a")
    assert page.bars("no-row") == ["INSERT worker_runs → no row"]
    assert page.verdict == (False, "1"), "B could still do harm"
    page.press("b")
    assert page.verdict == (True, "1")


def test_the_room_counts_what_it_has_tried_of_all_schedules(page):
    def counted(what="count"):
        return int(page.find("#tried")[0].get_attribute(f"data-{what}"))

    page.stage(0, 2)
    page.stage(3, 2)
    before = counted()
    for schedule in ("A.. B..", "B.. A..", "A.. B.."):
        play(page, schedule)
    assert counted() == before + 2
    assert counted("total") > counted()
    assert "; 0 broke it" in page.text("#tried")
    page.stage(0, 2)
    page.stage(3, 2)
    assert counted() >= 2, "it is kept when the room has looked at another stage"


def play(page, schedule):
    box = page.find("#schedule")[0]
    box.clear()
    page.change(lambda: box.send_keys(schedule + "\n"))


def test_a_kill_before_the_commit_takes_everything_with_it(page):
    page.stage(0, 1)
    page.press("a", ",")
    assert page.find("#tables .pending")
    page.press(DELETE)
    assert page.state("A") == "dead" and not page.find("#tables .pending")
    assert page.verdict == (True, "M")
    assert "killed" in page.text("#timeline")


@pytest.mark.skipif(6 not in STAGES, reason="there is no stage 06")
def test_in_06_a_process_killed_after_its_commit_never_tells(page):
    page.stage(6, 1)
    page.choose("#replica-A .program", "after_commit")
    page.driver.execute_script("document.activeElement.blur()")
    page.press("a")
    while "POST" not in page.text("#replica-A .next"):
        page.press("a")
    page.press(DELETE)
    assert page.verdict == (True, "lost")


def test_undo_brings_back_exactly_what_was_there(page):
    def seen():
        return [page.text(part) for part in ("#replica-A", "#replica-B", "#tables", "#timeline",
                                             "#verdict", "#phone")]

    page.stage(0, 2)
    page.press("a", "a", "b")
    before = seen()
    page.press("a", BACKSPACE)
    assert seen() == before
    page.press(DELETE, BACKSPACE)
    assert seen() == before


def test_a_move_that_cannot_be_made_is_said_and_changes_nothing(page):
    page.stage(0, 2)
    page.press("a")
    play(page, "A..nowhere")
    assert "never came to “nowhere”" in page.text("#problem")
    assert page.state("A") == "held"
    page.press("b")
    assert not page.find("#problem")[0].is_displayed()


def test_show_me_a_failing_one_plays_it(page):
    page.stage(1, 2)
    page.click("#failing")
    assert page.verdict == (True, "D2")
    assert page.find("#schedule")[0].get_attribute("value") in page.text("#note")


def test_what_is_copied_names_who_runs_what(page):
    page.stage(7, 2)
    page.choose("#scenario", "B3")
    page.find("#copy")[0].click()  # what it says it says once the clipboard has answered
    page.until(lambda: 'make replay-7 ROLES="R=revoke" SCHEDULE="' in page.text("#note"))
    page.choose("#scenario", "B7")
    page.find("#copy")[0].click()
    page.until(lambda: 'ISOLATION="repeatable read" SCHEDULE="' in page.text("#note"))


def test_in_07_the_lost_increment_is_seen_in_numbers(page):
    page.stage(7, 2)
    page.choose("#scenario", "B1")
    assert page.verdict == (True, "lost")
    assert "uses counted lost: 1 instead of 2" in page.text("#verdict")
    assert page.bars() == ["SELECT api_key → use_count 0", "SELECT api_key → use_count 0",
                           "UPDATE api_key → use_count 1", "UPDATE api_key → use_count 1"]
    page.choose("#scenario", "B6")
    assert page.bars("no-row") == ["UPDATE user_billing → no row"]


def test_the_isolation_level_is_seen_and_stays_until_it_is_changed(page):
    def level():
        return page.find("#isolation")[0].get_property("value")

    page.stage(7, 2)
    assert level() == "read committed"
    page.choose("#scenario", "B7")
    page.driver.execute_script("document.activeElement.blur()")
    page.press(HOME)
    assert level() == "repeatable read"
    page.choose("#isolation", "read committed")
    play(page, "A..update B.. A..")
    assert page.verdict == (True, "lost")


def test_a_key_does_what_its_button_says_whatever_the_replica_is_doing(page):
    page.stage(0, 2)
    page.press("a", ".")
    assert page.state("A") == "finished"
    page.press("a")
    assert page.state("A") == "held", "another run"
    page.press("*")
    assert page.state("A") == "frozen"
    page.press("a")
    assert page.state("A") == "held", "thawed"
    page.press(DELETE, "a")
    assert page.state("A") == "idle", "a new process"


def test_orders_given_faster_than_they_are_carried_out_are_carried_out_in_turn(page):
    page.stage(0, 2)
    before = page.version
    page.driver.execute_script("""
        const step = document.querySelector("#replica-A .step");
        for (let times = 0; times < 3; times++) step.click();""")
    page.until(lambda: page.version >= before + 3)
    assert page.find("#schedule")[0].get_property("value") == "A A", "awake, then two steps"
    assert not page.find("#problem")[0].is_displayed()


def test_a_long_run_fits_on_one_screen(page):
    page.stage(0, 3)
    play(page, "A B C A..commit B..commit C..commit A.. B.. C..")
    height = page.driver.execute_script("return document.documentElement.scrollHeight")
    assert height <= 720
    last = page.find("#timeline .mark")[-1].rect
    frame = page.find("#timeline")[0].rect
    assert frame["y"] < last["y"] and last["y"] + last["height"] < frame["y"] + frame["height"]


def test_the_steps_of_four_replicas_fit_under_a_phone_in_spanish(page):
    page.stage(0, 4)
    page.driver.find_element("id", "language").click()
    page.size(390, 844)
    try:
        assert page.driver.execute_script("""
            return [...document.querySelectorAll("#bar button")].filter((e) =>
                e.getBoundingClientRect().right > innerWidth || e.scrollWidth > e.clientWidth + 2)
                .map((e) => e.textContent)""") == []
    finally:
        page.driver.find_element("id", "language").click()


def test_two_browsers_see_the_same(page):
    page.stage(0, 2)
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.load()
    assert page.state("A") == "idle"
    page.press("a")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.until(lambda: page.state("A") == "held")


def test_after_a_lost_connection_and_after_a_reload_it_is_where_it_was(page, served):
    page.stage(0, 2)
    page.press("a", "a", "b")
    bars = page.bars()
    os.kill(served.process.pid, signal.SIGSTOP)
    page.driver.execute_script("window.stop()")  # breaks the connection on the browser's side
    page.driver.execute_script("dispatchEvent(new Event('offline'))")
    page.until(lambda: page.find("#lost")[0].is_displayed())
    assert "lost" in page.text("#lost")
    os.kill(served.process.pid, signal.SIGCONT)
    page.until(lambda: not page.find("#lost")[0].is_displayed())
    assert page.bars() == bars
    page.load()
    assert page.bars() == bars
    page.press("b")
    assert len(page.bars()) == len(bars) + 1


def request(served, path="", **headers):
    sent = urllib.request.Request(served.url + path, headers=headers)
    if path == "order":
        sent.data = json.dumps({"order": "undo"}).encode()
    try:
        with urllib.request.urlopen(sent) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_other_origins_other_names_and_other_keys_are_refused(page, served):
    own = f"http://127.0.0.1:{served.port}"
    page.stage(0, 2)
    page.press("a")
    version = page.version
    assert request(served, "stages") == 200
    assert request(served, "order", Origin="http://example.com") == 403
    assert request(served, "order", Origin="null") == 403
    assert request(served, "order", Origin=f"http://127.0.0.1:{served.port + 1}") == 403
    assert request(served, "order", **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert request(served, "stages", Host=f"evil.example:{served.port}") == 403
    key = served.url.split("/")[3]
    assert request(type("Other", (), {"url": served.url.replace(key, "guess")}), "stages") == 403
    assert page.version == version
    assert request(served, "order", Origin=own) == 204


def test_no_request_leaves_the_machine(page):
    urls = page.driver.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert urls and all(url.startswith(page.url) for url in urls)


def test_everything_is_reached_by_key_and_named_for_a_screen_reader(page):
    page.stage(0, 3)
    assert page.driver.execute_script("""
        return [...document.querySelectorAll("button, select, input, section, nav")]
            .filter((e) => e.offsetParent && !e.ariaLabel && !e.labels?.length)
            .filter((e) => !e.textContent.trim()).map((e) => e.outerHTML)""") == []
    for tag in ("header", "main", "nav", "[role=status]", "[aria-live]", "h1"):
        assert page.find(tag), tag
    page.press("a")
    assert "A" in page.text("#said")
    focused = page.find("#replica-B .step")[0]
    page.change(lambda: focused.send_keys("\ue007"))
    assert page.driver.switch_to.active_element == focused, "the focus stays where it was"


SAID = {  # a schedule that cannot be played: what the page says of it in Spanish
    "A.. A": "A no puede dar un paso: está terminada. Ninguna réplica puede dar un paso ahora.",
    "A A.kill A": "A no puede dar un paso: está muerta.",
    "A..nowhere": "A nunca llegó a “nowhere”: su corrida terminó. Sus sentencias fueron: ",
    "@25:99 A": "“@25:99” no es una hora. Escribe @18:01 o @2026-05-30T18:00.",
    "A?": "“A?” no es un movimiento de una secuencia. Escribe A, A*3, ",
    "+rain A": "No hay condición “rain”. Las que hay: ",
    "D E F G": "“ABCDEFG” no son las letras de una a 6 réplicas. Llámalas A, B, C, …",
}


def test_what_cannot_be_done_is_said_in_spanish_as_well(page):
    page.stage(0, 3)
    page.driver.find_element("id", "language").click()
    try:
        for schedule, said in SAID.items():
            play(page, schedule)
            assert page.text("#problem").startswith(said), schedule
        assert "tres ciclos se traslapan" in page.text("#scenario")
    finally:
        page.driver.find_element("id", "language").click()


def test_it_speaks_spanish_and_fits_on_a_phone(page):
    page.stage(0, 3)
    page.driver.find_element("id", "language").click()
    page.size(390, 844)
    page.press("a", ".", "b", ".")
    assert "2 veces en vez de 1" in page.text("#verdict")
    assert page.driver.execute_script("return document.documentElement.lang") == "es"
    assert keep(page, "00-phone-390x844") == []
    page.driver.find_element("id", "language").click()


def test_a_step_and_its_result_are_timed(page, capsys):
    page.stage(0, 3)
    page.press("a", "b", "c")
    took = []
    for letter in "abcabcabc":
        took.append(page.driver.execute_async_script("""
            const [key, done] = arguments, body = document.body, began = performance.now();
            new MutationObserver((_, watch) => { watch.disconnect();
                requestAnimationFrame(() => done(performance.now() - began)); })
                .observe(body, { attributeFilter: ["data-version"] });
            document.querySelector(`#replica-${key.toUpperCase()} .step`).click();""", letter))
    with capsys.disabled():
        print(f"\na step and its result on the page: median {statistics.median(took):.0f} ms, "
              f"worst {max(took):.0f} ms (to aim at: 100 ms on an idle machine)")


def test_when_the_last_page_is_closed_the_processes_and_the_database_go(page, served, server):
    from lab.engine import target

    def databases():
        with target.connect(target.parse(server.url)) as conn:
            return {name for name, in conn.execute("SELECT datname FROM pg_database")}

    before = databases()
    page.stage(0, 2)
    page.press("a", "a")
    bars = page.bars()
    assert served.replicas()
    page.driver.get("about:blank")

    def left():
        return served.replicas() or [n for n in databases() - before if n.startswith("lab_00")]

    deadline = time.monotonic() + 30
    while left() and time.monotonic() < deadline:
        page.driver.execute_async_script("setTimeout(arguments[0], 100)")
    assert left() == []
    page.load()
    assert page.bars() == bars, "who comes back finds the run where it was"


def test_ctrl_c_cleans_up(page, served):
    page.load()
    page.stage(0, 2)
    children = served.replicas()
    assert children
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait(20) == 130
    assert not any(child.is_running() for child in children)
