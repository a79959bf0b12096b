"""The temporal problem as the paper formulates it: a time-indexed mixed-integer program.

Equations are those of N. Di Cicco et al., CNSM 2024. ``models/temporal/README.md`` has the maths,
says which component is which equation, and where the model departs from the paper and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pyomo.environ as pyo
from pydantic import Field

from placeopt.core.errors import InfeasibleInstanceError
from placeopt.core.fronts.values import Plan
from placeopt.core.parameters import checked
from placeopt.core.problem import keyword_defaults
from placeopt.core.public import public
from placeopt.exact.hooks import Hooks
from placeopt.exact.objectives import declare, remember
from placeopt.temporal.document import PRICINGS
from placeopt.temporal.instance import Temporal
from placeopt.temporal.model_data import Lot, Machine, ModelData, enough_copies


@public
def build(
    problem: Temporal,
    *,
    copies: Annotated[
        int | None,
        Field(ge=1, le=10_000, description="Machines of each offer and pricing; enough if None."),
    ] = None,
    replicas: Annotated[
        Literal["together", "separate"],
        Field(description="Whether variables count the replicas of a request or tell them apart."),
    ] = "together",
    ordered: Annotated[
        bool, Field(description="Number equal machines by the first replica that they host.")
    ] = True,
    tight: Annotated[
        bool, Field(description="Add constraints that sharpen the relaxation.")
    ] = True,
) -> pyo.ConcreteModel:
    """Return the model of an instance.

    Parameters
    ----------
    copies : int, optional
        By default there are enough machines to lose no point of the front: see `enough_copies`.
    replicas : {"together", "separate"}
        ``separate``: a binary variable for every replica, as printed. ``together``: the replicas of
        a request are identical, so an integer counts how many of them a machine hosts. The front is
        the same, the variables are far fewer.
    ordered : bool
        Leaves out equivalent solutions only.
    tight : bool
        The constraints hold anyway in whole numbers.

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
    options = _checked(copies=copies, replicas=replicas, ordered=ordered, tight=tight)
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    model = pyo.ConcreteModel(name=problem.name)
    model.data = _data(problem, options)
    _add_sets(model)
    _add_variables(model)
    _add_constraints(model)
    if options["tight"]:
        model.active_long_enough = pyo.Constraint(model.HOSTS, rule=_active_long_enough)
    declare(
        model,
        {
            "latency_ms": _latency(model),
            "cost_usd": _cost(model),
            "interruption": _interruption(model),
        },
    )
    return remember(model, problem, extract, assign=assign)


def _checked(**options: Any) -> dict[str, Any]:
    """Return options of `build`, converted, with the defaults of those that are not given."""
    return keyword_defaults(build) | checked(build, "the temporal model", options)


def _data(problem: Temporal, options: Mapping[str, Any]) -> ModelData:
    return ModelData(problem, options["copies"], options["replicas"], options["ordered"])


def _add_sets(model: pyo.ConcreteModel) -> None:
    data: ModelData = model.data
    requests = list(data.lots_of)
    locations = list(dict.fromkeys(machine.location for machine in data.machines))
    model.REQUESTS = pyo.Set(initialize=requests, doc="i in D")
    model.LOCATIONS = pyo.Set(initialize=locations, doc="k in DC")
    model.SLOTS = pyo.Set(initialize=list(data.slots), doc="t in T")
    model.LOTS = pyo.Set(initialize=data.lots, doc="r in R_i")
    model.MACHINES = pyo.Set(initialize=data.machines, doc="j in I, k in DC")
    for pricing in PRICINGS:
        own = [machine for machine in data.machines if machine.pricing == pricing]
        setattr(
            model,
            pricing.upper().replace("-", "_"),
            pyo.Set(initialize=own, doc=f"machines paid {pricing}"),
        )
    model.STARTS = pyo.Set(dimen=2, initialize=[(i, t) for i in requests for t in data.starts(i)])
    model.HOSTS = pyo.Set(
        dimen=2, initialize=[(lot, j) for lot in data.lots for j in data.hosts_of[lot]]
    )
    model.PLACEMENTS = pyo.Set(
        dimen=3,
        initialize=[(lot, j, t) for lot, j in model.HOSTS for t in data.starts(lot.request)],
    )
    reachable = dict.fromkeys((lot.request, j.location) for lot, j in model.HOSTS)
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
        bounds=lambda m, lot, machine, t: (0, data.max_hosted(lot, machine)),
        doc="x: replicas of the lot that start in this slot on this machine",
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
    model.all_placed = pyo.Constraint(model.LOTS, rule=_all_placed, doc="(12)")
    model.start_together = pyo.Constraint(model.LOTS, model.SLOTS, rule=_start_together, doc="(13)")
    model.one_start = pyo.Constraint(model.REQUESTS, rule=_one_start, doc="(14)")
    model.place_used = pyo.Constraint(model.LOTS, model.LOCATIONS, rule=_place_used, doc="(15)")
    model.latency_covers = pyo.Constraint(model.REACHABLE, rule=_latency_covers, doc="(16)")
    model.leased_while_active = pyo.Constraint(
        model.COUNTED, model.SLOTS, rule=_leased_while_active, doc="max_instances"
    )
    model.at_most_leased = pyo.Constraint(model.LIMITED, rule=_at_most_leased, doc="max_instances")


def _fits(model: pyo.ConcreteModel, machine: Machine, t: int, resource: int) -> Any:
    """What runs on a machine in a slot fits, and runs only while it is paid: (10) and (11)."""
    data: ModelData = model.data
    load = [
        data.demand[lot.request][resource] * model.placed[lot, machine, s]
        for lot in data.hosted_by[machine]
        for s in data.window(lot.request, t)
    ]
    if not load:
        return pyo.Constraint.Skip
    return pyo.quicksum(load) <= data.capacity[machine.offer][resource] * _active(model, machine, t)


def _all_placed(model: pyo.ConcreteModel, lot: Lot) -> Any:
    """Every replica runs on one machine from one start: equation (12)."""
    data: ModelData = model.data
    placed = [model.placed[lot, j, t] for j in data.hosts_of[lot] for t in data.starts(lot.request)]
    return pyo.quicksum(placed) == lot.size


def _start_together(model: pyo.ConcreteModel, lot: Lot, t: int) -> Any:
    """Replicas start when their request does: equation (13), over all machines at once."""
    data: ModelData = model.data
    if t not in data.starts(lot.request):
        return pyo.Constraint.Skip
    placed = [model.placed[lot, j, t] for j in data.hosts_of[lot]]
    return (
        pyo.quicksum(placed) <= lot.size * model.start[lot.request, t]
        if placed
        else pyo.Constraint.Skip
    )


def _one_start(model: pyo.ConcreteModel, request: str) -> Any:
    """A request starts once: equation (14)."""
    return pyo.quicksum(model.start[request, t] for t in model.data.starts(request)) == 1


def _place_used(model: pyo.ConcreteModel, lot: Lot, location: str) -> Any:
    """A request uses the places where its replicas run: (15), over all machines and starts."""
    data: ModelData = model.data
    hosts = [j for j in data.hosts_of[lot] if j.location == location]
    placed = [model.placed[lot, j, t] for j in hosts for t in data.starts(lot.request)]
    return (
        pyo.quicksum(placed) <= lot.size * model.uses[lot.request, location]
        if placed
        else pyo.Constraint.Skip
    )


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


def _active_long_enough(model: pyo.ConcreteModel, lot: Lot, machine: Machine) -> Any:
    """A machine that hosts any of a lot is paid for as long as the lot runs.

    In whole numbers (10) implies that; in fractions it does not.
    """
    data: ModelData = model.data
    placed = pyo.quicksum(model.placed[lot, machine, t] for t in data.starts(lot.request))
    if machine.pricing == "reserved":
        return placed <= data.max_hosted(lot, machine) * model.reserved[machine]
    active = pyo.quicksum(_active(model, machine, t) for t in data.slots)
    return data.duration[lot.request] * placed <= data.max_hosted(lot, machine) * active


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
    requests, offers = data.problem.requests, data.problem.offers
    terms = [
        (offers[j.offer].spot_interruption or 0.0)
        / (requests[data.index[lot.request]].replicas * len(requests))
        * model.placed[lot, j, t]
        for lot, j, t in model.PLACEMENTS
        if j.pricing == "spot"
    ]
    return pyo.quicksum(terms)


def extract(model: pyo.ConcreteModel) -> Plan:
    """Return the plan of a solved model; machines that host nothing are left out."""
    data: ModelData = model.data
    starts = {
        request: next(t for t in data.starts(request) if _value(model.start[request, t]))
        for request in data.lots_of
    }
    hosted: dict[Machine, list[list[Any]]] = {}
    taken = dict.fromkeys(starts, 0)
    for lot, machine, t in model.PLACEMENTS:
        for _ in range(_value(model.placed[lot, machine, t])):
            hosted.setdefault(machine, []).append([lot.request, taken[lot.request]])
            taken[lot.request] += 1
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
    rank = {name: k for k, name in enumerate(data.lots_of)}
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
    for name, replica in replicas:
        lots = data.lots_of[name]
        placed = model.placed[lots[replica % len(lots)], machine, starts[name]]
        placed.set_value(placed.value + 1)
        model.uses[name, machine.location].set_value(1)
        latency = data.latency(name, machine.location)
        model.worst_latency[name].set_value(max(model.worst_latency[name].value, latency))


def size(problem: Temporal, **options: Any) -> int:
    """Return about how many coefficients the model has under options of `build`."""
    data = _data(problem, _checked(**options))
    return sum(
        len(hosts)
        * (len(data.starts(lot.request)) * (2 * data.duration[lot.request] + 5) + len(data.slots))
        for lot, hosts in data.hosts_of.items()
    )


#: What a model with few copies cannot express.
OMITTED = "plans with more machines of an offer than it has copies"


def lossless(problem: Temporal, **options: Any) -> bool:
    """Return whether the model has enough copies of every machine to reach the whole front."""
    copies = _checked(**options)["copies"]
    if copies is None:
        return True
    limits = [offer.max_instances for offer in problem.offers]
    return all(
        copies >= enough_copies(problem, k) or (limit is not None and copies >= limit)
        for k, limit in enumerate(limits)
    )


#: What helps the exact search in this model.
HOOKS = Hooks(extract, assign=assign, size=size, covers=lossless, omitted=OMITTED)
