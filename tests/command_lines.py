"""Every command of the lab as it is run to be interrupted, misled or starved of room."""

import shutil
from importlib.util import find_spec

# A command: its arguments, and the moments that it has. `begun` is: Python itself has started. What
# has a comma in its name is another run of a command that is here already.
WORKS = ["begun", "database", "process", "transactions"]
RUNS = {
    "stage": (["stage", "0"], [*WORKS[:3], "lines"]),
    "stage, crash points": (["stage", "3"], [*WORKS[:3], "lines"]),
    "stage, pushes": (["stage", "6"], [*WORKS[:3], "lines"]),
    "stage, load": (["stage", "7"], [*WORKS[:3], "lines"]),
    "stage, dead ends": (["stage", "9"], [*WORKS[:3], "lines"]),
    "stage, peers": (["stage", "10"], [*WORKS[:3], "lines"]),
    "explore": (["explore", "7", "--all"], WORKS),
    "explore, own code": (["explore", "--worker", "docs/own-code/worker.py", "--call", "redeem",
                           "--schema", "docs/own-code/schema.sql", "--invariant",
                           "docs/own-code/invariant.py", "--replicas", "3"], WORKS),
    "replay": (["replay", "1", "A.. B.. C.."], WORKS[:3]),
    "play": (["play", "--no-browser"], ["begun", "line"]),  # the page's address
    "play, at random": (["play", "--soak", "600"], [*WORKS, "line"]),
    "check": (["check", "3", "claim"], WORKS[:3]),
    "check-all": (["check-all", "room", "--at-once", "2"], WORKS[:3]),
    "mutants": (["mutants"], [*WORKS[:3], "lines"]),
    "preflight": (["preflight"], [*WORKS[:3], "lines"]),
    "deliver": (["deliver", "5"], WORKS[:2]),
    "soak": (["soak"], WORKS),
    "run": (["run", "--times", "9", "00-the-bug/bug.py"], [*WORKS[:2], "lines"]),
    "ladder": (["ladder"], WORKS),
    "bench": (["bench"], WORKS[:3]),
    "notebooks": (["notebooks", "00-the-bug"], WORKS[:3]),
    "book": (["book"], ["begun", "process"]),
    "synth": (["synth"], ["begun", "process"]),
    "pictures": (["pictures"], WORKS[:3]),
    "doctor": (["doctor"], WORKS[:2]),
    "clean": (["clean"], WORKS[:1]),
}
NEITHER_PROCESS_NOR_DATABASE = {"exercise", "hint", "reset", "solution", "progress", "diff"}
# The largest n of a moment, 1 where there is none here.
MOST = {"process": 2, "transactions": 60, "lines": 5}
NEEDS = {"book": ("sphinx", "book"), "synth": ("aws_cdk", "cdk"),
         "notebooks": ("nbclient", "notebooks"), "play": ("starlette", "play"),
         "stage, peers": ("procrastinate", "peers")}


def lacking(name: str) -> str:
    """What a run of RUNS needs and is not installed here, and how to get it; or nothing."""
    module, extra = NEEDS.get(name, ("lab", ""))
    if not find_spec(module):
        return f"{module} is not installed: python3 tools/setup.py {extra}"
    if name == "synth" and not shutil.which("node"):
        return "Node is not installed"
    return ""
