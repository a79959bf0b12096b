"""The openb trace of Alibaba: GPU nodes, pods with shares of GPUs, 149 days.

Its nodes have no prices. Those here are set by us, in the proportions of list prices on demand:
.035 USD an hour a core, .004 a GiB, and per GPU what `_GPUS` says. They are the same for all
policies.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from placeopt.backtest.readers.table import rows
from placeopt.backtest.trace import ClusterTrace, built

NODES, PODS = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"
_GPUS = {"T4": 0.35, "P100": 1.0, "V100M16": 1.6, "V100M32": 1.9, "A10": 0.7, "G2": 0.8, "G3": 2.2}


def read(folder: Path) -> ClusterTrace:
    """Read the folder that holds the two CSV files of openb's default trace."""
    nodes, pods = ([row for _, row in rows(folder / name)] for name in (NODES, PODS))
    shapes: Counter[tuple[str, ...]] = Counter()
    placed = []
    for node in nodes:
        shape = (node.get("model", ""), node["gpu"], node["cpu_milli"], node["memory_mib"])
        shapes[shape] += 1
        placed.append({"name": node["sn"], "machine": _name(shape)})
    last = max(int(pod["deletion_time"]) for pod in pods)
    return built(
        {
            "name": "openb",
            "seconds": last,
            "machines": [_machine(shape) for shape in sorted(shapes)],
            "nodes": placed,
            "pods": [_pod(pod) for pod in pods],
        },
        str(folder),
    )


def _name(shape: tuple[str, ...]) -> str:
    model, gpus, cpu, memory = shape
    return f"{model or 'cpu'}-{gpus}-{int(cpu) // 1000}-{int(memory) // 1024}"


def _machine(shape: tuple[str, ...]) -> dict[str, Any]:
    model, gpus, cpu, memory = shape
    price = 0.035 * int(cpu) / 1000 + 0.004 * int(memory) / 1024
    return {
        "name": _name(shape),
        "cpu_millicores": int(cpu),
        "memory_mib": int(memory),
        "gpus": int(gpus),
        "gpu_model": model or None,
        "usd_per_hour": round(price + int(gpus) * _GPUS.get(model, 0.0), 4),
    }


def _pod(pod: dict[str, str]) -> dict[str, Any]:
    gpus = int(pod.get("num_gpu", 0))
    return {
        "name": pod["name"],
        "cpu_millicores": int(pod["cpu_milli"]),
        "memory_mib": int(pod["memory_mib"]),
        "gpus": gpus,
        "gpu_share": int(pod["gpu_milli"]) if gpus else 1000,
        "gpu_models": [model for model in pod.get("gpu_spec", "").split("|") if model],
        "from_s": int(pod["creation_time"]),
        "to_s": int(pod["deletion_time"]),
    }


def reads(folder: Path) -> bool:
    """Whether a folder holds what this reads."""
    return (folder / NODES).is_file() and (folder / PODS).is_file()
