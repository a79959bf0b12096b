"""Kubernetes in and out, offline: no cluster is asked.

What `kubectl` and `helm template` print becomes instances; plans become commands.

==============================  ====================================================================
``importing``                   a whole import: documents, objects, cluster, instance, a stage each
``quantities``, ``tables``      ``500Mi``, ``100m`` as exact whole numbers; CSV by file and line
``yaml_reading``, ``reading``   YAML and JSON within limits, nothing executed; values with lines
``objects``, ``manifests``      nodes, pods, workloads; all the objects of the files
``cluster``                     nodes and replicas, before they are an instance of a problem
``sizes``, ``replicas``         what pods ask for; the replicas
``staying``, ``admission`` ...  which replicas must stay, and why
``capacity``, ``volumes``       nodes that take part, and which pods may go where
``rules``, ``attaching``        what pods say of each other; volumes that a node attaches
``calls``                       who calls whom; latencies between places
``labels``, ``machines``        labels of nodes; what machines have that are not there yet
``prices``, ``candidates``      what machines cost; those that may be bought
``options``, ``moving``         what the user says; the command line is made of it
``new_requests``                tables that no cluster knows
``to_...``, ``parts``           a cluster as an instance of a problem
``moments``, ``to_trace`` ...   dumps taken at intervals, as a trace
``notes``                       the report of what was assumed
``faults``                      what is wrong with the files, all of it in one message
``origin``                      what the names of an imported instance are in the cluster
``export``                      plans as steps, commands, policies
==============================  ====================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from placeopt.core.door import Door

if TYPE_CHECKING:
    from placeopt.kubernetes import export
    from placeopt.kubernetes.export.steps import PlanStep, steps
    from placeopt.kubernetes.importing import Imported, import_files
    from placeopt.kubernetes.moving import MovingRules
    from placeopt.kubernetes.options import ImportOptions
    from placeopt.kubernetes.origin import Origin
    from placeopt.kubernetes.sizes import MissingRequests

DOOR = Door(
    name="kubernetes",
    commands="placeopt.kubernetes.commands:register",
    beside="placeopt.kubernetes.origin:beside",
    approval="placeopt.kubernetes.approval_page:approved",
    next_steps="placeopt.kubernetes.commands:next_steps",
    plans={"placeopt/steps@1": "placeopt.kubernetes.export.steps_document:replay"},
    schemas={"steps": "placeopt.kubernetes.export.steps_document:StepsDocument"},
    traces="placeopt.kubernetes.to_trace:trace_of",
)

_MODULE_OF = {
    "ImportOptions": "options",
    "Imported": "importing",
    "MissingRequests": "sizes",
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
