"""First contact: what placeopt, PyVRP, pymoo and Optuna take from nothing to a first comparison.

python benchmarks/cold/contact.py WHEEL

Each is installed from the package index into an environment of its own. Then come its documented
first steps, each a process, in an empty folder and with an empty cache: a first front, a first
report or picture, an instance of one's own, and two methods or seeds compared. Lines are those
that somebody types: commands, code, and the document of an instance.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import stamps  # noqa: E402
from machine import facts, table  # noqa: E402

PAGE = Path(__file__).with_name("contact.md")
STEPS = ("first front", "first report", "own instance", "first comparison")

PYVRP_MODEL = """
from pyvrp import Model
from pyvrp.stop import MaxRuntime
model = Model()
places = [model.add_location(x, y) for x, y in [(0, 0), (2, 3), (5, 1), (4, 6), (1, 5)]]
depot = model.add_depot(places[0])
for place in places[1:]:
    model.add_client(place, delivery=4)
model.add_vehicle_type(2, capacity=10, start_depot=depot, end_depot=depot)
for a in places:
    for b in places:
        model.add_edge(a, b, distance=int(100 * ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5))
"""
PYVRP_FRONT = f"""{PYVRP_MODEL}
result = model.solve(stop=MaxRuntime(1), display=False)
print(result)
"""
PYVRP_REPORT = f"""{PYVRP_FRONT}
import matplotlib.pyplot as plt
from pyvrp.plotting import plot_result
plot_result(result, model.data())
plt.savefig("result.png")
"""
PYVRP_COMPARISON = f"""{PYVRP_MODEL}
for seed in (1, 2):
    print(model.solve(stop=MaxRuntime(1), seed=seed, display=False).cost())
"""

PYMOO_FRONT = """
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.optimize import minimize
from pymoo.problems import get_problem
problem = get_problem("zdt1")
result = minimize(problem, NSGA2(pop_size=100), ("n_gen", 200), seed=1)
print(len(result.F))
"""
PYMOO_REPORT = f"""{PYMOO_FRONT}
from pymoo.visualization.scatter import Scatter
Scatter().add(problem.pareto_front(), plot_type="line").add(result.F).save("front.png")
"""
PYMOO_OWN = """
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import ElementwiseProblem
from pymoo.optimize import minimize
class Mine(ElementwiseProblem):
    def __init__(self):
        super().__init__(n_var=2, n_obj=2, n_ieq_constr=1, xl=[-2, -2], xu=[2, 2])
    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = [x[0] ** 2 + x[1] ** 2, (x[0] - 1) ** 2 + x[1] ** 2]
        out["G"] = [0.2 - x[0]]
result = minimize(Mine(), NSGA2(pop_size=100), ("n_gen", 200), seed=1)
print(len(result.F))
"""
PYMOO_COMPARISON = """
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.moo.nsga3 import NSGA3
from pymoo.indicators.hv import HV
from pymoo.optimize import minimize
from pymoo.problems import get_problem
from pymoo.util.ref_dirs import get_reference_directions
problem = get_problem("zdt1")
directions = get_reference_directions("uniform", 2, n_partitions=99)
for algorithm in (NSGA2(pop_size=100), NSGA3(directions)):
    result = minimize(problem, algorithm, ("n_gen", 200), seed=1)
    print(type(algorithm).__name__, HV(ref_point=[1.1, 1.1])(result.F))
"""

OPTUNA_FRONT = """
import optuna
def objective(trial):
    x, y = trial.suggest_float("x", 0, 5), trial.suggest_float("y", 0, 3)
    return 4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2
study = optuna.create_study(directions=["minimize", "minimize"])
study.optimize(objective, n_trials=100)
print(len(study.best_trials))
"""
OPTUNA_REPORT = f"""{OPTUNA_FRONT}
optuna.visualization.plot_pareto_front(study).write_html("front.html")
"""
OPTUNA_COMPARISON = """
import optuna
from optuna.samplers import NSGAIISampler, TPESampler
def objective(trial):
    x, y = trial.suggest_float("x", 0, 5), trial.suggest_float("y", 0, 3)
    return 4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2
studies = []
for sampler in (NSGAIISampler(seed=1), TPESampler(seed=1)):
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=100)
    studies.append(study)
for study in studies:
    figure = optuna.visualization.plot_hypervolume_history(study, [140, 51])
    print(figure.data[0].y[-1])
"""


@dataclass(frozen=True)
class Tool:
    """A library and its first steps.

    Attributes
    ----------
    name, package : str
    steps : tuple of str
        For each of `STEPS` a script, or commands, one a line, that begin with ``$``.
    documents : dict of str to Path
        Files that somebody writes for an instance of one's own.
    remark : str
    """

    name: str
    package: str
    steps: tuple[str, str, str, str]
    remark: str
    documents: tuple[tuple[str, Path], ...] = ()


def tools(wheel: Path) -> tuple[Tool, ...]:
    """Return what is compared."""
    return (
        Tool(
            "placeopt",
            str(wheel.resolve()),
            (
                "$ placeopt solve toy -o front.json",
                "$ placeopt report front.json -o report.html",
                "$ placeopt solve mine.json -o mine-front.json",
                "$ placeopt solve toy --method nsga3 -o nsga3.json\n"
                "$ placeopt compare front.json nsga3.json",
            ),
            "three goals; the report tells plans in words",
            (("mine.json", ROOT / "docs" / "schemas" / "temporal.json"),),
        ),
        Tool(
            "PyVRP",
            "pyvrp",
            (PYVRP_FRONT, PYVRP_REPORT, PYVRP_FRONT, PYVRP_COMPARISON),
            "one goal: a solution, no front; its first step is an instance of one's own",
        ),
        Tool(
            "pymoo",
            "pymoo",
            (PYMOO_FRONT, PYMOO_REPORT, PYMOO_OWN, PYMOO_COMPARISON),
            "a test function of 30 numbers; own problems are code",
        ),
        Tool(
            "Optuna",
            "optuna",
            (
                OPTUNA_FRONT,
                "$ pip install plotly\n" + OPTUNA_REPORT,
                OPTUNA_FRONT,
                "$ pip install plotly\n" + OPTUNA_COMPARISON,
            ),
            "its first step is a function of one's own; pictures need plotly",
        ),
    )


class Beginner:
    """Somebody with an empty environment, folder and cache."""

    def __init__(self, folder: Path):
        self.environment, self.work = folder / "environment", folder / "work"
        self.work.mkdir(parents=True)
        venv.create(self.environment, with_pip=True)
        self.base = self.size()
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
        programs = f"{self.environment / 'bin'}:{os.environ['PATH']}"
        self.variables = keep | {"PATH": programs, "HOME": str(folder), "MPLBACKEND": "Agg"}

    def size(self) -> tuple[float, int]:
        """Return MB of all files of installed packages, and how many packages."""
        (site,) = self.environment.glob("lib/*/site-packages")
        files = [file for file in site.rglob("*") if file.is_file()]
        code = sum(file.stat().st_size for file in files if "__pycache__" not in file.parts)
        return code / 1e6, len(list(site.glob("*.dist-info")))

    def run(self, *words: str) -> tuple[float, float]:
        """Run a command; return seconds and CPU seconds."""
        before, began = _cpu(), time.perf_counter()
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=self.work, env=self.variables
        )
        assert done.returncode == 0, (words, done.stdout[-600:], done.stderr[-1500:])
        return time.perf_counter() - began, _cpu() - before

    def step(self, text: str) -> tuple[float, float]:
        """Run commands, then the script below them."""
        lines = text.splitlines()
        commands = [line[2:].split() for line in lines if line.startswith("$ ")]
        script = "\n".join(line for line in lines if not line.startswith("$ ")).strip()
        runs = [self.run(*words) for words in commands]
        if script:
            (self.work / "script.py").write_text(script + "\n", encoding="utf-8")
            runs.append(self.run("python", "script.py"))
        return sum(run[0] for run in runs), sum(run[1] for run in runs)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def typed(text: str) -> int:
    """Return how many lines somebody types."""
    return sum(bool(line.strip()) for line in text.splitlines())


def measured(tool: Tool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rows of a tool: what it weighs, and its first steps."""
    with tempfile.TemporaryDirectory(prefix="contact-") as folder:
        me = Beginner(Path(folder))
        seconds, cpu = me.run("pip", "install", "-q", "--no-cache-dir", tool.package)
        megabytes, packages = me.size()
        weight = (
            tool.name,
            f"{seconds:.0f} / {cpu:.0f}",
            f"{megabytes - me.base[0]:.0f}",
            str(packages - me.base[1]),
        )
        cells = []
        for name, text in zip(STEPS, tool.steps, strict=True):
            lines = typed(text)
            for file, source in tool.documents if name == "own instance" else ():
                document = source.read_text(encoding="utf-8")
                (me.work / file).write_text(document, encoding="utf-8")
                lines += typed(document)
            seconds, cpu = me.step(text)
            cells.append(f"{lines}; {seconds:.1f} / {cpu:.1f}")
    print(weight, cells, flush=True)
    return weight, (tool.name, *cells, tool.remark)


def main() -> None:
    """Measure all, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    rows = [measured(tool) for tool in tools(parser.parse_args().wheel)]
    lines = [
        "# First contact",
        "",
        "Written by `python benchmarks/cold/contact.py WHEEL`: the wheel that brings kernels, and",
        "PyVRP, pymoo and Optuna from the package index, each in an environment of its own.",
        "",
        facts("numba", "numpy"),
        "",
        "## Weight",
        "",
        "`pip install`: its time depends on the network. MB: files of the installed packages",
        "without bytecode; packages: with the one that was named.",
        "",
        *table(("", "pip install, s / CPU s", "MB", "packages"), [weight for weight, _ in rows]),
        "",
        "## First steps",
        "",
        "Each cell: lines that somebody types; seconds / CPU seconds. The steps are those of each",
        "project's own introduction. They do different work: a test function of pymoo and a",
        "function of Optuna are not an instance of placeopt. What a later step repeats of an",
        "earlier one counts again, as each script runs on its own.",
        "",
        *table(("", *STEPS, "what it is"), [steps for _, steps in rows]),
        "",
    ]
    stamps.write(PAGE, "\n".join(lines), __file__, {})


if __name__ == "__main__":
    main()
