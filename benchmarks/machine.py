"""What every benchmark table says of itself: date, machine, versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path


def facts(*distributions: str) -> str:
    """Return one sentence: date, processor, cores, load, Python and library versions."""
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in distributions)
    load = f"{os.getloadavg()[0]:.1f}"
    machine = f"{cpu}, {os.cpu_count()} cores, load average {load} at the start"
    return f"{datetime.date.today()}; {machine}; Python {platform.python_version()}, {versions}."


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a markdown table."""
    head = list(header)
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(map(str, row)) + " |" for row in rows),
    ]
