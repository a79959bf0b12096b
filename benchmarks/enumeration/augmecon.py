"""One instance by pyaugmecon (AUGMECON-R), with HiGHS; prints points, solves and CPU seconds.

    python benchmarks/enumeration/augmecon.py INSTANCE

Run by `run.py` in the interpreter that has pyaugmecon, Pyomo and highspy. pyaugmecon hands every
solver Gurobi's arguments, which Pyomo's interface of HiGHS refuses, and expects an infeasible model
to be an answer, which is an error there: `Highs` stands between. The grid has a limit for every
whole number of the widest goal, so that none is skipped; all other options are pyaugmecon's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import tempfile
from typing import Any

import pyomo.environ as pyo
from pyaugmecon import PyAugmecon

from instances import complete_instances


@pyo.SolverFactory.register("highs_for_pyaugmecon")
class Highs:
    """HiGHS as pyaugmecon calls a solver."""

    def __init__(self, **ignored: Any):
        self.options: dict[str, Any] = {}  # Gurobi's, by name

    def solve(self, model: pyo.ConcreteModel) -> Any:
        """Solve to optimality; values are loaded where there are some."""
        solver = pyo.SolverFactory("appsi_highs")
        gaps = {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-6, "presolve_rule_off": 1 << 16, "threads": 1}
        results = solver.solve(model, load_solutions=False, options=gaps)
        if results.solver.termination_condition == pyo.TerminationCondition.optimal:
            model.solutions.load_from(results)
        return results


def seconds() -> float:
    """Return the CPU seconds of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main(name: str) -> dict[str, Any]:
    """Return what pyaugmecon makes of an instance."""
    instance = next(i for i in complete_instances() if i.name == name)
    model = instance.model()
    goals = [objective.expr for objective in model.goal.values()]
    model.del_component(model.goal)
    model.obj_list = pyo.ObjectiveList()
    for goal in goals:
        model.obj_list.add(expr=goal, sense=pyo.minimize)
        model.obj_list[len(model.obj_list)].deactivate()
    spread = instance.front.max(axis=0) - instance.front.min(axis=0)
    options = {
        "grid_points": int(spread.max()) + 1,
        "solver_name": "highs_for_pyaugmecon",
        "cpu_count": 1,
        "output_excel": False,
    }
    began = seconds()
    search = PyAugmecon(model, options)
    search.solve()
    points = [[round(v) for v in point] for point in search.get_pareto_solutions()]
    return {
        "points": sorted(points),
        "solves": search.model.models_solved.value(),
        "cpu": seconds() - began,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        os.chdir(folder)
        answer = main(sys.argv[1])
    print(json.dumps(answer))
