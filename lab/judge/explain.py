"""What went wrong in a run, in words about this run: who looked before who had committed, say.

Everything said is read off the history. What would put it right is never said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import psycopg

from lab.engine.history import Event, History
from lab.errors import LabError
from lab.judge.runs import Run, answer, nothing, runs_of, wrote
from lab.judge.verdict import Effect, EffectSpec, Verdict

__all__ = ["explain", "in_words"]

NOTES = {
    "23505": "A rival is an ordinary thing here; to the program it came as a crash.",
    "40001": "Its snapshot is older than what the other one committed.",
    "42P01": "Its name is another one, or it was dropped; the tables have to stay.",
    "EOFError": "Nobody sits at the keyboard of a replica, so input() gets no answer.",
    "SystemExit": "sys.exit() ends the process: a command has failed then, a service is gone.",
    "OSError": "A replica may print or write 8 MB at most.",
    "MemoryError": "A replica may have 1 GB of memory at most.",
    "RecursionError": "The function calls itself without an end.",
}

ABORTED = "25P02"  # in_failed_sql_transaction
RACED = ("lost", "negative", "given away")  # outcomes of a number that two runs changed


def explain(history: History, verdict: Verdict, effects: Mapping[str, EffectSpec],
            wanted: Mapping[str, Any], code: str) -> str:
    """Why a run is not what it should be.

    Args:
        history: of the run.
        verdict: on it.
        effects: those of the stage.
        wanted: the case; its `says` has a sentence to be added for a code, or for any "else".
        code: the outcome.
    """
    runs = runs_of(history)
    wrong = [e for e in verdict.effects if e.outcome != "once"]
    effect = next((e for e in wrong if e.outcome == verdict.worst), wrong[0] if wrong else None)
    says, fails = wanted.get("says", {}), any(c[0] == "E" for c in wanted.get("wants", ["1"]))
    if not fails and (error := _error(runs)):
        said = error
    elif verdict.unknown and history.complete:
        said = "Rows are gone that the run did not make, so nothing is left to judge it by."
    elif verdict.unknown:
        said = "The run could not be judged, because not every replica came to its end."
    elif effect is None:
        said = f"Everything came out once: {_everybody(runs)}."
    elif effect.outcome == "duplicated":
        said = _twice(history, runs, effect, effects[effect.name])
    elif effect.outcome in RACED and len(_doers(runs, effects[effect.name])) > 1:
        said = _twice(history, _doers(runs, effects[effect.name]), effect, effects[effect.name])
    elif effect.outcome in ("missed", "lost") and not _doers(runs, effects[effect.name]):
        said = _missing(runs, effect, effects[effect.name])
    else:
        title = effects[effect.name].title
        said = (f"{title[0].upper()}{title[1:]}, {effect.subject}: {effect.outcome} "
                f"({effect.times} instead of {effect.expected}). {_everybody(runs)}.")
    added = says.get(code) or says.get("else", "")
    return f"{said} {added}".strip()


def in_words(error: LabError | psycopg.Error) -> str:
    """Why a case could not be run to its end."""
    if isinstance(error, psycopg.errors.UndefinedTable):
        return (f"A table is gone: {error.diag.message_primary}. Whatever your code does, the "
                "tables have to stay.")
    if isinstance(error, psycopg.Error):
        return f"The database could not be looked at afterwards: {str(error).splitlines()[0]}."
    return str(error)


def _error(runs: Sequence[Run]) -> str:
    for run in runs:
        end = run.events[-1]
        faults = any(e.kind in ("kill", "cut") or e.outcome in ("killed", "cut")
                     for e in run.events)
        if end.kind != "end" or not end.failed or faults:
            continue
        _, name, *words = end.outcome.split(" ")
        failures = [e for e in run.events if e.failed and e.kind != "end"]
        failed = next((e for e in failures if name in e.outcome), None)
        at = f", from its {_at(failed)}" if failed else ""
        line = f" at {end.detail['line']}" if end.detail.get("line") else ""
        message = " ".join(words).rstrip(".")
        why = _too_early(runs, run, failed) if failed else ""
        if name == ABORTED:
            why = (f"Its {_at(failures[0])} had failed before with {_code(failures[0])}, and until "
                   "ROLLBACK Postgres refuses all that follows.")
        return (f"{run.letter}'s run ended in an error{line}{at}: {name}"
                f"{', ' + message if message else ''}. {why or NOTES.get(name, '')}").strip()
    return ""


def _too_early(runs: Sequence[Run], run: Run, failed: Event) -> str:
    """That a run had looked at the table of its failed statement before a rival committed there."""
    table = failed.label.split()[-1]
    for rival in runs:
        for look in run.statements:
            if rival is not run and rival.commit and look.seq < rival.commit.seq and (
                    look.label == f"SELECT {table}") and any(
                    wrote(e) and e.label.split()[-1] == table for e in rival.statements):
                return (f"{_at(look, who=True)} came before {_at(rival.commit, who=True)}, so "
                        f"{run.letter} could not see {rival.letter}'s row, and went on.")
    return ""


def _doers(runs: Sequence[Run], spec: EffectSpec) -> list[Run]:
    """The runs that brought an effect about, kept or not."""
    return [run for run in runs if any(e.label == spec.witness and e.outcome == "ok"
                                       and not nothing(e) for e in run.statements)]


def _twice(history: History, runs: Sequence[Run], effect: Effect, spec: EffectSpec) -> str:
    seqs = set(effect.witnesses) or {
        e.seq for run in runs for e in run.statements if e.label == spec.witness}
    doers = [run for run in runs if seqs & {e.seq for e in run.events}]
    if len(doers) < 2:
        who = doers[0].letter if doers else "One run"
        return f"{who} alone did it {effect.times} times: {_moves(history, seqs)}."
    doers.sort(key=lambda run: run.commit.seq if run.commit else run.events[-1].seq)
    first, second = doers[0], doers[1]
    done = first.commit or next(e for e in first.events if e.seq in seqs)
    both = f"Both went on to {spec.witness}." if len(doers) == 2 else (
        f"{_and(run.letter for run in doers)} all went on to {spec.witness}.")
    if second.events[0].seq > done.seq:
        looked = _looked(second, seqs)
        return (f"{first.letter} had committed (move {done.move + 1}) before {second.letter} "
                f"began, and nothing that {second.letter} looked at stopped it{looked}. {both}")
    tables = {e.label.split()[-1] for e in first.statements if wrote(e) and e.seq < done.seq}
    for event in second.statements:
        if event.label.startswith("SELECT") and event.label.split()[-1] in tables and (
                event.seq < done.seq):
            table = event.label.split()[-1]
            return (f"{_at(event, who=True)} came before {_at(done, who=True)}, so {second.letter} "
                    f"could not see what {first.letter} had written to {table}. {both}")
    return (f"{second.letter} began before {_at(done, who=True)}, and none of its statements had "
            f"to wait for {first.letter} or found anything of it. {both}")


def _looked(run: Run, seqs: set[int]) -> str:
    before = []
    for event in run.statements:
        if event.seq in seqs:
            break
        before.append(f"{event.label}{answer(event)}")
    return f" ({', '.join(before[:2])})" if before else ""


def _missing(runs: Sequence[Run], effect: Effect, spec: EffectSpec) -> str:
    vain = next((e for run in runs for e in run.statements
                 if e.label == spec.witness and nothing(e)), None)
    kept = next((run.commit for run in runs if vain and run.letter == vain.replica), None)
    if vain and kept:
        return (f"{_at(vain, who=True)} wrote no row, nothing was raised, and "
                f"{_at(kept, who=True)} kept the rest: {spec.title} missing, for good.")
    undone = next((run for run in runs if run.undone), None)
    early = next((run for run in runs if run.commit and any(
        wrote(e) for e in run.statements if e.seq < run.commit.seq) and not any(
        e.label == spec.witness and e.seq < run.commit.seq for e in run.statements)), None)
    if early:
        first = next(e for e in early.statements if wrote(e))
        dead = {"kill": ", then it was killed", "cut": ", then it was cut off"}
        end = next((dead[e.kind] for e in early.events if e.kind in dead), "")
        return (f"{early.letter} committed its {first.label} (move {early.commit.move + 1}) "
                f"without {spec.witness}{end}. {_others(runs, early, early.commit)}").strip()
    if undone:
        return (f"{undone.letter}'s work was undone ({_how(undone.undone)}). "
                f"{_others(runs, undone, undone.undone)}").strip()
    if not runs:
        return "Nobody ran."
    return f"Nobody got as far as {spec.witness}: {_everybody(runs)}."


def _others(runs: Sequence[Run], one: Run, when: Event) -> str:
    """What became of the other runs, relative to an event of one."""
    said, tables = [], {e.label.split()[-1] for e in one.statements if wrote(e)}
    for run in runs:
        if run is not one:
            last = run.events[-1]
            time = "had already left" if last.seq < when.seq else "came, and left"
            said.append(f"{run.letter} {time} (move {last.move + 1}: {_last_look(run, tables)})")
    return (", ".join(said) + ".") if said else "Nobody came after it."


def _last_look(run: Run, tables: Collection[str] = ()) -> str:
    """What a run left after: it was refused, or it looked at one of these tables, or its last."""
    refused = next((e for e in run.statements if nothing(e)), None)
    looked = next((e for e in run.statements if e.label in {f"SELECT {t}" for t in tables}), None)
    event = refused or looked or (run.statements[-1] if run.statements else None)
    return f"{event.label}{answer(event)}" if event else "without a statement"


def _everybody(runs: Sequence[Run]) -> str:
    return "; ".join(f"{run.letter} {_fate(run)}" for run in runs)


def _fate(run: Run) -> str:
    kinds = {e.kind for e in run.events}
    worked = any(wrote(e) for e in run.statements)
    if "kill" in kinds or "cut" in kinds:
        how = "was killed" if "kill" in kinds else "was cut off"
        if not worked:
            return how
        return f"{how}, its work committed" if run.commit else f"{how} at work"
    if run.events[-1].failed:
        return "ended in an error"
    if worked:
        return "worked and committed" if run.commit else "worked and never committed"
    return f"left after {_last_look(run)}" if run.statements else "did nothing"


def _how(event: Event) -> str:
    what = {"kill": "killed", "cut": "its connection was cut", "rollback": "ROLLBACK"}
    return f"{what.get(event.kind, event.label)}, move {event.move + 1}"


def _code(event: Event) -> str:
    return event.outcome.split(" ")[1]


def _at(event: Event, who: bool = False) -> str:
    got = f": {event.values}" if event.values else ""
    return (f"{event.replica + chr(39) + 's ' if who else ''}{event.label} "
            f"(move {event.move + 1}{got})")


def _moves(history: History, seqs: set[int]) -> str:
    return ", ".join(dict.fromkeys(_at(history[seq]) for seq in sorted(seqs)))


def _and(letters: Iterable[str]) -> str:
    *first, last = letters
    return f"{', '.join(first)} and {last}"
