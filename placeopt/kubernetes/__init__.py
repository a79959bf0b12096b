"""Kubernetes in and out, offline: no cluster is asked.

What `kubectl` and `helm template` print becomes instances; plans become commands. A page of the
docs, *One pod*, follows a pod through all of it. Files import what stands above them, or beside
them in the same room; a test reads this table.

========  ==============================  ==========================================================
room      files                           what they know
========  ==============================  ==========================================================
files     files                           JSON and YAML within limits, as items with their lines
objects   values, objects, names          structs of Kubernetes; quantities, labels, kinds
cluster   manifests, admission, moving,   all objects of the files; what pods ask for, and whether
          replicas, origin                one more may be made; replicas, volumes, names; the report
pinned    pinned                          which replicas must stay, and every reason; budgets
machines  machines, candidates            what machines have and cost; those to be bought
places    capacity, given, options,       nodes that take part, what the user says; a cluster with
          cluster, rules                  calls and latencies; which pods may go where
instance  instance, targets, importing    a cluster as a rolling update, as others; an import
steps     export, verify                  plans as steps, script, policies; steps judged on a dump
answer    approval, consolidate           a plan for those who approve it; what could be saved
trace     trace                           dumps taken at intervals, as a trace
commands  commands                        what stands on the command line
========  ==============================  ==========================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from placeopt.core.door import Door

if TYPE_CHECKING:
    from placeopt.kubernetes import export
    from placeopt.kubernetes.admission import MissingRequests
    from placeopt.kubernetes.export.steps import PlanStep, steps
    from placeopt.kubernetes.importing import Imported, import_files
    from placeopt.kubernetes.moving import MovingRules
    from placeopt.kubernetes.options import ImportOptions
    from placeopt.kubernetes.origin import Origin

DOOR = Door(
    name="kubernetes",
    commands="placeopt.kubernetes.commands:register",
    beside="placeopt.kubernetes.origin:beside",
    approval="placeopt.kubernetes.approval:approved",
    next_steps="placeopt.kubernetes.commands:next_steps",
    plans={"placeopt/steps@1": "placeopt.kubernetes.export.script:replay"},
    schemas={"steps": "placeopt.kubernetes.export.script:StepsDocument"},
    traces="placeopt.kubernetes.trace:trace_of",
)

_MODULE_OF = {
    "ImportOptions": "options",
    "Imported": "importing",
    "MissingRequests": "admission",
    "MovingRules": "moving",
    "Origin": "origin",
    "PlanStep": "export.steps",
    "import_files": "importing",
    "steps": "export.steps",
}

__all__ = [
    "ImportOptions",
    "Imported",
    "MissingRequests",
    "MovingRules",
    "Origin",
    "PlanStep",
    "export",
    "import_files",
    "steps",
]


def __getattr__(name: str) -> Any:
    if name == "export":
        return importlib.import_module("placeopt.kubernetes.export")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'placeopt.kubernetes' has no attribute {name!r}")
    return getattr(importlib.import_module(f"placeopt.kubernetes.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
