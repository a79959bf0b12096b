"""From a dump to steps that are carried out: what it takes, and what it gives; writes journey.md.

    python benchmarks/kubernetes/journey.py [--fleets 5]

The clusters, the machines to buy and the rules of Karpenter and the descheduler are those of
fleets.py. The steps are checked by `placeopt verify` and replayed by the scheduler of the tests
(tests/support), which shares nothing with the package; how scripts run is script.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tests" / "support")]
import stamps  # noqa: E402
from fleets import FLEETS, THRESHOLDS, best, imported  # noqa: E402
from machine import facts, table  # noqa: E402
from scheduler_filters import replay  # noqa: E402

from placeopt.rolling_update.fleet_change import HOURS_OF_A_MONTH  # noqa: E402


@dataclass(frozen=True)
class Step:
    """A command of a journey: what a person types, which files it needs, what they decide."""

    command: str
    needs: tuple[str, ...] = ()
    decision: str = ""


TABLES = ("cluster.json", "prices.json", "candidates.csv")
MONEY = "--prices prices.json --candidates candidates.csv --architectures any"
DUMP = Step("kubectl get nodes,pods,... -A -o json > cluster.json")
RUN = Step("CONTEXT=prod out/steps.sh", ("out/steps.sh",), "is this plan to be carried out?")
#: With `consolidate`.
SHORT = (
    DUMP,
    Step(f"placeopt consolidate cluster.json {MONEY} -o out", TABLES),
    Step("placeopt verify out/steps.json --cluster cluster.json", ("out/steps.json",)),
    RUN,
)
#: With a command for each stage, which researchers and those with further goals need.
LONG = (
    DUMP,
    Step(f"placeopt import kubernetes cluster.json --to rolling-update {MONEY} -o x.json", TABLES),
    Step("placeopt solve x.json --method repack -o front.json", ("x.json",)),
    Step(
        "placeopt pick front.json --budget disruptions=0",
        ("front.json",),
        "which point of the front?",
    ),
    Step(
        "placeopt export kubernetes front.json --instance x.json --point 0 -o steps.sh",
        ("front.json", "x.json", "x.origin.json"),
    ),
    Step(
        "placeopt export kubernetes front.json --instance x.json --point 0 --format json "
        "-o steps.json",
        ("front.json", "x.json", "x.origin.json"),
    ),
    Step("placeopt verify steps.json --cluster cluster.json", ("steps.json",)),
    Step(
        "placeopt report front.json --instance x.json --point 0 -o report.html",
        ("front.json", "x.json", "x.origin.json"),
    ),
    Step("CONTEXT=prod ./steps.sh", ("steps.sh",), "is this plan to be carried out?"),
)
#: Limit of the other schemes, which is never met: what they answer does not depend on the load.
SECONDS = 3600
COMMAND = [sys.executable, "-m", "placeopt"]
ANSWERS = (
    "fleet",
    "USD a month now",
    "`consolidate`: after",
    "pods stopped",
    "copies",
    "nodes deleted, bought",
    "Karpenter: after",
    "evictions",
    "descheduler: after",
    "evictions",
    "nodes that stay, with a reason",
    "steps, refused by `verify`, by the scheduler",
    "CPU s",
)


def ran(folder: Path, *arguments: str) -> tuple[int, str, float]:
    """Run placeopt in a folder; return exit code, output and CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, done.stdout + done.stderr, used


def with_bought(objects: list[dict[str, Any]], steps: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of a cluster with the nodes that steps count on, as these say them."""
    found = list(objects)
    for node in steps.get("buy", []):
        room = {"cpu": f"{node['cpu_millicores']}m", "memory": f"{node['memory_mib']}Mi"}
        room |= {"pods": "110"} | {k: str(v) for k, v in node.get("resources", {}).items()}
        taints = []
        for text in node.get("taints", []):
            pair, _, effect = text.rpartition(":")
            key, _, value = pair.partition("=")
            taints.append({"key": key, "value": value, "effect": effect})
        about = {"name": node["name"], "labels": node["labels"]}
        status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        made = {"kind": "Node", "metadata": about, "spec": {"taints": taints}, "status": status}
        found.append(made)
    return found


def monthly(price: float) -> str:
    return f"{price * HOURS_OF_A_MONTH:,.0f}"


def row(nodes: int, pods: int, seed: int) -> tuple[list[object], list[str], str]:
    """Return the row of a fleet, the files that are written, and the largest lift in words."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem = imported(folder, nodes, pods, seed)
        options = ["--prices", "prices.json", "--candidates", "candidates.csv"]
        options += ["--architectures", "any", "--format", "json", "-o", "out"]
        code, said, seconds = ran(folder, "consolidate", "cluster.json", *options)
        assert code == 0, said
        answer = json.loads((folder / "out" / "answer.json").read_text())
        steps = json.loads((folder / "out" / "steps.json").read_text())
        code, said, _ = ran(folder, "verify", "out/steps.json", "--cluster", "cluster.json")
        assert code in (0, 3), said
        refused = sum("would not be scheduled" in line for line in said.splitlines())
        objects = json.loads((folder / "cluster.json").read_text())["items"]
        wrong = replay(with_bought(objects, steps), steps)
        written = sorted(file.name for file in (folder / "out").iterdir())
    karpenter, _, _ = best(problem, "karpenter", SECONDS)
    others = [best(problem, "descheduler", SECONDS, threshold=t)[0] for t in THRESHOLDS]
    descheduler = min((p for p in others if p is not None), key=lambda p: p.values[0])
    stay = answer["nodes"]
    first = next((one for one in answer["lifts"] if one["saves"]), None)
    lift = "nothing" if first is None else f"{first['change']} ({first['saves']:,.0f} USD a month)"
    return (
        [
            f"{nodes} nodes, {answer['pods']} pods",
            f"{answer['cost_now']:,.0f}",
            f"{answer['cost_after']:,.0f}",
            answer["stops"],
            answer["starts"],
            f"{len(answer['gone'])}, {len(answer['bought'])}",
            "-" if karpenter is None else monthly(karpenter.values[0]),
            "-" if karpenter is None else f"{karpenter.values[2]:.0f}",
            monthly(descheduler.values[0]),
            f"{descheduler.values[2]:.0f}",
            f"{len(stay)}, {sum(bool(one['reasons']) for one in stay)}",
            f"{len(steps['steps'])}, {refused}, {len(wrong)}",
            f"{seconds:.0f}",
        ],
        written,
        lift,
    )


def journey(name: str, steps: tuple[Step, ...], written: int) -> list[object]:
    """Return the row of a journey: its commands, files and decisions."""
    read = {file for step in steps for file in step.needs}
    decisions = [step.decision for step in steps if step.decision]
    return [name, len(steps), len(read), written, f"{len(decisions)}: {' '.join(decisions)}"]


def page(about: str, rows: list[list[object]], lifts: list[str], written: list[str]) -> str:
    """Return the text of the page."""
    commands = [f"{k}. `{step.command}`" for k, step in enumerate(SHORT, 1)]
    lines = [
        "# From a dump to a plan that is carried out",
        "",
        f"{about} `python benchmarks/kubernetes/journey.py`.",
        "",
        *commands,
        "",
        f"`-o out` writes {', '.join(written)}. `report.html` is the page to approve. The third "
        "command may be left out: the script checks the cluster again before its first step.",
        "",
        *table(
            ("journey", "commands", "files that commands read", "files written", "decisions"),
            [
                journey("`placeopt consolidate`", SHORT, len(written) + 1),
                journey("a command for each stage", LONG, 7),
            ],
        ),
        "",
        "The first has no plan to choose: it is the cheapest one that stops no pod, and the answer "
        "says what a plan that stops pods would save besides, and which budgets it would break. "
        "Karpenter and the descheduler need no command once they are set up, and ask nobody: they "
        "evict.",
        "",
        "## What each answers",
        "",
        f"The {len(rows)} smallest fleets of [fleets.md](fleets.md), with machines to buy; all "
        "answer the same cluster. `karpenter` and `descheduler` follow the published rules "
        "(`placeopt/rolling_update/consolidators.py`); of the descheduler the best of "
        f"{len(THRESHOLDS)} thresholds counts. What it costs now includes nodes that host nothing "
        "any more; all three delete these. Evictions stop a pod before its new copy runs. The "
        "steps were not run on these clusters: `placeopt verify` asks the rules of kube-scheduler "
        "of each, and so does the scheduler of the tests, which shares nothing with the package. "
        "CPU seconds are those of the whole command `consolidate`, with all reasons and lifts.",
        "",
        *table(ANSWERS, rows),
        "",
        "What would save most if it were lifted alone, by the answer:",
        "",
        *lifts,
    ]
    return "\n".join(lines)


def main() -> None:
    """Walk through the fleets, the smallest first; write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=len(FLEETS))
    parser.add_argument("-o", "--output", type=Path, default=HERE / "journey.md")
    arguments = parser.parse_args()
    about, rows, lifts = facts("placeopt", "numba", "scipy"), [], []
    for fleet in FLEETS[: arguments.fleets]:
        found, written, lift = row(*fleet)
        rows.append(found)
        lifts.append(f"* {found[0]}: {lift}")
        text = page(about, rows, lifts, written)
        stamps.write(arguments.output, text, __file__, {"fleets": len(rows)})


if __name__ == "__main__":
    main()
