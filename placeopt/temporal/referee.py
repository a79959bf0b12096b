"""The referee of the temporal problem: equations (6)-(8), (10)-(12), (14)-(16) of the CNSM 2024 paper, in whole numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.core.errors import DocumentError
from placeopt.core.problem import MOST_DECIMALS, Evaluation, Violation, decimals, unit_digits

if TYPE_CHECKING:
    from placeopt.temporal.instance import Temporal

PRICINGS = ("on-demand", "reserved", "spot")


class Units:
    """The whole-number units in which the referee adds up, so that a value does not depend on the order of its terms."""

    def __init__(self, problem: Temporal):
        offers, requests = problem.offers, problem.requests
        used = [x for row in problem.latency_ms.values() for x in row.values()]
        digits, kept = decimals(used), unit_digits(used, len(requests))
        self.latency_scale = 10**kept
        whole = {
            origin: {d: _whole(v, self.latency_scale) for d, v in row.items()}
            for origin, row in problem.latency_ms.items()
        }
        self.latency = {
            origin: [row.get(o.location) for o in offers] for origin, row in whole.items()
        }
        slot = Decimal(repr(float(problem.slot_hours)))
        exact = {
            (k, p): Decimal(repr(price)) * slot
            for k, o in enumerate(offers)
            for p in PRICINGS
            if (price := o.price(p)) is not None
        }
        cost_digits = max(
            (max(0, -int(v.normalize().as_tuple().exponent)) for v in exact.values()), default=0
        )
        self.cost_scale = 10 ** min(cost_digits, 12)
        self.slot_cost = {
            key: int((value * self.cost_scale).to_integral_value()) for key, value in exact.items()
        }
        frequencies = [o.spot_interruption or 0.0 for o in offers]
        frequency_digits = decimals(frequencies)
        scale = 10 ** min(frequency_digits, MOST_DECIMALS)
        self.share = math.lcm(*{r.replicas for r in requests})
        self.frequency = [_whole(f, scale) for f in frequencies]
        self.interruption_scale = scale * self.share
        n = len(requests)
        self.latency_step = None if digits > kept else 1 / (n * self.latency_scale)
        self.cost_step = None if cost_digits > 12 else 1 / self.cost_scale
        self.interruption_step = (
            None
            if frequency_digits > MOST_DECIMALS or self.share > 10**9
            else 1 / (n * self.interruption_scale)
        )


def _whole(value: float, scale: int) -> int:
    return int((Decimal(repr(float(value))) * scale).to_integral_value())


def _whole_numbers(values: list[Any]) -> np.ndarray:
    numbers = np.array(values) if values else np.empty(0, dtype=np.int64)
    if numbers.dtype.kind != "i":
        raise TypeError("not a whole number")
    return numbers


class Referee:
    """Judges plans of one instance, written straight from the equations."""

    def __init__(self, problem: Temporal):
        self.problem, self.units = problem, problem._units
        self.requests = {r.name: k for k, r in enumerate(problem.requests)}
        offers = problem.offers
        self.machines = {
            (offers[k].location, offers[k].size, p): (k, p == "spot", p == "reserved", c)
            for (k, p), c in self.units.slot_cost.items()
        }
        self.replicas = [r.replicas for r in problem.requests]
        self.first = np.concatenate(([0], np.cumsum(self.replicas)))
        self.durations = np.array([r.duration_slots for r in problem.requests])
        unknown = -1
        self.latency = np.array(
            [
                [unknown if x is None else x for x in self.units.latency[r.origin]]
                for r in problem.requests
            ]
        )
        self.frequency = np.array(self.units.frequency)
        self.horizon = problem.horizon_slots

    def judge(self, plan: Mapping[str, Any]) -> Evaluation:
        """Return values and violations of a plan."""
        try:
            return self._judge(plan["starts"], plan["instances"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.problem.read_plan(plan)  # names the field that is wrong
            raise DocumentError(
                f"the plan cannot be read ({error})", remedy="see `placeopt schema temporal`"
            ) from None

    def _judge(
        self, starts: Mapping[str, int], instances: Sequence[Mapping[str, Any]]
    ) -> Evaluation:
        units, n = self.units, len(self.replicas)
        violations: list[Violation] = []
        begins, scheduled = self._begins(starts, violations)
        try:
            machines = [self.machines[i["location"], i["size"], i["pricing"]] for i in instances]
        except KeyError:
            raise self._unknown_machine(instances) from None
        host, request = self._hosted(instances, violations)
        leased = [machine[0] for machine in machines]
        offer = np.array(leased, dtype=int)[host]
        spot = np.array([machine[1] for machine in machines], dtype=bool)[host]
        latency = self.latency[request, offer]
        for k, j in zip(request[latency < 0], offer[latency < 0], strict=True):
            violations.append(self._unreachable(k, j))
        worst = np.zeros(n, dtype=np.int64)
        np.maximum.at(worst, request, latency)  # (15), (16)
        interruptions = np.zeros(n, dtype=np.int64)
        np.add.at(interruptions, request[spot], self.frequency[offer[spot]])
        busy = self._check_loads(leased, host, request, begins, scheduled, violations)
        self._check_leased(Counter(leased), violations)
        cost = sum(
            (self.horizon if reserved else slots) * price
            for (_, _, reserved, price), slots in zip(machines, busy, strict=True)
        )  # (7)
        share = sum(
            f * (units.share // r)
            for f, r in zip(interruptions.tolist(), self.replicas, strict=True)
        )  # (8)
        values = (
            int(worst.sum()) / (n * units.latency_scale),
            cost / units.cost_scale,
            share / (n * units.interruption_scale),
        )
        return Evaluation(values, tuple(violations))

    def _begins(
        self, starts: Mapping[str, int], violations: list[Violation]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Equation (14): one start for every request, within [0, T - d]. Returns the starts, and which there are."""
        for name in starts.keys() - self.requests.keys():
            raise DocumentError(
                f"unknown request {name!r}", path="starts", remedy="name requests of the instance"
            )
        begins = _whole_numbers([starts.get(name, -1) for name in self.requests])
        scheduled = np.array([name in starts for name in self.requests])
        latest = self.horizon - self.durations
        for k in np.flatnonzero((begins < 0) | (begins > latest)):
            name, start = self.problem.requests[k].name, int(begins[k])
            if not scheduled[k]:
                violations.append(Violation("not-scheduled", 1.0, f"request {name!r} has no start"))
                continue
            outside = max(-start, start - int(latest[k])) / self.horizon
            violations.append(
                Violation(
                    "outside-horizon",
                    outside,
                    f"request {name!r} starts at slot {start}; legal: 0 to {latest[k]}",
                )
            )
        return begins, scheduled

    def _unknown_machine(self, instances: Sequence[Mapping[str, Any]]) -> DocumentError:
        """Say which machine of a plan the instance does not offer."""
        sizes = {(location, size) for location, size, _ in self.machines}
        for position, i in enumerate(instances):
            if (i["location"], i["size"]) not in sizes:
                return DocumentError(
                    f"no offer {i['location']} {i['size']}",
                    path=f"instances[{position}]",
                    remedy="name an offer of the instance",
                )
            if (i["location"], i["size"], i["pricing"]) not in self.machines:
                path = f"instances[{position}].pricing"
                return DocumentError(
                    f"{i['location']} {i['size']} has no {i['pricing']} price",
                    path=path,
                    remedy="use a pricing that is offered",
                )
        raise KeyError("instances")

    def _hosted(
        self, instances: Sequence[Mapping[str, Any]], violations: list[Violation]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Equation (12): every replica once. Returns for every replica placed the instance and the request."""
        placed = [i["replicas"] for i in instances]
        host = np.repeat(np.arange(len(placed)), [len(replicas) for replicas in placed])
        request = np.array(
            [self.requests.get(name, -1) for replicas in placed for name, _ in replicas], dtype=int
        )
        number = _whole_numbers([replica for replicas in placed for _, replica in replicas])
        unknown = np.flatnonzero(
            (request < 0) | (number < 0) | (number >= np.array(self.replicas)[request])
        )
        if len(unknown):
            name, replica = [pair for replicas in placed for pair in replicas][unknown[0]]
            path = f"instances[{host[unknown[0]]}].replicas"
            raise DocumentError(
                f"unknown replica {name!r} {replica}",
                path=path,
                remedy="replicas are numbered from 0 within a request",
            )
        times = np.bincount(self.first[request] + number, minlength=self.first[-1])
        for r in np.flatnonzero(times != 1):
            k = int(np.searchsorted(self.first, r, side="right")) - 1
            message = f"replica {r - self.first[k]} of {self.problem.requests[k].name!r} is placed {times[r]} times; legal: once"
            violations.append(Violation("replica-placement", 1 / self.replicas[k], message))
        return host, request

    def _check_loads(
        self,
        leased: Sequence[int],
        host: np.ndarray,
        request: np.ndarray,
        begins: np.ndarray,
        scheduled: np.ndarray,
        violations: list[Violation],
    ) -> list[int]:
        """Equations (10), (11): loads within capacity at all times. Returns the slots in which each machine hosts something."""
        n = len(begins)
        times, where = np.unique(
            np.concatenate((begins, begins + self.durations)), return_inverse=True
        )
        begin, end = where[:n][request], where[n:][request]
        widths = np.diff(times, append=times[-1:])
        amounts = (
            np.concatenate((self.problem.demands, np.ones((n, 1), dtype=np.int64)), axis=1)
            * scheduled[:, None]
        )[request]  # cpu, memory, 1
        busy: list[int] = []
        chunk = max(1, 2_000_000 // len(times))
        for low in range(0, len(leased), chunk):
            high = min(low + chunk, len(leased))
            mine = slice(*np.searchsorted(host, (low, high)))
            change = np.zeros((high - low, len(times), 3), dtype=np.int64)
            np.add.at(change, (host[mine] - low, begin[mine]), amounts[mine])
            np.subtract.at(change, (host[mine] - low, end[mine]), amounts[mine])
            load = change.cumsum(axis=1)
            busy += ((load[:, :, 2] > 0) @ widths).tolist()
            peak = load[:, :, :2].max(axis=1, initial=0)
            for position, resource in np.argwhere(peak > self.problem.capacities[leased[low:high]]):
                violations.append(
                    self._overload(
                        low + position, leased[low + position], resource, peak[position, resource]
                    )
                )
        return busy

    def _overload(self, position: int, offer: int, resource: int, peak: int) -> Violation:
        kind, what = ("cpu", "memory")[resource], self.problem.offers[offer]
        load = peak / max(self.problem.capacities[offer, resource], 1)
        return Violation(
            f"{kind}-capacity",
            load - 1,
            f"instances[{position}] ({what.location} {what.size}) is at {load:.0%} of its {kind}",
        )

    def _unreachable(self, k: int, offer: int) -> Violation:
        request, location = self.problem.requests[k], self.problem.offers[offer].location
        return Violation(
            "unreachable",
            1.0,
            f"request {request.name!r} has a replica in {location}, to which {request.origin} has no latency",
        )

    def _check_leased(self, leased: Counter[int], violations: list[Violation]) -> None:
        """No more machines of an offer than may be leased, all prices together."""
        for offer, count in leased.items():
            what = self.problem.offers[offer]
            if what.max_instances is not None and count > what.max_instances:
                message = f"{count} machines of {what.location} {what.size} are leased; legal: at most {what.max_instances}"
                violations.append(
                    Violation(
                        "max-instances",
                        (count - what.max_instances) / max(what.max_instances, 1),
                        message,
                    )
                )
