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

from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from placeopt.core.errors import DocumentError, did_you_mean
from placeopt.core.files.documents import Document, read_json, validate
from placeopt.core.files.paths import AnyPath
from placeopt.core.problem import Amount
from placeopt.rescheduling.generator import KINDS, continuum, place

#: ms on Cloud-A of one trial with complexity 1.
MS_PER_DIGIT = 0.02
#: Cores and GiB of a replica for which the file asks nothing.
CORES, GIB = 0.25, 0.25
_MACHINES = {"cloud-a": 2, "edge-a": 2, "edge-b": 2}
_UNITS: dict[str, Decimal | int] = {
    "m": Decimal("0.001"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}
_UNITS |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def _quantity(value: Any, whole: int) -> float:
    """Return a Kubernetes quantity, such as 100m or 128Mi, in wholes of so many units."""
    text = str(value)
    unit = next((u for u in _UNITS if text.endswith(u)), "")
    try:
        return float(Decimal(text.removesuffix(unit)) * _UNITS.get(unit, 1) / whole)
    except InvalidOperation:
        raise ValueError("a quantity, such as 100m, 0.5 or 128Mi") from None


class _Part(BaseModel):
    """A part of a workmodel. What placeopt has no use for is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _CpuStress(_Part):
    run: bool = False
    range_complexity: tuple[Amount, Amount] = (0, 0)
    trials: Amount = 1


class _SleepStress(_Part):
    run: bool = False
    sleep_time: Amount = 0


class _Function(_Part):
    cpu_stress: _CpuStress = _CpuStress()
    sleep_stress: _SleepStress = _SleepStress()

    def ms(self) -> float:
        """Return the time on Cloud-A."""
        cpu, sleep = self.cpu_stress, self.sleep_stress
        work = cpu.trials * sum(cpu.range_complexity) / 2 * MS_PER_DIGIT if cpu.run else 0.0
        return work + (1000 * sleep.sleep_time if sleep.run else 0.0)


class _Group(_Part):
    services: list[str]


class _Service(_Part):
    external_services: list[_Group]
    internal_service: dict[str, _Function]
    cores: Annotated[
        Amount, BeforeValidator(partial(_quantity, whole=1)), Field(alias="cpu-requests")
    ] = CORES
    gib: Annotated[
        Amount, BeforeValidator(partial(_quantity, whole=2**30)), Field(alias="memory-requests")
    ] = GIB


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
        model = validate(
            Annotated[dict[str, _Service], Field(min_length=1)], read_json(path), file=str(path)
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


def _service(name: str, given: _Service, known: Collection[str]) -> Document:
    for g, group in enumerate(given.external_services):
        for k, other in enumerate(group.services):
            if other not in known:
                raise DocumentError(
                    f"{name!r} calls the unknown service {other[:60]!r}",
                    path=f"{name}.external_services[{g}].services[{k}]",
                    remedy=did_you_mean(other[:60], list(known)[:50]),
                )
    ms = sum(function.ms() for function in given.internal_service.values())
    return {
        "name": name,
        "cpu_cores": given.cores,
        "memory_gib": given.gib,
        "execution_ms": {kind: round(ms * slower, 3) for kind, (_, _, slower, _) in KINDS.items()},
        "replicas": [],
        "calls": [group.services for group in given.external_services if group.services],
    }
