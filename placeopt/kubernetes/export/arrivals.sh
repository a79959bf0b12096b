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
    if ((SECONDS >= end)); then fail "after $NODE_WAIT these nodes are not there:"$'\n'"$left"$'\n'"Buy them and run this again, with NODE_WAIT=3600s to wait longer; nodes with other labels: placeopt export ... --bought NAME=NODE"; fi
    if [[ "$left" != "$said" ]]; then echo "waiting for nodes to be bought:"$'\n'"$left"; fi
    said=$left
    sleep "$NODE_POLL"
  done
}
