"""What workloads shall ask for, and how long services take: the two tables that no cluster knows.

New requests come as manifests of the same workloads, as VerticalPodAutoscalers (their target per
container), or as CSV: the request of a whole pod, in the columns ``workload, cpu, memory`` and, if
wanted, ``namespace``.
"""

from __future__ import annotations

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files import AnyPath
from placeopt.kubernetes.edges import Key
from placeopt.kubernetes.manifests import load
from placeopt.kubernetes.notes import Notes
from placeopt.kubernetes.objects import amounts
from placeopt.kubernetes.reading import View
from placeopt.kubernetes.sizes import MissingRequests, PodSize, effective
from placeopt.kubernetes.tables import TableRow, decimal, read_rows


def new_sizes(path: AnyPath, policy: MissingRequests) -> dict[Key, PodSize]:
    """Return workload -> the size of its pods after the update.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    if str(path).lower().endswith(".csv"):
        return _from_csv(path)
    notes = Notes()
    cluster = load([path], notes)
    found = {
        (space, name): effective(w.spec, policy, notes, f"{space}/{name}")
        for (space, _, name), w in cluster.workloads.items()
    }
    for view in cluster.recommendations:
        space, name = (
            view["metadata"]["namespace"].name("default"),
            view["spec"]["targetRef"]["name"].name(),
        )
        found[space, name] = _recommended(view)
    if not found:
        remedy = "give manifests, VerticalPodAutoscalers or CSV"
        raise DocumentError(
            "neither workloads nor recommendations", file=str(path), path="line 1", remedy=remedy
        )
    return found


def _recommended(view: View) -> PodSize:
    containers = list(view["status"]["recommendation"]["containerRecommendations"].items())
    if not containers:
        raise view.fault(
            "a VerticalPodAutoscaler without a recommendation",
            "wait until it has one, or leave it out",
        )
    cpu = memory = 0
    for container in containers:
        one, other = amounts(container["target"])
        if one is None or other is None:
            raise container.fault(
                "a recommendation without cpu and memory", "give target.cpu and target.memory"
            )
        cpu, memory = cpu + one, memory + other
    return PodSize(cpu, memory)


def _from_csv(path: AnyPath) -> dict[Key, PodSize]:
    found = dict[Key, PodSize]()

    def use(row: TableRow) -> None:
        key = row.word("namespace", "default"), row.word("workload")
        if key in found:
            raise row.fault(f"{key[0]}/{key[1]} stands twice", "keep one of the two")
        found[key] = row.size()

    read_rows(path, ("workload", "cpu", "memory"), ("namespace",), use)
    return found


def execution_times(text: str) -> tuple[float, dict[tuple[str, str], float]]:
    """Return (ms of every service, (service, kind) -> ms).

    `text` is a number or the path of a CSV: ``service, kind, ms``; kind may be empty.

    Raises
    ------
    DocumentError, UsageError
        Neither a number nor a table.
    """
    number = decimal(text)
    if number is None:
        return 10.0, _times(text)
    if not 0 <= number <= 10**6:
        raise UsageError(
            f"--execution {text}; legal: ms from 0 to 1,000,000, or the path of a CSV file"
        )
    return float(number), {}


def _times(path: str) -> dict[tuple[str, str], float]:
    found = dict[tuple[str, str], float]()

    def use(row: TableRow) -> None:
        ms = row.number("ms", maximum="1e6")
        if ms is None:
            raise row.fault("ms is empty", "fill it in")
        found[row.word("service"), row.cells.get("kind", "")] = float(ms)

    read_rows(path, ("service", "ms"), ("kind",), use)
    return found
