#!/usr/bin/env bash
# @title@
# @values@
@warnings@#
# Needs kubectl and jq. Run it again after a failure: it goes on where it stopped (finished steps are kept in $DONE).
#   CONTEXT=prod bash @file@       make the steps in the cluster of this context of kubectl; on a terminal you are asked
#   DRY_RUN=1 bash @file@          say what would be done, and ask no cluster
#   CONTEXT=prod bash @file@ check look whether the cluster still is what was read, and do nothing
#   CONTEXT=prod bash @file@ undo  let the nodes be scheduled to again, take marks off, end copies that nothing owns
#   WAIT=600s, PATIENCE=60s        wait longer for pods (300s), and for the scheduler to take one (15s)
@waits@# Keep others from moving these pods meanwhile: autoscalers, deschedulers, a GitOps controller that resets replicas.
# Where pods run is kept until they are replaced: a later rollout or eviction asks the scheduler again.
# Not done here: draining DaemonSets off nodes that end empty, removing and buying nodes.
set -euo pipefail

DONE=${DONE:-@done@}
TOTAL=@total@
CONTEXT=${CONTEXT:-}
@setup@
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
@newest@
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
@owner@
    if [[ -z "$rs" ]]; then now=$(state "$ns" "$old"); fi # it went just now
  fi
  if [[ "$now" != alive ]]; then # an earlier run was interrupted right after this
    there "$ns" "$new" || fail "neither pod $old nor $new is in $ns: plan again"
    ready "$ns" "$new"
    gone "$ns" "$old"
    return 0
  fi
@hash@
  if ! there "$ns" "$new"; then
@create@
  fi
  ready "$ns" "$new"
  adopted=$(kubectl -n "$ns" get pod "$new" -o jsonpath='{.metadata.labels.pod-template-hash}')
  if [[ -z "$adopted" ]]; then
@adopt@
  fi
@gone@
}

# Fewer replicas, and the marked pod is the one that goes.
shrink() { # namespace deployment old-pod old-node
  local ns=$1 name=$2 old=$3 want now
  if [[ "$(state "$ns" "$old")" != alive ]]; then
    gone "$ns" "$old"
    return 0
  fi
  runs_on "$ns" "$old" "$4"
@stop@
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
@newest@
  if ! there "$ns" "$new"; then
@create@
  fi
  ready "$ns" "$new"
  adopted=$(kubectl -n "$ns" get pod "$new" -o jsonpath='{.metadata.labels.pod-template-hash}')
  if [[ -z "$adopted" ]]; then # else an earlier run was interrupted after this
@grow@
  fi
@settle@
}

# A pod of a StatefulSet cannot run twice: it ends, and is made anew on the node.
recreate() { # namespace statefulset pod old-node node requests
  local ns=$1 name=$2 old=$3 new node=$5 requests=$6 uid ended
  if [[ -z "$4" ]]; then old=$(about "$ns" "$old" "$node"); fi
  new=$old
  uid=$(kubectl -n "$ns" get pod "$old" -o jsonpath='{.metadata.uid}' --ignore-not-found) || fail "kubectl does not answer"
  ended=$(sed -n "s/^ended $number //p" "$DONE" 2>/dev/null || true)
  if [[ -n "$ended" && "$uid" != "$ended" ]]; then # an earlier run ended it, and was interrupted while it came back
    until [[ -n "$(state "$ns" "$old")" ]]; do sleep "$POLL"; done
    ready "$ns" "$old"
    return
  fi
  [[ -n "$uid" ]] || fail "pod $ns/$old is not there: plan again"
  if [[ -n "$4" ]]; then
    runs_on "$ns" "$old" "$4"
  elif [[ "$requests" == "{}" && "$(kubectl -n "$ns" get pod "$old" -o jsonpath='{.spec.nodeName}')" == "$node" ]]; then
    ready "$ns" "$old" # it waited, and the scheduler was there before
    return
  fi
  [[ -n "$ended" ]] || echo "ended $number $uid" >>"$DONE"
@recreate@
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
