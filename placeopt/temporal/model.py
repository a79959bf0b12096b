"""The temporal problem as the paper formulates it: a time-indexed mixed-integer program.

Equations are those of N. Di Cicco et al., CNSM 2024. ``models/temporal/README.md`` has the maths,
says which component is which equation, and where the model departs from the paper and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo
from pydantic import Field

from placeopt.core.errors import InfeasibleInstanceError
from placeopt.core.fronts.values import Plan
from placeopt.core.parameters import checked
from placeopt.core.problem import Problem, keyword_defaults, of_kind
from placeopt.exact.goals import declare, remember
from placeopt.temporal.arrays import PRICINGS
from placeopt.temporal.problem import Temporal

# -- data ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """One instance that may be leased: the paper's j in data centre k.

    Attributes
    ----------
    offer : int
        Index of the offer in the instance.
    location, size, pricing : str
    copy : int
        Number among the machines of this offer and pricing.
    """

    offer: int
    location: str
    size: str
    pricing: str
    copy: int

    def __str__(self) -> str:
        return f"{self.location} {self.size} {self.pricing} {self.copy}"


class ModelData:
    """The numbers of an instance by the names that the model's indices use."""

    def __init__(self, problem: Temporal, copies: int | None):
        self.problem = problem
        self.index = {request.name: k for k, request in enumerate(problem.requests)}
        self.slots = range(problem.horizon_slots)
        self.duration = {request.name: request.duration_slots for request in problem.requests}
        self.replicas = {request.name: request.replicas for request in problem.requests}
        self.machines = list(_machines(problem, copies))
        self.hosts_of: dict[str, list[Machine]] = {}
        self.hosted_by: dict[Machine, list[str]] = {machine: [] for machine in self.machines}
        before = 0
        for k, request in enumerate(problem.requests):
            # Equal machines are numbered by the first replica that they host: then replica p is on
            # one of the first p + 1.
            before += request.replicas
            usable = problem.arrays.usable[k]
            self.hosts_of[request.name] = [
                m for m in self.machines if usable[m.offer] and m.copy < before
            ]
            for machine in self.hosts_of[request.name]:
                self.hosted_by[machine].append(request.name)
        # Without their common factor, coefficients are small and capacities exact.
        demands, capacities = problem.arrays.demands, problem.arrays.capacities
        factor = np.maximum(np.gcd.reduce(np.concatenate((demands, capacities))), 1)
        self.demand = dict(zip(self.index, (demands // factor).tolist(), strict=True))
        self.capacity = (capacities // factor).tolist()

    def starts(self, request: str) -> range:
        """Return the slots in which a request can start."""
        return range(len(self.slots) - self.duration[request] + 1)

    def window(self, request: str, slot: int) -> range:
        """Return the starts from which a request still runs in `slot`: the paper's D_t."""
        return range(
            max(0, slot - self.duration[request] + 1),
            min(slot, len(self.slots) - self.duration[request]) + 1,
        )

    def latency(self, request: str, location: str) -> float:
        """Return the latency in ms from the origin of a request to a place."""
        return self.problem.latency_ms[self.problem.requests[self.index[request]].origin][location]

    def max_hosted(self, request: str, machine: Machine) -> int:
        """Return how many replicas of a request fit into a machine at once."""
        resources = zip(self.capacity[machine.offer], self.demand[request], strict=True)
        return min(
            self.replicas[request],
            *(capacity // demand for capacity, demand in resources if demand),
        )

    def limited(self, offer: int) -> bool:
        """Return whether ``max_instances`` of an offer is below the number of its machines."""
        limit = self.problem.offers[offer].max_instances
        return limit is not None and limit < sum(m.offer == offer for m in self.machines)


def _machines(problem: Temporal, copies: int | None) -> Iterator[Machine]:
    for j, pricing, count in _copies(problem, copies):
        offer = problem.offers[j]
        yield from (Machine(j, offer.location, offer.size, pricing, c) for c in range(count))


def _copies(problem: Temporal, copies: int | None) -> Iterator[tuple[int, str, int]]:
    """Yield each offer and pricing with the number of its machines."""
    for j, offer in enumerate(problem.offers):
        count = enough_copies(problem, j) if copies is None else copies
        if offer.max_instances is not None:
            count = min(count, offer.max_instances)
        yield from ((j, pricing, count) for pricing in PRICINGS if offer.price(pricing) is not None)


def enough_copies(problem: Temporal, offer: int) -> int:
    """Return a number of machines of one offer and pricing that is enough for every point.

    Two machines of the same offer and pricing whose replicas fit into one of them at all times can
    be merged: no value of the plan grows. So some best plan has no such pair. Then all its machines
    but one hold replicas that together fill more than half of a machine's vCPU or memory. With W
    the load of everything that the offer can host, in machines, there are fewer than 1 + 2W of
    them. Nor are there more machines than replicas.
    """
    arrays = problem.arrays
    able = arrays.usable[:, offer]
    replicas = [r.replicas for r, can in zip(problem.requests, able, strict=True) if can]
    capacity = arrays.capacities[offer].tolist()
    demands = arrays.demands[able].tolist()
    cpu, memory = (
        sum(count * demand[resource] for count, demand in zip(replicas, demands, strict=True))
        for resource in range(2)
    )
    # ceil(2 W) in whole numbers: W is cpu / capacity[0] + memory / capacity[1].
    halves = 2 * (cpu * capacity[1] + memory * capacity[0])
    whole = capacity[0] * capacity[1]
    return min(sum(replicas), -(-halves // whole) if whole else 0)


# -- the model -------------------------------------------------------------------------------------


def build(
    problem: Problem,
    *,
    copies: Annotated[
        int | None,
        Field(ge=1, le=10_000, description="Machines of each offer and pricing; enough if None."),
    ] = None,
) -> pyo.ConcreteModel:
    """Return the model of an instance.

    Parameters
    ----------
    copies : int, optional
        By default there are enough machines to lose no point of the front: see `enough_copies`.

    Returns
    -------
    pyomo.environ.ConcreteModel
        ``latency_ms``, ``cost_usd`` and ``interruption`` are its Expressions; ``epsilon[name]``
        bounds one of them.

    Raises
    ------
    UsageError
        An illegal option.
    InfeasibleInstanceError
        A request fits no offer, or is longer than the horizon.
    """
    problem = of_kind(Temporal, problem)
    options = _checked(copies=copies)
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    model = pyo.ConcreteModel(name=problem.name)
    model.data = ModelData(problem, options["copies"])
    _add_sets(model)
    _add_variables(model)
    _add_constraints(model)
    declare(
        model,
        {
            "latency_ms": _latency(model),
            "cost_usd": _cost(model),
            "interruption": _interruption(model),
        },
    )
    omitted = "" if _sees_all(problem, options["copies"]) else OMITTED
    return remember(model, problem, extract, assign=assign, omitted=omitted)


def _checked(**options: Any) -> dict[str, Any]:
    """Return options of `build`, converted, with the defaults of those that are not given."""
    return keyword_defaults(build) | checked(build, "the temporal model", options)


def _add_sets(model: pyo.ConcreteModel) -> None:
    data: ModelData = model.data
    requests = list(data.hosts_of)
    locations = list(dict.fromkeys(machine.location for machine in data.machines))
    model.REQUESTS = pyo.Set(initialize=requests, doc="i in D")
    model.LOCATIONS = pyo.Set(initialize=locations, doc="k in DC")
    model.SLOTS = pyo.Set(initialize=list(data.slots), doc="t in T")
    model.MACHINES = pyo.Set(initialize=data.machines, doc="j in I, k in DC")
    for pricing in PRICINGS:
        own = [machine for machine in data.machines if machine.pricing == pricing]
        setattr(
            model,
            pricing.upper().replace("-", "_"),
            pyo.Set(initialize=own, doc=f"machines paid {pricing}"),
        )
    model.STARTS = pyo.Set(dimen=2, initialize=[(i, t) for i in requests for t in data.starts(i)])
    model.HOSTS = pyo.Set(dimen=2, initialize=[(i, j) for i in requests for j in data.hosts_of[i]])
    model.PLACEMENTS = pyo.Set(
        dimen=3,
        initialize=[(i, j, t) for i, j in model.HOSTS for t in data.starts(i)],
    )
    reachable = dict.fromkeys((i, j.location) for i, j in model.HOSTS)
    model.REACHABLE = pyo.Set(
        dimen=2, initialize=list(reachable), doc="places that can host a request"
    )
    hourly = [
        machine
        for machine in data.machines
        if machine.pricing != "reserved" and data.limited(machine.offer)
    ]
    model.COUNTED = pyo.Set(
        initialize=hourly, doc="machines paid by the slot of offers with max_instances"
    )
    model.LIMITED = pyo.Set(
        initialize=[j for j in range(len(data.problem.offers)) if data.limited(j)],
        doc="offers with max_instances",
    )


def _add_variables(model: pyo.ConcreteModel) -> None:
    data: ModelData = model.data
    model.start = pyo.Var(model.STARTS, domain=pyo.Binary, doc="a: the request starts in this slot")
    model.placed = pyo.Var(
        model.PLACEMENTS,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda m, i, machine, t: (0, data.max_hosted(i, machine)),
        doc="x: replicas of the request that start in this slot on this machine",
    )
    model.reserved = pyo.Var(model.RESERVED, domain=pyo.Binary, doc="r: the machine is reserved")
    model.on_demand = pyo.Var(
        model.ON_DEMAND, model.SLOTS, domain=pyo.Binary, doc="o: the machine is active in this slot"
    )
    model.spot = pyo.Var(
        model.SPOT, model.SLOTS, domain=pyo.Binary, doc="s: the machine is active in this slot"
    )
    model.uses = pyo.Var(
        model.REACHABLE, domain=pyo.Binary, doc="d: the request has a replica in this place"
    )
    model.worst_latency = pyo.Var(
        model.REQUESTS, domain=pyo.NonNegativeReals, doc="L: largest latency of the request, ms"
    )
    model.leased = pyo.Var(
        model.COUNTED, domain=pyo.Binary, doc="the machine is active in some slot"
    )


def _active(model: pyo.ConcreteModel, machine: Machine, t: int) -> Any:
    """Return the variable that says whether a machine is paid in a slot: r, o or s."""
    if machine.pricing == "reserved":
        return model.reserved[machine]
    return model.on_demand[machine, t] if machine.pricing == "on-demand" else model.spot[machine, t]


def _add_constraints(model: pyo.ConcreteModel) -> None:
    model.cpu_fits = pyo.Constraint(
        model.MACHINES, model.SLOTS, rule=lambda m, j, t: _fits(m, j, t, 0), doc="(10)"
    )
    model.memory_fits = pyo.Constraint(
        model.MACHINES, model.SLOTS, rule=lambda m, j, t: _fits(m, j, t, 1), doc="(11)"
    )
    model.all_placed = pyo.Constraint(model.REQUESTS, rule=_all_placed, doc="(12)")
    model.start_together = pyo.Constraint(
        model.REQUESTS, model.SLOTS, rule=_start_together, doc="(13)"
    )
    model.one_start = pyo.Constraint(model.REQUESTS, rule=_one_start, doc="(14)")
    model.place_used = pyo.Constraint(model.REACHABLE, rule=_place_used, doc="(15)")
    model.latency_covers = pyo.Constraint(model.REACHABLE, rule=_latency_covers, doc="(16)")
    model.leased_while_active = pyo.Constraint(
        model.COUNTED, model.SLOTS, rule=_leased_while_active, doc="max_instances"
    )
    model.active_long_enough = pyo.Constraint(model.HOSTS, rule=_active_long_enough)
    model.at_most_leased = pyo.Constraint(model.LIMITED, rule=_at_most_leased, doc="max_instances")


def _fits(model: pyo.ConcreteModel, machine: Machine, t: int, resource: int) -> Any:
    """What runs on a machine in a slot fits, and runs only while it is paid: (10) and (11)."""
    data: ModelData = model.data
    load = [
        data.demand[i][resource] * model.placed[i, machine, s]
        for i in data.hosted_by[machine]
        for s in data.window(i, t)
    ]
    if not load:
        return pyo.Constraint.Skip
    return pyo.quicksum(load) <= data.capacity[machine.offer][resource] * _active(model, machine, t)


def _all_placed(model: pyo.ConcreteModel, request: str) -> Any:
    """Every replica runs on one machine from one start: equation (12)."""
    data: ModelData = model.data
    placed = [
        model.placed[request, j, t] for j in data.hosts_of[request] for t in data.starts(request)
    ]
    return pyo.quicksum(placed) == data.replicas[request]


def _start_together(model: pyo.ConcreteModel, request: str, t: int) -> Any:
    """Replicas start when their request does: equation (13), over all machines at once."""
    data: ModelData = model.data
    if t not in data.starts(request) or not data.hosts_of[request]:
        return pyo.Constraint.Skip
    placed = pyo.quicksum(model.placed[request, j, t] for j in data.hosts_of[request])
    return placed <= data.replicas[request] * model.start[request, t]


def _one_start(model: pyo.ConcreteModel, request: str) -> Any:
    """A request starts once: equation (14)."""
    return pyo.quicksum(model.start[request, t] for t in model.data.starts(request)) == 1


def _place_used(model: pyo.ConcreteModel, request: str, location: str) -> Any:
    """A request uses the places where its replicas run: (15), over all machines and starts."""
    data: ModelData = model.data
    hosts = [j for j in data.hosts_of[request] if j.location == location]
    placed = pyo.quicksum(model.placed[request, j, t] for j in hosts for t in data.starts(request))
    return placed <= data.replicas[request] * model.uses[request, location]


def _latency_covers(model: pyo.ConcreteModel, request: str, location: str) -> Any:
    """The latency of a request is that of the farthest place it uses: equation (16)."""
    return (
        model.worst_latency[request]
        >= model.data.latency(request, location) * model.uses[request, location]
    )


def _leased_while_active(model: pyo.ConcreteModel, machine: Machine, t: int) -> Any:
    return _active(model, machine, t) <= model.leased[machine]


def _at_most_leased(model: pyo.ConcreteModel, offer: int) -> Any:
    """An offer has so many machines, all pricings together."""
    leased = [
        (model.reserved if machine.pricing == "reserved" else model.leased)[machine]
        for machine in model.data.machines
        if machine.offer == offer
    ]
    return pyo.quicksum(leased) <= model.data.problem.offers[offer].max_instances


def _active_long_enough(model: pyo.ConcreteModel, request: str, machine: Machine) -> Any:
    """A machine that hosts any of a request is paid for as long as the request runs.

    In whole numbers (10) implies that; in fractions it does not.
    """
    data: ModelData = model.data
    placed = pyo.quicksum(model.placed[request, machine, t] for t in data.starts(request))
    most = data.max_hosted(request, machine)
    if machine.pricing == "reserved":
        return placed <= most * model.reserved[machine]
    active = pyo.quicksum(_active(model, machine, t) for t in data.slots)
    return data.duration[request] * placed <= most * active


def _latency(model: pyo.ConcreteModel) -> Any:
    """Return the mean over the requests of their largest latency, ms: equation (6)."""
    return pyo.quicksum(model.worst_latency.values()) / len(model.REQUESTS)


def _cost(model: pyo.ConcreteModel) -> Any:
    """Return the cost in USD: equation (7).

    Reserved machines cost for the whole horizon, the others for the slots in which they are active.
    """
    price, slots = model.data.problem.slot_price, model.data.slots
    reserved = pyo.quicksum(
        price(j.offer, j.pricing) * len(slots) * model.reserved[j] for j in model.RESERVED
    )
    hourly = pyo.quicksum(
        price(j.offer, j.pricing) * _active(model, j, t)
        for j in (*model.ON_DEMAND, *model.SPOT)
        for t in slots
    )
    return reserved + hourly


def _interruption(model: pyo.ConcreteModel) -> Any:
    """Return the mean over the requests of the mean interruption of their replicas: (8)."""
    data: ModelData = model.data
    offers = data.problem.offers
    terms = [
        (offers[j.offer].spot_interruption or 0.0)
        / (data.replicas[i] * len(model.REQUESTS))
        * model.placed[i, j, t]
        for i, j, t in model.PLACEMENTS
        if j.pricing == "spot"
    ]
    return pyo.quicksum(terms)


def extract(model: pyo.ConcreteModel) -> Plan:
    """Return the plan of a solved model; machines that host nothing are left out."""
    data: ModelData = model.data
    starts = {
        request: next(t for t in data.starts(request) if _value(model.start[request, t]))
        for request in data.hosts_of
    }
    hosted: dict[Machine, list[list[Any]]] = {}
    taken = dict.fromkeys(starts, 0)
    for request, machine, t in model.PLACEMENTS:
        for _ in range(_value(model.placed[request, machine, t])):
            hosted.setdefault(machine, []).append([request, taken[request]])
            taken[request] += 1
    instances = [
        {"location": j.location, "size": j.size, "pricing": j.pricing, "replicas": hosted[j]}
        for j in data.machines
        if j in hosted
    ]
    return {"starts": starts, "instances": instances}


def _value(variable: Any) -> int:
    return round(variable.value or 0)


def assign(model: pyo.ConcreteModel, plan: Plan) -> bool:
    """Give the variables the values of a feasible plan.

    Returns
    -------
    bool
        False where the plan leases more copies of a machine than the model has. The values are then
        those of no plan.
    """
    data: ModelData = model.data
    starts = plan["starts"]
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(0, skip_validation=True)
    for request, t in starts.items():
        model.start[request, t].set_value(1)
    leased: dict[tuple[str, str, str], list[Any]] = {}
    rank = {name: k for k, name in enumerate(data.hosts_of)}
    used = [instance for instance in plan["instances"] if instance["replicas"]]
    used.sort(key=lambda j: min((rank[name], replica) for name, replica in j["replicas"]))
    for instance in used:
        key = (instance["location"], instance["size"], instance["pricing"])
        leased.setdefault(key, []).append(instance["replicas"])
    for machine in data.machines:
        if hosted := leased.get((machine.location, machine.size, machine.pricing)):
            _host(model, machine, starts, hosted.pop(0))
    return not any(leased.values())


def _host(
    model: pyo.ConcreteModel, machine: Machine, starts: Mapping[str, int], replicas: list[Any]
) -> None:
    """Let a machine host replicas, given as (request, number)."""
    data: ModelData = model.data
    for t in {
        t for name, _ in replicas for t in range(starts[name], starts[name] + data.duration[name])
    }:
        _active(model, machine, t).set_value(1)
    if machine in model.COUNTED:
        model.leased[machine].set_value(1)
    for name, _ in replicas:
        placed = model.placed[name, machine, starts[name]]
        placed.set_value(placed.value + 1)
        model.uses[name, machine.location].set_value(1)
        latency = data.latency(name, machine.location)
        model.worst_latency[name].set_value(max(model.worst_latency[name].value, latency))


def size(problem: Temporal, **options: Any) -> int:
    """Return about how many coefficients the model has under options of `build`."""
    machines = list(_copies(problem, _checked(**options)["copies"]))
    offers, counts = [j for j, _, _ in machines], np.array([count for *_, count in machines])
    slots, before, total = problem.horizon_slots, 0, 0
    for k, request in enumerate(problem.requests):  # hosts as `ModelData` lists them
        before += request.replicas
        hosts = int(np.minimum(counts, before)[problem.arrays.usable[k][offers]].sum())
        starts = max(0, slots - request.duration_slots + 1)
        total += hosts * (starts * (2 * request.duration_slots + 5) + slots)
    return total


#: What a model with few copies cannot express.
OMITTED = "plans with more machines of an offer than it has copies"


def _sees_all(problem: Temporal, copies: int | None) -> bool:
    """Return whether the model has enough copies of every machine to reach the whole front."""
    if copies is None:
        return True
    limits = [offer.max_instances for offer in problem.offers]
    return all(
        copies >= enough_copies(problem, k) or (limit is not None and copies >= limit)
        for k, limit in enumerate(limits)
    )
