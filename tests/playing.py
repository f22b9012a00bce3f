"""Short names for what the stages' tests do: play a scenario or a schedule, count interleavings."""

from lab.engine.history import History
from lab.engine.schedule import Schedule
from lab.judge.scenarios import Outcome, Scenario, Theatre, scenarios
from lab.show.counting import LETTERS


def play(scene: Theatre, name: str) -> Outcome:
    """Run one of the scenarios on the stage's own code."""
    return scene.play(scenarios(scene.stage)[name])


def run(scene: Theatre, schedule: str, **fields) -> Outcome:
    """Run a schedule; `fields` are those of a Scenario: everyone, roles, isolation, error."""
    return scene.play(Scenario("test", "test", Schedule.parse(schedule), **fields))


def counts(scene: Theatre, entry: dict):
    """Explore as an [[explore]] entry of stage.toml says."""
    said = ("replicas", "breaks", "name")
    options = {key: value for key, value in entry.items() if key not in said}
    return scene.explore(LETTERS[:entry["replicas"]], **options)


def promised(result, breaks: str, bounded: bool = False) -> bool:
    """Whether all schedules, or those that the time was enough for, came out as promised."""
    kept = {"all": result.breaking == result.total, "none": result.breaking == 0,
            "some": result.breaking > 0}
    return (result.complete or bounded) and not result.unknown and result.total > 0 and kept[breaks]


def ids(entry: dict) -> str:
    """An [[explore]] entry as the id of a test."""
    parts = [entry.get("everyone", ""), *entry.get("roles", {}).values(),
             *entry.get("standing", ())]
    return "-".join([str(entry["replicas"]), *filter(None, parts)])


def outcomes(history: History, label: str) -> list[tuple[str, str, bool | str | None]]:
    """(replica, outcome, truth value or tag) of each statement with this label."""
    return [(e.replica, e.outcome.split(" ")[0], _got(e.detail)) for e in history
            if e.label == label]


def _got(detail: dict) -> bool | str | None:
    value = detail.get("value")
    return value if isinstance(value, bool) else detail.get("tag")
