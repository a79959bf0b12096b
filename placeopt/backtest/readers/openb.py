"""The openb trace of Alibaba: GPU nodes, pods with shares of GPUs, 149 days.

Its nodes have no prices. Those here are set by us, in the proportions of list prices on demand:
.035 USD an hour a core, .004 a GiB, and per GPU what `_GPUS` says. They are the same for all
policies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from placeopt.backtest.readers.table import number, rows
from placeopt.backtest.trace import ClusterTrace, Place, built
from placeopt.core.errors import DocumentError

NODES, PODS = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"
_GPUS = {"T4": 0.35, "P100": 1.0, "V100M16": 1.6, "V100M32": 1.9, "A10": 0.7, "G2": 0.8, "G3": 2.2}


def read(folder: Path) -> ClusterTrace:
    """Read the folder that holds the two CSV files of openb's default trace.

    Raises
    ------
    DocumentError
        One of them cannot be read; names the file and the line.
    """
    nodes, node_places = _read(folder / NODES, "sn", ("gpu", "cpu_milli", "memory_mib"))
    numbers = ("cpu_milli", "memory_mib", "creation_time", "deletion_time")
    pods, pod_places = _read(folder / PODS, "name", numbers)
    shapes = [
        (n.get("model", ""), *(n[k] for k in ("gpu", "cpu_milli", "memory_mib"))) for n in nodes
    ]
    placed = [
        {"name": node["sn"], "machine": _name(shape)}
        for node, shape in zip(nodes, shapes, strict=True)
    ]
    return built(
        {
            "name": "openb",
            "seconds": max((pod["deletion_time"] for pod in pods), default=1),
            "machines": [
                _machine(s) for s in sorted(set(shapes), key=lambda s: tuple(map(str, s)))
            ],
            "nodes": placed,
            "pods": [_pod(pod) for pod in pods],
        },
        str(folder),
        {"nodes": node_places, "pods": pod_places},
    )


def _read(
    path: Path, name: str, numbers: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[Place]]:
    """Return the rows of a file, and where they stand; GPUs of a pod may be absent."""
    results, places = [], []
    for line, row in rows(path):
        if name not in row:
            raise DocumentError(
                f"{name} is missing",
                file=str(path),
                path=f"line {line}",
                remedy="give openb's file as it is, with its head",
            )
        wanted = (*numbers, *(k for k in ("num_gpu", "gpu_milli") if k in row))
        whole = {key: int(number(row, key, path, line)) for key in wanted}
        results.append({**row, **whole})
        places.append((str(path), line))
    return results, places


def _name(shape: tuple[Any, ...]) -> str:
    model, gpus, cpu, memory = shape
    return f"{model or 'cpu'}-{gpus}-{cpu // 1000}-{memory // 1024}"


def _machine(shape: tuple[Any, ...]) -> dict[str, Any]:
    model, gpus, cpu, memory = shape
    price = 0.035 * cpu / 1000 + 0.004 * memory / 1024
    return {
        "name": _name(shape),
        "cpu_millicores": cpu,
        "memory_mib": memory,
        "gpus": gpus,
        "gpu_model": model or None,
        "usd_per_hour": round(price + gpus * _GPUS.get(model, 0.0), 4),
    }


def _pod(pod: dict[str, Any]) -> dict[str, Any]:
    gpus = pod.get("num_gpu", 0)
    return {
        "name": pod["name"],
        "cpu_millicores": pod["cpu_milli"],
        "memory_mib": pod["memory_mib"],
        "gpus": gpus,
        "gpu_share": pod.get("gpu_milli", 1000) if gpus else 1000,
        "gpu_models": [model for model in pod.get("gpu_spec", "").split("|") if model],
        "from_s": pod["creation_time"],
        "to_s": pod["deletion_time"],
    }


def reads(folder: Path) -> bool:
    """Whether a folder holds what this reads."""
    return (folder / NODES).is_file() and (folder / PODS).is_file()
