"""What a first run compiles where nothing is compiled yet: kernels and CPU seconds by method.

python benchmarks/first_runs.py [--kinds temporal ...]

writes placeopt/first_runs.json, from which a run announces what it compiles. Each problem is warmed
up once from an empty cache, which tells what every kernel costs. Then each method answers a small
instance in a process of its own, and what it loads is added up.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).resolve().parents[1] / "placeopt" / "first_runs.json"
#: Name of a kernel and its arguments' types.
Key = str


def compiled(kind: str) -> dict[Key, tuple[int, float]]:
    """Warm a problem up; return kernels and CPU seconds of each kernel that Python called."""
    from placeopt import warm_up
    from placeopt.core.kernels.compiler import _Kernel
    from placeopt.core.runs.compiling import CLOCK

    costs: dict[Key, tuple[int, float]] = {}
    own, running = _Kernel.compile, []

    def compile_timed(self: Any, sig: Any) -> Any:
        running.append(self)
        kernels, cpu = CLOCK.kernels, time.process_time()
        try:
            return own(self, sig)
        finally:
            running.pop()
            if not running and CLOCK.kernels > kernels:
                costs[_key(self, sig)] = CLOCK.kernels - kernels, time.process_time() - cpu

    _Kernel.compile = compile_timed  # type: ignore[method-assign]
    warm_up.warm_up([kind])
    return costs


def used(kind: str, method: str) -> list[Key]:
    """Answer a small instance by a method, ``certify`` by all that a proof needs; list kernels."""
    from placeopt import warm_up
    from placeopt.core.kernels.compiler import _Kernel

    if method == "certify":
        warm_up.prove(kind)
    else:
        warm_up.answered(kind, method)
    kernels = [one for one in gc.get_objects() if type(one) is _Kernel]
    return [_key(one, kinds) for one in kernels for kinds in one.overloads]


def _key(kernel: Any, kinds: Any) -> Key:
    return f"{kernel.__module__}.{kernel.__name__}{tuple(kinds)}"


def asked(*arguments: str, cache: str) -> Any:
    """Run this script for one of its parts in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PLACEOPT_KERNELS": ""}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


def stages(kind: str) -> set[str]:
    """Return the methods that ``auto`` runs on instances in benchmarks/auto.py and less."""
    from auto import SIZES

    from placeopt import registry, warm_up

    drawn = (registry.problem_class(kind).generate(1, **size) for k, _, size in SIZES if k == kind)
    instances = [*warm_up._small(kind), *drawn]
    return {
        name
        for problem in instances
        for seconds in (None, 5.0, 60.0)
        for name, _ in registry.auto(problem, len(problem.objectives), seconds)
    }


def measured(kind: str) -> dict[str, tuple[int, float]]:
    """Return kernels and CPU seconds of a first run by each method."""
    from placeopt import registry

    with tempfile.TemporaryDirectory() as cache:
        costs = asked("--compiled", kind, cache=cache)
        names = [name for name, entry in registry.methods().items() if kind in entry.of]
        parts = {name: set(asked("--used", kind, name, cache=cache)) for name in names}
        parts["auto"] = parts["auto"].union(*(parts[name] for name in stages(kind)))
        if kind in registry.certified():
            parts["certify"] = set(asked("--used", kind, "certify", cache=cache)) - parts["auto"]
    found = {}
    for name, keys in parts.items():
        known = [costs[key] for key in keys if key in costs]
        found[name] = sum(row[0] for row in known), round(sum(row[1] for row in known), 1)
        print(f"{kind} {name}: {found[name][0]} kernels, {found[name][1]} s", flush=True)
    return {name: row for name, row in found.items() if row[0]}


def main() -> None:
    """Measure all problems, or, for the script itself, one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", help="all problems by default")
    parser.add_argument("--compiled", help=argparse.SUPPRESS)
    parser.add_argument("--used", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compiled:
        print(json.dumps(compiled(given.compiled)))
    elif given.used:
        print(json.dumps(used(*given.used)))
    else:
        from placeopt import registry

        found = json.loads(OUTPUT.read_text(encoding="utf-8"))
        kinds = [package.replace("_", "-") for package in registry.PACKAGES]
        found |= {kind: measured(kind) for kind in given.kinds or kinds}
        lines = []
        for kind in kinds:
            rows = (f'  "{name}": {json.dumps(row)}' for name, row in found[kind].items())
            lines.append(f' "{kind}": {{\n' + ",\n".join(rows) + "\n }")
        OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
