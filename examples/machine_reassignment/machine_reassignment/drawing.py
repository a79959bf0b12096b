"""Plans of machine reassignment: how full every machine is, before and after."""

from __future__ import annotations

import numpy as np

from machine_reassignment.instance import MachineReassignment
from placeopt.plugins import PALETTE, Plan, Scene

#: Machines that are drawn, at most: those that are used most after the moves.
MAX_MACHINES = 120
#: Width of a column, height of a chart in pixels, and the largest share that it shows.
_COLUMN, _HEIGHT, _MOST = 6, 140, 1.5


def scene(problem: MachineReassignment, plan: Plan) -> Scene:
    """Return a chart of the machines before and one of them after the moves.

    A column is the fullest resource of a machine, as a share of its safety capacity.
    """
    a, machine = problem.arrays, problem.assignment(plan)
    before, after = (shares(problem, where) for where in (a.home, machine))
    order = np.argsort(-after, kind="stable")[:MAX_MACHINES].tolist()
    width = max(420, 60 + _COLUMN * len(order))
    sheet = Scene(width, 40 + 2 * (_HEIGHT + 40))
    over, within = PALETTE[4], PALETTE[0]
    texts = [("line", within, "within safety"), ("line", over, "above it")]
    sheet.legend(12, 16, texts)
    for k, (title, share) in enumerate((("now", before), ("after", after))):
        bottom = 40 + k * (_HEIGHT + 40) + _HEIGHT + 20
        sheet.words(12, bottom - _HEIGHT - 4, f"{title}: {_told(share)}", bold=True)
        for x, m in enumerate(order):
            tall = _HEIGHT * min(_MOST, float(share[m])) / _MOST
            fill = over if share[m] > 1 else within
            label = f"machine {m}: {share[m]:.1%}"
            sheet.box(40 + _COLUMN * x, bottom - tall, _COLUMN - 1, tall, fill=fill, title=label)
        line = bottom - _HEIGHT / _MOST
        sheet.line((40, line), (40 + _COLUMN * len(order), line), stroke="soft", line_width=1)
    return sheet


def _told(share: np.ndarray) -> str:
    return f"{int((share > 1).sum()):,} of {len(share):,} machines above their safety capacity"


def shares(problem: MachineReassignment, machine: np.ndarray) -> np.ndarray:
    """Return the fullest resource of each machine, as a share of its safety capacity, (M,)."""
    a = problem.arrays
    used = np.zeros_like(a.capacity)
    np.add.at(used, machine, a.requirement)
    return (used / np.maximum(1, a.safety)).max(axis=1)
