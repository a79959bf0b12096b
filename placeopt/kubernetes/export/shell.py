"""The commands of steps, and the script that runs them: new copy first, then the old one ends.

A Deployment decides neither where its pods run nor in which order they go. Its ReplicaSet, though,
adopts a pod that has its labels and no owner, and of too many pods it ends the one of the least
``pod-deletion-cost``. So a move makes a pod from the ReplicaSet's own template, bound to its node
and without the label ``pod-template-hash``, waits until it is ready, marks the old pod, and then
gives the label: the ReplicaSet adopts the new pod and ends the marked one. No other pod is touched,
nothing is rolled out, and if the new pod does not become ready the old one still runs.

A stop lowers the number of replicas with the old pod marked; a start raises it again for a copy
that is ready. A pod of a StatefulSet
cannot run twice: it is deleted, and made anew from a template that is bound to the node.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from placeopt.kubernetes.export.steps import PlanStep, plan_id, steps, warnings

if TYPE_CHECKING:
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Origin, OriginItem

#: jq: bind a pod template to nodes, keep what it asks of nodes itself, set requests of containers.
_BIND = """
def bind($nodes; $requests):
  .affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms |= (
    [(. // [])[] | del(.matchFields)] | unique | (if length == 0 then [{}] else . end)
    | [.[] as $term | $nodes[] as $node
      | $term + {matchFields: [{key: "metadata.name", operator: "In", values: [$node]}]}])
  | .containers |= map(if $requests[.name]
    then .resources.requests = ((.resources.requests // {}) + $requests[.name]) else . end);
"""

#: jq: ReplicaSet -> a pod of its template that it does not adopt yet.
_COPY = (
    _BIND
    + """
{apiVersion: "v1", kind: "Pod",
 metadata: {name: $name, namespace: .metadata.namespace,
            annotations: (.spec.template.metadata.annotations // {}),
            labels: ((.spec.template.metadata.labels // {}) | del(.["pod-template-hash"]))},
 spec: (.spec.template.spec | bind([$node]; $requests))}
"""
)

#: jq: StatefulSet -> the same with its template bound to nodes; pods change only when deleted.
_REBIND = (
    _BIND
    + """
.spec.updateStrategy = {type: "OnDelete"} | .spec.template.spec |= bind($nodes; $requests)
"""
)

#: jq: ReplicaSets of a namespace -> the name of the newest of a Deployment.
_NEWEST = """
[.items[]
 | select(any(.metadata.ownerReferences[]?; .kind == "Deployment" and .name == $deployment))]
| max_by(.metadata.annotations["deployment.kubernetes.io/revision"] // "0" | tonumber)
| .metadata.name
"""

_COST = "controller.kubernetes.io/pod-deletion-cost"

#: Lines of every kind of step, over {ns} {name} {old} {new} {node} {requests}; "$rs" and "$hash"
#: pass between lines.
_FIND = (
    "rs=$(kubectl -n {ns} get pod {old} "
    "-o jsonpath='{{.metadata.ownerReferences[?(@.controller==true)].name}}')",
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
_READY = 'kubectl -n {ns} wait --for=condition=Ready --timeout="$WAIT" pod/{new}'
#: Older versions of kubectl call it an error to wait for the end of what is gone already.
_GONE = (
    'kubectl -n {ns} wait --for=delete --timeout="$WAIT" pod/{old} '
    '|| {{ left=$(kubectl -n {ns} get pod {old} -o name --ignore-not-found) && [[ -z "$left" ]]; }}'
)
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


_MOVE = (*_FIND, _CREATE, _READY, _MARK, _ADOPT, _GONE)
_STOP = (_MARK, *_scale("{old}", "-", "placeopt-stop"), _GONE)
_START = (
    _FIND_NEWEST,
    *_FIND[1:],
    _CREATE,
    _READY,
    'kubectl -n {ns} annotate --overwrite pods -l "pod-template-hash=$hash" '
    f"{_COST}=1 || true",  # there may be none
    f"kubectl -n {{ns}} annotate --overwrite pod {{new}} {_COST}=1",
    *_scale("{new}", "+", "placeopt-start"),
    _ADOPT,
)
_REPLACE = (
    "kubectl -n {ns} get statefulset {name} -o json "
    "| jq --argjson nodes {nodes} --argjson requests {requests} "
    '"$REBIND" | kubectl replace -f -'
)
_RECREATE = (
    _REPLACE.replace("{nodes}", '"[\\"$node\\"]"'),
    "kubectl -n {ns} delete pod {old} --wait",
    "for _ in {{1..300}}; do "
    "kubectl -n {ns} get pod {new} -o name >/dev/null 2>&1 && break; sleep 1; done",
    _READY,
)
_CORDON = "kubectl cordon {node}"
_MIXED_SIZES = "its pods have sizes that one template cannot say; the template is left as it was"


def setup_lines() -> list[str]:
    """Return the lines that the commands of steps rely on."""
    programs = {"COPY": _COPY, "REBIND": _REBIND, "NEWEST": _NEWEST}
    return [
        "WAIT=${WAIT:-300s}",
        *(f"{name}={shlex.quote(' '.join(text.split()))}" for name, text in programs.items()),
    ]


def _kind(step: PlanStep) -> str:
    if step.interrupts and step.action != "stop":
        return "recreate"
    return step.action if step.action in _LINES else "move"


_LINES = {"move": _MOVE, "stop": _STOP, "start": _START, "recreate": _RECREATE}


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
        "requests": _json(at.requests),
    }
    quoted = {key: shlex.quote(text or "") for key, text in fields.items()}
    kind = _kind(step)
    found = [_CORDON.format(node=shlex.quote(step.source or ""))] if step.cordon else []
    if kind == "recreate":
        found.append(f"node={quoted['node']}")
    return found + [line.format(**quoted) for line in _LINES[kind]]


def finish_lines(made: Iterable[PlanStep], origin: Origin) -> list[str]:
    """Return what is left when all steps are made: templates that say what now runs."""
    found: list[str] = []
    for known, last in _workloads(made).items():
        namespace, kind, name = known
        mine = [i for i in origin.items.values() if (i.namespace, i.kind, i.name) == known]
        ns, workload = shlex.quote(namespace), shlex.quote(name)
        if kind == "StatefulSet":
            nodes = shlex.quote(_json(sorted(_final_nodes(last, mine))))
            requests = shlex.quote(_json(last[-1].at.requests if last[-1].at else {}))
            found.append(_REPLACE.format(ns=ns, name=workload, nodes=nodes, requests=requests))
        else:
            found += _settle(ns, workload, last, len(mine))
    return found


def _settle(ns: str, workload: str, made: list[PlanStep], pods: int) -> list[str]:
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
    found = [_FIND_NEWEST.format(ns=ns, name=workload), _pause(ns, workload, True)]
    for what in (f"deployment {workload}", 'replicaset "$rs"'):
        for container, size in requests.items():
            asked = shlex.quote(f"cpu={size['cpu']},memory={size['memory']}")
            found.append(
                f"kubectl -n {ns} set resources {what} -c {shlex.quote(container)} "
                f"--requests={asked}"
            )
    return [*found, _pause(ns, workload, False)]


def _pause(ns: str, workload: str, paused: bool) -> str:
    """`kubectl rollout pause` as it can be said twice."""
    change = shlex.quote(_json({"spec": {"paused": paused}}))
    return f"kubectl -n {ns} patch deployment {workload} --type=merge -p {change}"


def _workloads(made: Iterable[PlanStep]) -> dict[tuple[str, str, str], list[PlanStep]]:
    found: dict[tuple[str, str, str], list[PlanStep]] = {}
    for step in made:
        if step.at is not None:
            found.setdefault((step.at.namespace, step.at.kind, step.at.name), []).append(step)
    return found


def _final_nodes(made: list[PlanStep], items: list[OriginItem]) -> set[str]:
    """Return where the pods of `items` run after their steps."""
    places: dict[str, str | None] = {}
    for item in items:
        places |= {item.pod: item.node} if item.pod else {}
        places |= {r.pod: r.node for r in item.replicas if r.pod}
    for step in made:
        if step.at is not None and step.at.pod is not None:
            places[step.at.pod] = step.target
    return {node for node in places.values() if node is not None}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# -- the script ------------------------------------------------------------------------------------

_VARIABLES = {key: f'"${key}"' for key in ("ns", "name", "old", "new", "node", "requests")}


def script(problem: Problem, plan: Mapping[str, Any], origin: Origin) -> str:
    """Return a bash script that makes the steps of a plan in order.

    It can be run again after a failure.
    """
    made, identity = steps(problem, plan, origin), plan_id(problem, plan)
    values = zip(problem.objectives, problem.evaluate(plan).values, strict=True)
    empties = [step.source or "" for step in made if step.empties]
    body = (
        "\n".join(_call(step) for step in made if step.at is not None)
        or "# The plan has no steps: nothing is to be done."
    )
    fields = {
        "title": _comment(
            f"Plan {identity} of the {problem.problem} instance {problem.name!r}: "
            f"{len(made)} steps."
        ),
        "values": _comment("Referee: " + ", ".join(f"{o.name} {v:g}" for o, v in values) + "."),
        "warnings": "".join(f"# WARNING: {text}\n" for text in warnings(made)),
        "file": "steps.sh",
        "done": f"placeopt-{identity}.done",
        "total": str(len(made)),
        "setup": "\n".join(setup_lines()),
        "find": _indented(_FIND),
        "create": _indented((_CREATE,), 4),
        "move": _indented((_READY, _MARK, _ADOPT, _GONE)),
        "stop": _indented(_STOP),
        "newest": _indented(_START[:3]),
        "start": _indented(_START[4:]),
        "recreate": _indented(_RECREATE),
        "steps": body,
        "finish": "\n".join(f"  {line}" for line in finish_lines(made, origin)),
        "empty": _say_empty(empties),
    }
    template = files(__package__).joinpath("script.sh").read_text(encoding="utf-8")
    return _fill(template, fields).rstrip("\n")


def _fill(template: str, fields: Mapping[str, str]) -> str:
    """Replace ``@name@`` once, from left to right: what is filled in is not looked at again."""
    return re.sub("@([a-z]+)@", lambda match: fields[match[1]], template)


def _call(step: PlanStep) -> str:
    at = step.at
    assert at is not None
    kind, requests, pod = _kind(step), _json(at.requests), at.pod or at.new_pod
    arguments = {
        "move": (at.namespace, at.pod, step.source, at.new_pod, step.target, requests),
        "stop": (at.namespace, at.name, at.pod, step.source),
        "start": (at.namespace, at.name, at.new_pod, step.target, requests),
        "recreate": (at.namespace, at.name, pod, step.source, step.target, requests),
    }[kind]
    call = " ".join(
        shlex.quote(text or "")
        for text in (str(step.number), _comment(step.label), kind, *arguments)
    )
    before = f"cordon {shlex.quote(step.source or '')}\n" if step.cordon else ""
    warning = f"# WARNING {_comment(step.warning)}\n" if step.warning else ""
    return f"{warning}{before}step {call}"


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
