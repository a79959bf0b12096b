"""Karmada policies: valid by the schema of the custom resource, weights that are replicas."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import placeopt
from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.kubernetes.export import export, policies
from placeopt.kubernetes.origin import Origin
from placeopt.registry import problem_class, specs

DATA = os.environ.get("PLACEOPT_DATA")


@pytest.fixture(scope="module")
def placed() -> tuple[EdgeCloud, dict[str, Any]]:
    problem = EdgeCloud.generate(3, applications=4)
    return problem, placeopt.solve(problem, "greedy", seed=1).pick().plan


def origin_of(problem: EdgeCloud, kind: str = "Deployment") -> Origin:
    """Every application is one workload, its microservices the replicas."""
    name = problem.instance_name
    items = {}
    for k, application in enumerate(problem.applications):
        item = {"namespace": "shop", "kind": kind, "name": f"svc-{k}"}
        items |= {f"{application.name}/{m.name}": item for m in application.microservices}
    about = {"problem": name.problem, "name": name.name, "sha256": name.sha256}
    return Origin.model_validate({"instance": about, "items": items})


def weights(policy: dict[str, Any]) -> dict[str, int]:
    wishes = policy["spec"]["placement"]["replicaScheduling"]["weightPreference"]
    listed = wishes["staticWeightList"]
    return {name: e["weight"] for e in listed for name in e["targetCluster"]["clusterNames"]}


def crd_schema() -> dict[str, Any]:
    if DATA is None:
        pytest.skip("PLACEOPT_DATA is not set: the schema of PropagationPolicy is not at hand")
    crd = yaml.safe_load(
        (Path(DATA) / "karmada" / "crd-propagationpolicies.yaml").read_text(encoding="utf-8")
    )
    schema: dict[str, Any] = strict(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return schema


def strict(schema: Any) -> Any:
    """Return a schema in which only what is described is legal, as strict validation has it."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
        if {"kind", "apiVersion", "metadata"} <= made["properties"].keys():
            made["properties"]["metadata"] = {"type": "object"}
    return made


def test_weights_are_replicas(placed: tuple[EdgeCloud, dict[str, Any]]) -> None:
    """One policy a workload; its weights say how many replicas go to which cluster."""
    problem, plan = placed
    made = policies(problem, plan, origin_of(problem))
    assert [policy["spec"]["resourceSelectors"][0]["name"] for policy in made] == [
        f"svc-{k}" for k in range(len(problem.applications))
    ]
    for application, policy in zip(problem.applications, made, strict=True):
        assert weights(policy) == Counter(plan["placement"][application.name].values())
        assert policy["spec"]["placement"]["clusterAffinity"]["clusterNames"] == sorted(
            weights(policy)
        )


def test_policies_are_valid(placed: tuple[EdgeCloud, dict[str, Any]]) -> None:
    """By the openAPIV3Schema of the resource, with and without an origin; a wrong weight is not."""
    jsonschema = pytest.importorskip("jsonschema")
    schema, (problem, plan) = crd_schema(), placed
    for origin in (None, origin_of(problem)):
        text = export(problem, plan, origin)
        made = list(yaml.safe_load_all(text))
        assert made
        for policy in made:
            jsonschema.validate(policy, schema)
    wishes = made[0]["spec"]["placement"]["replicaScheduling"]["weightPreference"]
    wishes["staticWeightList"][0]["weight"] = 0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made[0], schema)


@pytest.mark.skipif(
    "multi-cluster" not in specs(), reason="this version has no multi-cluster problem"
)
def test_decisions_become_policies() -> None:
    """A policy for every accepted request; deployments asked for twice get numbers."""
    problem = problem_class("multi-cluster").generate(1, requests=12)
    jsonschema = pytest.importorskip("jsonschema")
    front = placeopt.solve(problem, evaluations=100, seed=1)
    plan = front.points[0].plan
    made = list(yaml.safe_load_all(export(problem, plan)))
    accepted = [decision for decision in plan["decisions"] if decision]
    assert [weights(policy) for policy in made] == accepted
    assert len({policy["metadata"]["name"] for policy in made}) == len(made)
    for policy in made:
        jsonschema.validate(policy, crd_schema())


def test_names_and_kinds_are_checked(placed: tuple[EdgeCloud, dict[str, Any]]) -> None:
    """No capital letters, no kinds without replicas."""
    problem, plan = placed
    with pytest.raises(UnsupportedError, match="DaemonSet 'svc-0' has no replicas"):
        policies(problem, plan, origin_of(problem, "DaemonSet"))
    application = problem.applications[0].name
    wrong = {application: dict.fromkeys(plan["placement"][application], "Near_1")}
    with pytest.raises(DocumentError, match="'Near_1' is not a name"):
        policies(problem, {"placement": wrong}, origin_of(problem))
