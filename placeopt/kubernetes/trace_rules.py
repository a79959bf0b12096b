"""What pods say of each other and how they are rolled out, as rules of a trace.

Required affinity and anti-affinity to other pods and required topology spread, per hostname and per
zone; other topology keys, minDomains and what is preferred are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placeopt.core.files.documents import Document
from placeopt.kubernetes.budgets import share_of
from placeopt.kubernetes.objects import Workload, selects
from placeopt.kubernetes.reading import Source, View
from placeopt.kubernetes.replicas import Replica
from placeopt.kubernetes.rules import HOSTNAME, affinity_terms, in_words, selector_of

_PER = {HOSTNAME: "node", "topology.kubernetes.io/zone": "zone"}
#: What a rule asks, the namespaces that it is about, and the selector of the pods that it counts.
_Term = tuple[Document, tuple[str, ...], Document | None]


def rules_between(
    units: Sequence[Replica], namespaces: Mapping[str, Mapping[str, str]]
) -> tuple[list[Document], list[list[str]], list[list[str]]]:
    """Return the rules of pods, and for each pod those that it keeps and those that count it.

    Parameters
    ----------
    units : sequence of Replica
    namespaces : mapping
        The labels of namespaces that are known.
    """
    spaces = {unit.namespace: {**namespaces.get(unit.namespace, {})} for unit in units}
    terms: dict[str, _Term] = {}
    keeps = []
    by_signature: dict[str, list[str]] = {}
    for unit in units:
        said = _signature(unit)
        if said not in by_signature:
            own = {json.dumps(term, sort_keys=True): term for term in _terms(unit, spaces)}
            terms |= own
            by_signature[said] = list(own)
        keeps.append(by_signature[said])
    names = {key: _name(term, k) for k, (key, term) in enumerate(terms.items())}
    counted: dict[tuple[Any, ...], list[str]] = {}
    counts = []
    for unit in units:
        who = (unit.namespace, *sorted(unit.labels.items()))
        if who not in counted:
            counted[who] = [names[key] for key, term in terms.items() if _selected(term, unit)]
        counts.append(counted[who])
    rules = [{"name": names[key], **rule} for key, (rule, _, _) in terms.items()]
    return rules, [[names[key] for key in own] for own in keeps], counts


def _signature(unit: Replica) -> str:
    parts = [unit.namespace, unit.spec.affinity.value, unit.labels]
    spreads = unit.spec.view["topologySpreadConstraints"].value
    if not (parts[1] or spreads):
        return ""
    return json.dumps([*parts, spreads], sort_keys=True, default=str)


def _terms(unit: Replica, spaces: Mapping[str, Mapping[str, str]]) -> Iterator[_Term]:
    """Yield what a pod asks of others, as far as a trace can say it."""
    for kind, soft, terms in affinity_terms(unit):
        for term in () if soft else terms:
            if per := _PER.get(term["topologyKey"].text()):
                about = _spaces(unit, term, spaces)
                yield {"kind": kind, "per": per}, about, selector_of(unit, term, adopted=True)
    for term in unit.spec.view["topologySpreadConstraints"].items():
        hard = term["whenUnsatisfiable"].text("DoNotSchedule") == "DoNotSchedule"
        if hard and (per := _PER.get(term["topologyKey"].text())):
            rule = {"kind": "spread", "per": per, "max_skew": term["maxSkew"].whole(1)}
            yield rule, (unit.namespace,), selector_of(unit, term, adopted=True)


def _spaces(unit: Replica, term: View, spaces: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Return the namespaces whose pods a term is about."""
    named = {view.text() for view in term["namespaces"].items()}
    selector = term["namespaceSelector"]
    if selector.value is None:
        return tuple(sorted(named)) or (unit.namespace,)
    for name, labels in spaces.items():
        if selects(selector, {"kubernetes.io/metadata.name": name, **labels}):
            named.add(name)
    return tuple(sorted(named))


def _selected(term: _Term, unit: Replica) -> bool:
    _, spaces, selector = term
    view = View(selector, Source("", "", is_json=True))
    return unit.namespace in spaces and selects(view, unit.labels)


def _name(term: _Term, number: int) -> str:
    rule, spaces, selector = term
    return f"{number + 1} {rule['kind']} {'+'.join(spaces)[:80]}/{in_words(selector)}"[:200]


def strategy_of(workload: Workload) -> dict[str, int]:
    """Return how a Deployment replaces its pods: 25 % each where it does not say."""
    if workload.recreates:
        return {"max_unavailable": max(1, workload.replicas), "max_surge": 0}
    rolling = workload.meta.view["spec"]["strategy"]["rollingUpdate"]
    surge, missing = (
        "25%" if rolling[key].value is None else rolling[key].value
        for key in ("maxSurge", "maxUnavailable")
    )
    count = workload.replicas
    result = {
        "max_surge": share_of(surge, count),
        "max_unavailable": share_of(missing, count, up=False),
    }
    return result if any(result.values()) else {"max_surge": 0, "max_unavailable": 1}
