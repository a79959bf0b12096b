"""Requests over time on reserved, on-demand and spot instances.

Source: N. Di Cicco et al., "Multi-Objective Scheduling and Resource Allocation of Kubernetes Replicas Across the Compute
Continuum", CNSM 2024; equation numbers are that paper's. The page is ``models/temporal/README.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from placeopt.documents import validate
from placeopt.errors import DocumentError, did_you_mean
from placeopt.problems.base import (
    Amount,
    Count,
    Evaluation,
    Name,
    Objective,
    Positive,
    PositiveCount,
    Problem,
    Record,
    Violation,
    decimals,
    keyword_defaults,
    require_unique,
    scaled_down,
    scaled_up,
)

PRICINGS = ("on-demand", "reserved", "spot")
#: More decimals than these are rounded, and the objective has no `step`.
_MOST_DECIMALS = 9

Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class Offer(Record):
    """A machine size that can be leased in one place; a price that is absent is not offered."""

    location: Name
    size: Name
    cpu_cores: Positive
    memory_gib: Positive
    on_demand_usd_per_hour: Amount | None = None
    reserved_usd_per_hour: Amount | None = None
    spot_usd_per_hour: Amount | None = None
    spot_interruption: Share | None = None
    max_instances: Count | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.on_demand_usd_per_hour is None and self.reserved_usd_per_hour is None and self.spot_usd_per_hour is None:
            raise DocumentError("the offer has no price", remedy="give on_demand_, reserved_ or spot_usd_per_hour")
        if self.spot_usd_per_hour is not None and self.spot_interruption is None:
            raise DocumentError("a spot price without spot_interruption", remedy="give the share of interruptions, 0 to 1")
        return self

    def price(self, pricing: str) -> float | None:
        """Return the price in USD per hour under a pricing of `PRICINGS`, None where it is not offered."""
        return {"on-demand": self.on_demand_usd_per_hour, "reserved": self.reserved_usd_per_hour, "spot": self.spot_usd_per_hour}[pricing]


class Request(Record):
    """Replicas that start together, run for a while, and are called from one origin."""

    name: Name
    cpu_cores: Positive
    memory_gib: Positive
    duration_slots: PositiveCount
    replicas: PositiveCount
    origin: Name


class Instance(Record):
    """One leased machine of a plan and the replicas that it hosts, as (request, replica index)."""

    location: Name
    size: Name
    pricing: Literal["on-demand", "reserved", "spot"]
    replicas: list[tuple[str, Annotated[int, Field(strict=True)]]]


class Plan(Record):
    """When every request starts, and which machines are leased for which replicas."""

    starts: dict[str, Annotated[int, Field(strict=True)]]
    instances: list[Instance]


class Temporal(Problem):
    """An instance of the temporal problem.

    Examples
    --------
    >>> problem = Temporal.generate(seed=1, requests=3)
    >>> [objective.name for objective in problem.objectives]
    ['latency_ms', 'cost_usd', 'interruption']
    """

    problem: Literal["temporal"] = "temporal"
    horizon_slots: PositiveCount
    slot_hours: Positive = 1.0
    latency_ms: dict[str, dict[str, Amount]]
    offers: tuple[Offer, ...] = Field(min_length=1)
    requests: tuple[Request, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique(((o.location, o.size) for o in self.offers), "offer")
        require_unique((r.name for r in self.requests), "request")
        for k, request in enumerate(self.requests):
            if request.origin not in self.latency_ms:
                raise DocumentError(
                    f"unknown origin {request.origin!r}", path=f"requests[{k}].origin", remedy=did_you_mean(request.origin, self.latency_ms)
                )
        return self

    @classmethod
    def generate(cls, seed: int = 0, **sizes: Any) -> Self:
        """Return a random instance with the paper's distributions; see `placeopt.problems.aws.generate`."""
        from placeopt.problems.aws import generate

        return cls.from_document(generate(seed, **sizes))

    @classmethod
    def sizes(cls) -> dict[str, Any]:
        """Return the keyword arguments of `placeopt.problems.aws.generate` with their defaults."""
        from placeopt.problems.aws import generate

        return keyword_defaults(generate)

    # -- numbers that the referee and the faces share ------------------------------------------------------------

    @cached_property
    def resource_digits(self) -> tuple[int, int]:
        """Decimals of (cpu, memory) in this instance: resources are compared as whole numbers."""
        everything: list[Offer | Request] = [*self.offers, *self.requests]
        return (
            min(_MOST_DECIMALS, decimals(x.cpu_cores for x in everything)),
            min(_MOST_DECIMALS, decimals(x.memory_gib for x in everything)),
        )

    @cached_property
    def demands(self) -> np.ndarray:
        """Scaled (cpu, memory) of one replica, shape (requests, 2), integers."""
        cpu, memory = self.resource_digits
        return np.stack([scaled_up([r.cpu_cores for r in self.requests], cpu), scaled_up([r.memory_gib for r in self.requests], memory)], axis=1)

    @cached_property
    def capacities(self) -> np.ndarray:
        """Scaled (cpu, memory) of one machine, shape (offers, 2), integers."""
        cpu, memory = self.resource_digits
        return np.stack([scaled_down([o.cpu_cores for o in self.offers], cpu), scaled_down([o.memory_gib for o in self.offers], memory)], axis=1)

    @cached_property
    def latencies(self) -> np.ndarray:
        """Latency in ms from the origin of each request to each offer, shape (requests, offers); inf where none is given."""
        return np.array([[self.latency_ms[r.origin].get(o.location, math.inf) for o in self.offers] for r in self.requests])

    @cached_property
    def usable(self) -> np.ndarray:
        """Whether an offer can host a replica of a request: fits, is reachable, may be leased; shape (requests, offers)."""
        fits = (self.demands[:, None, :] <= self.capacities[None, :, :]).all(axis=2)
        leasable = np.array([o.max_instances != 0 for o in self.offers])
        return fits & leasable & np.isfinite(self.latencies)

    def slot_price(self, offer: int, pricing: str) -> float:
        """Return what one machine costs per slot in USD, inf where the pricing is not offered."""
        price = self.offers[offer].price(pricing)
        return math.inf if price is None else price * self.slot_hours

    @cached_property
    def _units(self) -> _Units:
        return _Units(self)

    @cached_property
    def _referee(self) -> _Referee:
        return _Referee(self)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Mean largest latency (6), cost over the horizon (7), mean interruption (8)."""
        units = self._units
        return (
            Objective("latency_ms", "ms", units.latency_step),
            Objective("cost_usd", "USD", units.cost_step),
            Objective("interruption", "share", units.interruption_step),
        )

    # -- the referee ---------------------------------------------------------------------------------------------

    def evaluate(self, plan: Mapping[str, Any]) -> Evaluation:
        """Judge a plan by equations (6)-(8) and (10)-(15).

        Parameters
        ----------
        plan : mapping
            As in `Plan`: ``{"starts": {request: slot}, "instances": [...]}``.

        Returns
        -------
        Evaluation
            Latency in ms, cost in USD, interruption as a share; what is broken. The values of a plan with missing replicas
            count the replicas that are there.

        Raises
        ------
        DocumentError
            The plan is not of this form, or names what the instance does not have.
        """
        return self._referee.judge(plan)

    def read_plan(self, document: Any) -> dict[str, Any]:
        """Validate a plan document and return it as plain JSON values."""
        return validate(Plan, document).model_dump(mode="json")

    # -- what is odd, what is impossible, what a plan is in words --------------------------------------------------

    def warnings(self) -> tuple[str, ...]:
        """Name prices that cannot be real: spot or reserved above on-demand, or on-demand far below reserved."""
        found = []
        for offer in self.offers:
            on_demand = offer.on_demand_usd_per_hour
            for label, price in (("spot", offer.spot_usd_per_hour), ("reserved", offer.reserved_usd_per_hour)):
                if on_demand is not None and price is not None and price > on_demand:
                    found.append(f"{offer.location} {offer.size}: the {label} price {price:g} USD/h is above on-demand {on_demand:g} USD/h")
        used = {r.origin for r in self.requests} | {o.location for o in self.offers}
        idle = sorted((set(self.latency_ms) | {d for row in self.latency_ms.values() for d in row}) - used)
        if idle:
            found.append(f"latency_ms names places that nothing uses: {', '.join(idle)}")
        return tuple(found)

    def infeasibility(self) -> tuple[str, ...]:
        """Say for each request that cannot be served why not."""
        reasons = []
        for k, request in enumerate(self.requests):
            if request.duration_slots > self.horizon_slots:
                reasons.append(f"request {request.name!r} runs for {request.duration_slots} slots, longer than the horizon of {self.horizon_slots}")
            if not self.usable[k].any():
                reasons.append(self._why_unusable(k))
        return tuple(reasons)

    def _why_unusable(self, k: int) -> str:
        request = self.requests[k]
        need = f"request {request.name!r} needs {request.cpu_cores:g} vCPU and {request.memory_gib:g} GiB a replica"
        reachable = np.isfinite(self.latencies[k])
        fits = (self.demands[k] <= self.capacities).all(axis=1)
        if not fits.any():
            widest = max(self.offers, key=lambda o: (o.cpu_cores, o.memory_gib))
            return f"{need}, which fits no offer (the most vCPU has {widest.size}: {widest.cpu_cores:g} vCPU, {widest.memory_gib:g} GiB)"
        if not (fits & reachable).any():
            return f"{need}; no offer that fits is reachable: latency_ms has no latency from {request.origin!r} to its location"
        return f"{need}; every offer that fits has max_instances 0"

    def describe(self, plan: Mapping[str, Any]) -> dict[str, str]:
        """Summarise a plan: machines by place, size and price, and the share of replicas on spot."""
        counts = Counter((i["location"], i["size"], i["pricing"]) for i in plan["instances"])
        spot = sum(len(i["replicas"]) for i in plan["instances"] if i["pricing"] == "spot")
        replicas = sum(len(i["replicas"]) for i in plan["instances"])
        return {
            "machines": str(sum(counts.values())),
            "fleet": ", ".join(f"{n} x {' '.join(what)}" for what, n in counts.most_common()),
            "replicas on spot": f"{spot / max(1, replicas):.0%}",
        }


class _Units:
    """The whole-number units in which the referee adds up, so that a value does not depend on the order of its terms."""

    def __init__(self, problem: Temporal):
        offers, requests = problem.offers, problem.requests
        used = [x for row in problem.latency_ms.values() for x in row.values()]
        digits = decimals(used)
        self.latency_scale = 10 ** min(digits, _MOST_DECIMALS)
        whole = {origin: {d: _whole(v, self.latency_scale) for d, v in row.items()} for origin, row in problem.latency_ms.items()}
        self.latency = {origin: [row.get(o.location) for o in offers] for origin, row in whole.items()}
        slot = Decimal(repr(float(problem.slot_hours)))
        exact = {(k, p): Decimal(repr(price)) * slot for k, o in enumerate(offers) for p in PRICINGS if (price := o.price(p)) is not None}
        cost_digits = max((max(0, -int(v.normalize().as_tuple().exponent)) for v in exact.values()), default=0)
        self.cost_scale = 10 ** min(cost_digits, 12)
        self.slot_cost = {key: int((value * self.cost_scale).to_integral_value()) for key, value in exact.items()}
        frequencies = [o.spot_interruption or 0.0 for o in offers]
        frequency_digits = decimals(frequencies)
        scale = 10 ** min(frequency_digits, _MOST_DECIMALS)
        self.share = math.lcm(*{r.replicas for r in requests})
        self.frequency = [_whole(f, scale) for f in frequencies]
        self.interruption_scale = scale * self.share
        n = len(requests)
        self.latency_step = None if digits > _MOST_DECIMALS else 1 / (n * self.latency_scale)
        self.cost_step = None if cost_digits > 12 else 1 / self.cost_scale
        self.interruption_step = None if frequency_digits > _MOST_DECIMALS or self.share > 10**9 else 1 / (n * self.interruption_scale)


def _whole(value: float, scale: int) -> int:
    return int((Decimal(repr(float(value))) * scale).to_integral_value())


class _Referee:
    """Judges plans of one instance, written straight from the equations."""

    def __init__(self, problem: Temporal):
        self.problem, self.units = problem, problem._units
        self.requests = {r.name: k for k, r in enumerate(problem.requests)}
        self.offers = {(o.location, o.size): k for k, o in enumerate(problem.offers)}
        self.replicas = [r.replicas for r in problem.requests]
        self.durations = np.array([r.duration_slots for r in problem.requests])
        unknown = -1
        self.latency = np.array([[unknown if x is None else x for x in self.units.latency[r.origin]] for r in problem.requests])
        self.frequency = np.array(self.units.frequency)
        self.horizon = problem.horizon_slots

    def judge(self, plan: Mapping[str, Any]) -> Evaluation:
        """Return values and violations of a plan."""
        try:
            return self._judge(plan["starts"], plan["instances"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.problem.read_plan(plan)  # names the field that is wrong
            raise DocumentError(f"the plan cannot be read ({error})", remedy="see `placeopt schema temporal`") from None

    def _judge(self, starts: Mapping[str, int], instances: Sequence[Mapping[str, Any]]) -> Evaluation:
        units, n = self.units, len(self.replicas)
        violations: list[Violation] = []
        begins, scheduled = self._begins(starts, violations)
        leased = [self._offer(instance, position) for position, instance in enumerate(instances)]
        host, request = self._hosted(instances, violations)
        offer, spot = np.array(leased, dtype=int)[host], np.array([i["pricing"] == "spot" for i in instances], dtype=bool)[host]
        latency = self.latency[request, offer]
        for k, j in zip(request[latency < 0], offer[latency < 0], strict=True):
            violations.append(self._unreachable(k, j))
        worst = np.zeros(n, dtype=np.int64)
        np.maximum.at(worst, request, latency)  # (15), (16)
        interruptions = np.zeros(n, dtype=np.int64)
        np.add.at(interruptions, request[spot], self.frequency[offer[spot]])
        present = scheduled[request]
        busy = self._check_loads(leased, host[present], request[present], begins, violations)
        self._check_leased(Counter(leased), violations)
        paid = [(self.horizon if i["pricing"] == "reserved" else slots) for i, slots in zip(instances, busy, strict=True)]
        cost = sum(slots * units.slot_cost[j, i["pricing"]] for i, j, slots in zip(instances, leased, paid, strict=True))  # (7)
        share = sum(f * (units.share // r) for f, r in zip(interruptions.tolist(), self.replicas, strict=True))  # (8)
        values = (int(worst.sum()) / (n * units.latency_scale), cost / units.cost_scale, share / (n * units.interruption_scale))
        return Evaluation(values, tuple(violations))

    def _begins(self, starts: Mapping[str, int], violations: list[Violation]) -> tuple[np.ndarray, np.ndarray]:
        """Equation (14): one start for every request, within [0, T - d]. Returns the starts, and which there are."""
        for name in starts.keys() - self.requests.keys():
            raise DocumentError(f"unknown request {name!r}", path="starts", remedy="name requests of the instance")
        begins = np.array([starts.get(name, -1) for name in self.requests])
        scheduled = np.array([name in starts for name in self.requests])
        latest = self.horizon - self.durations
        for k in np.flatnonzero((begins < 0) | (begins > latest)):
            name, start = self.problem.requests[k].name, int(begins[k])
            if not scheduled[k]:
                violations.append(Violation("not-scheduled", 1.0, f"request {name!r} has no start"))
                continue
            outside = max(-start, start - int(latest[k])) / self.horizon
            violations.append(Violation("outside-horizon", outside, f"request {name!r} starts at slot {start}; legal: 0 to {latest[k]}"))
        return begins, scheduled

    def _offer(self, instance: Mapping[str, Any], position: int) -> int:
        where = (instance["location"], instance["size"])
        offer = self.offers.get(where)
        if offer is None:
            raise DocumentError(f"no offer {' '.join(map(str, where))!r}", path=f"instances[{position}]", remedy="name an offer of the instance")
        if (offer, instance["pricing"]) not in self.units.slot_cost:
            raise DocumentError(
                f"{' '.join(where)} has no {instance['pricing']} price", path=f"instances[{position}].pricing", remedy="use a pricing that is offered"
            )
        return offer

    def _hosted(self, instances: Sequence[Mapping[str, Any]], violations: list[Violation]) -> tuple[np.ndarray, np.ndarray]:
        """Equation (12): every replica once. Returns for every replica placed the instance and the request."""
        counts: Counter[tuple[str, int]] = Counter()
        host, request = [], []
        for position, instance in enumerate(instances):
            for name, replica in instance["replicas"]:
                k = self.requests.get(name)
                if k is None or not 0 <= replica < self.replicas[k]:
                    path = f"instances[{position}].replicas"
                    raise DocumentError(f"unknown replica {name!r} {replica}", path=path, remedy="replicas are numbered from 0 within a request")
                counts[name, replica] += 1
                host.append(position)
                request.append(k)
        if len(counts) < sum(self.replicas) or len(host) > len(counts):
            for k, what in enumerate(self.problem.requests):
                for replica in range(what.replicas):
                    if (times := counts[what.name, replica]) != 1:
                        message = f"replica {replica} of {what.name!r} is placed {times} times; legal: once"
                        violations.append(Violation("replica-placement", 1 / self.replicas[k], message))
        return np.array(host, dtype=int), np.array(request, dtype=int)

    def _check_loads(
        self, leased: Sequence[int], host: np.ndarray, request: np.ndarray, begins: np.ndarray, violations: list[Violation]
    ) -> list[int]:
        """Equations (10), (11): loads within capacity at all times. Returns the slots in which each machine hosts something."""
        begin, end = begins[request], begins[request] + self.durations[request]
        times, where = np.unique(np.concatenate((begin, end)), return_inverse=True)
        widths = np.diff(times, append=times[-1:])
        amounts = np.concatenate((self.problem.demands, np.ones((len(self.replicas), 1), dtype=np.int64)), axis=1)[request]  # cpu, memory, 1
        busy: list[int] = []
        chunk = max(1, 2_000_000 // max(1, len(times)))
        for low in range(0, len(leased), chunk):
            high = min(low + chunk, len(leased))
            mine = np.flatnonzero((host >= low) & (host < high))
            change = np.zeros((high - low, len(times), 3), dtype=np.int64)
            np.add.at(change, (host[mine] - low, where[mine]), amounts[mine])
            np.add.at(change, (host[mine] - low, where[mine + len(request)]), -amounts[mine])
            load = change.cumsum(axis=1)
            busy += ((load[:, :, 2] > 0) * widths).sum(axis=1).tolist()
            peak = load[:, :, :2].max(axis=1, initial=0)
            for position, resource in np.argwhere(peak > self.problem.capacities[leased[low:high]]):
                violations.append(self._overload(low + position, leased[low + position], resource, peak[position, resource]))
        return busy

    def _overload(self, position: int, offer: int, resource: int, peak: int) -> Violation:
        kind, what = ("cpu", "memory")[resource], self.problem.offers[offer]
        load = peak / max(self.problem.capacities[offer, resource], 1)
        return Violation(f"{kind}-capacity", load - 1, f"instances[{position}] ({what.location} {what.size}) is at {load:.0%} of its {kind}")

    def _unreachable(self, k: int, offer: int) -> Violation:
        request, location = self.problem.requests[k], self.problem.offers[offer].location
        return Violation("unreachable", 1.0, f"request {request.name!r} has a replica in {location}, to which {request.origin} has no latency")

    def _check_leased(self, leased: Counter[int], violations: list[Violation]) -> None:
        """No more machines of an offer than may be leased, all prices together."""
        for offer, count in leased.items():
            what = self.problem.offers[offer]
            if what.max_instances is not None and count > what.max_instances:
                message = f"{count} machines of {what.location} {what.size} are leased; legal: at most {what.max_instances}"
                violations.append(Violation("max-instances", (count - what.max_instances) / max(what.max_instances, 1), message))
