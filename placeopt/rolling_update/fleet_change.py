"""Which machines a plan buys and frees."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from placeopt.core.fronts.values import Plan
from placeopt.rolling_update.instance import RollingUpdate

#: Hours of a month, as clouds count them.
HOURS_OF_A_MONTH = 730


@dataclass(frozen=True)
class FleetChange:
    """The nodes that a plan buys, the nodes that it frees, and the price before and after.

    Attributes
    ----------
    buy : tuple of str
        Names of the candidates that host a replica at the end.
    free : tuple of str
        Names of the nodes that host a replica now and none at the end.
    before : float
        Price of the nodes that host a replica now, in `unit`.
    after : float
        Price of the nodes that host a replica at the end, in `unit`.
    unit : str
        The unit of prices, as the instance says it, such as ``USD/h``.
    """

    buy: tuple[str, ...]
    free: tuple[str, ...]
    before: float
    after: float
    unit: str

    @property
    def is_hourly(self) -> bool:
        """Whether prices are per hour, so that months can be told."""
        return self.unit.endswith("/h")

    @property
    def saved_a_month(self) -> float:
        """The price that the plan saves in a month, without ``/h`` in its unit."""
        return (self.before - self.after) * HOURS_OF_A_MONTH


def fleet_change(problem: RollingUpdate, plan: Plan) -> FleetChange:
    """Return what a plan buys and frees.

    Parameters
    ----------
    problem : RollingUpdate
    plan : mapping
        A plan of this problem.
    """
    a = problem.arrays
    now = set(a.home.tolist()) - {a.waiting}
    final = set(a.final_nodes(problem.steps(plan)).tolist()) - {-1, a.waiting}
    return FleetChange(
        buy=tuple(a.node_names[n] for n in sorted(final) if problem.nodes[n].candidate),
        free=tuple(a.node_names[n] for n in sorted(now - final)),
        before=problem.initial_cost,
        after=problem.evaluate(plan).values[0],
        unit=problem.price_unit,
    )


def by_machine(problem: RollingUpdate, names: tuple[str, ...]) -> list[tuple[str, str, float, int]]:
    """Return (machine type, cluster, price of one, number) of nodes, by name of type."""
    existing = {n.name: n for n in problem.nodes}
    nodes = [existing[name] for name in names]
    count = Counter((n.machine_type or "unknown type", n.cluster, n.price) for n in nodes)
    return [(*key, number) for key, number in sorted(count.items())]
