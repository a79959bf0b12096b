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
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from placeopt.core.fronts.values import Plan
from placeopt.core.fronts.words import counted
from placeopt.kubernetes.export.purchases import arrivals, sentences, to_buy
from placeopt.kubernetes.export.steps import (
    PlanStep,
    about_idle,
    idle_nodes,
    plan_id,
    steps,
    warnings,
)

if TYPE_CHECKING:
    from placeopt.core.files.documents import Document
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin, OriginItem
    from placeopt.rolling_update.instance import UpdateNode

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
