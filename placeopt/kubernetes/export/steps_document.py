"""Steps as a JSON document, format ``placeopt/steps@1``, and back to the plan that they make."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from placeopt.core.files.documents import Document, validate
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Problem, Record
from placeopt.kubernetes.export.purchases import sentences, to_buy
from placeopt.kubernetes.export.steps import (
    PlanStep,
    about_idle,
    idle_nodes,
    plan_id,
    steps,
    warnings,
)
from placeopt.kubernetes.origin import InstanceRef, Origin

if TYPE_CHECKING:
    from placeopt.rolling_update.instance import UpdateNode

FORMAT = "placeopt/steps@1"


class _StepWorkload(Record):
    namespace: str
    """Namespace in the cluster."""
    kind: str
    """Kind of the workload: Deployment or StatefulSet."""
    name: str
    """Name of the workload."""


class StepRecord(Record):
    """A step."""

    number: int
    """Number of the step, from 1."""
    action: Literal["move", "restart", "hop", "stop", "start", "add", "remove"]
    """move: a copy elsewhere, then the old one ends. restart: the same on its node. hop: a move
    that is left again. stop, start: a copy ends or starts alone. add, remove: the same for good:
    the workload has a replica more or less.
    """
    application: str | None = None
    """Application of the microservice (rolling-update). Absent or null: rescheduling."""
    microservice: str | None = None
    """Microservice that the step is about (rolling-update). Absent or null: rescheduling."""
    service: str | None = None
    """Service that the step is about (rescheduling). Absent or null: rolling-update."""
    source: str | None = Field(alias="from")
    """Node on which a copy ends; null where none does."""
    to: str | None
    """Node on which a copy starts; null where none does."""
    disruption: bool
    """Whether fewer copies run for a while than should."""
    empties_node: bool = False
    """Whether nothing is left on the node, so that it is cordoned."""
    deletes_node: bool = False
    """Whether the empty node is deleted before the next step: a spread counts it until it is."""
    warning: str | None = None
    """What to know before this step. Absent or null: nothing."""
    workload: _StepWorkload | None = None
    """What owns the pod in the cluster. Absent or null: unknown: it is made by hand."""
    pod: str | None = None
    """Name of the pod that ends. Absent or null: unknown."""
    new_pod: str | None = None
    """Name of the pod that starts. Absent or null: unknown, or none."""
    requests: dict[str, dict[str, str]] = Field(default_factory=dict)
    """What the containers of the new pod ask for, by name. Empty: as the old one."""


class NodeToBuy(Record):
    """A node on which copies start and that is not in the cluster yet."""

    name: str
    """Name that the plan has for it."""
    machine_type: str | None = None
    """Machine type. Absent or null: unknown."""
    cluster: str
    """Zone or cluster in which it is to be."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that the plan counts on."""
    taints: list[str] = Field(default_factory=list)
    """``key=value:effect`` of those that keep pods away."""
    cpu_millicores: int
    """Room beside DaemonSets and what is reserved, in thousandths of a core."""
    memory_mib: int
    """The same in MiB."""
    resources: dict[str, int] = Field(default_factory=dict)
    """Further room by name, as far as the plan counts it."""


class _StepsInstance(InstanceRef):
    problem: Literal["rolling-update", "rescheduling"]
    """Kind of the problem."""


class StepsDocument(Record):
    """A steps file."""

    format: Literal["placeopt/steps@1"]
    """Format and version of the file."""
    instance: _StepsInstance
    """Which instance the plan is of."""
    plan_id: str
    """Fingerprint of the instance and the plan: names the file of finished steps."""
    values: dict[str, float]
    """Name of a goal -> its value after all steps; the referee's."""
    warnings: list[str] = Field(default_factory=list)
    """What to know before all steps, a sentence each."""
    buy: list[NodeToBuy] = Field(default_factory=list)
    """Nodes that the steps need and that are not in the cluster yet."""
    idle: list[str] = Field(default_factory=list)
    """Nodes that host nothing and that no step uses: cordoned after the last step."""
    deletes_idle: bool = False
    """Whether these are deleted before the first step instead: a spread counts them until then."""
    steps: list[StepRecord]
    """Steps in the order in which they are made."""


def document(problem: Problem, plan: Plan, origin: Origin | None = None) -> Document:
    """Return the steps of a plan as a JSON document; `replay` turns it back into the plan."""
    made = steps(problem, plan, origin, partly=True)
    values = problem.evaluate(plan).values
    buy = to_buy(problem, made, origin)
    idle, deleted = idle_nodes(problem, made, origin)
    return {
        "format": FORMAT,
        "instance": asdict(problem.instance_name),
        "plan_id": plan_id(problem, plan),
        "values": {o.name: value for o, value in zip(problem.objectives, values, strict=True)},
        "warnings": [
            *_without_commands(made, origin),
            *sentences(problem, buy),
            *warnings(made, origin),
            *about_idle(idle, deleted),
        ],
        "buy": [_to_buy(node, origin) for node in buy],
        "idle": idle,
        "deletes_idle": deleted and bool(idle),
        "steps": [_record(step) for step in made],
    }


def _to_buy(node: UpdateNode, origin: Origin | None) -> Document:
    known = None if origin is None else origin.nodes.get(node.name)
    return {
        "name": node.name,
        "machine_type": node.machine_type,
        "cluster": node.cluster,
        "labels": {} if known is None else known.labels,
        "taints": [] if known is None else list(known.taints or ()),
        "cpu_millicores": node.cpu_millicores,
        "memory_mib": node.memory_mib,
        "resources": node.resources,
    }


def _record(step: PlanStep) -> Document:
    at = step.at
    record: Document = {
        "number": step.number,
        "action": step.action,
        **step.names,
        "from": step.source,
        "to": step.target,
        "disruption": step.action == "stop" or step.interrupts,
        "empties_node": step.empties,
        "deletes_node": step.deletes,
        "warning": step.warning,
    }
    if at is not None:
        record |= {
            "workload": {"namespace": at.namespace, "kind": at.kind, "name": at.name},
            "pod": at.pod,
            "new_pod": at.new_pod,
        }
        if at.asked:
            record["requests"] = at.asked
    return record


def _without_commands(made: list[PlanStep], origin: Origin | None) -> list[str]:
    """Return the warning about steps that have no commands; none where all have some."""
    silent = [step for step in made if step.at is None]
    if origin is not None:  # those that only start are named by themselves
        silent = [step for step in silent if step.source is not None]
    if not silent:
        return []
    count = f"{len(silent)} of {len(made)} steps have no commands: "
    if origin is None:
        return [count + "the names of the cluster are not known; give --origin"]
    why = "what they move is not running, or no Deployment or StatefulSet owns it"
    return [count + why]


def replay(text: Any, *, file: str | None = None) -> tuple[Document, str]:
    """Return the plan that a steps document makes, and the SHA-256 of its instance.

    Raises
    ------
    DocumentError
        Not a steps document.
    """
    known: StepsDocument = validate(StepsDocument, text, file=file)
    if known.instance.problem == "rolling-update":
        moves = [
            {"application": s.application, "microservice": s.microservice, "to": s.to}
            for s in known.steps
        ]
        return {"steps": moves}, known.instance.sha256
    moves = [{"service": s.service, "from": s.source, "to": s.to} for s in known.steps]
    return {"moves": moves}, known.instance.sha256
