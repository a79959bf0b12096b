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
whole() { # namespace statefulset: all its pods that have a node are ready, so that one may be missing
  local waits now
  waits=$(nodeless "$1" "$2")
  now=$(kubectl -n "$1" get statefulset "$2" -o json | jq -r --argjson waits "$waits" '"\(.status.readyReplicas // 0) of \((.spec.replicas // 1) - $waits)"')
  [[ "${now% of *}" -ge "${now#* of }" ]] || fail "StatefulSet $1/$2 has $now pods ready, without those that wait for a node: none is deleted before all are"
}
free() { # namespace statefulset requests: its template is bound to no node any more; its pods stay as they are
  local was
  was=$(kubectl -n "$1" get statefulset "$2" -o json | jq -c '.metadata.annotations["placeopt-before"] // "null" | fromjson | .strategy // empty')
  kubectl -n "$1" get statefulset "$2" -o json | jq --argjson requests "$3" "$FREE" | kubectl replace -f -
  [[ -z "$was" ]] || echo "StatefulSet $1/$2 updates OnDelete now, so that its pods stay where they are. To have it as it was, which restarts them where the scheduler likes: kubectl -n $1 patch statefulset $2 --type=merge -p '{\"spec\":{\"updateStrategy\":$was}}'"
}
