"""When a cron expression of EventBridge Scheduler fires, in its own time zone.

cron(minutes hours day-of-month month day-of-week year), as its user guide has it in "Schedule types
on EventBridge Scheduler": `*`, `?`, lists, ranges, steps, names, L and #. What else there is (W,
rate, at) is refused, not guessed. A time that daylight saving skips is skipped; one that comes
twice counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lab.errors import LabError

__all__ = ["Cron"]

MONTHS = {name: n for n, name in enumerate(
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"], 1)}
DAYS = {name: n for n, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"], 1)}
LAST_OR_ANY = {"L": "L", "?": None}
_DAY_OF_WEEK = re.compile(r"(?P<day>\w+?)(?:(?P<last>L)|#(?P<nth>[1-5]))$")
FORM = ("Write it as cron(0 18 ? * FRI *): minutes, hours, day of month, month, day of week, year, "
        "with ? for one of the two days.")


@dataclass(frozen=True)
class Cron:
    """A cron expression and the zone that it is read in. Use `parse` to get one.

    Args:
        text: the expression.
        zone: of its hours.
        minutes, hours, months, years: those that match.
        month_days: the days of the month that match, or "L" for its last, or None for `?`.
        week_days: the days of the week that match, 1 for Sunday; or None for `?`.
        nth: only that one in the month of the day of the week: 1 to 5, or -1 for the last.
    """

    text: str
    zone: ZoneInfo
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    years: frozenset[int]
    month_days: frozenset[int] | str | None
    week_days: frozenset[int] | None
    nth: int | None = None

    @classmethod
    def parse(cls, text: str, zone: str = "UTC") -> Cron:
        """Read an expression.

        Args:
            text: such as "cron(0 18 ? * FRI *)".
            zone: name of a time zone, such as "America/Mexico_City".

        Raises:
            LabError: there is no such zone, or the expression is none, or is one that this does not
                know.
        """
        try:
            found = re.fullmatch(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)", text.strip())
            if not found:
                raise ValueError("it has not the form cron(six fields)")
            minutes, hours, month_day, month, week_day, year = found.groups()
            if (month_day == "?") == (week_day == "?"):
                raise ValueError("exactly one of the two days has to be ?")
            nth = _DAY_OF_WEEK.match(week_day) if week_day not in DAYS else None
            return cls(
                text, ZoneInfo(zone), _values(minutes, 0, 59), _values(hours, 0, 23),
                _values(month, 1, 12, MONTHS), _values(year, 1970, 2199),
                LAST_OR_ANY[month_day] if month_day in LAST_OR_ANY else _values(month_day, 1, 31),
                None if week_day == "?" else _values(nth["day"] if nth else week_day, 1, 7, DAYS),
                None if not nth else -1 if nth["last"] else int(nth["nth"]))
        except ValueError as error:
            raise LabError(f"The schedule {text} cannot be read: {error}.", FORM) from None
        except ZoneInfoNotFoundError:
            raise LabError(f"There is no time zone {zone!r}.",
                           "Use a name such as America/Mexico_City.") from None

    def firings(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """The times at which it fires, in its zone and in order.

        Args:
            since: the first time that counts (aware).
            until: the first that does not count any more (aware).
        """
        day = since.astimezone(self.zone).date()
        while day <= until.astimezone(self.zone).date():
            for hour in sorted(self.hours) if self._on(day) else ():
                for minute in sorted(self.minutes):
                    at = datetime.combine(day, time(hour, minute), self.zone)
                    back = at.astimezone(UTC).astimezone(self.zone)  # another time if it is skipped
                    if since <= at < until and back.replace(tzinfo=None) == at.replace(tzinfo=None):
                        yield at
            day += timedelta(days=1)

    def _on(self, day: date) -> bool:
        if day.year not in self.years or day.month not in self.months:
            return False
        last = (day + timedelta(days=1)).month != day.month
        if self.month_days is not None:
            return last if self.month_days == "L" else day.day in self.month_days
        if day.isoweekday() % 7 + 1 not in self.week_days:
            return False
        if self.nth == -1:
            return (day + timedelta(days=7)).month != day.month
        return self.nth in (None, (day.day + 6) // 7)


def _values(text: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int]:
    """The numbers that a field stands for."""
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        start = low if span == "*" else _number(first, names or {})
        end = _number(last, names or {}) if dash else high if span == "*" or step else start
        if not low <= start <= end <= high:
            raise ValueError(f"{part} is not within {low}-{high}")
        if step == "0":
            raise ValueError("a step of 0 goes nowhere")
        found.update(range(start, end + 1, _number(step, {}) if step else 1))
    return frozenset(found)


def _number(text: str, names: dict[str, int]) -> int:
    if text.upper() in names:
        return names[text.upper()]
    if not text.isdecimal():
        raise ValueError(f"{text or 'nothing'} is no number here")
    return int(text)
