"""Steps as a JSON document, format ``placeopt/steps@1``, and back to the plan that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from placeopt.core.documents import validate
from placeopt.core.problem import Problem, Record
from placeopt.kubernetes.export import shell
from placeopt.kubernetes.export.steps import PlanStep, plan_id, steps, warnings
from placeopt.kubernetes.origin import InstanceRef, Origin

FORMAT = "placeopt/steps@1"


class _StepWorkload(Record):
    namespace: str
    """Namespace in the cluster."""
    kind: str
    """Kind of the workload: Deployment or StatefulSet."""
    name: str
    """Name of the workload."""


class _StepRecord(Record):
    number: int
    """Number of the step, from 1."""
    action: Literal["move", "restart", "hop", "stop", "start"]
    """move: a copy elsewhere, then the old one ends. restart: the same on its node. hop: a move
    that is left again. stop, start: a copy ends or starts alone.
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
    warning: str | None = None
    """What to know before this step. Absent or null: nothing."""
    workload: _StepWorkload | None = None
    """What owns the pod in the cluster. Absent or null: unknown, and there are no commands."""
    pod: str | None = None
    """Name of the pod that ends. Absent or null: unknown."""
    new_pod: str | None = None
    """Name of the pod that starts. Absent or null: unknown, or none."""
    requests: dict[str, dict[str, str]] = Field(default_factory=dict)
    """What the containers of the new pod ask for, by name. Empty: as the old one."""
    commands: list[str] = Field(default_factory=list)
    """Lines of bash that make the step. Empty: it has to be made by hand."""


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
    setup: list[str] = Field(default_factory=list)
    """Lines of bash to run before the first step."""
    steps: list[_StepRecord]
    """Steps in the order in which they are made."""
    finish: list[str] = Field(default_factory=list)
    """Lines of bash to run after the last step."""


def document(
    problem: Problem, plan: Mapping[str, Any], origin: Origin | None = None
) -> dict[str, Any]:
    """Return the steps of a plan as a JSON document; `replay` turns it back into the plan.

    ``setup``, the ``commands`` of the steps in order, and ``finish`` are lines for one bash shell.
    """
    made = steps(problem, plan, origin, partly=True)
    values = problem.evaluate(plan).values
    return {
        "format": FORMAT,
        "instance": asdict(problem.instance_name),
        "plan_id": plan_id(problem, plan),
        "values": {o.name: value for o, value in zip(problem.objectives, values, strict=True)},
        "warnings": [*_without_commands(made, origin), *warnings(made)],
        "setup": [] if origin is None else shell.setup_lines(),
        "steps": [_record(step) for step in made],
        "finish": [] if origin is None else shell.finish_lines(made, origin),
    }


def _record(step: PlanStep) -> dict[str, Any]:
    at = step.at
    record: dict[str, Any] = {
        "number": step.number,
        "action": step.action,
        **step.names,
        "from": step.source,
        "to": step.target,
        "disruption": step.action == "stop" or step.interrupts,
        "empties_node": step.empties,
        "warning": step.warning,
    }
    if at is not None:
        record |= {
            "workload": {"namespace": at.namespace, "kind": at.kind, "name": at.name},
            "pod": at.pod,
            "new_pod": at.new_pod,
            "commands": shell.lines(step),
        }
        if at.requests:
            record["requests"] = at.requests
    return record


def _without_commands(made: list[PlanStep], origin: Origin | None) -> list[str]:
    """Return the warning about steps that have no commands; none where all have some."""
    silent = [step for step in made if step.at is None]
    if not silent:
        return []
    count = f"{len(silent)} of {len(made)} steps have no commands: "
    if origin is None:
        return [count + "the names of the cluster are not known; give --origin"]
    why = "what they move is not running, or no Deployment or StatefulSet owns it"
    return [count + why]


def replay(text: Any, *, file: str | None = None) -> tuple[dict[str, Any], str]:
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
