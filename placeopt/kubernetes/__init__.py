"""Kubernetes in and out, offline: no cluster is asked.

What `kubectl` and `helm template` print becomes instances; plans become commands. A page of the
docs, *One pod*, follows a pod through all of it.

===============================  ===================================================================
``files``                        JSON and YAML within limits, as items with their lines
``values``, ``objects``          structs of Kubernetes; quantities, labels, selectors, rules
``names``                        kinds of objects, and labels of nodes
``manifests``                    all the objects of the files; dumps taken at intervals
``replicas``, ``admission``      replicas and their volumes; what they ask for; may one more be made
``pinned``                       which replicas must stay, and why; budgets
``capacity``                     nodes that take part, and which pods may go where
``rules``                        what pods say of each other
``cluster``, ``importing``       a cluster with its calls and latencies; an import, a stage each
``instance``                     a cluster as the document of a rolling update
``to_rolling_update``            the rest of it, first nodes for what waits; ``targets``: the others
``machines``, ``candidates``     what machines have and cost; those to be bought
``given``                        tables that no cluster knows: new requests, commitments
``moving``, ``options``          what the user says; ``commands`` are made of it
``notes``                        the report of what was assumed; what is wrong, in one message
``origin``                       what the names of an imported instance are in the cluster
``export``, ``verify``           plans as steps, script, policies; steps judged on a dump
``approval``, ``consolidate``    a plan for those who approve it; what a cluster could save
``trace``                        dumps taken at intervals, as a trace
===============================  ===================================================================
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
