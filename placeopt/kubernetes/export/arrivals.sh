# jq: nodes of the cluster -> for each node to buy a line "bought NAME NODE", or what is missing; nothing for one that was found before. A node of the
# very name comes before all others.
ARRIVED=$ASKED'
def fits($wanted): (.metadata.labels // {}) as $has
  | ready and (.spec.unschedulable | not) and taints == $wanted.taints
  and all($wanted.labels | to_entries[]; $has[.key] == .value);
[.items[]] as $live
| reduce $wanted[0].nodes[] as $one ({taken: [$bought[]], lines: []};
  .taken as $taken
  | if $bought[$one.name] then .
    else
      ([$live[] | select(.metadata.name == $one.name and ready)]
       + [$live[] | select(fits($one)) | select(.metadata.name as $name
          | ($wanted[0].before + $taken | index($name)) | not)])[0].metadata.name as $found
      | if $found
        then .taken += [$found] | .lines += ["bought \($one.name) \($found)"]
        else .lines += ["\($one.name): \($one.said)"] end
    end)
| .lines[]'
NODE_WAIT=${NODE_WAIT:-900s} NODE_POLL=${NODE_POLL:-5}
arrivals() { # what is to be bought, and how it is known
  cat <<'ARRIVALS'
@arrivals@
ARRIVALS
}
bought() { # name in the plan -> node
  { sed -n 's/^bought //p' "$DONE" 2>/dev/null || true; } | jq -Rn '[inputs / " " | {(.[0]): .[1]}] | add // {}'
}
real() { # name in the plan: the node that it became
  local found=""
  if [[ -e "$DONE" ]]; then found=$(awk -v name="$1" '$1 == "bought" && $2 == name { print $3 }' "$DONE"); fi
  echo "${found:-$1}"
}
missing() { # what is not there yet; which nodes came is kept in $DONE
  local found
  found=$(kubectl get nodes -o json | jq -r --argjson bought "$(bought)" --slurpfile wanted <(arrivals) "$ARRIVED") || fail "kubectl does not answer"
  sed -n '/^bought /p' <<<"$found" >>"$DONE"
  sed '/^bought /d' <<<"$found"
}
arrive() { # wait until all that is to be bought is there
  local left said="" end=$((SECONDS + ${NODE_WAIT%s}))
  while :; do
    left=$(missing) || exit 1
    if [[ -z "$left" ]]; then return 0; fi
    if ((SECONDS >= end)); then fail "after $NODE_WAIT these nodes are not there:"$'\n'"$left"$'\n'"Buy them and run this again, with NODE_WAIT=3600s to wait longer"; fi
    if [[ "$left" != "$said" ]]; then echo "waiting for nodes to be bought:"$'\n'"$left"; fi
    said=$left
    sleep "$NODE_POLL"
  done
}
