"""The commands of steps, and the script that runs them: new copy first, then the old one ends.

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
from placeopt.kubernetes.export.preflight import NODES, PODS, TWIN, known
from placeopt.kubernetes.export.purchases import ARRIVED, arrivals, sentences, to_buy
from placeopt.kubernetes.export.steps import (
    PlanStep,
    about_idle,
    idle_nodes,
    plan_id,
    steps,
    warnings,
)
from placeopt.kubernetes.origin import BOUND

if TYPE_CHECKING:
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin
    from placeopt.rolling_update.instance import UpdateNode

#: jq: bind a pod template to nodes, keep what it asks of nodes itself; set requests of containers.
_BIND = """
def bind($nodes):
  .affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms |= (
    [(. // [])[] | del(.matchFields)] | unique | (if length == 0 then [{}] else . end)
    | [.[] as $term | $nodes[] as $node
      | $term + {matchFields: [{key: "metadata.name", operator: "In", values: [$node]}]}]);
def sized($requests):
  def asked: map(if $requests[.name]
    then .resources.requests = ((.resources.requests // {}) + $requests[.name]) else . end);
  .containers |= asked
  | if .initContainers then
      .initContainers |= map(if .restartPolicy == "Always" then [.] | asked | .[0] else . end)
    else . end;
"""

#: jq: ReplicaSet -> a pod of its template that it does not adopt yet.
_COPY = (
    _BIND
    + f"""
{{apiVersion: "v1", kind: "Pod",
 metadata: {{name: $name, namespace: .metadata.namespace,
            annotations: ((.spec.template.metadata.annotations // {{}}) + {{"{BOUND}": $node}}),
            labels: ((.spec.template.metadata.labels // {{}}) | del(.["pod-template-hash"]))}},
 spec: (.spec.template.spec | bind([$node]) | sized($requests))}}
"""
)

#: jq: StatefulSet -> the same with its template bound to a node; pods change only when deleted.
#: What it was stands in an annotation.
_REBIND = (
    _BIND
    + """
(.metadata.annotations["placeopt-before"]
 // ({affinity: .spec.template.spec.affinity, strategy: .spec.updateStrategy} | tojson)) as $before
| .metadata.annotations["placeopt-before"] = $before
| .spec.updateStrategy = {type: "OnDelete"}
| .spec.template.spec.affinity = ($before | fromjson | .affinity)
| .spec.template.spec |= (bind([$node]) | sized($requests))
"""
)

#: jq: StatefulSet -> the same, its template as free as it was; its pods are not touched.
_FREE = (
    _BIND
    + """
(.metadata.annotations["placeopt-before"] // "null" | fromjson) as $before
| if $before then .spec.template.spec.affinity = $before.affinity else . end
| if .spec.template.spec.affinity == null then del(.spec.template.spec.affinity) else . end
| del(.metadata.annotations["placeopt-before"])
| .spec.template.spec |= sized($requests)
"""
)

#: jq: ReplicaSets of a namespace -> the name of the newest of a Deployment.
_NEWEST = """
[.items[]
 | select(any(.metadata.ownerReferences[]?; .kind == "Deployment" and .name == $deployment))]
| max_by(.metadata.annotations["deployment.kubernetes.io/revision"] // "0" | tonumber)
| .metadata.name
"""

#: jq: a pod -> ready, or why it is not; the scheduler's reason where no node takes it.
_SAID = """
(.status.conditions // []) as $said
| if any($said[]; .type == "Ready" and .status == "True") then "ready"
  elif any($said[]; .type == "PodScheduled" and .reason == "Unschedulable")
  then "unschedulable: " + first($said[] | select(.type == "PodScheduled") | .message // "")
  else ([.status.phase // "Pending",
    (.status.containerStatuses[]?.state.waiting | select(.) | .reason)] | join(", ")) end
"""
#: jq: pods -> how many of an owner wait for a node.
_NODELESS = """
[.items[] | select((.spec.nodeName or .metadata.deletionTimestamp) | not)
 | select(any(.metadata.ownerReferences[]?; .controller and .name == $owner))] | length
"""
_MINE = "select(any(.metadata.ownerReferences[]?; .controller and .name == $rs))"
#: jq: pods -> how many a ReplicaSet owns or is about to adopt; the names of those of them that are
#: not ready and would be ended first: of pods that wait for a node, the marked one is.
_OWNED = """
[.items[] | select(.metadata.deletionTimestamp | not)
 | select([.metadata.ownerReferences[]? | select(.controller) | .name] | . == [] or . == [$rs])]
| length
"""
_UNREADY = f"""
any(.items[]; .metadata.name == $old and (.spec.nodeName | not)) as $waits
| [.items[] | {_MINE} | select(.metadata.name != $old and (.metadata.deletionTimestamp | not))
 | select(($waits and (.spec.nodeName | not)) | not)
 | select(any(.status.conditions[]?; .type == "Ready" and .status == "True") | not)
 | .metadata.name] | join(" ")
"""

_COST = "controller.kubernetes.io/pod-deletion-cost"

#: Lines of every kind of step, over {ns} {name} {old} {new} {node} {requests}; "$rs" and "$hash"
#: pass between lines.
_OWNER = (
    "rs=$(kubectl -n {ns} get pod {old} --ignore-not-found "
    "-o jsonpath='{{.metadata.ownerReferences[?(@.controller==true)].name}}')"
)
_HASH = (
    'hash=$(kubectl -n {ns} get replicaset "${{rs:?the pod has no owner}}" '
    "-o jsonpath='{{.metadata.labels.pod-template-hash}}')",
    ': "${{hash:?the owner of the pod is not the ReplicaSet of a Deployment}}"',
)
_FIND_NEWEST = (
    'rs=$(kubectl -n {ns} get replicasets -o json | jq -r --arg deployment {name} "$NEWEST")'
)
_CREATE = (
    'kubectl -n {ns} get replicaset "$rs" -o json '
    "| jq --arg name {new} --arg node {node} --argjson requests {requests} "
    '"$COPY" | kubectl create -f -'
)
_READY = "ready {ns} {new}"
_GUARD = 'guard {ns} "$rs" "$hash" {old}'
_GONE = 'gone {ns} {old} "$rs" "$hash"'
_MARK = f"kubectl -n {{ns}} annotate --overwrite pod {{old}} {_COST}=-2147483647"
_ADOPT = 'kubectl -n {ns} label --overwrite pod {new} "pod-template-hash=$hash"'


def _scale(pod: str, sign: str, key: str) -> tuple[str, ...]:
    """Return the lines for one replica more or less.

    The number wanted is kept at the pod, so that asking again changes nothing.
    """
    return (
        f"want=$(kubectl -n {{ns}} get pod {pod} "
        f"-o jsonpath='{{{{.metadata.annotations.{key}}}}}')",
        "now=$(kubectl -n {ns} get deployment {name} -o jsonpath='{{.spec.replicas}}')",
        f'[[ -n "$want" ]] || want=$((now {sign} 1))',
        f'kubectl -n {{ns}} annotate --overwrite pod {pod} "{key}=$want"',
        'kubectl -n {ns} scale deployment {name} --replicas="$want"',
    )


_MOVE = (_OWNER, *_HASH, _CREATE, _READY, _GUARD, _MARK, _ADOPT, _GONE)
_STOP = (_MARK, *_scale("{old}", "-", "placeopt-stop"), "gone {ns} {old}")
_KEEP = "placeopt-kept=1"
_GROW = (
    'kubectl -n {ns} annotate --overwrite pods -l "pod-template-hash=$hash" '
    f"{_COST}=1 {_KEEP} || true",  # there may be none
    f"kubectl -n {{ns}} annotate --overwrite pod {{new}} {_COST}=1 {_KEEP}",
    *_scale("{new}", "+", "placeopt-start"),
    _ADOPT,
)
_SETTLE = (
    'settled {ns} "$rs" "$hash"',
    'kubectl -n {ns} annotate pods -l "pod-template-hash=$hash" '
    f"{_COST}- placeopt-kept- placeopt-start-",
)
_START = (_FIND_NEWEST, *_HASH, _CREATE, _READY, *_GROW, *_SETTLE)
_RECREATE = (
    "whole {ns} {name}",
    "kubectl -n {ns} get statefulset {name} -o json "
    '| jq --arg node {node} --argjson requests {requests} "$REBIND" | kubectl replace -f -',
    "kubectl -n {ns} delete pod {old} --wait",
    'until [[ -n "$(state {ns} {new})" ]]; do sleep "$POLL"; done',
    _READY,
)
#: jq: pods -> those that keep a node in use: not those that come with it, are ending, or only hold
#: room for others.
_LODGERS = """
[.items[] | select((.metadata.deletionTimestamp
  or (.status.phase | IN("Succeeded", "Failed"))
  or any(.metadata.ownerReferences[]?; .kind | IN("DaemonSet", "Node"))
  or (.spec.priority // 0) < 0) | not)
 | "\\(.metadata.namespace)/\\(.metadata.name)"] | join(" ")
"""
_CORDON, _DELETE = "kubectl cordon {node}", "kubectl delete node {node} --ignore-not-found"
_MIXED_SIZES = "its pods have sizes that one template cannot say; the template is left as it was"


def setup_lines() -> list[str]:
    """Return the lines that the commands of steps rely on."""
    programs = {
        "COPY": _COPY,
        "REBIND": _REBIND,
        "FREE": _FREE,
        "NEWEST": _NEWEST,
        "SAID": _SAID,
        "NODELESS": _NODELESS,
        "OWNED": _OWNED,
        "UNREADY": _UNREADY,
        "LODGERS": _LODGERS,
    }
    return [
        "WAIT=${WAIT:-300s} PATIENCE=${PATIENCE:-15s} POLL=${POLL:-1}",
        *_programs(programs),
        *_asset("library.sh").splitlines(),
    ]


def _programs(programs: Mapping[str, str]) -> list[str]:
    """Return a line of bash for each program of jq."""
    return [f"{name}={shlex.quote(' '.join(text.split()))}" for name, text in programs.items()]


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _kind(step: PlanStep) -> str:
    if step.interrupts and step.action != "stop":  # none is added or removed
        return "recreate"
    if step.action == "start" and step.at is not None and step.at.pod is not None:
        return "move"  # a pod that waits for a node is there: the copy takes its place
    return step.action if step.action in _LINES else "move"


def _waits(step: PlanStep) -> bool:
    """Return whether a step starts a replica of a Deployment that waits for a node."""
    at = step.at
    return step.action == "start" and at is not None and bool(at.pod) and not step.interrupts


_LINES = {
    "move": _MOVE,
    "stop": _STOP,
    "start": _START,
    "remove": _STOP,
    "add": _START,
    "recreate": _RECREATE,
}


def lines(step: PlanStep) -> list[str]:
    """Return the commands of a step as lines of bash, every name quoted."""
    at = step.at
    assert at is not None
    fields = {
        "ns": at.namespace,
        "name": at.name,
        "old": at.pod,
        "new": at.new_pod,
        "node": step.target,
        "requests": _json(at.asked),
    }
    quoted = {key: shlex.quote(text or "") for key, text in fields.items()}
    result = [_CORDON.format(node=shlex.quote(step.source or ""))] if step.cordon else []
    result += [line.format(**quoted) for line in _LINES[_kind(step)]]
    return result + [_DELETE.format(node=shlex.quote(step.source or ""))] * step.deletes


def idle_lines(nodes: Iterable[str], *, delete: bool = False) -> list[str]:
    """Return the lines that delete nodes that host nothing, or cordon them; none that hosts now."""
    if delete:
        return [f"vacant {shlex.quote(n)} && {_DELETE.format(node=shlex.quote(n))}" for n in nodes]
    return [f"if vacant {shlex.quote(n)}; then kubectl cordon {shlex.quote(n)}; fi" for n in nodes]


def finish_lines(made: Iterable[PlanStep], origin: Origin) -> list[str]:
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


# -- the script ------------------------------------------------------------------------------------

_WAITS = "#   NODE_WAIT=3600s                wait longer for nodes to be bought (900s)\n"
_NOTHING_TO_BUY = "bought() { echo '{}'; }\narrive() { :; }"

_VARIABLES = {key: f'"${key}"' for key in ("ns", "name", "old", "new", "node", "requests")}


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
            f"{len(made)} steps."
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
        "file": "steps.sh",
        "done": f"placeopt-{identity}.done",
        "total": str(len(made)),
        "setup": "\n".join(
            [*setup_lines(), *_programs({"NODES": NODES, "PODS": PODS, "TWIN": TWIN})]
        ),
        "owner": _indented((_OWNER,), 4),
        "hash": _indented(_HASH),
        "create": _indented((_CREATE,), 4),
        "adopt": _indented((_GUARD, _MARK, _ADOPT), 4),
        "gone": _indented((_GONE,)),
        "stop": _indented(_STOP),
        "newest": _indented((_FIND_NEWEST, *_HASH)),
        "grow": _indented(_GROW, 4),
        "settle": _indented(_SETTLE),
        "hold": "\n".join(_hold_lines(made)) or "      :",
        "recreate": _indented(_RECREATE),
        "known": _json(known(made, origin)),
        "spaces": " ".join(sorted({shlex.quote(s.at.namespace) for s in made if s.at})) or "''",
        "tail": f"-po{identity}-",
        "undo": "\n".join(f"  {line}" for line in _undo_lines(made)) or "  :",
        "identity": _identity(origin),
        "steps": body,
        "finish": "\n".join(f"  {line}" for line in finish_lines(made, origin)),
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
    text = _asset("arrivals.sh").replace("@arrivals@", _json(arrivals(buy, origin)))
    return "\n".join([*_programs({"ARRIVED": ARRIVED}), text])


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


def _indented(template: Iterable[str], by: int = 2) -> str:
    return "\n".join(" " * by + line.format(**_VARIABLES) for line in template)


def _say_empty(nodes: list[str]) -> str:
    if not nodes:
        return ""
    names = " ".join(sorted(nodes))
    told = (
        f"empty and cordoned: {names}; drain them of DaemonSets and remove them when you are sure"
    )
    return f"echo {shlex.quote(told)}"
