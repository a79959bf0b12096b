"""Plans out: ordered steps with their commands, and Karmada policies; no cluster is asked.

==========  ====================================================================================
``steps``   rolling-update and rescheduling plans as steps
``script``  steps as JSON and back; a script that can be run again, from script.sh and arrivals.sh;
            what to buy and to free
==========  ====================================================================================

Edge-cloud and multi-cluster plans become PropagationPolicies of Karmada: replicas divided by static
weights, which are numbers of replicas. A workload whose ``spec.replicas`` is their sum is divided
as the plan says.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from placeopt.core.errors import DocumentError, UnsupportedError, UsageError
from placeopt.core.files.documents import layout
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Problem
from placeopt.kubernetes.origin import Origin

#: What a plan of each problem can become; the first is the default.
FORMATS = {
    "rolling-update": ("commands", "json", "node-groups"),
    "rescheduling": ("commands", "json"),
    "edge-cloud": ("karmada",),
    "multi-cluster": ("karmada",),
}


def export(
    problem: Problem,
    plan: Plan,
    origin: Origin | None = None,
    *,
    form: str | None = None,
    namespace: str = "default",
) -> str:
    """Return a plan as text to apply.

    Parameters
    ----------
    problem : Problem
    plan : mapping
        A plan that breaks nothing.
    origin : Origin, optional
        What the instance's names are in the cluster. `commands` need it; without it, steps as
        `json` name no pods.
    form : str, optional
        One of `FORMATS` of the problem.
    namespace : str
        For Karmada policies of instances without an origin.

    Raises
    ------
    UnsupportedError
        Plans of this problem cannot be exported in this form, or no command can move something in
        the cluster.
    DocumentError
        The plan breaks the instance, or the origin does not fit to it.
    """
    form = _form(problem, form)
    broken = problem.evaluate(plan).violations
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise DocumentError(
            f"the plan breaks the instance: {broken[0].message}{more}",
            remedy="export a point that the referee accepts",
        )
    if origin is not None:
        origin.check(problem)
    if form == "karmada":
        return to_yaml(policies(problem, plan, origin, namespace=namespace))
    from placeopt.kubernetes.export import script

    if form == "node-groups":
        return layout(script.node_groups(problem, plan, origin))
    if form == "json":
        return layout(script.document(problem, plan, origin))
    if origin is None:
        raise UsageError(
            "commands need the names of the cluster: give --origin, which "
            "`placeopt import kubernetes` writes, or ask for json"
        )
    return script.script(problem, plan, origin)


def _form(problem: Problem, form: str | None) -> str:
    legal = FORMATS.get(problem.problem, ())
    if not legal:
        raise UnsupportedError(
            f"plans of {problem.problem} are not Kubernetes objects; "
            "`placeopt report` and `placeopt pick` show them"
        )
    if form is not None and form not in legal:
        raise UnsupportedError(
            f"a {problem.problem} plan cannot become {form!r}; legal: {', '.join(legal)}"
        )
    return form or legal[0]


# -- policies of Karmada ---------------------------------------------------------------------------

_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

#: (namespace, kind, name) of a workload.
Workload = tuple[str, str, str]


def policies(
    problem: Problem,
    plan: Plan,
    origin: Origin | None = None,
    *,
    namespace: str = "default",
) -> list[dict[str, Any]]:
    """Return one PropagationPolicy for every workload that the plan places.

    Parameters
    ----------
    problem : Problem
        Edge-cloud, whose nodes are then clusters, or multi-cluster.
    plan : mapping
    origin : Origin, optional
        Without it a workload is a Deployment in `namespace`, named as the microservice or the
        request.

    Raises
    ------
    DocumentError
        A name that Kubernetes does not allow.
    UnsupportedError
        A kind of workload that has no replicas to place.
    """
    shares = (
        _edge_cloud(plan, origin, namespace)
        if problem.problem == "edge-cloud"
        else _multi_cluster(problem, plan, origin, namespace)
    )
    return [_policy(workload, counts) for workload, counts in shares.items() if counts]


def to_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return YAML, one document after another."""
    import yaml

    return yaml.safe_dump_all(
        list(documents), sort_keys=False, explicit_start=True, allow_unicode=True
    ).rstrip("\n")


def _edge_cloud(plan: Plan, origin: Origin | None, namespace: str) -> dict[Workload, Counter[str]]:
    results: dict[Workload, Counter[str]] = defaultdict(Counter)
    named = Counter(name for row in plan["placement"].values() for name in row)
    for application, row in plan["placement"].items():
        for name, node in row.items():
            unique = name if named[name] == 1 else f"{application}-{name}"
            workload = _workload(origin, namespace, unique, name, application)
            results[workload][node] += 1
    return results


def _multi_cluster(
    problem: Any, plan: Plan, origin: Origin | None, namespace: str
) -> dict[Workload, Counter[str]]:
    results: dict[Workload, Counter[str]] = defaultdict(Counter)
    named = Counter(request.deployment for request in problem.requests)
    for k, (request, decision) in enumerate(zip(problem.requests, plan["decisions"], strict=True)):
        name = request.deployment
        unique = name if named[name] == 1 else f"{name}-{k}"
        results[_workload(origin, namespace, unique, name)].update(
            {cluster: n for cluster, n in decision.items() if n}
        )
    return results


def _workload(
    origin: Origin | None, namespace: str, unique: str, name: str, application: str | None = None
) -> Workload:
    """Return what `name` is in the cluster: without an origin the Deployment named `unique`."""
    if origin is None:
        return namespace, "Deployment", unique
    item = origin.item(name, application)
    return item.namespace, item.kind, item.name


def _policy(workload: Workload, counts: Counter[str]) -> dict[str, Any]:
    namespace, kind, name = workload
    if kind not in _VERSIONS:
        raise UnsupportedError(
            f"{kind} {name!r} has no replicas to divide among clusters; "
            f"legal: {', '.join(_VERSIONS)}"
        )
    for word in (namespace, name, *counts):
        if not _NAME.fullmatch(word):
            remedy = "use small letters, digits and dashes, at most 63"
            raise DocumentError(
                f"{word[:80]!r} is not a name that Kubernetes allows", remedy=remedy
            )
    clusters = sorted(counts)
    weights = [
        {"targetCluster": {"clusterNames": [cluster]}, "weight": counts[cluster]}
        for cluster in clusters
    ]
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": f"{name}-{kind.lower()}"[:63].rstrip("-"), "namespace": namespace},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": _VERSIONS[kind], "kind": kind, "namespace": namespace, "name": name}
            ],
            "placement": {
                "clusterAffinity": {"clusterNames": clusters},
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Weighted",
                    "weightPreference": {"staticWeightList": weights},
                },
            },
        },
    }
