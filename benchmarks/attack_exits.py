"""Scripts that end while a solver may still work: every one ends with its own exit code.

    python benchmarks/attack_exits.py [--scripts 300] [--seed 1]

Each script solves or enumerates under a time limit of 0.2 to 5 s that is mostly too short, then
ends as scripts do: by their last line, by ``sys.exit`` or by an error. Half of them run one after
another, half of them eight at a time.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from harness import Benchmark, table

#: Sizes of generated instances: a kind, and what it is given.
SIZES = {
    "temporal": ("requests=12", "requests=30", "requests=80"),
    "edge-cloud": ("applications=6", "applications=15", "applications=40"),
    "rolling-update": ("applications=3", "applications=8", "applications=24"),
    "rescheduling": ("replicas=2", "replicas=4"),
}
#: Sizes of the models that are enumerated: to build one is no part of a time limit.
MODELS = {"temporal": "requests=5", "edge-cloud": "applications=10", "rescheduling": "replicas=3"}
#: Runs of `placeopt.solve`: a kind of problem, a method, and what it is told besides.
SOLVED = (
    ("temporal", "epsilon-constraint", ""),
    ("temporal", "epsilon-constraint", 'solver="scip"'),
    ("temporal", "epsilon-constraint", "jobs=3"),
    ("temporal", "bin-plans", ""),
    ("temporal", "bound", ""),
    ("temporal", "auto", "certify=True"),
    ("edge-cloud", "epsilon-constraint", ""),
    ("edge-cloud", "epsilon-constraint", 'solver="scip"'),
    ("edge-cloud", "bound", ""),
    ("edge-cloud", "lns", ""),
    ("edge-cloud", "auto", "certify=True"),
    ("rolling-update", "epsilon-constraint", ""),
    ("rolling-update", "epsilon-constraint", "jobs=3"),
    ("rolling-update", "decomposition", ""),
    ("rolling-update", "auto", "certify=True"),
    ("rescheduling", "epsilon-constraint", ""),
    ("rescheduling", "auto", "certify=True"),
)
#: Runs of `placeopt.enumerate`: a model, and what it is told besides.
ENUMERATED = tuple(
    (model, options)
    for model in ("knapsack", "temporal", "edge-cloud", "rescheduling")
    for options in ("", "jobs=3", 'solver="scip"')
)
KNAPSACK = """
model = pyo.ConcreteModel()
columns, rng = range(150), np.random.default_rng(seed)
model.x = pyo.Var(columns, domain=pyo.Binary)
weight = rng.integers(1, 100, (30, 150))
room = pyo.Constraint(range(30), rule=lambda m, r: sum(
    int(weight[r, j]) * m.x[j] for j in columns) <= int(weight[r].sum()) // 3)
model.room = room
goals = {name: (sum(int(v) * model.x[j] for j, v in enumerate(rng.integers(1, 100, 150))), "max")
         for name in "abc"}
"""
SOLVE = """
import sys, threading, placeopt
from placeopt.registry import problem_class
problem = problem_class("{kind}").generate({seed}, {size})
try:
    print(placeopt.solve(problem, "{method}", seconds={seconds}, seed={seed}, {options}))
except placeopt.core.errors.UnsupportedError as error:  # too large for the method in this time
    print("<Front: none,", error)
"""
ENUMERATE = """
import sys, numpy as np, pyomo.environ as pyo, placeopt
from placeopt.registry import problem_class
seed, goals = {seed}, None
{model}
print(placeopt.enumerate(model, goals, seconds={seconds}, {options}))
"""
BUILD = """
problem = problem_class("{kind}").generate(seed, {size})
model = problem.spec.load("model").build(problem)
"""
#: How a script ends, and its exit code.
ENDS = (("", 0), ("sys.exit(7)", 7), ("raise ValueError('the last line')", 1))
#: Seconds of a script beside its limit: imports, compiling, building a model, under load.
LONGEST = 900


def script(number: int, seed: int) -> tuple[str, str, int, float]:
    """Return what a script is called, its code, its exit code and its time limit."""
    rng = np.random.default_rng([seed, number])
    seconds = round(float(np.exp(rng.uniform(np.log(0.2), np.log(5.0)))), 2)
    last, code = ENDS[int(rng.choice(3, p=(0.6, 0.2, 0.2)))]
    own = int(rng.integers(1000))
    which = number % (len(SOLVED) + len(ENUMERATED))
    if which < len(SOLVED):
        kind, method, options = SOLVED[which]
        size = str(rng.choice(SIZES[kind]))
        facts = {"kind": kind, "method": method, "size": size, "seed": own, "seconds": seconds}
        text = SOLVE.format(options=options, **facts)
        name = f"{kind}, {method}{', ' + options if options else ''}"
    else:
        kind, options = ENUMERATED[which - len(SOLVED)]
        model = KNAPSACK if kind == "knapsack" else BUILD.format(kind=kind, size=MODELS[kind])
        text = ENUMERATE.format(model=model, seed=own, seconds=seconds, options=options)
        name = f"enumerate, {kind}{', ' + options if options else ''}"
    return name, f"{text}\n{last}\n", code, seconds


def outcome(number: int, seed: int) -> tuple[str, str, str]:
    """Run a script; return what it is called, the verdict, and what is wrong."""
    name, text, code, _ = script(number, seed)
    try:
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return name, "hung", f"script {number}, seed {seed}"
    said = done.stderr.strip().splitlines()
    detail = f"script {number}, seed {seed}: exit code {done.returncode}, {said[-1:]}"
    if done.returncode < 0 or "terminate called" in done.stderr:
        return name, "aborted", detail
    right = done.returncode == code and "<Front" in done.stdout
    return name, "as it should" if right else "another exit code", detail


def main() -> None:
    """Run the scripts and write the page."""
    run = Benchmark(__file__, __doc__, "highspy", "pyscipopt", "numpy", scripts=300, seed=1)
    counts: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    half, whens = run.scripts // 2, {"alone": 1, "eight at a time": 8}
    numbers = {"alone": range(half), "eight at a time": range(half, run.scripts)}
    for when, at_once in whens.items():
        with ThreadPoolExecutor(at_once) as pool:
            for name, verdict, detail in pool.map(lambda k: outcome(k, run.seed), numbers[when]):
                counts.setdefault(name, Counter())[f"{when}: {verdict}"] += 1
                if verdict != "as it should":
                    wrong.append(f"* {name}, {when}: {verdict}: {detail}")
                    print(wrong[-1], flush=True)
    verdicts = ("as it should", "aborted", "hung", "another exit code")
    heads = [f"{when}: {verdict}" for when in whens for verdict in verdicts]
    rows = [[name, *(found[head] for head in heads)] for name, found in counts.items()]
    total = ["**all**", *(sum(row[k] for row in rows) for k in range(1, len(heads) + 1))]
    run.write(
        "Scripts that end while a solver works",
        "A solver's thread may outlive the interpreter, which must not end the process by a "
        "signal. Time limits are 0.2 to 5 s; scripts end by their last line, by `sys.exit` or by "
        "an error, and *as it should* is that exit code.",
        table(" | ".join(("script", *heads)), [*rows, total]),
        wrong,
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
