"""What placeopt's core install weighs, and which of its libraries are loaded for what.

python benchmarks/cold/weight.py
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

PAGE = Path(__file__).with_name("weight.md")
#: What is done, in Python.
ACTIONS = {
    "`import placeopt`": "import placeopt",
    "`check`": "from placeopt.cli import main; main(['check', 'toy'])",
    "`solve`, auto": "import placeopt; placeopt.solve('toy', evaluations=500)",
    "`solve`, nsga3": "import placeopt; placeopt.solve('toy', 'nsga3', evaluations=500)",
    "`solve`, epsilon-constraint": (
        "import placeopt; placeopt.solve('toy', 'epsilon-constraint', seconds=2.0)"
    ),
    "`solve --certify`": "import placeopt; placeopt.solve('toy', seconds=2.0, certify=True)",
    "`solve --jobs 2`": (
        "import placeopt; placeopt.solve('toy', 'ensemble', evaluations=500, jobs=2)"
    ),
    "solver `scip`": (
        "import placeopt\nplaceopt.solve('toy', 'epsilon-constraint', seconds=2.0, solver='scip')"
    ),
    "`generate rolling-update`": (
        "import placeopt.registry as r; r.problem_class('rolling-update').generate(1)"
    ),
    "environments": "from placeopt.environments import make_env; make_env('rescheduling')",
}
#: Modules of libraries, where they have another name.
MODULES = {"pyyaml": "yaml"}
_SHOW = "\nimport json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"


def plain(name: str) -> str:
    """Return the name of a distribution as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


INSTALLED: dict[str, Distribution] = {plain(one.metadata["Name"]): one for one in distributions()}


def megabytes(name: str) -> float:
    """Return the size of a distribution's files, without bytecode."""
    files = (Path(str(file.locate())) for file in INSTALLED[name].files or [])
    code = (file for file in files if file.suffix != ".pyc" and file.is_file())
    return sum(file.stat().st_size for file in code) / 1e6


def needed(names: list[str]) -> set[str]:
    """Return distributions with all that they require."""
    found: set[str] = set()
    ahead = list(names)
    while ahead:
        name = plain(ahead.pop())
        if name in found or name not in INSTALLED:
            continue
        found.add(name)
        for text in INSTALLED[name].requires or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                ahead.append(wanted.name)
    return found


def loaded(code: str) -> set[str]:
    """Return the modules that a process has loaded when it ends."""
    wrapped = f"try:\n    exec({code!r})\nexcept SystemExit:\n    pass{_SHOW}"
    done = subprocess.run(
        [sys.executable, "-c", wrapped], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure, and write the page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = [plain(Requirement(text).name) for text in project["dependencies"]]
    everything = needed(core)
    sizes = {name: megabytes(name) for name in everything}
    uses = {action: loaded(code) for action, code in ACTIONS.items()}
    rows = []
    for name in core:
        alone = everything - needed([other for other in core if other != name])
        by = [action for action, seen in uses.items() if MODULES.get(name, name) in seen]
        every = (
            "all of these but `import placeopt`" if len(by) >= len(ACTIONS) - 1 else ", ".join(by)
        )
        rows.append(
            (
                sum(sizes[one] for one in alone),
                (
                    f"`{name}`",
                    f"{sizes[name]:.0f}",
                    f"{sum(sizes[one] for one in alone):.0f}",
                    len(alone),
                    every,
                ),
            )
        )
    extra = needed([*core, "jmetalpy"]) - everything
    lines = [
        "# The weight of a core install",
        "",
        "Written by `python benchmarks/cold/weight.py`.",
        "",
        facts("numba", "numpy"),
        "",
        f"{len(everything)} packages, {sum(sizes.values()):.0f} MB without placeopt and bytecode.",
        f"`placeopt[jmetal]` would add {len(extra)} packages, {sum(map(megabytes, extra)):.0f} MB.",
        "",
        "Leaves: MB and packages that no other library of the core needs. Loaded by: what of the",
        f"following imports it: {', '.join(ACTIONS)}.",
        "",
        *table(
            ("library", "MB", "leaves, MB", "packages", "loaded by"),
            [row for _, row in sorted(rows, key=lambda row: -row[0])],
        ),
        "",
    ]
    stamps.write(PAGE, "\n".join(lines), __file__, {})


if __name__ == "__main__":
    main()
