#!/usr/bin/env bash
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

if [[ -n "${DRY_RUN:-}" ]]; then exit 0; fi
if ! { [[ -e "$DONE" ]] && grep -qx finish "$DONE"; }; then
@finish@
  echo finish >>"$DONE"
fi
echo "all $TOTAL steps are made"
@empty@
