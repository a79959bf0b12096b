"""From a dump to steps that are carried out: what it takes, and what it gives.

    python benchmarks/kubernetes/journey.py [--fleets 5]

The clusters, the machines to buy and the rules of Karpenter and the descheduler are those of
fleets.py. The steps are checked by `placeopt verify` and replayed by the scheduler of the tests
(tests/support), which shares nothing with the package; how scripts run is script.md.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from fleets import FLEETS, THRESHOLDS, best, imported
from harness import Benchmark, section, table
from scheduler_filters import replay

from placeopt.rolling_update.fleet_change import HOURS_OF_A_MONTH


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
JOURNEYS = "journey | commands | files that commands read | files written | decisions"
ANSWERS = (
    "fleet | USD a month now | `consolidate`: after | pods stopped | copies | nodes deleted, "
    "bought | Karpenter: after | evictions | descheduler: after | evictions | nodes that stay, "
    "with a reason | steps, refused by `verify`, by the scheduler | CPU s"
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


def walk(nodes: int, pods: int, seed: int) -> tuple[list[object], list[str], str]:
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


def main() -> None:
    """Walk through the fleets, the smallest first."""
    run = Benchmark(__file__, __doc__, "numba", "scipy", fleets=len(FLEETS))
    found = [run.cell(f"fleet {f}", lambda f=f: walk(*f)) for f in FLEETS[: run.fleets]]
    written = found[0][1]
    run.write(
        "From a dump to a plan that is carried out",
        [f"{k}. `{step.command}`" for k, step in enumerate(SHORT, 1)],
        f"`-o out` writes {', '.join(written)}. `report.html` is the page to approve. The third "
        "command may be left out: the script checks the cluster again before its first step.",
        table(
            JOURNEYS,
            [
                journey("`placeopt consolidate`", SHORT, len(written) + 1),
                journey("a command for each stage", LONG, 7),
            ],
        ),
        "The first has no plan to choose: it is the cheapest one that stops no pod, and the answer "
        "says what a plan that stops pods would save besides, and which budgets it would break. "
        "Karpenter and the descheduler need no command once they are set up, and ask nobody: they "
        "evict.",
        section(
            "What each answers",
            f"Fleets of [fleets.md](fleets.md) with machines to buy, {len(found)} of "
            f"{len(FLEETS)}; all answer the same cluster. `karpenter` and `descheduler` follow the "
            "published rules (`placeopt/rolling_update/consolidators.py`); of the descheduler the "
            f"best of {len(THRESHOLDS)} thresholds counts. What it costs now includes nodes that "
            "host nothing any more; all three delete these. Evictions stop a pod before its new "
            "copy runs. The steps were not run on these clusters: `placeopt verify` asks the rules "
            "of kube-scheduler of each, and so does the scheduler of the tests, which shares "
            "nothing with the package. CPU seconds are those of the whole command `consolidate`, "
            "with all reasons and lifts, and with kernels that are compiled where they are new.",
            table(ANSWERS, [row for row, _, _ in found]),
            "What would save most if it were lifted alone, by the answer:",
            [f"* {row[0]}: {lift}" for row, _, lift in found],
        ),
    )


if __name__ == "__main__":
    main()
