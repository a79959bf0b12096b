"""The first solve of an installation: what it compiles, and whether it finds what a later one does.

python benchmarks/cold/run.py [--rows FILE]

Three installations are compared, each from an empty cache: the commit before time limits left out
compiling, this checkout as the wheel without kernels has it, and with the kernels that a wheel
brings. First the CPU seconds of a short first solve. Then solves by ``auto`` with a limit of eight
seconds, beside three busy processes, each from an empty cache and once more from what that left.
Rows are kept in a file as they end; the same command measures only those that it lacks.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402
import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

PAGE = Path(__file__).with_name("results.md")
#: The last commit whose time limits counted compiling.
BEFORE = "4085a4c"
#: The sizes of each problem: a shipped instance, or one that is generated.
INSTANCES: dict[str, tuple[str | dict[str, Any], ...]] = {
    "temporal": ("toy", "aws-50"),
    "edge-cloud": ("corner-5", "basic-50"),
    "rolling-update": ("repack-10x5", {"applications": 10}),
    "multi-cluster": ("stream-4x100", {"requests": 400, "clusters": 8}),
    "rescheduling": ("chain-12", {"replicas": 6, "cloud_a": 6, "edge_a": 6, "edge_b": 6}),
}
LIMIT, BUSY, EVALUATIONS = 8.0, 3, 2000
#: What has to hold: the share of the warm hypervolume, and seconds that are not accounted for.
SHARE, UNTOLD = 0.97, 1.5
_SAID = re.compile(r"compiled (\d+) kernels in ([\d.]+) s")


class Installation:
    """A copy of the package, used by the command line in processes of its own."""

    def __init__(self, folder: Path, commit: str | None):
        self.folder = folder
        command = ["git", "-C", str(ROOT), "archive", commit or "HEAD", "placeopt", "instances"]
        packed = subprocess.run(command, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")

    def run(self, cache: Path, *arguments: str) -> tuple[float, float, str]:
        """Run a command; return seconds, CPU seconds and what it said."""
        environment = os.environ | {
            "PYTHONPATH": str(self.folder),
            "NUMBA_CACHE_DIR": str(cache),
            "PLACEOPT_KERNELS": "",
        }
        before, began = _cpu(), time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "placeopt", *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=environment,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return time.perf_counter() - began, _cpu() - before, done.stderr

    def bring_kernels(self) -> None:
        """Compile as ``make wheel`` does."""
        self.run(self.folder / "unused", "warm-up", "--any-cpu", "--jobs", "2")

    def instance(self, kind: str, size: str | dict[str, Any]) -> str:
        """Return the name or the file of an instance."""
        if isinstance(size, str):
            return size
        file = self.folder / f"{kind}.json"
        if not file.exists():
            sizes = [f"--size={key}={value}" for key, value in size.items()]
            self.run(self.folder / "unused", "generate", kind, *sizes, "--seed=1", "-o", str(file))
        return str(file)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Let other processes take the machine."""
    others = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(processes)]
    for one in others:
        one.start()
    try:
        yield
    finally:
        for one in others:
            one.terminate()


def first(here: Installation, kind: str) -> dict[str, Any]:
    """Return CPU seconds of a short solve from an empty cache, and of the same again."""
    name = here.instance(kind, INSTANCES[kind][0])
    with tempfile.TemporaryDirectory() as cache:
        line = "solve", name, "--evaluations", str(EVALUATIONS), "-o", str(Path(cache, "f.json"))
        _, cold, said = here.run(Path(cache), *line)
        _, warm, _ = here.run(Path(cache), *line)
    return {"cold": cold, "warm": warm, "kernels": _told(said)[0]}


def _told(said: str) -> tuple[int, float]:
    match = _SAID.search(said)
    return (int(match[1]), float(match[2])) if match else (0, 0.0)


def limited(here: Installation, kind: str, size: str | dict[str, Any]) -> dict[str, Any]:
    """Return what a first run and the same run once more do with a time limit."""
    from placeopt import Front

    name, row, values = here.instance(kind, size), {}, {}
    with tempfile.TemporaryDirectory() as folder, busy(BUSY):
        for run in ("cold", "warm"):
            file = Path(folder, f"{run}.json")
            line = "solve", name, "--time-limit", f"{LIMIT:g}", "--seed", "1", "-o", str(file)
            seconds, _, said = here.run(Path(folder), *line)
            values[run] = Front.read(file)
            row[f"{run} beyond"], row[f"{run} told"] = seconds - LIMIT, _told(said)[1]
    worst = np.vstack([front.values for front in values.values()]).max(axis=0)
    reference = tuple(1.1 * worst + 1e-9)
    area = {run: front.hypervolume(reference) for run, front in values.items()}
    row["share"] = area["cold"] / area["warm"] if area["warm"] else 1.0
    row["points"] = [len(values["cold"]), len(values["warm"])]
    return row


def label(size: str | dict[str, Any]) -> str:
    """Return an instance in words."""
    if isinstance(size, str):
        return f"`{size}`"
    return ", ".join(f"{key} {value}" for key, value in size.items())


def measure(rows: dict[str, Any], file: Path) -> None:
    """Add the rows that are not there, and write the file after each."""
    with tempfile.TemporaryDirectory() as folder:
        installations = {
            "before": Installation(Path(folder, "before"), BEFORE),
            "light": Installation(Path(folder, "light"), None),
            "brought": Installation(Path(folder, "brought"), None),
        }
        installations["brought"].bring_kernels()
        for name, here in installations.items():
            for kind, sizes in INSTANCES.items():
                wanted: dict[str, Any] = {f"{name} {kind}": lambda k=kind, h=here: first(h, k)}
                for size in sizes if name != "before" else ():
                    key = f"{name} {kind} {label(size)}"
                    wanted[key] = lambda k=kind, h=here, s=size: limited(h, k, s)
                for key, call in wanted.items():
                    if key not in rows:
                        rows[key] = call()
                        print(key, rows[key], flush=True)
                        file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def page(rows: dict[str, Any]) -> str:
    """Return the page."""
    cpu = [
        (
            kind,
            f"`{INSTANCES[kind][0]}`",
            *(f"{rows[f'{name} {kind}']['cold']:.1f}" for name in ("before", "light", "brought")),
            f"{rows[f'light {kind}']['warm']:.1f}",
            rows[f"before {kind}"]["kernels"] or "-",
            rows[f"light {kind}"]["kernels"],
            rows[f"brought {kind}"]["kernels"],
        )
        for kind in INSTANCES
    ]
    runs, kept = [], 0
    for name in ("light", "brought"):
        for kind, sizes in INSTANCES.items():
            for size in sizes:
                row = rows[f"{name} {kind} {label(size)}"]
                untold = row["cold beyond"] - row["warm beyond"] - row["cold told"]
                held = row["share"] >= SHARE and untold <= UNTOLD
                kept += held
                runs.append(
                    (
                        {"light": "none", "brought": "in the wheel"}[name],
                        f"{kind}, {label(size)}",
                        "{} / {}".format(*row["points"]),
                        f"{row['share']:.1%}",
                        f"{row['warm beyond']:.1f}",
                        f"{row['cold beyond']:.1f}",
                        f"{row['cold told']:.1f}",
                        f"{untold:+.1f}",
                        "met" if held else "**missed**",
                    )
                )
    most = max(rows[f"brought {kind}"]["cold"] for kind in INSTANCES)
    lines = [
        "# The first solve",
        "",
        "Written by `python benchmarks/cold/run.py`.",
        "",
        facts("numba", "numpy"),
        "",
        "## CPU seconds of a first solve",
        "",
        f"`placeopt solve INSTANCE --evaluations {EVALUATIONS}` with an empty cache: the commit",
        f"before ({BEFORE}), this one by the wheel for all platforms, and by the wheel that brings",
        "kernels compiled for any CPU. `warm`: the same command once more. Kernels: as the command",
        "says; the commit before did not.",
        "",
        *table(
            (
                "problem",
                "instance",
                "before",
                "without kernels",
                "with kernels",
                "warm",
                "kernels before",
                "without",
                "with",
            ),
            cpu,
        ),
        "",
        f"With kernels a first solve takes at most {most:.1f} CPU s; 4 wanted: "
        f"{'met' if most <= 4 else 'missed'}.",
        "",
        f"## A limit of {LIMIT:g} s beside {BUSY} busy processes",
        "",
        "The cold run starts with an empty cache; the warm run is the same command once more.",
        "Share: hypervolume of the cold run by that of the warm one. Beyond: seconds of the whole",
        "command, from start to end, beyond the limit; a warm one starts Python, reads and writes",
        "in them. Untold: what the cold run is further beyond the limit than the warm one, less",
        "what it says it compiled; it may be negative where a run ends before its limit.",
        f"Wanted: a share of {SHARE:.0%}, at most {UNTOLD:g} s untold:",
        f"{kept} of {len(runs)} met.",
        "",
        *table(
            (
                "kernels",
                "instance",
                "points cold / warm",
                "share",
                "warm beyond s",
                "cold beyond s",
                "says s",
                "untold s",
                "",
            ),
            runs,
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=PAGE.with_name("results.json"))
    file = parser.parse_args().rows
    rows = json.loads(file.read_text()) if file.exists() else {}
    measure(rows, file)
    stamps.write(PAGE, page(rows), __file__, {})


if __name__ == "__main__":
    main()
