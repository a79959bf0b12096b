"""The openb trace of Alibaba as CSV files: GPU nodes, pods with shares of GPUs, 149 days.

    python benchmarks/backtest/openb_trace.py openb trace   # a folder that `placeopt import` reads

Its nodes have no prices. Those here are set by us, in the proportions of list prices on demand:
.035 USD an hour a core, .004 a GiB, and per GPU what `_GPUS` says. They are the same for all
policies. Benchmarks find openb in the folder that ``PLACEOPT_DATA`` names.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from placeopt.backtest import readers
from placeopt.backtest.trace import ClusterTrace

NODES, PODS = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"
_GPUS = {"T4": 0.35, "P100": 1.0, "V100M16": 1.6, "V100M32": 1.9, "A10": 0.7, "G2": 0.8, "G3": 2.2}
Row = Mapping[str, object]
#: Machines are sorted by these, as text: of equal ones the first is bought.
_ORDER = ("gpu_model", "gpus", "cpu_millicores", "memory_mib")


def write(openb: Path, folder: Path) -> None:
    """Write machines.csv, nodes.csv and pods.csv of openb's two files."""
    nodes = [(row["sn"], _machine(row)) for row in _rows(openb / NODES)]
    machines = {str(machine["name"]): machine for _, machine in nodes}
    order = sorted(machines.values(), key=lambda m: [str(m[key]) for key in _ORDER])
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "machines.csv", order)
    _write(folder / "nodes.csv", [{"name": n, "machine": m["name"]} for n, m in nodes])
    _write(folder / "pods.csv", map(_pod, _rows(openb / PODS)))


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _write(path: Path, rows: Iterable[Row]) -> None:
    some = list(rows)
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, some[0])
        writer.writeheader()
        writer.writerows(some)


def _machine(node: Mapping[str, str]) -> Row:
    model = node.get("model", "")
    gpus, cpu, memory = (int(node[key]) for key in ("gpu", "cpu_milli", "memory_mib"))
    price = 0.035 * cpu / 1000 + 0.004 * memory / 1024
    return {
        "name": f"{model or 'cpu'}-{gpus}-{cpu // 1000}-{memory // 1024}",
        "cpu_millicores": cpu,
        "memory_mib": memory,
        "gpus": gpus,
        "gpu_model": model,
        "usd_per_hour": round(price + gpus * _GPUS.get(model, 0.0), 4),
    }


def _pod(pod: Mapping[str, str]) -> Row:
    gpus = int(pod.get("num_gpu") or 0)
    return {
        "name": pod["name"],
        "cpu_millicores": pod["cpu_milli"],
        "memory_mib": pod["memory_mib"],
        "gpus": gpus,
        "gpu_share": (pod.get("gpu_milli") or 1000) if gpus else 1000,
        "gpu_models": "|".join(filter(None, (pod.get("gpu_spec") or "").split("|"))),
        "from_s": pod["creation_time"],
        "to_s": pod["deletion_time"],
    }


def trace() -> ClusterTrace:
    """Return the whole trace."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(os.environ["PLACEOPT_DATA"]) / "openb", Path(folder) / "openb")
        return readers.read(Path(folder) / "openb")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
