#!/usr/bin/env bash
# @title@
# @values@
@warnings@#
# Needs kubectl and jq. Run it again after a failure: it goes on where it stopped (finished steps are kept in $DONE).
#   CONTEXT=prod bash steps.sh       make the steps in the cluster of this context of kubectl; on a terminal you are asked
#   DRY_RUN=1 bash steps.sh          say what would be done, and ask no cluster
#   CONTEXT=prod bash steps.sh check look whether the cluster still is what was read, and do nothing
#   CONTEXT=prod bash steps.sh undo  let the nodes be scheduled to again, take marks off, end copies that nothing owns
#   WAIT=600s, PATIENCE=60s        wait longer for pods (300s), and for the scheduler to take one (15s)
@waits@# Keep others from moving these pods meanwhile: autoscalers, deschedulers, a GitOps controller that resets replicas.
# Where pods run is kept until they are replaced: a later rollout or eviction asks the scheduler again.
# Not done here: draining DaemonSets off nodes that end empty, removing and buying nodes.
set -euo pipefail

DONE=${DONE:-@done@}
TOTAL=@total@
CONTEXT=${CONTEXT:-}
WAIT=${WAIT:-300s} PATIENCE=${PATIENCE:-15s} POLL=${POLL:-1}
# jq: whether a node or a pod is ready; the taints of a node that keep pods away, as imported.
ASKED='
def ready: any(.status.conditions[]?; .type == "Ready" and .status == "True");
def taints: [.spec.taints[]? | select(.effect == "NoSchedule" or .effect == "NoExecute")
  | select(.key != "node.kubernetes.io/unschedulable")
  | "\(.key)=\(.value // ""):\(.effect)"] | sort;'
# jq: bind a pod template to nodes, keep what it asks of nodes itself; set requests of containers.
BIND='
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
    else . end;'
# jq: ReplicaSet -> a pod of its template that it does not adopt yet.
COPY=$BIND'
{apiVersion: "v1", kind: "Pod",
 metadata: {name: $name, namespace: .metadata.namespace,
            annotations: ((.spec.template.metadata.annotations // {}) + {"placeopt-bound": $node}),
            labels: ((.spec.template.metadata.labels // {}) | del(.["pod-template-hash"]))},
 spec: (.spec.template.spec | bind([$node]) | sized($requests))}'
# jq: StatefulSet -> the same with its template bound to a node; pods change only when deleted. What it was stands in an annotation.
REBIND=$BIND'
(.metadata.annotations["placeopt-before"]
 // ({affinity: .spec.template.spec.affinity, strategy: .spec.updateStrategy} | tojson)) as $before
| .metadata.annotations["placeopt-before"] = $before
| .spec.updateStrategy = {type: "OnDelete"}
| .spec.template.spec.affinity = ($before | fromjson | .affinity)
| .spec.template.spec |= (bind([$node]) | sized($requests))'
# jq: StatefulSet -> the same, its template as free as it was; its pods are not touched.
FREE=$BIND'
(.metadata.annotations["placeopt-before"] // "null" | fromjson) as $before
| if $before then .spec.template.spec.affinity = $before.affinity else . end
| if .spec.template.spec.affinity == null then del(.spec.template.spec.affinity) else . end
| del(.metadata.annotations["placeopt-before"])
| .spec.template.spec |= sized($requests)'
# jq: ReplicaSets of a namespace -> the name of the newest of a Deployment.
NEWEST='
[.items[]
 | select(any(.metadata.ownerReferences[]?; .kind == "Deployment" and .name == $deployment))]
| max_by(.metadata.annotations["deployment.kubernetes.io/revision"] // "0" | tonumber)
| .metadata.name'
# jq: a pod -> ready, or why it is not; the scheduler's reason where no node takes it.
SAID='
(.status.conditions // []) as $said
| if any($said[]; .type == "Ready" and .status == "True") then "ready"
  elif any($said[]; .type == "PodScheduled" and .reason == "Unschedulable")
  then "unschedulable: " + first($said[] | select(.type == "PodScheduled") | .message // "")
  else ([.status.phase // "Pending",
    (.status.containerStatuses[]?.state.waiting | select(.) | .reason)] | join(", ")) end'
# jq: pods -> how many of an owner wait for a node.
NODELESS='
[.items[] | select((.spec.nodeName or .metadata.deletionTimestamp) | not)
 | select(any(.metadata.ownerReferences[]?; .controller and .name == $owner))] | length'
# jq: pods -> how many a ReplicaSet owns or is about to adopt.
OWNED='
[.items[] | select(.metadata.deletionTimestamp | not)
 | select([.metadata.ownerReferences[]? | select(.controller) | .name] | . == [] or . == [$rs])]
| length'
# jq: pods -> those of a ReplicaSet that are not ready and would be ended first: of pods that wait for a node, the marked one is.
UNREADY=$ASKED'
any(.items[]; .metadata.name == $old and (.spec.nodeName | not)) as $waits
| [.items[] | select(any(.metadata.ownerReferences[]?; .controller and .name == $rs)) | select(.metadata.name != $old and (.metadata.deletionTimestamp | not))
 | select(($waits and (.spec.nodeName | not)) | not)
 | select(ready | not)
 | .metadata.name] | join(" ")'
# jq: pods -> those that keep a node in use: not those that come with it, are ending, or only hold room for others.
LODGERS='
[.items[] | select((.metadata.deletionTimestamp
  or (.status.phase | IN("Succeeded", "Failed"))
  or any(.metadata.ownerReferences[]?; .kind | IN("DaemonSet", "Node"))
  or (.spec.priority // 0) < 0) | not)
 | "\(.metadata.namespace)/\(.metadata.name)"] | join(" ")'
# jq: nodes of the cluster -> a line for each node on which a copy is still to start and may not.
NODES=$ASKED'
(.items | map({key: .metadata.name, value: .}) | from_entries) as $live
| $known[0].nodes[] | select(.last > $made) | . as $was | $live[$bought[.name] // .name] as $now
| if $now == null then "node \(.name) is not in the cluster: buy or make it first"
  elif $was.uid and $was.uid != $now.metadata.uid
  then "node \(.name) is another machine of the same name"
  elif $now | ready | not then "node \(.name) is not ready"
  elif $now.spec.unschedulable then "node \(.name) is cordoned"
  elif $was.taints
    and ($was.taints != ($now | taints) or $was.labels != ($now.metadata.labels // {}))
  then "node \(.name) has other labels or taints"
  else empty end'
# jq: pods and ReplicaSets of a namespace -> a line for each pod that is not as it was read. The pod of the step that an earlier run began may be on
# its way, or back if a StatefulSet has it; of pods that wait nothing is asked once the first run has begun.
PODS=$ASKED'
def empty_: . == {} or . == [] or . == null;
def plain: walk(
  if type == "object" then del(.matchFields) | with_entries(select(.value | empty_ | not))
  elif type == "array" then map(select(empty_ | not)) else . end);
def asked: {nodeSelector, affinity, topologySpreadConstraints} | plain;
(.items | map({key: "\(.kind) \(.metadata.name)", value: .}) | from_entries) as $live
| $known[0].pods[] | select(.namespace == $space and .first > $made) | . as $was
| $live["Pod \(.name)"] as $now
| (first($now.metadata.ownerReferences[]? | select(.controller)) // {}) as $owner
| $live["\($owner.kind) \($owner.name)"] as $set
| if .node == null and $begun then empty
  elif .first == $made + 1
    and ($now == null or $now.metadata.deletionTimestamp or $owner.kind == "StatefulSet") then empty
  elif $now == null then "pod \(.namespace)/\(.name) is gone"
  elif $now.metadata.deletionTimestamp then "pod \(.namespace)/\(.name) is being deleted"
  elif .uid and .uid != $now.metadata.uid
  then "pod \(.namespace)/\(.name) is another one of the same name"
  elif .node == null and $now.spec.nodeName
  then "pod \(.namespace)/\(.name) does not wait any more: it is on \($now.spec.nodeName)"
  elif .node != $now.spec.nodeName
  then "pod \(.namespace)/\(.name) runs on \($now.spec.nodeName), not on \(.node)"
  elif .node and ($now | ready | not) then "pod \(.namespace)/\(.name) is not ready"
  elif $set and ($now.spec | asked) != ($set.spec.template.spec | asked)
  then "the template of \($owner.kind) \($owner.name) asks for other nodes than its pods"
  else empty end'
# jq: pods of a namespace -> one on $node that waited for another, of the StatefulSet of $pod; nothing where $pod is on $node itself.
TWIN='
def owner: first(.metadata.ownerReferences[]? | select(.controller) | .kind + " " + .name) // null;
($taken | split(" ")) as $taken
| (.items | map({key: .metadata.name, value: .}) | from_entries) as $live
| $live[$pod] as $mine | select($mine and $mine.spec.nodeName != $node)
| first($known[0].pods[]
  | select(.namespace == $space and .node == null and .to != $node)
  | select(.name != $pod and (.name | IN($taken[]) | not))
  | $live[.name] // empty
  | select(.spec.nodeName == $node and owner == ($mine | owner))
  | select(.metadata.deletionTimestamp | not) | .metadata.name)'
# jq: pods of a namespace -> those before $pod in its StatefulSet that are not ready or not there: until they are, a pod that ends is not made anew.
BEFORE=$ASKED'
(.items | map({key: .metadata.name, value: .}) | from_entries) as $live
| [range($start; $pod | ltrimstr($set + "-") | tonumber) | "\($set)-\(.)"
  | select($live[.] | . == null or .metadata.deletionTimestamp or (ready | not))] | join(" ")'
fail() { echo "error: $*" >&2; exit 1; }
state() { # namespace pod: nothing where it is not there, leaving where it is being deleted, else alive
  kubectl -n "$1" get pod "$2" -o json --ignore-not-found | jq -r 'if .metadata.deletionTimestamp then "leaving" else "alive" end'
}
said() { # namespace pod: ready; or why it is not, the scheduler's reason among them
  kubectl -n "$1" get pod "$2" -o json | jq -r "$SAID"
}
ready() { # namespace pod: wait until it is ready; what no node takes stops the script soon
  local now end=$((SECONDS + ${WAIT%s})) patience=$((SECONDS + ${PATIENCE%s}))
  while :; do
    now=$(said "$1" "$2") || fail "kubectl does not answer"
    if [[ "$now" == ready ]]; then return 0; fi
    if [[ "$now" == unschedulable* ]] && ((SECONDS >= patience)); then fail "pod $1/$2 is not ready: $now"; fi
    if ((SECONDS >= end)); then fail "pod $1/$2 is not ready after $WAIT: $now"; fi
    sleep "$POLL"
  done
}
guard() { # namespace replicaset hash old: the ReplicaSet ends a pod that is not ready before the marked one
  local unready
  unready=$(kubectl -n "$1" get pods -l "pod-template-hash=$3" -o json | jq -r --arg rs "$2" --arg old "$4" "$UNREADY") || fail "kubectl does not answer"
  [[ -z "$unready" ]] || fail "not ready in $1: $unready; its ReplicaSet $2 would end it instead of $4. Run this again when it is ready; until then nothing of $2 is ended"
}
gone() { # namespace pod [replicaset hash]: wait until it is gone; a ReplicaSet that is content without ending it is told
  local now end=$((SECONDS + ${WAIT%s}))
  while :; do
    now=$(state "$1" "$2") || fail "kubectl does not answer"
    if [[ -z "$now" ]]; then return 0; fi
    if [[ "$now" == alive && -n "${3:-}" ]] && content "$1" "$3" "$4" && [[ "$(state "$1" "$2")" == alive ]]; then
      kubectl -n "$1" annotate pod "$2" controller.kubernetes.io/pod-deletion-cost-
      fail "ReplicaSet $1/$3 ended another pod instead of $2, one that was not ready. $2 keeps running, its mark is taken off; plan again from what runs now"
    fi
    if ((SECONDS >= end)); then fail "pod $1/$2 is still there after $WAIT"; fi
    sleep "$POLL"
  done
}
content() { # namespace replicaset hash: whether it has no more pods than it wants
  local wanted has
  wanted=$(kubectl -n "$1" get replicaset "$2" -o jsonpath='{.spec.replicas}') || fail "kubectl does not answer"
  has=$(kubectl -n "$1" get pods -l "pod-template-hash=$3" -o json | jq --arg rs "$2" "$OWNED") || fail "kubectl does not answer"
  ((has <= wanted))
}
settled() { # namespace replicaset hash: wait until it has no more pods than it wants
  local end=$((SECONDS + ${WAIT%s}))
  until content "$1" "$2" "$3"; do
    if ((SECONDS >= end)); then fail "ReplicaSet $1/$2 has more pods than it wants after $WAIT"; fi
    sleep "$POLL"
  done
}
vacant() { # node: whether nothing runs there but what comes with every node
  local lodgers
  lodgers=$(kubectl get pods -A --field-selector "spec.nodeName=$1" -o json | jq -r "$LODGERS") || fail "kubectl does not answer"
  [[ -z "$lodgers" ]] || { echo "node $1 is left alone, on it run now: $lodgers" >&2; return 1; }
}
nodeless() { # namespace owner: how many of its pods wait for a node
  kubectl -n "$1" get pods -o json | jq --arg owner "$2" "$NODELESS" || fail "kubectl does not answer"
}
whole() { # namespace statefulset pod: all its pods that have a node are ready, so that one may be missing; and none is before it for which it would wait
  local waits set now start before
  waits=$(nodeless "$1" "$2")
  set=$(kubectl -n "$1" get statefulset "$2" -o json) || fail "kubectl does not answer"
  now=$(jq -r --argjson waits "$waits" '"\(.status.readyReplicas // 0) of \((.spec.replicas // 1) - $waits)"' <<<"$set")
  [[ "${now% of *}" -ge "${now#* of }" ]] || fail "StatefulSet $1/$2 has $now pods ready, without those that wait for a node: none is deleted before all are"
  start=$(jq '.spec | if .podManagementPolicy == "Parallel" then empty else .ordinals.start // 0 end' <<<"$set")
  if [[ -n "$start" ]]; then
    before=$(kubectl -n "$1" get pods -o json | jq -r --arg set "$2" --arg pod "$3" --argjson start "$start" "$BEFORE") || fail "kubectl does not answer"
    [[ -z "$before" ]] || fail "StatefulSet $1/$2 makes its pods in their order, and not ready are: $before. $3 is not deleted, as it would not come back before. Run this again when they are ready; if no step starts them, plan again"
  fi
}
back() { # namespace pod uid: wait until it is made anew, and ready
  local now end=$((SECONDS + ${WAIT%s}))
  while :; do
    now=$(kubectl -n "$1" get pod "$2" -o jsonpath='{.metadata.uid}' --ignore-not-found) || fail "kubectl does not answer"
    if [[ -n "$now" && "$now" != "$3" ]]; then break; fi
    if ((SECONDS >= end)); then fail "pod $1/$2 is not made anew after $WAIT: $([[ -n "$now" ]] && echo "the old one still ends" || echo "its StatefulSet waits")"; fi
    sleep "$POLL"
  done
  ready "$1" "$2"
}
free() { # namespace statefulset requests: its template is bound to no node any more; its pods stay as they are
  local was
  was=$(kubectl -n "$1" get statefulset "$2" -o json | jq -c '.metadata.annotations["placeopt-before"] // "null" | fromjson | .strategy // empty')
  kubectl -n "$1" get statefulset "$2" -o json | jq --argjson requests "$3" "$FREE" | kubectl replace -f -
  [[ -z "$was" ]] || echo "StatefulSet $1/$2 updates OnDelete now, so that its pods stay where they are. To have it as it was, which restarts them where the scheduler likes: kubectl -n $1 patch statefulset $2 --type=merge -p '{\"spec\":{\"updateStrategy\":$was}}'"
}
@arrive@
forget() { # expression: lines of $DONE that are no longer so
  if [[ -e "$DONE" ]]; then
    grep -v "$1" "$DONE" >"$DONE.new" || true # none is left
    mv "$DONE.new" "$DONE"
  fi
}
kubectl() {
  if [[ "$CONTEXT" == in-cluster ]]; then command kubectl "$@"; else command kubectl --context="$CONTEXT" "$@"; fi
}
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
about() { # namespace pod node: the pod of a StatefulSet to start there; of two that wait, the one that the scheduler put there
  local found twin taken
  found=$(sed -n "s/^swapped $1 $2 //p" "$DONE" 2>/dev/null | tail -n 1)
  taken=$(sed -n "s/^swapped $1 [^ ]* //p" "$DONE" 2>/dev/null | tr '\n' ' ')
  if [[ -z "$found" ]]; then
    twin=$(kubectl -n "$1" get pods -o json | jq -r --arg space "$1" --arg pod "$2" --arg node "$3" --arg taken "$taken" --slurpfile known <(known) "$TWIN") || fail "kubectl does not answer"
    if [[ -n "$twin" ]]; then printf 'swapped %s %s %s\n' "$1" "$2" "$twin" "$1" "$twin" "$2" >>"$DONE"; fi
    found=$twin
  fi
  echo "${found:-$2}"
}
# Replicas that wait for a node are asked for again at their steps, so that none of them takes the room of a copy.
hold() { # namespace deployment count
  local ns=$1 name=$2 want now waiting rs hash
  if grep -qsx "held $ns $name" "$DONE"; then return; fi
  want=$(sed -n "s/^scaled $ns $name //p" "$DONE" 2>/dev/null || true)
  if [[ -z "$want" ]]; then
    want=$(kubectl -n "$ns" get deployment "$name" -o jsonpath='{.spec.replicas}') || fail "kubectl does not answer"
    echo "scaled $ns $name $want" >>"$DONE"
  fi
  rs=$(kubectl -n "$ns" get replicasets -o json | jq -r --arg deployment "$name" "$NEWEST")
  hash=$(kubectl -n "$ns" get replicaset "${rs:?the pod has no owner}" -o jsonpath='{.metadata.labels.pod-template-hash}')
  : "${hash:?the owner of the pod is not the ReplicaSet of a Deployment}"
  now=$(kubectl -n "$ns" get deployment "$name" -o jsonpath='{.spec.replicas}') || fail "kubectl does not answer"
  if ((now > want - $3)); then
    waiting=$(nodeless "$ns" "$rs")
    ((waiting >= $3)) || fail "of $ns/$name $waiting replicas wait for a node, not $3: the cluster has changed since it was read; plan again"
    kubectl -n "$ns" scale deployment "$name" --replicas=$((want - $3))
  fi
  settled "$ns" "$rs" "$hash"
  echo "held $ns $name" >>"$DONE"
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
  local ns=$1 old=$2 new=$4 node=$5 requests=$6 rs hash now adopted
  now=$(state "$ns" "$old")
  if [[ "$now" == alive ]]; then
    runs_on "$ns" "$old" "$3"
    rs=$(kubectl -n "$ns" get pod "$old" --ignore-not-found -o jsonpath='{.metadata.ownerReferences[?(@.controller==true)].name}')
    if [[ -z "$rs" ]]; then now=$(state "$ns" "$old"); fi # it went just now
  fi
  if [[ "$now" != alive ]]; then # an earlier run was interrupted right after this
    there "$ns" "$new" || fail "neither pod $old nor $new is in $ns: plan again"
    ready "$ns" "$new"
    gone "$ns" "$old"
    return 0
  fi
  hash=$(kubectl -n "$ns" get replicaset "${rs:?the pod has no owner}" -o jsonpath='{.metadata.labels.pod-template-hash}')
  : "${hash:?the owner of the pod is not the ReplicaSet of a Deployment}"
  if ! there "$ns" "$new"; then
    kubectl -n "$ns" get replicaset "$rs" -o json | jq --arg name "$new" --arg node "$node" --argjson requests "$requests" "$COPY" | kubectl create -f -
  fi
  ready "$ns" "$new"
  adopted=$(kubectl -n "$ns" get pod "$new" -o jsonpath='{.metadata.labels.pod-template-hash}')
  if [[ -z "$adopted" ]]; then
    guard "$ns" "$rs" "$hash" "$old"
    kubectl -n "$ns" annotate --overwrite pod "$old" controller.kubernetes.io/pod-deletion-cost=-2147483647
    kubectl -n "$ns" label --overwrite pod "$new" "pod-template-hash=$hash"
  fi
  gone "$ns" "$old" "$rs" "$hash"
}

# Fewer replicas, and the marked pod is the one that goes.
shrink() { # namespace deployment old-pod old-node
  local ns=$1 name=$2 old=$3 want now
  if [[ "$(state "$ns" "$old")" != alive ]]; then
    gone "$ns" "$old"
    return 0
  fi
  runs_on "$ns" "$old" "$4"
  kubectl -n "$ns" annotate --overwrite pod "$old" controller.kubernetes.io/pod-deletion-cost=-2147483647
  want=$(kubectl -n "$ns" get pod "$old" -o jsonpath='{.metadata.annotations.placeopt-stop}')
  now=$(kubectl -n "$ns" get deployment "$name" -o jsonpath='{.spec.replicas}')
  [[ -n "$want" ]] || want=$((now - 1))
  kubectl -n "$ns" annotate --overwrite pod "$old" "placeopt-stop=$want"
  kubectl -n "$ns" scale deployment "$name" --replicas="$want"
  gone "$ns" "$old"
}

stop() { # namespace deployment old-pod old-node: a disruption, which undo gives back
  local now
  if ! grep -qs "^scaled $1 $2 " "$DONE"; then
    now=$(kubectl -n "$1" get deployment "$2" -o jsonpath='{.spec.replicas}') || fail "kubectl does not answer"
    echo "scaled $1 $2 $now" >>"$DONE"
  fi
  shrink "$@"
}
remove() { # namespace deployment old-pod old-node: for good
  resized "$1" "$2" -1 "$3"
  shrink "$@"
}
add() { # namespace deployment new-pod node requests: for good
  start "$@"
  resized "$1" "$2" 1 "$3"
}
resized() { # namespace deployment by pod: what undo scales back to is another number from here
  if grep -qs "^scaled $1 $2 " "$DONE" && ! grep -qsx "resized $1 $2 $3 $4" "$DONE"; then echo "resized $1 $2 $3 $4" >>"$DONE"; fi
}

# More replicas, and the copy is the one that stays: the others are worth more than what the ReplicaSet makes meanwhile.
start() { # namespace deployment new-pod node requests
  local ns=$1 name=$2 new=$3 node=$4 requests=$5 rs hash want now adopted
  rs=$(kubectl -n "$ns" get replicasets -o json | jq -r --arg deployment "$name" "$NEWEST")
  hash=$(kubectl -n "$ns" get replicaset "${rs:?the pod has no owner}" -o jsonpath='{.metadata.labels.pod-template-hash}')
  : "${hash:?the owner of the pod is not the ReplicaSet of a Deployment}"
  if ! there "$ns" "$new"; then
    kubectl -n "$ns" get replicaset "$rs" -o json | jq --arg name "$new" --arg node "$node" --argjson requests "$requests" "$COPY" | kubectl create -f -
  fi
  ready "$ns" "$new"
  adopted=$(kubectl -n "$ns" get pod "$new" -o jsonpath='{.metadata.labels.pod-template-hash}')
  if [[ -z "$adopted" ]]; then # else an earlier run was interrupted after this
    kubectl -n "$ns" annotate --overwrite pods -l "pod-template-hash=$hash" controller.kubernetes.io/pod-deletion-cost=1 placeopt-kept=1 || true
    kubectl -n "$ns" annotate --overwrite pod "$new" controller.kubernetes.io/pod-deletion-cost=1 placeopt-kept=1
    want=$(kubectl -n "$ns" get pod "$new" -o jsonpath='{.metadata.annotations.placeopt-start}')
    now=$(kubectl -n "$ns" get deployment "$name" -o jsonpath='{.spec.replicas}')
    [[ -n "$want" ]] || want=$((now + 1))
    kubectl -n "$ns" annotate --overwrite pod "$new" "placeopt-start=$want"
    kubectl -n "$ns" scale deployment "$name" --replicas="$want"
    kubectl -n "$ns" label --overwrite pod "$new" "pod-template-hash=$hash"
  fi
  settled "$ns" "$rs" "$hash"
  kubectl -n "$ns" annotate pods -l "pod-template-hash=$hash" controller.kubernetes.io/pod-deletion-cost- placeopt-kept- placeopt-start-
}

# A pod of a StatefulSet cannot run twice: it ends, and is made anew on the node.
recreate() { # namespace statefulset pod old-node node requests
  local ns=$1 name=$2 old=$3 node=$5 requests=$6 uid ended
  if [[ -z "$4" ]]; then old=$(about "$ns" "$old" "$node"); fi
  uid=$(kubectl -n "$ns" get pod "$old" -o jsonpath='{.metadata.uid}' --ignore-not-found) || fail "kubectl does not answer"
  ended=$(sed -n "s/^ended $number //p" "$DONE" 2>/dev/null || true)
  if [[ -n "$ended" ]] && [[ "$uid" != "$ended" || "$(state "$ns" "$old")" == leaving ]]; then # an earlier run ended it, and was interrupted while it came back
    back "$ns" "$old" "$ended"
    return
  fi
  [[ -n "$uid" ]] || fail "pod $ns/$old is not there: plan again"
  if [[ -n "$4" ]]; then
    runs_on "$ns" "$old" "$4"
  elif [[ "$requests" == "{}" && "$(kubectl -n "$ns" get pod "$old" -o jsonpath='{.spec.nodeName}')" == "$node" ]]; then
    ready "$ns" "$old" # it waited, and the scheduler was there before
    return
  fi
  whole "$ns" "$name" "$old"
  [[ -n "$ended" ]] || echo "ended $number $uid" >>"$DONE"
  kubectl -n "$ns" get statefulset "$name" -o json | jq --arg node "$node" --argjson requests "$requests" "$REBIND" | kubectl replace -f -
  kubectl -n "$ns" delete pod "$old" --wait=false
  back "$ns" "$old" "$uid"
}

discard() { # node: it is empty; spreads over hostnames count it until it is deleted
  if [[ -n "${DRY_RUN:-}" ]]; then
    echo "delete node $1"
  elif ! grep -qsx "deleted $1" "$DONE"; then
    vacant "$1" || fail "node $1 was to be empty: plan again"
    kubectl delete node "$1" --ignore-not-found
    echo "deleted $1" >>"$DONE"
    forget "^cordoned $1\$"
  fi
}

cordon() { # node: it will be empty, so nothing new is to come
  if [[ -n "${DRY_RUN:-}" ]]; then
    echo "cordon $1"
  elif grep -qsx "deleted $1" "$DONE"; then
    return
  elif [[ "$(kubectl get node "$1" -o jsonpath='{.spec.unschedulable}')" != true ]]; then
    echo "cordoned $1" >>"$DONE" # what undo lets be scheduled to again
    kubectl cordon "$1"
  fi
}

retire() { # node: nothing was there, and no step used it
  if [[ -n "${DRY_RUN:-}" ]]; then
    echo "cordon $1"
  elif vacant "$1"; then
    cordon "$1"
    echo "node $1 hosts nothing and is cordoned: remove it when you are sure"
  fi
}

known() { # what was read of the cluster
  cat <<'KNOWN'
@known@
KNOWN
}
check() { # whether the cluster still is what was read, as far as steps are left
  local made space wrong="" begun=false
  if grep -qsx begun "$DONE"; then begun=true; fi
  made=$(grep -sx '[0-9]*' "$DONE" | sort -n | tail -n 1 || true)
  wrong=$(kubectl get nodes -o json | jq -r --argjson made "${made:-0}" --argjson bought "$(bought)" --slurpfile known <(known) "$NODES") || fail "kubectl does not answer"
  for space in @spaces@; do
    wrong+=$'\n'$(kubectl -n "$space" get pods,replicasets -o json | jq -r --argjson made "${made:-0}" --argjson begun "$begun" --arg space "$space" --slurpfile known <(known) "$PODS") || fail "kubectl does not answer"
  done
  wrong=$(grep . <<<"$wrong" || true)
  [[ -z "$wrong" ]] || fail $'the cluster is not what was read:\n'"$wrong"
  echo "checked: the cluster is what was read"
}
undo() {
  local space pod node name want now back=""
  for node in $(sed -n 's/^cordoned //p' "$DONE" 2>/dev/null); do kubectl uncordon "$node"; done
  for space in @spaces@; do
    for pod in $(kubectl -n "$space" get pods -o json | jq -r '.items[] | select((.metadata.name | contains("@tail@")) and (any(.metadata.ownerReferences[]?; .controller) | not)) | .metadata.name'); do
      kubectl -n "$space" delete pod "$pod" --wait=false
    done
    for pod in $(kubectl -n "$space" get pods -o json | jq -r '.items[] | select(.metadata.annotations // {} | . as $marks | .["controller.kubernetes.io/pod-deletion-cost"] == "-2147483647" or any("stop", "start", "kept"; . as $mark | $marks | has("placeopt-\($mark)"))) | .metadata.name'); do
      kubectl -n "$space" annotate pod "$pod" controller.kubernetes.io/pod-deletion-cost- placeopt-stop- placeopt-start- placeopt-kept-
    done
  done
  while read -r space name want; do
    want=$((want + $(awk -v space="$space" -v name="$name" '$1 == "resized" && $2 == space && $3 == name { sum += $4 } END { print sum + 0 }' "$DONE")))
    now=$(kubectl -n "$space" get deployment "$name" -o jsonpath='{.spec.replicas}') || fail "kubectl does not answer"
    if ((now < want)); then
      kubectl -n "$space" scale deployment "$name" --replicas="$want"
      back+=" $space/$name"
    fi
  done < <(sed -n 's/^scaled //p' "$DONE" 2>/dev/null)
@undo@
  forget '^cordoned '
  forget '^scaled '
  forget '^held '
  forget '^resized '
  if [[ -n "$back" ]]; then # their copies are the scheduler's now: the rest of the plan does not fit
    echo undone >>"$DONE"
    echo "scaled back:$back"
  fi
  echo "undone: nodes, marks and copies that nothing owns. What was moved stays where it is, what was added or removed too; to have it elsewhere, plan again"
}
confirm() {
  local here answer
  if [[ -z "$CONTEXT" ]]; then
    here=$(command kubectl config current-context) || fail "kubectl has no context: give CONTEXT=NAME"
    [[ -t 0 ]] || fail "say in which cluster: CONTEXT=$here bash $0"
    read -r -p "@total@ steps in the cluster of context '$here'. Type its name to go on: " answer
    [[ "$answer" == "$here" ]] || fail "not confirmed; nothing was done"
    CONTEXT=$here
  fi
  @identity@
  echo "context $CONTEXT"
}

command -v kubectl >/dev/null || fail "kubectl is not installed"
command -v jq >/dev/null || fail "jq is not installed"
if [[ -z "${DRY_RUN:-}" ]]; then
  confirm
  case "${1:-}" in
    undo) undo; exit 0 ;;
    check) check; exit 0 ;;
    "")
      ! grep -qsx undone "$DONE" || fail "undo has scaled back what this plan stopped, so that the rest of it does not fit: plan again"
      arrive
      check
      grep -qsx begun "$DONE" || echo begun >>"$DONE"
@hold@
      ;;
    *) fail "'$1' is not known; legal: check, undo, or nothing" ;;
  esac
fi

@steps@

if [[ -n "${DRY_RUN:-}" ]]; then exit 0; fi
if ! { [[ -e "$DONE" ]] && grep -qx finish "$DONE"; }; then
@finish@
  forget '^scaled '
  forget '^resized '
  echo finish >>"$DONE"
fi
echo "all $TOTAL steps are made"
@empty@
