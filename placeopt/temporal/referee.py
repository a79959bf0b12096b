"""The referee: equations (6)-(8), (10)-(12), (14)-(16) of the CNSM 2024 paper, in whole numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placeopt.core.errors import DocumentError
from placeopt.core.numbers import begins
from placeopt.core.problem import Evaluation, Violation
from placeopt.temporal.arrays import TemporalArrays

#: Numbers in the table of loads (machines x times x 3) that is made at once, divided by 3.
LOADS_AT_ONCE = 2_000_000


class TemporalReferee:
    """Judges plans of one instance, written straight from the equations."""

    def __init__(
        self,
        offers: Sequence[Any],
        requests: Sequence[Any],
        horizon_slots: int,
        arrays: TemporalArrays,
    ):
        self.offers, self.requests = offers, requests
        self.horizon, self.arrays = horizon_slots, arrays
        self._index = {request.name: k for k, request in enumerate(requests)}
        self._machines = {
            (offers[k].location, offers[k].size, pricing): (k, pricing, cost)
            for (k, pricing), cost in arrays.slot_costs.items()
        }
        self._replicas = [request.replicas for request in requests]
        self._first = begins(self._replicas)
        self._durations = np.array([request.duration_slots for request in requests])
        self._frequencies = np.array(arrays.frequencies)

    def judge(
        self, starts: Mapping[str, int], instances: Sequence[Mapping[str, Any]]
    ) -> Evaluation:
        """Return values and violations of a plan.

        Raises
        ------
        DocumentError
            It names what the instance does not have.
        """
        violations: list[Violation] = []
        begins, scheduled = self._begins(starts, violations)
        try:
            machines = [self._machines[i["location"], i["size"], i["pricing"]] for i in instances]
        except KeyError:
            raise self._unknown_machine(instances) from None
        host, request = self._hosted(instances, violations)
        leased = [offer for offer, _, _ in machines]
        offer = np.array(leased, dtype=int)[host]
        latency = self._latency(request, offer, violations)
        spot = np.array([pricing == "spot" for _, pricing, _ in machines], dtype=bool)[host]
        interruption = self._interruption(request[spot], offer[spot])
        busy = self._check_loads(leased, host, request, begins, scheduled, violations)
        self._check_leased(Counter(leased), violations)
        cost = sum(
            (self.horizon if pricing == "reserved" else slots) * slot_cost
            for (_, pricing, slot_cost), slots in zip(machines, busy, strict=True)
        )  # (7)
        n, arrays = len(self._replicas), self.arrays
        values = (
            latency / (n * arrays.latency_scale),
            cost / arrays.cost_scale,
            interruption / (n * arrays.interruption_scale),
        )
        return Evaluation(values, tuple(violations))

    def _latency(self, request: np.ndarray, offer: np.ndarray, violations: list[Violation]) -> int:
        """Return the sum of the requests' largest latencies: equations (15), (16)."""
        latency = self.arrays.whole_latencies[request, offer]
        for k, j in zip(request[latency < 0], offer[latency < 0], strict=True):
            violations.append(self._unreachable(k, j))
        largest = np.zeros(len(self._replicas), dtype=np.int64)
        np.maximum.at(largest, request, latency)
        return int(largest.sum())

    def _interruption(self, request: np.ndarray, offer: np.ndarray) -> int:
        """Return the sum over the replicas on spot, given by request and offer: equation (8)."""
        frequencies = np.zeros(len(self._replicas), dtype=np.int64)
        np.add.at(frequencies, request, self._frequencies[offer])
        shares = self.arrays.replica_shares
        return sum(
            total * (shares // replicas)
            for total, replicas in zip(frequencies.tolist(), self._replicas, strict=True)
        )

    def _begins(
        self, starts: Mapping[str, int], violations: list[Violation]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Check equation (14): every request has one start, within [0, T - d].

        Returns
        -------
        begins : ndarray of int, shape (requests,)
        scheduled : ndarray of bool, shape (requests,)
            Whether the plan has a start.
        """
        for name in starts.keys() - self._index.keys():
            raise DocumentError(
                f"unknown request {name!r}", path="starts", remedy="name requests of the instance"
            )
        begins = _whole_numbers([starts.get(name, -1) for name in self._index])
        scheduled = np.array([name in starts for name in self._index])
        latest = self.horizon - self._durations
        for k in np.flatnonzero((begins < 0) | (begins > latest)).tolist():
            name, start = self.requests[k].name, int(begins[k])
            if not scheduled[k]:
                violations.append(Violation("not-scheduled", 1.0, f"request {name!r} has no start"))
                continue
            outside = max(-start, start - int(latest[k])) / self.horizon
            message = f"request {name!r} starts at slot {start}; legal: 0 to {latest[k]}"
            violations.append(Violation("outside-horizon", outside, message))
        return begins, scheduled

    def _unknown_machine(self, instances: Sequence[Mapping[str, Any]]) -> DocumentError:
        """Say which machine of a plan the instance does not offer."""
        sizes = {(location, size) for location, size, _ in self._machines}
        for position, i in enumerate(instances):
            if (i["location"], i["size"]) not in sizes:
                return DocumentError(
                    f"no offer {i['location']} {i['size']}",
                    path=f"instances[{position}]",
                    remedy="name an offer of the instance",
                )
            if (i["location"], i["size"], i["pricing"]) not in self._machines:
                return DocumentError(
                    f"{i['location']} {i['size']} has no {i['pricing']} price",
                    path=f"instances[{position}].pricing",
                    remedy="use a pricing that is offered",
                )
        raise KeyError("instances")

    def _hosted(
        self, instances: Sequence[Mapping[str, Any]], violations: list[Violation]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Check equation (12): every replica is placed once.

        Returns
        -------
        host, request : ndarray of int, shape (replicas placed,)
            The machine and the request of every replica placed; `host` ascends.
        """
        placed = [i["replicas"] for i in instances]
        host = np.repeat(np.arange(len(placed)), [len(replicas) for replicas in placed])
        request = np.array(
            [self._index.get(name, -1) for replicas in placed for name, _ in replicas], dtype=int
        )
        number = _whole_numbers([replica for replicas in placed for _, replica in replicas])
        unknown = np.flatnonzero(
            (request < 0) | (number < 0) | (number >= np.array(self._replicas)[request])
        )
        if len(unknown):
            name, replica = [pair for replicas in placed for pair in replicas][unknown[0]]
            raise DocumentError(
                f"unknown replica {name!r} {replica}",
                path=f"instances[{host[unknown[0]]}].replicas",
                remedy="replicas are numbered from 0 within a request",
            )
        times = np.bincount(self._first[request] + number, minlength=self._first[-1])
        for r in np.flatnonzero(times != 1):
            k = int(np.searchsorted(self._first, r, side="right")) - 1
            message = (
                f"replica {r - self._first[k]} of {self.requests[k].name!r} is placed "
                f"{times[r]} times; legal: once"
            )
            violations.append(Violation("replica-placement", 1 / self._replicas[k], message))
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
        """Check equations (10), (11): loads are within capacity at all times.

        Loads change at starts and ends only, so that they are checked at these times.

        Returns
        -------
        list of int
            The slots in which each machine hosts something.
        """
        n, arrays = len(begins), self.arrays
        times, where = np.unique(
            np.concatenate((begins, begins + self._durations)), return_inverse=True
        )
        begin, end = where[:n][request], where[n:][request]
        widths = np.diff(times, append=times[-1:])
        ones = np.ones((n, 1), dtype=np.int64)
        amounts = (np.concatenate((arrays.demands, ones), axis=1) * scheduled[:, None])[request]
        busy: list[int] = []
        chunk = max(1, LOADS_AT_ONCE // len(times))
        for low in range(0, len(leased), chunk):
            high = min(low + chunk, len(leased))
            own = slice(*np.searchsorted(host, (low, high)))
            change = np.zeros((high - low, len(times), 3), dtype=np.int64)  # vCPU, memory, replicas
            np.add.at(change, (host[own] - low, begin[own]), amounts[own])
            np.subtract.at(change, (host[own] - low, end[own]), amounts[own])
            load = change.cumsum(axis=1)
            busy += ((load[:, :, 2] > 0) @ widths).tolist()
            peak = load[:, :, :2].max(axis=1, initial=0)
            for at, resource in np.argwhere(peak > arrays.capacities[leased[low:high]]):
                violations.append(
                    self._overload(low + at, leased[low + at], resource, peak[at, resource])
                )
        return busy

    def _overload(self, position: int, offer: int, resource: int, peak: int) -> Violation:
        kind, what = ("cpu", "memory")[resource], self.offers[offer]
        load = peak / max(self.arrays.capacities[offer, resource], 1)
        return Violation(
            f"{kind}-capacity",
            load - 1,
            f"instances[{position}] ({what.location} {what.size}) is at {load:.0%} of its {kind}",
        )

    def _unreachable(self, k: int, offer: int) -> Violation:
        request, location = self.requests[k], self.offers[offer].location
        return Violation(
            "unreachable",
            1.0,
            f"request {request.name!r} has a replica in {location}, to which {request.origin} has "
            "no latency",
        )

    def _check_leased(self, leased: Counter[int], violations: list[Violation]) -> None:
        """Check that each offer has at most ``max_instances`` machines, all pricings together."""
        for offer, count in leased.items():
            what, limit = self.offers[offer], self.offers[offer].max_instances
            if limit is not None and count > limit:
                message = (
                    f"{count} machines of {what.location} {what.size} are leased; "
                    f"legal: at most {limit}"
                )
                excess = (count - limit) / max(limit, 1)
                violations.append(Violation("max-instances", excess, message))


def _whole_numbers(values: list[Any]) -> np.ndarray:
    numbers = np.array(values) if values else np.empty(0, dtype=np.int64)
    if numbers.dtype.kind != "i":
        raise TypeError("not a whole number")
    return numbers
