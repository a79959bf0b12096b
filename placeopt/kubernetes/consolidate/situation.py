"""A cluster and its cheapest plan: which nodes are paid for now, and which at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Evaluation, Plan
from placeopt.core.fronts.words import number
from placeopt.kubernetes.capacity import is_control_plane
from placeopt.kubernetes.cluster import has_prices
from placeopt.kubernetes.importing import Imported
from placeopt.kubernetes.machines import PriceBook, missing_price
from placeopt.kubernetes.origin import key
from placeopt.kubernetes.pinned import keeps_its_node
from placeopt.kubernetes.replicas import Replica, grouped
from placeopt.rolling_update.repack import TRIES, WORK, cheapest_plan
from placeopt.rolling_update.views import HOURS_OF_A_MONTH

if TYPE_CHECKING:
    from placeopt.rolling_update.problem import RollingUpdate

#: Workloads that wait which are tried one by one.
_TRIED = 8
#: The unit of costs where no price is known.
NODES = "nodes"


def in_words(amount: float, unit: str) -> str:
    """Return a cost with its unit, what is large without cents."""
    if unit == NODES:
        return f"{number(amount)} node{'' if amount == 1 else 's'}"
    return f"{number(round(amount) if amount >= 100 else round(amount, 2))} {unit}"


@dataclass(frozen=True)
class Situation:
    """A cluster and a plan for it.

    Attributes
    ----------
    imported : Imported
    plan : mapping
    waits : tuple of Replica
        What waits for a node and is left out, since no plan starts it.
    stops : bool
        Whether the plan may stop pods.
    lowest : int, optional
        A price that no plan beats, where it is known before; else it is looked for.
    """

    imported: Imported
    plan: Plan
    waits: tuple[Replica, ...] = ()
    stops: bool = False
    lowest: int | None = None

    @property
    def problem(self) -> RollingUpdate:
        """The instance."""
        problem: RollingUpdate = self.imported.problem  # type: ignore[assignment]
        return problem

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """The steps of the plan: (microservice, node)."""
        return self.problem.steps(self.plan)

    @cached_property
    def final(self) -> np.ndarray:
        """The node of every microservice at the end, (M,), -1 for none."""
        a = self.problem.arrays
        end = a.final_nodes(self.steps)
        return np.where(end == a.waiting, -1, end)

    @cached_property
    def owners(self) -> list[tuple[str, str]]:
        """(namespace, pod) of every microservice; its own name where it does not run yet."""
        items = self.imported.origin.items
        existing = [(items[key(name, part)], name) for part, name in self.problem.arrays.names]
        return [(item.namespace, item.pod or name) for item, name in existing]

    @cached_property
    def verdict(self) -> Evaluation:
        """What the referee says of the plan."""
        return self.problem.evaluate(self.plan)

    @property
    def is_legal(self) -> bool:
        """Whether the plan breaks nothing, and stops nothing unless it may."""
        return self.verdict.feasible and (self.stops or not self.verdict.values[2])

    @cached_property
    def front(self) -> Front:
        """The plan beside the one that does nothing, with what is proven of it.

        Its goals are what was looked for: the cost, and no stops. So what is proven of the front is
        what is proven of the cost.
        """
        from placeopt.core.fronts.certificate import graded
        from placeopt.core.task import Candidate, Task
        from placeopt.rolling_update.bounds import bound_vectors
        from placeopt.rolling_update.end_state import lowest_price

        goals = [o for o in self.problem.objectives if o.name in ("node_cost", "disruptions")]
        task = Task(self.problem, objectives=tuple(goals))
        plans = [Candidate(self.plan), Candidate({"steps": []})]
        paid = round(self.verdict.values[0] * self.problem.arrays.price_scale)
        lowest = (lowest_price(self.problem, paid, stops=stops) for stops in (True, False))
        bounds = bound_vectors(self.problem, goals, *lowest).tolist()
        libraries = ("numba", "numpy")
        front = task.front(plans, method="consolidate", bounds=bounds, libraries=libraries)
        return graded(front, "node_cost")

    @property
    def moved(self) -> int:
        """How many pods run on another node at the end."""
        a = self.problem.arrays
        return int(((a.home != a.waiting) & (self.final != a.home) & ~a.removed).sum())

    # -- nodes -------------------------------------------------------------------------------------

    @cached_property
    def there(self) -> list[str]:
        """The nodes of the cluster, in the order of the files: those that take no part, too."""
        objects = self.imported.cluster.objects
        return [name for name in objects.nodes if name not in objects.candidates]

    @cached_property
    def used(self) -> set[str]:
        """The nodes that host a pod of the instance at the end."""
        names = self.problem.arrays.node_names
        return {names[n] for n in np.unique(self.final[self.final >= 0]).tolist()}

    @cached_property
    def unremovable(self) -> dict[str, str]:
        """Nodes that stay whatever runs on them, and why."""
        results = {}
        for name in self.there:
            node = self.imported.cluster.objects.nodes[name]
            if is_control_plane(node):
                results[name] = "a node of the control plane"
            elif not node.ready:
                results[name] = "not ready: what runs there is left alone"
            elif node.virtual:
                results[name] = "virtual (Fargate, a virtual kubelet): it ends with its pods"
            elif node.going and name in self.imported.cluster.site.closed:
                results[name] = "being deleted: left alone (--cordoned drain plans to empty it)"
            elif name in self.imported.cluster.site.closed:
                results[name] = "cordoned: left alone (--cordoned drain plans to empty it)"
            elif keeps_its_node(node):
                results[name] = "annotated do-not-disrupt or scale-down-disabled"
        return results

    @cached_property
    def staying(self) -> list[str]:
        """The nodes of the cluster that are still there at the end."""
        only = self.imported.options.only
        kept = self.used | set(self.unremovable) | (set(self.there) - {only} if only else set())
        return [name for name in self.there if name in kept]

    @cached_property
    def gone(self) -> list[str]:
        """The nodes of the cluster that may be deleted at the end, as they become empty."""
        stay, left = set(self.staying), self._touched[1]
        gone = [name for name in self.there if name not in stay]
        return sorted(gone, key=lambda name: left.get(name, 0))

    @cached_property
    def _touched(self) -> tuple[dict[str, int], dict[str, int]]:
        """The number of the step, from 1, after which each node is used, and is left for good."""
        a, where = self.problem.arrays, self.problem.arrays.home.tolist()
        used, left = dict[str, int](), dict[str, int]()
        for k, (m, n) in enumerate(self.steps, 1):
            if where[m] not in (-1, a.waiting):
                left[a.node_names[where[m]]] = k
            if n >= 0:
                used.setdefault(a.node_names[n], k)
            where[m] = n
        return used, left

    @property
    def stages(self) -> list[tuple[str, int]]:
        """Each node that goes, and the number of steps after which it is empty."""
        return [(name, self._touched[1].get(name, 0)) for name in self.gone]

    def saved_by(self, steps: int) -> float:
        """Return what is saved once so many steps are made and what is empty then is deleted."""
        used, left = self._touched
        gone = sum(self.due(name) for name in self.gone if left.get(name, 0) <= steps)
        return gone - sum(self.due(name) for name in self.bought if used[name] <= steps)

    @cached_property
    def idle(self) -> list[str]:
        """Those of them that host nothing but what comes with every node already."""
        a = self.problem.arrays
        busy = {a.node_names[n] for n in np.unique(a.home).tolist()}
        return [name for name in self.gone if name not in busy]

    @cached_property
    def bought(self) -> list[str]:
        """The nodes that have to be bought."""
        return sorted(self.used - set(self.there))

    # -- money -------------------------------------------------------------------------------------

    @cached_property
    def is_priced(self) -> bool:
        """Whether costs are in USD; else they are numbers of nodes."""
        return has_prices(self.imported.cluster, self.imported.options)

    def in_words(self, amount: float) -> str:
        """Return a cost with its unit."""
        return in_words(amount, self.unit)

    @property
    def unit(self) -> str:
        """What costs are in, for a month."""
        return "USD a month" if self.is_priced else NODES

    @cached_property
    def prices(self) -> dict[str, float]:
        """What every node costs in `unit`; 0 for a node that takes no part and has no price."""
        if not self.is_priced:
            return dict.fromkeys([*self.there, *self.bought], 1.0)
        existing = {name: node.price for name, node in self.imported.origin.nodes.items()}
        book, options = self.imported.cluster.prices or PriceBook(), self.imported.options
        for name, node in self.imported.cluster.site.closed.items():
            price = book.price(node, options.region)
            existing[name] = missing_price(options.missing_prices) if price is None else price
        return {name: (price or 0.0) * HOURS_OF_A_MONTH for name, price in existing.items()}

    @property
    def unpriced(self) -> list[str]:
        """The nodes of the cluster without a price."""
        return [name for name in self.there if self.prices[name] == 0]

    def due(self, name: str) -> float:
        """Return what a node costs beside what is paid for it in any case, in `unit`."""
        known = self.imported.origin.nodes.get(name)
        return self.prices[name] * (1.0 if known is None else 1 - known.paid)

    @cached_property
    def cost_now(self) -> float:
        """What the nodes of the cluster cost now, in `unit`."""
        return sum(self.prices[name] for name in self.there)

    @cached_property
    def cost(self) -> float:
        """What is paid at the end, in `unit`."""
        bought = sum(map(self.due, self.bought))
        return self.cost_now - sum(map(self.due, self.gone)) + bought

    @property
    def saving(self) -> float:
        """What the plan saves, in `unit`."""
        return self.cost_now - self.cost

    @cached_property
    def at_most(self) -> float:
        """Largest saving that a better plan could add, in `unit`: a proven bound."""
        from placeopt.rolling_update.end_state import lowest_price

        a, stops = self.problem.arrays, self.stops or self.verdict.values[2] > 0
        cost = a.cost(self.final[self.final >= 0])
        lowest = self.lowest
        if lowest is None:
            lowest = lowest_price(self.problem, round(cost * a.price_scale), stops=stops)
        left = cost - lowest / a.price_scale
        return max(0.0, round(left, 9)) * (HOURS_OF_A_MONTH if self.is_priced else 1)


def solved(
    imported: Imported,
    *,
    stops: bool = False,
    base: Situation | None = None,
    work: int = WORK,
    tries: int = TRIES,
    seed: int = 1,
) -> Situation:
    """Return a cluster with the cheapest plan that is found.

    Parameters
    ----------
    imported : Imported
        A rolling update.
    stops : bool
        Whether a pod may end before its new copy runs.
    base : Situation, optional
        Much the same cluster with a plan: where its pods end is one place to begin.
    work : int
        Pods that all searches together place.
    tries : int
        Orders that are tried of the moves to a deployment, at most.
    seed : int
    """
    empty = Situation(imported, {"steps": []})
    starts = [] if base is None else [_carried(base, empty)]
    plans = [] if base is None else [_repeated(base, empty)]
    plan = cheapest_plan(
        empty.problem, stops=stops, starts=starts, plans=plans, work=work, tries=tries, seed=seed
    )
    return Situation(imported, plan, stops=stops)


def planned(imported: Imported, *, stops: bool = False, seed: int = 1) -> Situation:
    """Return a cluster with the cheapest plan; what no plan starts is left out, and named.

    A pod that waits for a node, and that no plan can start, must not hold up the others. Where
    several wait, each workload is tried by itself; of many the last ones together.
    """
    result = solved(imported, stops=stops, seed=seed)
    waiting = [unit for unit in imported.cluster.site.units if unit.node is None]
    if not waiting or _keeps_all(result, stops):
        return result
    groups = list(grouped(waiting, lambda unit: unit.owner).values())
    groups[_TRIED - 1 :] = [[u for own in groups[_TRIED - 1 :] for u in own]]
    left = solved(_without(imported, waiting, stops), base=result, stops=stops, seed=seed)
    if len(left.verdict.violations) >= max(1, len(result.verdict.violations)):
        return result  # what waits is not what breaks rules
    out = waiting
    for own in groups if len(groups) > 1 else ():
        fewer = [u for u in out if u not in own]
        trial = solved(_without(imported, fewer, stops), base=left, stops=stops, work=0, seed=seed)
        if _keeps_all(trial, stops):
            left, out = trial, fewer
    if len(out) < len(waiting):
        left = solved(left.imported, base=left, stops=stops, seed=seed)
    return replace(left, waits=tuple(out))


def _keeps_all(one: Situation, stops: bool) -> bool:
    return one.verdict.feasible and (stops or not one.verdict.values[2])


def _without(imported: Imported, units: Sequence[Replica], stops: bool) -> Imported:
    """Return an import without replicas that wait."""
    gone = {(u.namespace, u.name) for u in units}
    cluster = imported.cluster.mapped(lambda u: None if (u.namespace, u.name) in gone else u)
    text = "waits for a node: no plan was found that starts it" + " and stops no pod" * (not stops)
    return imported.changed(cluster, left_out=dict.fromkeys((u.label for u in units), text))


def repeated(base: Situation, imported: Imported) -> Situation:
    """Return another cluster with the plan of `base`, and what its program proves at once."""
    from placeopt.rolling_update.end_state import cheapest_end

    empty = Situation(imported, {"steps": []}, stops=base.stops)
    lowest = cheapest_end(empty.problem, stops=base.stops, below=0).lowest
    return replace(empty, plan=_repeated(base, empty), lowest=lowest)


def _carried(base: Situation, other: Situation) -> np.ndarray:
    """Return the deployment at the end of `base` for another cluster, (M,): by names."""
    names = base.problem.arrays.node_names
    end = {pod: names[n] for pod, n in zip(base.owners, base.final.tolist(), strict=True) if n >= 0}
    a = other.problem.arrays
    number = {name: n for n, name in enumerate(a.node_names)}
    where = a.stays_on.copy()
    for m in np.flatnonzero(~a.stuck & ~a.removed).tolist():
        where[m] = number.get(end.get(other.owners[m], ""), where[m])
    return where


def _repeated(base: Situation, other: Situation) -> Plan:
    """Return the steps of `base` for another cluster, as far as it has the same pods and nodes."""
    a, names = other.problem.arrays, base.problem.arrays.node_names
    pods = {pod: m for m, pod in enumerate(other.owners)}
    nodes = {name: n for n, name in enumerate(a.node_names)}
    steps = [
        (pods.get(base.owners[m], -1), n if n < 0 else nodes.get(names[n], -2))
        for m, n in base.steps
    ]
    return other.problem.plan([(m, n) for m, n in steps if m >= 0 and n > -2])
