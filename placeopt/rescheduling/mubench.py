"""The workmodel.json files of muBench as rescheduling documents on the REACH paper's testbed.

A. Detti, L. Funari, L. Petrucci, "muBench: An Open-Source Factory of Benchmark Microservice
Applications", IEEE TPDS, 2023. The groups of ``external_services`` run in parallel, the services of
a group in sequence. What the file leaves open is settled here:

* execution on Cloud-A: trials x complexity x `MS_PER_DIGIT`, plus ``sleep_time``; other kinds by
  their speed;
* size of a replica: ``cpu-requests`` and ``memory-requests`` where given, else `CORES` and `GIB`;
* every service of a group is called, once: ``seq_len`` and ``probabilities`` are passed over.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.files.documents import Document, read_json
from placeopt.core.files.paths import AnyPath
from placeopt.rescheduling.generator import KINDS, continuum, place

#: ms on Cloud-A of one trial with complexity 1.
MS_PER_DIGIT = 0.02
#: Cores and GiB of a replica for which the file asks nothing.
CORES, GIB = 0.25, 0.25
_MACHINES = {"cloud-a": 2, "edge-a": 2, "edge-b": 2}
_UNITS = {
    "Ki": 2**-20,
    "Mi": 2**-10,
    "Gi": 1.0,
    "Ti": 2.0**10,
    "k": 1e3 / 2**30,
    "M": 1e6 / 2**30,
    "G": 1e9 / 2**30,
    "": 2**-30,
}


def read(
    path: AnyPath,
    *,
    name: str = "mubench",
    gateway: str | None = None,
    replicas: int = 1,
    seed: int = 0,
) -> Document:
    """Return the instance document of a workmodel, its replicas placed at random.

    Parameters
    ----------
    gateway : str, optional
        The service that users call; the first that no other calls, if not given.
    replicas : int
        Of every service.

    Raises
    ------
    DocumentError
        Names the file, the service and the fault.
    UsageError
        The testbed has no room.
    """
    try:
        model = read_json(path)
        if not isinstance(model, dict) or not model:
            raise DocumentError(
                "a workmodel is a JSON object of services",
                remedy='such as {"s0": {"external_services": [], ...}}',
            )
        services = [_service(key, value, model) for key, value in model.items()]
        called = {j for s in services for group in s["calls"] for j in group}
        first = (
            next((s["name"] for s in services if s["name"] not in called), None)
            if gateway is None
            else gateway
        )
        if first is None:
            raise DocumentError(
                "every service is called by another: the calls go in a circle",
                remedy="leave one of the calls out",
            )
        if first not in model:
            raise DocumentError(f"unknown gateway {first!r}", remedy=did_you_mean(first, model))
    except DocumentError as error:
        raise (error if error.file else error.in_file(str(path))) from None
    rng = np.random.default_rng(seed)
    nodes, latency = continuum(rng, _MACHINES)
    place(rng, nodes, services, replicas)
    return {
        "problem": "rescheduling",
        "name": name,
        "nodes": nodes,
        "latency_ms": latency,
        "services": services,
        "gateway": first,
    }


def _service(name: str, value: Any, model: Document) -> Document:
    if not isinstance(value, dict) or "external_services" not in value:
        raise DocumentError(
            f"service {name!r} has no external_services",
            path=name,
            remedy="give a workmodel.json, as muBench deploys it",
        )
    cores = _quantity(value.get("cpu-requests"), f"{name}.cpu-requests", CORES, cpu=True)
    gib = _quantity(value.get("memory-requests"), f"{name}.memory-requests", GIB, cpu=False)
    base = _execution(name, value.get("internal_service"))
    times = {kind: round(base * slower, 3) for kind, (_, _, slower, _) in KINDS.items()}
    calls = _calls(name, value["external_services"], model)
    return {
        "name": name,
        "cpu_cores": cores,
        "memory_gib": gib,
        "execution_ms": times,
        "replicas": [],
        "calls": calls,
    }


def _calls(name: str, groups: Any, model: Document) -> list[list[str]]:
    calls = []
    if not isinstance(groups, list):
        raise DocumentError(
            f"the external_services of {name!r} are no list",
            path=f"{name}.external_services",
            remedy="give a list of groups",
        )
    for g, group in enumerate(groups):
        where = f"{name}.external_services[{g}]"
        listed = group.get("services") if isinstance(group, dict) else None
        if not isinstance(listed, list):
            raise DocumentError(
                f"a group of {name!r} has no list of services",
                path=where,
                remedy='give {"seq_len": ..., "services": [...]}',
            )
        for k, other in enumerate(listed):
            if not isinstance(other, str) or other not in model:
                remedy = did_you_mean(str(other)[:60], list(model)[:50])
                raise DocumentError(
                    f"{name!r} calls the unknown service {str(other)[:60]!r}",
                    path=f"{where}.services[{k}]",
                    remedy=remedy,
                )
        if listed:
            calls.append(list(listed))
    return calls


def _execution(name: str, internal: Any) -> float:
    """Return the ms of a service on Cloud-A, those of its functions together."""
    if not isinstance(internal, dict):
        raise DocumentError(
            f"service {name!r} has no internal_service",
            path=f"{name}.internal_service",
            remedy="name its function",
        )
    total = 0.0
    for function, settings in internal.items():
        where = f"{name}.internal_service.{function}"
        cpu, sleep = (_stress(settings, what, where) for what in ("cpu_stress", "sleep_stress"))
        if cpu:
            span = cpu.get("range_complexity", [0, 0])
            numbers = span if isinstance(span, list) and len(span) == 2 else [None]
            work = [_number(x, f"{where}.cpu_stress.range_complexity") for x in numbers]
            total += (
                _number(cpu.get("trials", 1), f"{where}.cpu_stress.trials")
                * sum(work)
                / len(work)
                * MS_PER_DIGIT
            )
        if sleep:
            total += 1000 * _number(sleep.get("sleep_time", 0), f"{where}.sleep_stress.sleep_time")
    return total


def _stress(settings: Any, what: str, where: str) -> Document | None:
    """Return the settings of a kind of stress that is on, else None."""
    result = settings.get(what) if isinstance(settings, dict) else None
    if result is not None and not isinstance(result, dict):
        raise DocumentError(
            f"{what} is {str(result)[:60]!r}",
            path=f"{where}.{what}",
            remedy='give {"run": true or false, ...}',
        )
    return result if result and result.get("run") else None


def _number(value: Any, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1e6:
        raise DocumentError(
            f"{str(value)[:60]} is no legal amount",
            path=where,
            remedy="legal: a number from 0 to 1,000,000",
        )
    return float(value)


def _quantity(value: Any, where: str, default: float, *, cpu: bool) -> float:
    """Return a Kubernetes quantity in cores or GiB."""
    if value is None:
        return default
    text = str(value)
    units: dict[str, float] = {"m": 0.001, "": 1.0} if cpu else _UNITS
    unit = next((u for u in units if u and text.endswith(u)), "")
    try:
        amount = float(Decimal(text.removesuffix(unit)) * Decimal(repr(units[unit])))
    except InvalidOperation:
        amount = -1.0
    if not 0 <= amount <= 1e6:
        legal = "legal: such as 100m or 0.5" if cpu else "legal: such as 128Mi or 1Gi"
        raise DocumentError(f"{text[:60]!r} is no quantity", path=where, remedy=legal)
    return amount
