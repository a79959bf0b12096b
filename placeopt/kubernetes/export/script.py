"""The script that makes the steps of a plan: new copy first, then the old one ends.

A Deployment decides neither where its pods run nor in which order they go. Its ReplicaSet, though,
adopts a pod that has its labels and no owner, and of too many pods it ends the one of the least
``pod-deletion-cost``. So a move makes a pod from the ReplicaSet's own template, bound to its node
and without the label ``pod-template-hash``, waits until it is ready, marks the old pod, and then
gives the label: the ReplicaSet adopts the new pod and ends the marked one. No other pod is touched,
nothing is rolled out, and if the new pod does not become ready the old one still runs.

A stop lowers the number of replicas with the old pod marked; a start raises it again for a copy
that is ready. A replica that is removed or added is a stop or a start for good. A pod of a
StatefulSet cannot run twice: it is deleted, and made anew from a template that is bound to the
node.

All of that stands in ``script.sh``, with ``arrivals.sh`` where nodes are bought first. What is
filled in here is data: the calls of steps in their order, and what they rest on as JSON, which the
script compares with the cluster before the first step. Only what later steps need is looked at, so
that a script can be taken up again.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from placeopt.core.errors import UnsupportedError
from placeopt.core.files.documents import Document, validate
from placeopt.core.fronts.values import Plan
from placeopt.core.fronts.words import counted
from placeopt.core.problem import Problem, Record
from placeopt.kubernetes.export.steps import (
    PlanStep,
    about_idle,
    idle_nodes,
    plan_id,
    steps,
    warnings,
)
from placeopt.kubernetes.names import POOL
from placeopt.kubernetes.origin import InstanceRef, Origin

if TYPE_CHECKING:
    from placeopt.kubernetes.origin import OriginItem
    from placeopt.rolling_update.problem import UpdateNode

# -- steps as a document ---------------------------------------------------------------------------

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


# -- nodes to buy ----------------------------------------------------------------------------------
#
# A node that was bought has a name of its own. The script takes the first new node that is ready
# and has the labels and taints that the plan counts on, and keeps its name for later runs.

_MAX_NAMED = 12
#: Labels that Karpenter gives. The NodePool is another one than that of the plan where it was
#: exported, unless pods ask for it by name.
_LEASE = "karpenter.sh/capacity-type"
_HOSTNAME = "kubernetes.io/hostname"


def to_buy(
    problem: Problem, made: Sequence[PlanStep], origin: Origin | None = None
) -> list[UpdateNode]:
    """Return the nodes on which copies start and that are not in the cluster, by first use."""
    from placeopt.rolling_update.problem import RollingUpdate

    if not isinstance(problem, RollingUpdate):
        return []
    absent = set() if origin is None else {k for k, node in origin.nodes.items() if node.absent}
    nodes = {node.name: node for node in problem.nodes}
    used = dict.fromkeys(step.target for step in made if step.target is not None)
    return [nodes[name] for name in used if nodes[name].candidate or name in absent]


def sentences(problem: Problem, nodes: Sequence[UpdateNode]) -> list[str]:
    """Return what to buy before the first step, in a sentence; nothing where nothing is."""
    from placeopt.rolling_update.problem import RollingUpdate
    from placeopt.rolling_update.views import by_machine

    if not nodes or not isinstance(problem, RollingUpdate):
        return []
    names = tuple(node.name for node in nodes)
    groups = [f"{n} x {kind} in {at}" for kind, at, _, n in by_machine(problem, names)]
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return [f"buy first: {', '.join(groups)} ({', '.join(names[:_MAX_NAMED])}{more})"]


def arrivals(nodes: Sequence[UpdateNode], origin: Origin) -> dict[str, Any]:
    """Return how a script knows nodes that were bought.

    Returns
    -------
    dict
        ``nodes``: the name that the plan has for each, its labels and taints, and what it is in
        words, those with most labels first; ``before``: the nodes that were there.
    """
    results = [_wanted(node, origin) for node in nodes]
    before = sorted(k for k, n in origin.nodes.items() if not n.virtual and not n.absent)
    return {"nodes": sorted(results, key=lambda w: -len(w["labels"])), "before": before}


def _wanted(node: UpdateNode, origin: Origin) -> dict[str, Any]:
    known = origin.nodes.get(node.name)
    labels: Mapping[str, str] = {} if known is None else known.labels
    unsaid = {_HOSTNAME, POOL} if POOL in labels else {_HOSTNAME, _LEASE}
    if known is not None and known.pool_asked:
        unsaid = {_HOSTNAME}
    shown = {k: v for k, v in sorted(labels.items()) if k not in unsaid}
    pairs = ", ".join(f"{k}={v}" for k, v in shown.items())
    taints = [] if known is None or known.taints is None else list(known.taints)
    said = f"no new node is ready that has the labels {pairs}" if pairs else "not there"
    said += f" and the taints {', '.join(taints)}" if taints else ""
    # a node of which nothing is known is found by its name only
    return {
        "name": node.name,
        "labels": shown or {_HOSTNAME: node.name},
        "taints": taints,
        "said": said,
    }


def node_groups(problem: Problem, plan: Plan, origin: Origin | None = None) -> dict[str, Any]:
    """Return what to buy, a group for machines that are alike, and which nodes to free.

    Raises
    ------
    UnsupportedError
        The problem has no machines to buy.
    """
    from placeopt.rolling_update.problem import RollingUpdate
    from placeopt.rolling_update.views import fleet_change

    if not isinstance(problem, RollingUpdate):
        raise UnsupportedError(f"a {problem.problem} plan buys no machines")
    change, nodes = fleet_change(problem, plan), {n.name: n for n in problem.nodes}
    groups: dict[str, dict[str, Any]] = {}
    for name in change.buy:
        node, known = nodes[name], None if origin is None else origin.nodes.get(name)
        labels = {} if known is None else known.labels
        group = {
            "machine_type": node.machine_type,
            "cluster": node.cluster,
            "price": node.price,
            "labels": {k: v for k, v in sorted(labels.items()) if k != _HOSTNAME},
            "taints": [] if known is None else list(known.taints or ()),
        }
        groups.setdefault(repr(group), {**group, "nodes": []})["nodes"].append(name)
    return {
        "unit": change.unit,
        "before": change.before,
        "after": change.after,
        "buy": [{"count": len(g["nodes"]), **g} for g in groups.values()],
        "free": list(change.free),
    }


# -- the script ------------------------------------------------------------------------------------

_MIXED_SIZES = "its pods have sizes that one template cannot say; the template is left as it was"
_FIND_NEWEST = (
    'rs=$(kubectl -n {ns} get replicasets -o json | jq -r --arg deployment {name} "$NEWEST")'
)
#: Actions of steps that functions of the script make.
_KINDS = ("move", "stop", "start", "remove", "add")
_WAITS = "#   NODE_WAIT=3600s                wait longer for nodes to be bought (900s)\n"
_NOTHING_TO_BUY = "bought() { echo '{}'; }\narrive() { :; }"


def script(problem: Problem, plan: Plan, origin: Origin) -> str:
    """Return a bash script that makes the steps of a plan in order.

    It can be run again after a failure.
    """
    made, identity = steps(problem, plan, origin), plan_id(problem, plan)
    buy = to_buy(problem, made, origin)
    bought = {node.name for node in buy}
    values = zip(problem.objectives, problem.evaluate(plan).values, strict=True)
    idle, deleted = idle_nodes(problem, made, origin)
    empties = [step.source or "" for step in made if step.empties and not step.deletes]
    calls = [_call(step, bought) for step in made if step.at is not None]
    first = [f"discard {shlex.quote(name)}" for name in idle if deleted]
    then = [f"retire {shlex.quote(name)}" for name in idle if not deleted]
    body = "\n".join([*first, *calls, *then]) or "# The plan has no steps: nothing is to be done."
    fields = {
        "title": _comment(
            f"Plan {identity} of the {problem.problem} instance {problem.name!r}: "
            f"{counted(len(made), 'step')}."
        ),
        "values": _comment("Referee: " + ", ".join(f"{o.name} {v:g}" for o, v in values) + "."),
        "warnings": "".join(
            f"# WARNING: {_comment(text)}\n"
            for text in [
                *sentences(problem, buy),
                *warnings(made, origin),
                *about_idle(idle, deleted),
            ]
        ),
        "waits": _WAITS if buy else "",
        "arrive": _arrive(buy, origin) if buy else _NOTHING_TO_BUY,
        "done": f"placeopt-{identity}.done",
        "total": str(len(made)),
        "hold": "\n".join(_hold_lines(made)) or "      :",
        "known": _json(_known(made, origin)),
        "spaces": " ".join(sorted({shlex.quote(s.at.namespace) for s in made if s.at})) or "''",
        "tail": f"-po{identity}-",
        "undo": "\n".join(f"  {line}" for line in _undo_lines(made)) or "  :",
        "identity": _identity(origin),
        "steps": body,
        "finish": "\n".join(f"  {line}" for line in _finish_lines(made, origin)),
        "empty": _say_empty(empties),
    }
    return _fill(_asset("script.sh"), fields).rstrip("\n")


def _hold_lines(made: Iterable[PlanStep]) -> list[str]:
    """Return the lines that hold the replicas that wait."""
    waiting = Counter((s.at.namespace, s.at.name) for s in made if s.at and _waits(s))
    return [
        f"      hold {shlex.quote(space)} {shlex.quote(name)} {count}"
        for (space, name), count in waiting.items()
    ]


def _undo_lines(made: Iterable[PlanStep]) -> list[str]:
    """Return the lines that free the templates of StatefulSets."""
    return [
        f"free {shlex.quote(space)} {shlex.quote(name)} '{{}}'"
        for space, kind, name in _workloads(made)
        if kind == "StatefulSet"
    ]


def _identity(origin: Origin) -> str:
    """Return the line that stops in another cluster than the one that was read."""
    if not origin.cluster:
        return ":"
    return (
        "[[ \"$(kubectl get namespace kube-system -o jsonpath='{.metadata.uid}')\" == "
        f"{shlex.quote(origin.cluster)} ]] || "
        'fail "the context $CONTEXT is another cluster than the one that was read"'
    )


def _fill(template: str, fields: Mapping[str, str]) -> str:
    """Replace ``@name@`` once, from left to right: what is filled in is not looked at again."""
    return re.sub("@([a-z]+)@", lambda match: fields[match[1]], template)


def _arrive(buy: Sequence[UpdateNode], origin: Origin) -> str:
    """Return the lines that wait for nodes that are to be bought."""
    return _asset("arrivals.sh").replace("@arrivals@", _json(arrivals(buy, origin)))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _kind(step: PlanStep) -> str:
    if step.interrupts and step.action != "stop":  # none is added or removed
        return "recreate"
    if step.action == "start" and step.at is not None and step.at.pod is not None:
        return "move"  # a pod that waits for a node is there: the copy takes its place
    return step.action if step.action in _KINDS else "move"


def _waits(step: PlanStep) -> bool:
    """Return whether a step starts a replica of a Deployment that waits for a node."""
    at = step.at
    return step.action == "start" and at is not None and bool(at.pod) and not step.interrupts


def _call(step: PlanStep, bought: Container[str]) -> str:
    """Return the lines of a step; nodes that are to be bought get their names when they are."""
    at = step.at
    assert at is not None
    kind = "start" if _waits(step) else _kind(step)
    requests, pod = _json(at.asked), at.pod or at.new_pod
    starts = (at.namespace, at.name, at.new_pod, step.target, requests)
    ends = (at.namespace, at.name, at.pod, step.source)
    arguments = {
        "move": (at.namespace, at.pod, step.source, at.new_pod, step.target, requests),
        "stop": ends,
        "remove": ends,
        "start": starts,
        "add": starts,
        "recreate": (at.namespace, at.name, pod, step.source, step.target, requests),
    }[kind]
    call = " ".join(
        f'"$(real {shlex.quote(text or "")})"' if text in bought else shlex.quote(text or "")
        for text in (str(step.number), _comment(step.label), kind, *arguments)
    )
    before = f"cordon {shlex.quote(step.source or '')}\n" if step.cordon else ""
    warning = f"# WARNING {_comment(step.warning)}\n" if step.warning else ""
    after = f"\ndiscard {shlex.quote(step.source or '')}" if step.deletes else ""
    return f"{warning}{before}step {call}{after}"


def _comment(text: str) -> str:
    """Return text on one line, without control characters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _say_empty(nodes: list[str]) -> str:
    if not nodes:
        return ""
    names = " ".join(sorted(nodes))
    told = (
        f"empty and cordoned: {names}; drain them of DaemonSets and remove them when you are sure"
    )
    return f"echo {shlex.quote(told)}"


# -- what is left when all steps are made ----------------------------------------------------------


def _finish_lines(made: Iterable[PlanStep], origin: Origin) -> list[str]:
    """Return what is left when all steps are made: templates that say what now runs."""
    results: list[str] = []
    pods = Counter((i.namespace, i.kind, i.name) for i in origin.items.values())
    for owner, last in _workloads(made).items():
        namespace, kind, name = owner
        ns, workload = shlex.quote(namespace), shlex.quote(name)
        if kind == "StatefulSet":
            requests = shlex.quote(_json(last[-1].at.requests if last[-1].at else {}))
            results.append(f"free {ns} {workload} {requests}")
        else:
            results += _settle(ns, workload, last, pods[owner], _sidecars(origin, owner))
    return results


def _sidecars(origin: Origin, owner: tuple[str, str, str]) -> set[str]:
    """Return the init containers of a workload that run beside the others."""
    items = (i for i in origin.items.values() if (i.namespace, i.kind, i.name) == owner)
    return {c.name for c in next(items).containers if c.sidecar}


def _settle(
    ns: str, workload: str, made: list[PlanStep], pods: int, sidecars: Container[str]
) -> list[str]:
    """Return the lines that write new sizes into the templates of a Deployment and its ReplicaSet.

    The Deployment has `pods` in all. It is paused meanwhile, so that nothing rolls out.
    """
    started = [s.at for s in made if s.at is not None and s.at.new_pod is not None]
    requests = next((at.requests for at in started if at.requests), None)
    if requests is None:
        return []
    moved = {tuple(step.names.values()) for step in made}
    if any(at.requests != requests for at in started) or pods > len(moved):
        return [f"echo {shlex.quote(f'{started[0].name}: {_MIXED_SIZES}')} >&2"]
    spec: dict[str, list[dict[str, Any]]] = {}
    for container, size in requests.items():
        where = "initContainers" if container in sidecars else "containers"
        spec.setdefault(where, []).append({"name": container, "resources": {"requests": size}})
    patch = shlex.quote(_json({"spec": {"template": {"spec": spec}}}))
    return [
        _FIND_NEWEST.format(ns=ns, name=workload),
        _pause(ns, workload, True),
        f"kubectl -n {ns} patch deployment {workload} -p {patch}",
        f'kubectl -n {ns} patch replicaset "$rs" -p {patch}',
        _pause(ns, workload, False),
    ]


def _pause(ns: str, workload: str, paused: bool) -> str:
    """`kubectl rollout pause` as it can be said twice."""
    change = shlex.quote(_json({"spec": {"paused": paused}}))
    return f"kubectl -n {ns} patch deployment {workload} --type=merge -p {change}"


def _workloads(made: Iterable[PlanStep]) -> dict[tuple[str, str, str], list[PlanStep]]:
    results: dict[tuple[str, str, str], list[PlanStep]] = {}
    for step in made:
        if step.at is not None:
            results.setdefault((step.at.namespace, step.at.kind, step.at.name), []).append(step)
    return results


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# -- what the steps rest on ------------------------------------------------------------------------


def _known(made: Sequence[PlanStep], origin: Origin) -> Document:
    """Return what the steps rest on.

    Returns
    -------
    dict
        ``nodes``: those where copies start, with the ``last`` step that starts one; ``pods``: those
        that steps end, with the ``first`` step that does, and for those that wait the node ``to``
        which they are to have.
    """
    last = {s.target: s.number for s in made if s.target is not None and s.at is not None}
    nodes = []
    for name, number in last.items():
        origins = origin.nodes.get(name)
        node: Document = {"name": name, "last": number}
        if origins is not None and not origins.absent:
            taints = None if origins.taints is None else list(origins.taints)
            node |= {"uid": origins.uid, "labels": origins.labels, "taints": taints}
        nodes.append(node)
    items = {(i.namespace, i.pod): i for i in origin.items.values() if i.pod}
    results: dict[tuple[str, str], Document] = {}
    for step in made:
        if step.at is not None and (step.at.namespace, step.at.pod) in items:
            key = (step.at.namespace, str(step.at.pod))
            results.setdefault(key, _pod(step, items[key]))
    return {"nodes": nodes, "pods": list(results.values())}


def _pod(step: PlanStep, item: OriginItem) -> Document:
    return {
        "namespace": item.namespace,
        "name": item.pod,
        "node": item.node,
        "uid": item.uid,
        "first": step.number,
        "to": None if item.node else step.target,
    }
