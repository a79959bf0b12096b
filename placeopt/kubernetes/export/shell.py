"""The commands of steps, and the script that makes them: the new copy first, then the end of the old one.

A Deployment decides neither where its pods run nor in which order they go. What its ReplicaSet does keep to is: it adopts a pod that
has its labels and no owner, and of too many pods it ends the one of the least ``pod-deletion-cost``. So a move makes a pod from the
ReplicaSet's own template, bound to its node and without the label ``pod-template-hash``, waits until it is ready, marks the old pod,
and then gives the label: in one go the ReplicaSet adopts the new pod and ends the marked one. No pod but these two is touched, nothing
is rolled out, and if the new pod does not become ready the old one still runs.

A stop lowers the number of replicas with the old pod marked; a start raises it again for a copy that is ready. A pod of a StatefulSet
cannot run twice: it is deleted, and made anew from a template that is bound to the node.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from placeopt.kubernetes.export.steps import Step, plan_id, steps, warnings

if TYPE_CHECKING:
    from placeopt.core.problem import Problem
    from placeopt.kubernetes.origin import Item, Origin

#: jq: bind a pod template to nodes, keeping what it asks of nodes itself, and set the requests of its containers.
_BIND = """
def bind($nodes; $requests):
  .affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms |= (
    [(. // [])[] | del(.matchFields)] | unique | (if length == 0 then [{}] else . end)
    | [.[] as $term | $nodes[] as $node | $term + {matchFields: [{key: "metadata.name", operator: "In", values: [$node]}]}])
  | .containers |= map(if $requests[.name] then .resources.requests = ((.resources.requests // {}) + $requests[.name]) else . end);
"""

#: jq: ReplicaSet -> a pod of its template that it does not adopt yet.
_COPY = (
    _BIND
    + """
{apiVersion: "v1", kind: "Pod",
 metadata: {name: $name, namespace: .metadata.namespace, annotations: (.spec.template.metadata.annotations // {}),
            labels: ((.spec.template.metadata.labels // {}) | del(.["pod-template-hash"]))},
 spec: (.spec.template.spec | bind([$node]; $requests))}
"""
)

#: jq: StatefulSet -> the same, its template bound to nodes, its pods replaced only when they are deleted.
_REBIND = (
    _BIND
    + """
.spec.updateStrategy = {type: "OnDelete"} | .spec.template.spec |= bind($nodes; $requests)
"""
)

#: jq: ReplicaSets of a namespace -> the name of the newest of a Deployment.
_NEWEST = """
[.items[] | select(any(.metadata.ownerReferences[]?; .kind == "Deployment" and .name == $deployment))]
| max_by(.metadata.annotations["deployment.kubernetes.io/revision"] // "0" | tonumber) | .metadata.name
"""

_COST = "controller.kubernetes.io/pod-deletion-cost"

#: Lines of every kind of step, over {ns} {name} {old} {new} {node} {requests}; "$rs" and "$hash" pass between lines.
_FIND = (
    "rs=$(kubectl -n {ns} get pod {old} -o jsonpath='{{.metadata.ownerReferences[?(@.controller==true)].name}}')",
    "hash=$(kubectl -n {ns} get replicaset \"${{rs:?the pod has no owner}}\" -o jsonpath='{{.metadata.labels.pod-template-hash}}')",
    ': "${{hash:?the owner of the pod is not the ReplicaSet of a Deployment}}"',
)
_CREATE = (
    'kubectl -n {ns} get replicaset "$rs" -o json '
    '| jq --arg name {new} --arg node {node} --argjson requests {requests} "$COPY" | kubectl create -f -'
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
    """One replica more or less; the number wanted is kept at the pod, so that asking again changes nothing."""
    return (
        f"want=$(kubectl -n {{ns}} get pod {pod} -o jsonpath='{{{{.metadata.annotations.{key}}}}}')",
        "now=$(kubectl -n {ns} get deployment {name} -o jsonpath='{{.spec.replicas}}')",
        f'[[ -n "$want" ]] || want=$((now {sign} 1))',
        f'kubectl -n {{ns}} annotate --overwrite pod {pod} "{key}=$want"',
        'kubectl -n {ns} scale deployment {name} --replicas="$want"',
    )


_MOVE = (*_FIND, _CREATE, _READY, _MARK, _ADOPT, _GONE)
_STOP = (_MARK, *_scale("{old}", "-", "placeopt-stop"), _GONE)
_START = (
    'rs=$(kubectl -n {ns} get replicasets -o json | jq -r --arg deployment {name} "$NEWEST")',
    *_FIND[1:],
    _CREATE,
    _READY,
    f'kubectl -n {{ns}} annotate --overwrite pods -l "pod-template-hash=$hash" {_COST}=1 || true',  # there may be none
    f"kubectl -n {{ns}} annotate --overwrite pod {{new}} {_COST}=1",
    *_scale("{new}", "+", "placeopt-start"),
    _ADOPT,
)
_RECREATE = (
    "kubectl -n {ns} get statefulset {name} -o json "
    '| jq --argjson nodes "[\\"$node\\"]" --argjson requests {requests} "$REBIND" | kubectl replace -f -',
    "kubectl -n {ns} delete pod {old} --wait",
    "for _ in {{1..300}}; do kubectl -n {ns} get pod {new} -o name >/dev/null 2>&1 && break; sleep 1; done",
    _READY,
)
_CORDON = "kubectl cordon {node}"


def setup_lines() -> list[str]:
    """Return the lines that the commands of steps rely on."""
    programs = {"COPY": _COPY, "REBIND": _REBIND, "NEWEST": _NEWEST}
    return [
        "WAIT=${WAIT:-300s}",
        *(f"{name}={shlex.quote(' '.join(text.split()))}" for name, text in programs.items()),
    ]


def _kind(step: Step) -> str:
    assert step.at is not None
    if step.action == "stop":
        return "stop"
    if step.at.kind == "StatefulSet":
        return "recreate"
    return "start" if step.action == "start" else "move"


_LINES = {"move": _MOVE, "stop": _STOP, "start": _START, "recreate": _RECREATE}


def lines(step: Step) -> list[str]:
    """Return the commands of a step as lines of bash, every name quoted."""
    at = step.at
    assert at is not None
    fields = {
        "ns": at.namespace,
        "name": at.name,
        "old": at.pod or "",
        "new": at.new_pod or "",
        "node": step.target or "",
    }
    quoted = {key: shlex.quote(text) for key, text in fields.items()} | {
        "requests": shlex.quote(_json(at.requests))
    }
    kind = _kind(step)
    found = [_CORDON.format(node=shlex.quote(step.source or ""))] if step.cordon else []
    if kind == "recreate":
        found.append(f"node={quoted['node']}")
    return found + [line.format(**quoted) for line in _LINES[kind]]


def finish_lines(made: Iterable[Step], origin: Origin) -> list[str]:
    """Return what is left when all steps are made: templates that say what now runs."""
    found: list[str] = []
    for (namespace, kind, name), last in _workloads(made).items():
        ns, workload = shlex.quote(namespace), shlex.quote(name)
        if kind == "StatefulSet":
            nodes = shlex.quote(_json(sorted(_final_nodes(last, origin))))
            requests = shlex.quote(_json(last[-1].at.requests if last[-1].at else {}))
            found.append(
                f"kubectl -n {ns} get statefulset {workload} -o json | jq --argjson nodes {nodes} --argjson requests {requests} "
                '"$REBIND" | kubectl replace -f -'
            )
        else:
            found += _settle(ns, workload, last, origin)
    return found


def _settle(ns: str, workload: str, made: list[Step], origin: Origin) -> list[str]:
    """Write new sizes into the templates of a Deployment and its ReplicaSet alike: paused meanwhile, so that nothing rolls out."""
    sizes = {
        _json(step.at.requests)
        for step in made
        if step.at is not None and step.at.new_pod is not None
    }
    if sizes == {"{}"} or not sizes:
        return []
    at = made[0].at
    assert at is not None
    if len(sizes) > 1 or len({key for key, _ in _mine(made, origin)}) > len(
        {tuple(s.names.values()) for s in made}
    ):
        return [
            f"echo {shlex.quote(f'{at.name}: its pods have sizes that one template cannot say; the template is left as it was')} >&2"
        ]
    requests = next(step.at.requests for step in made if step.at is not None and step.at.requests)
    found = [
        f'rs=$(kubectl -n {ns} get replicasets -o json | jq -r --arg deployment {workload} "$NEWEST")',
        _pause(ns, workload, True),
    ]
    for what in (f"deployment {workload}", 'replicaset "$rs"'):
        for container, size in requests.items():
            asked = shlex.quote(f"cpu={size['cpu']},memory={size['memory']}")
            found.append(
                f"kubectl -n {ns} set resources {what} -c {shlex.quote(container)} --requests={asked}"
            )
    return [*found, _pause(ns, workload, False)]


def _pause(ns: str, workload: str, paused: bool) -> str:
    """`kubectl rollout pause` as it can be said twice."""
    return f"kubectl -n {ns} patch deployment {workload} --type=merge -p {shlex.quote(_json({'spec': {'paused': paused}}))}"


def _workloads(made: Iterable[Step]) -> dict[tuple[str, str, str], list[Step]]:
    found: dict[tuple[str, str, str], list[Step]] = {}
    for step in made:
        if step.at is not None:
            found.setdefault((step.at.namespace, step.at.kind, step.at.name), []).append(step)
    return found


def _mine(made: list[Step], origin: Origin) -> list[tuple[str, Item]]:
    """Return the entries of the origin that belong to the workload of these steps."""
    at = made[0].at
    assert at is not None
    wanted = (at.namespace, at.kind, at.name)
    return [
        (key, item)
        for key, item in origin.items.items()
        if (item.namespace, item.kind, item.name) == wanted
    ]


def _final_nodes(made: list[Step], origin: Origin) -> set[str]:
    """Return where the pods of the workload of these steps run in the end."""
    places: dict[str, str | None] = {}
    for _, item in _mine(made, origin):
        places |= {item.pod: item.node} if item.pod else {}
        places |= {r.pod: r.node for r in item.replicas if r.pod}
    for step in made:
        if step.at is not None and step.at.pod is not None:
            places[step.at.pod] = step.target
    return {node for node in places.values() if node is not None}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# -- the script ----------------------------------------------------------------------------------------------------------

_HEAD = r"""#!/usr/bin/env bash
# @title@
# @values@
@warnings@#
# Needs kubectl and jq. Run it again after a failure: it goes on where it stopped (finished steps are kept in $DONE).
#   DRY_RUN=1 bash @file@    say what would be done, and do nothing
#   WAIT=600s bash @file@    wait longer for pods (300s by default)
# Keep others from moving these pods meanwhile: autoscalers, deschedulers, a GitOps controller that resets replicas.
# Where pods run is kept until they are replaced: a later rollout or eviction asks the scheduler again.
set -euo pipefail

DONE=${DONE:-@done@}
TOTAL=@total@
@setup@

fail() { echo "error: $*" >&2; exit 1; }
there() { # namespace pod; a question that fails is not a no
  local found
  found=$(kubectl -n "$1" get pod "$2" -o name --ignore-not-found) || fail "kubectl does not answer"
  [[ -n "$found" ]]
}
runs_on() { # namespace pod node: whether the cluster still is what the plan was made for
  local found
  found=$(kubectl -n "$1" get pod "$2" -o jsonpath='{.spec.nodeName}')
  [[ "$found" == "$3" ]] || fail "pod $1/$2 runs on '$found', not on '$3': the cluster has changed since it was read; plan again"
}

step() { # number description function arguments...
  local number=$1 what=$2
  shift 2
  if [[ -e "$DONE" ]] && grep -qx "$number" "$DONE"; then
    echo "step $number of $TOTAL: already made"
    return
  fi
  echo "step $number of $TOTAL: $what"
  if [[ -n "${DRY_RUN:-}" ]]; then return; fi
  "$@"
  echo "$number" >>"$DONE"
}

# A copy on the new node first; the ReplicaSet adopts it and ends the old one when it is ready.
move() { # namespace old-pod old-node new-pod node requests
  local ns=$1 old=$2 new=$4 node=$5 requests=$6 rs hash left
  if ! there "$ns" "$old"; then
    there "$ns" "$new" || fail "neither pod $old nor $new is in $ns: plan again"
    return 0 # an earlier run was interrupted right after this
  fi
  runs_on "$ns" "$old" "$3"
@find@
  if ! there "$ns" "$new"; then
@create@
  fi
@move@
}

# Fewer replicas, and the marked pod is the one that goes: a disruption.
stop() { # namespace deployment old-pod old-node
  local ns=$1 name=$2 old=$3 want now left
  there "$ns" "$old" || return 0
  runs_on "$ns" "$old" "$4"
@stop@
}

# More replicas, and the copy is the one that stays: the others are worth more than what the ReplicaSet makes meanwhile.
start() { # namespace deployment new-pod node requests
  local ns=$1 name=$2 new=$3 node=$4 requests=$5 rs hash want now
@newest@
  if ! there "$ns" "$new"; then
@create@
  fi
@start@
}

# A pod of a StatefulSet cannot run twice: it ends, and is made anew on the node.
recreate() { # namespace statefulset pod old-node node requests
  local ns=$1 name=$2 old=$3 new=$3 node=$5 requests=$6
  if there "$ns" "$old"; then
    if [[ "$node" != "$4" && "$(kubectl -n "$ns" get pod "$old" -o jsonpath='{.spec.nodeName}')" == "$node" ]]; then
      kubectl -n "$ns" wait --for=condition=Ready --timeout="$WAIT" pod/"$old"
      return # an earlier run was interrupted right after this
    fi
    runs_on "$ns" "$old" "$4"
  fi
@recreate@
}

cordon() { # node: it will be empty, so nothing new is to come
  if [[ -n "${DRY_RUN:-}" ]]; then echo "cordon $1"; else kubectl cordon "$1"; fi
}

command -v kubectl >/dev/null || fail "kubectl is not installed"
command -v jq >/dev/null || fail "jq is not installed"

@steps@
"""

_TAIL = r"""
if [[ -n "${DRY_RUN:-}" ]]; then exit 0; fi
if ! { [[ -e "$DONE" ]] && grep -qx finish "$DONE"; }; then
@finish@
  echo finish >>"$DONE"
fi
echo "all $TOTAL steps are made"
@empty@
"""

_VARIABLES = {key: f'"${key}"' for key in ("ns", "name", "old", "new", "node", "requests")}


def script(problem: Problem, plan: Mapping[str, Any], origin: Origin) -> str:
    """Return a bash script that makes the steps of a plan, one after another, and can be run again after a failure."""
    made, identity = steps(problem, plan, origin), plan_id(problem, plan)
    values = zip(problem.objectives, problem.evaluate(plan).values, strict=True)
    told = [f"# WARNING: {text}\n" for text in warnings(made)]
    empties = [step.source or "" for step in made if step.empties]
    body = (
        "\n".join(_call(step) for step in made if step.at is not None)
        or "# The plan has no steps: nothing is to be done."
    )
    fields = {
        "title": _comment(
            f"Plan {identity} of the {problem.problem} instance {problem.name!r}: {len(made)} steps."
        ),
        "values": _comment("Referee: " + ", ".join(f"{o.name} {v:g}" for o, v in values) + "."),
        "warnings": "".join(told),
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
    return _fill(_HEAD + _TAIL, fields).rstrip("\n")


def _fill(template: str, fields: Mapping[str, str]) -> str:
    """Replace ``@name@`` once, from left to right: what is filled in is not looked at again."""
    import re

    return re.sub("@([a-z]+)@", lambda match: fields[match[1]], template)


def _call(step: Step) -> str:
    at = step.at
    assert at is not None
    kind, requests = _kind(step), _json(at.requests)
    arguments = {
        "move": (at.namespace, at.pod, step.source, at.new_pod, step.target, requests),
        "stop": (at.namespace, at.name, at.pod, step.source),
        "start": (at.namespace, at.name, at.new_pod, step.target, requests),
        "recreate": (
            at.namespace,
            at.name,
            at.pod or at.new_pod,
            step.source,
            step.target,
            requests,
        ),
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
    return f"echo {shlex.quote(f'empty and cordoned: {names}; drain them of DaemonSets and remove them when you are sure')}"
