"""The wall clock: real, a process's own, or shared and set while processes sleep."""

import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.errors import LabError
from lab.world import clock
from lab.world.clock import MX, Reading, SharedClock

INCIDENT = datetime(2026, 5, 29, 18, tzinfo=MX)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    monkeypatch.delenv("LAB_CLOCK", raising=False)
    monkeypatch.delenv("LAB_START", raising=False)


@pytest.fixture
def shared(tmp_path, monkeypatch) -> SharedClock:
    """A clock stopped at the incident, which this process reads."""
    made = SharedClock(tmp_path / "a clock")
    made.set(INCIDENT, 0)
    monkeypatch.setenv("LAB_CLOCK", f"file:{made.path}")
    return made


def in_background(action) -> tuple[threading.Thread, list]:
    """A thread that runs `action`, and the list that its result will be in."""
    results: list = []
    thread = threading.Thread(target=lambda: results.append(action()), daemon=True)
    thread.start()
    return thread, results


def test_without_a_setting_it_is_real_time_in_mexico_city():
    before = datetime.now(UTC)
    now = clock.now()
    assert before <= now <= datetime.now(UTC)
    assert now.tzinfo is MX


def test_a_set_clock_starts_there_when_the_process_starts():
    said = subprocess.run(
        [sys.executable, "-c", "from lab.world import clock; print(clock.now().isoformat())"],
        env=_child_environment(LAB_CLOCK="2026-05-29T18:00:00-06:00"),
        capture_output=True, text=True, check=True)
    assert INCIDENT <= datetime.fromisoformat(said.stdout.strip()) < INCIDENT + timedelta(minutes=1)


def test_a_compressed_clock_passes_its_seconds_faster(monkeypatch):
    monkeypatch.setenv("LAB_CLOCK", "2026-05-29T18:00:00-06:00*36000")
    began, first = time.monotonic(), clock.now()
    clock.sleep_until(first + timedelta(hours=1))
    assert clock.now() - first >= timedelta(hours=1)
    assert time.monotonic() - began < 30


def test_a_time_without_an_offset_is_mexico_citys(monkeypatch):
    monkeypatch.setenv("LAB_CLOCK", "2026-05-29T18:00*0")
    assert clock.now() == INCIDENT


def test_the_hour_that_comes_twice_is_counted_twice():
    """Mexico City left daylight saving on 2022-10-30 at 02:00; the zone data know, we do not."""
    half_past_one = datetime(2022, 10, 30, 1, 30, tzinfo=MX)
    reading = Reading(half_past_one, time.time() - 3600, 0.0)
    assert reading.seconds_until(half_past_one.replace(fold=1)) == float("inf")
    later = Reading(half_past_one, time.time() - 3600, 1.0).now().astimezone(MX)
    assert (later.hour, later.minute, later.fold) == (1, 30, 1)


def test_a_shared_clock_is_seen_by_a_sleeper_in_another_process(shared):
    child = subprocess.Popen(
        [sys.executable, "-c",
         "from lab.world import clock; print('asleep', flush=True);"
         f"clock.sleep_until(clock.datetime.fromisoformat('{INCIDENT + timedelta(days=1)}'));"
         "print(clock.now().isoformat())"],
        env=_child_environment(LAB_CLOCK=f"file:{shared.path}"), stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "asleep\n"
        shared.set(INCIDENT + timedelta(hours=23), 0)
        assert child.poll() is None
        shared.set(INCIDENT + timedelta(days=1), 0)
        woke, _ = child.communicate(timeout=30)
    assert datetime.fromisoformat(woke.strip()) == INCIDENT + timedelta(days=1)


def test_a_shared_clock_can_be_sped_up_in_the_middle_of_a_sleep(shared):
    shared.set(INCIDENT, 1)
    thread, _ = in_background(lambda: clock.sleep_until(INCIDENT + timedelta(hours=1)))
    shared.set(INCIDENT, 36000)
    thread.join(30)
    assert not thread.is_alive()
    assert clock.now() >= INCIDENT + timedelta(hours=1)


def test_a_skipped_sleep_moves_this_processs_clock_only_and_only_for_one_run(shared, monkeypatch):
    monkeypatch.setenv("LAB_SLEEP", "skip")
    clock.sleep_until(INCIDENT + timedelta(minutes=5))
    clock.sleep_until(INCIDENT + timedelta(minutes=2))
    assert clock.now() == INCIDENT + timedelta(minutes=5)
    assert shared.read().now() == INCIDENT
    shared.set(INCIDENT + timedelta(hours=1), 0)
    assert clock.now() == INCIDENT + timedelta(hours=1)
    shared.set(INCIDENT, 0)
    clock.forget_sleep()
    assert clock.now() == INCIDENT


def test_readers_never_see_half_a_line_while_the_clock_is_set(shared):
    stop = threading.Event()

    def look() -> int:
        looks = 0
        while not stop.is_set():
            assert shared.read().world >= INCIDENT
            looks += 1
        return looks

    thread, looks = in_background(look)
    for second in range(500):
        shared.set(INCIDENT + timedelta(seconds=second), 0)
    stop.set()
    thread.join(30)
    assert looks and looks[0] > 0


def test_nothing_wakes_up_before_the_shared_clock_runs(shared, monkeypatch):
    polled = threading.Event()

    def sleep(seconds: float) -> None:
        polled.set()
        time.sleep(seconds)

    monkeypatch.setattr(clock, "time", SimpleNamespace(time=time.time, sleep=sleep))
    thread, woke = in_background(lambda: next(clock.every()))
    assert polled.wait(30)
    assert not woke
    shared.set(INCIDENT + timedelta(minutes=7), 1)
    thread.join(30)
    assert woke[0] >= INCIDENT + timedelta(minutes=7)


def test_wake_ups_come_every_fifteen_minutes_from_the_first_however_late_one_is(
        shared, monkeypatch):
    monkeypatch.setenv("LAB_START", "2026-05-29T18:02:00-06:00")
    wake_ups = clock.every()
    for minute, late in ((2, 47), (17, 32), (32, 17), (47, 2)):
        due = INCIDENT + timedelta(minutes=minute)
        shared.set(due - timedelta(seconds=1), 0.001)
        thread, woke = in_background(lambda: next(wake_ups))
        assert not woke
        shared.set(due + timedelta(seconds=late), 0.001)
        thread.join(30)
        assert due <= woke[0] < due + timedelta(minutes=1)


def test_wake_ups_missed_by_a_jump_of_the_clock_are_not_made_up_for(shared):
    shared.set(INCIDENT, 1)
    wake_ups = clock.every()
    next(wake_ups)
    shared.set(INCIDENT + timedelta(hours=5), 1)
    assert next(wake_ups) >= INCIDENT + timedelta(hours=5)
    thread, woke = in_background(lambda: next(wake_ups))
    shared.set(INCIDENT + timedelta(hours=5, minutes=14), 0)
    assert not woke
    shared.set(INCIDENT + timedelta(hours=5, minutes=16), 1)
    thread.join(30)
    assert woke[0] >= INCIDENT + timedelta(hours=5, minutes=15)


@pytest.mark.parametrize("setting", ["noon", "2026-05-29T18:00*fast", "2026-05-29T18:00*-1",
                                     "2026-05-29T18:00*nan", "*120", "file:/no/such/clock"])
def test_a_setting_that_is_no_clock_is_refused_with_a_remedy(monkeypatch, setting):
    monkeypatch.setenv("LAB_CLOCK", setting)
    with pytest.raises(LabError) as refused:
        clock.now()
    assert refused.value.remedy.endswith(".")


@pytest.mark.parametrize("text", ["", "2026-05-29T18:00:00-06:00 1", "a b c"])
def test_a_file_that_holds_no_clock_is_refused(shared, text):
    shared.path.write_text(text)
    with pytest.raises(LabError, match="holds"):
        clock.now()


def test_a_shared_clock_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(LabError, match="cannot be set"):
        SharedClock(tmp_path / "missing" / "clock").set(INCIDENT, 0)


def test_a_bad_first_wake_up_is_refused(monkeypatch):
    monkeypatch.setenv("LAB_START", "later")
    with pytest.raises(LabError, match="LAB_START"):
        next(clock.every())


def _child_environment(**settings: str) -> dict[str, str]:
    root = str(Path(clock.__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root, **settings}
