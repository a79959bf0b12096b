"""Workloads and prices as a temporal instance: workloads are requests, machine types offers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from placeopt.core.errors import DocumentError, UsageError, did_you_mean
from placeopt.kubernetes.candidates import node_of
from placeopt.kubernetes.capacity import to_come
from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.notes import note
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.parts import (
    ImportedInstance,
    by_workload,
    cores_and_gib,
    item,
    largest,
    short_names,
)
from placeopt.kubernetes.prices import PRICES, Offer
from placeopt.kubernetes.replicas import Replica, default_requests
from placeopt.kubernetes.sizes import PodSize


def build(cluster: ReadCluster, options: ImportOptions) -> ImportedInstance:
    """Return the instance: which machines to lease, and where, for the workloads of the files.

    Raises
    ------
    DocumentError
        There are no prices, or no machine whose size is known.
    UsageError
        The prices are of several places and ``--origin`` is not given, or a slot has no length.
    """
    if not 0 < options.slot_hours <= 1e6:
        raise UsageError(f"--slot-hours {options.slot_hours}; legal: above 0, up to 1,000,000")
    workloads = by_workload(u for u in cluster.units if not u.bound)
    names = short_names(workloads)
    offers = _offers(cluster, options)
    options.new_requests.note_unused(cluster.units)
    places = list(dict.fromkeys(o["location"] for o in offers))
    origin = _origin(cluster, options, places)
    document = {
        "problem": "temporal",
        "name": options.name,
        "horizon_slots": options.horizon,
        "slot_hours": options.slot_hours,
        "latency_ms": _latencies(cluster, origin, places),
        "offers": offers,
        "requests": [
            _request(cluster, options, names[key], units, origin)
            for key, units in workloads.items()
        ],
    }
    note("assumption", "machines offer all of their capacity; nothing is kept for the system")
    return ImportedInstance(
        document, {names[key]: item(units[0]) for key, units in workloads.items()}
    )


def _taken(cluster: ReadCluster, options: ImportOptions) -> dict[tuple[str, str], PodSize]:
    """Return what DaemonSets and static pods take of a machine of each (location, size)."""
    assert cluster.prices is not None
    places = {f"{a}/{b}": (a, b) for a, b in cluster.prices.offers}
    machines = {name: node_of(name, *place) for name, place in places.items()}
    results = dict.fromkeys(places.values(), PodSize(0, 0))
    for unit, name in to_come(cluster.objects, cluster.units, machines, options.rules.policy):
        cpu, memory = results[places[name]]
        results[places[name]] = PodSize(cpu + unit.size.cpu, memory + unit.size.memory)
    return results


def _request(
    cluster: ReadCluster, options: ImportOptions, name: str, units: list[Replica], origin: str
) -> dict[str, Any]:
    unit, size = units[0], largest(units)
    policy = options.rules.policy.after(default_requests(cluster.objects, unit.namespace))
    if (new := options.new_requests.of(unit, policy)) is not None:
        size = new.pod
    if size.cpu == 0 or size.memory == 0:
        raise unit.spec.view.fault(
            f"{unit.label} asks for nothing",
            "the temporal problem needs a request above 0 of cpu and memory",
        )
    workload = cluster.objects.workloads.get(unit.owner)
    slots = options.duration or options.horizon
    if workload is not None and workload.deadline_seconds is not None:
        slot_seconds = max(1, round(3600 * options.slot_hours))
        slots = min(options.horizon, max(1, -(-workload.deadline_seconds // slot_seconds)))
        note("assumption", "Jobs run until their deadline", name)
    else:
        note(
            "assumption",
            f"workloads run for {slots} slots"
            + ("" if options.duration else ", the whole horizon"),
            name,
        )
    return {
        "name": name,
        **cores_and_gib(size),
        "duration_slots": slots,
        "replicas": len(units),
        "origin": origin,
    }


def _offers(cluster: ReadCluster, options: ImportOptions) -> list[dict[str, Any]]:
    if cluster.prices is None:
        raise DocumentError(
            "no prices",
            path="offers",
            remedy="give --prices: a table with sizes, such as the spot advisor or CSV",
        )
    existing = {n.instance_type: n for n in cluster.objects.nodes.values() if n.instance_type}
    results, taken = [], _taken(cluster, options)
    for (location, size), offer in cluster.prices.offers.items():
        cpu, memory = offer.get("cpu_cores"), offer.get("memory_gib")
        if (cpu is None or memory is None) and size in existing:
            cpu, memory = Decimal(existing[size].cpu) / 1000, Decimal(existing[size].memory) / 2**30
            note(
                "assumption",
                "machine types without a size: what a node of this type can allocate",
                size,
            )
        if cpu is None or memory is None:
            note(
                "left-out",
                "machine types with a price but no size (cpu_cores, memory_gib)",
                f"{location} {size}",
            )
            continue
        daemons = taken[location, size]
        cpu, memory = cpu - Decimal(daemons.cpu) / 1000, memory - Decimal(daemons.memory) / 2**30
        if cpu > 0 and memory > 0:
            results.append(
                {
                    "location": location,
                    "size": size,
                    "cpu_cores": float(cpu),
                    "memory_gib": float(memory),
                    **_prices(offer, size),
                }
            )
    if not results:
        remedy = (
            "give their sizes: the spot advisor of AWS, or CSV with "
            "location,size,cpu_cores,memory_gib"
        )
        raise DocumentError("no machine type with a price and a size", path="offers", remedy=remedy)
    return results


def _prices(offer: Offer, size: str) -> dict[str, float]:
    results = {key: float(offer[key]) for key in PRICES.values() if key in offer}
    if PRICES["spot"] in results:
        if "spot_interruption" in offer:
            return results | {"spot_interruption": float(offer["spot_interruption"])}
        note("left-out", "spot prices without a share of interruptions", size)
        del results[PRICES["spot"]]
    return results


def _origin(cluster: ReadCluster, options: ImportOptions, places: list[str]) -> str:
    value = options.origin
    if value is None:
        if len(places) > 1:
            raise UsageError(
                f"the prices are of {len(places)} places; say where requests come from: "
                f"--origin {places[0]}"
            )
        note("assumption", f"requests come from {places[0]}, the only place with prices")
        return places[0]
    if value not in places and value not in cluster.latencies.table:
        raise UsageError(
            f"--origin {value!r}: neither prices nor latencies name it; "
            + did_you_mean(value, places)
        )
    return value


def _latencies(cluster: ReadCluster, origin: str, places: list[str]) -> dict[str, dict[str, float]]:
    results = {}
    for place in places:
        ms = cluster.latencies.between_places(origin, place)
        if ms is None and place == origin:
            ms = 0.0
            note(
                "assumption",
                "latency inside a place is 0 ms unless --latency says otherwise",
                place,
            )
        if ms is None:
            note("left-out", f"places that {origin} does not reach: no latency is given", place)
        else:
            results[place] = ms
    return {origin: results}
