"""New requests hold for the container that they name: in the instance, the steps and the script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from little_clusters import (
    Json,
    approved,
    container,
    deployment,
    imported,
    moves,
    node,
    services,
    texts,
)

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import validate
from placeopt.kubernetes.approval import ApprovalPage, markdown
from placeopt.kubernetes.export import export
from placeopt.kubernetes.export.script import StepsDocument, document
from placeopt.kubernetes.given import read_new_requests
from placeopt.kubernetes.importing import Imported
from placeopt.kubernetes.verify import verify_files

Targets = dict[str, Json]
#: The pod of most cases: two containers of 2 cores and 500m, 2304 MiB together.
BOTH = [container("app", "2", "2Gi"), container("proxy", "500m", "256Mi")]
NATIVE = container("log", "100m", "64Mi", restartPolicy="Always")
LIMITED = container("app", "2", "2Gi", resources={"limits": {"cpu": "2500m", "memory": "3Gi"}})


def autoscaler(targets: Targets, kind: str = "Deployment", **spec: Any) -> Json:
    """Return a VerticalPodAutoscaler that recommends targets for containers of `web`."""
    listed = [{"containerName": name, "target": target} for name, target in targets.items()]
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"targetRef": {"kind": kind, "name": "web"}, **spec},
        "status": {"recommendation": {"containerRecommendations": listed}} if listed else {},
    }


def manifest(*containers: Json, **spec: Any) -> Json:
    return deployment("web", [None], containers, **spec)[0]


def off(name: str) -> Json:
    return {"resourcePolicy": {"containerPolicies": [{"containerName": name, "mode": "Off"}]}}


Case = tuple[Any, list[Json], Json, tuple[int, int] | None, Targets]


def case(
    what: Any, size: tuple[int, int] | None, requests: Targets | None = None, **spec: Any
) -> Case:
    """Return what is asked, containers and spec of the pod; what its new size is, and requests.

    `size` is (milli-CPU, MiB), None: as before. `requests` are those of the script.
    """
    return what, spec.pop("containers", BOTH), spec, size, requests or {}


def vpa(targets: Targets, *rest: Any, **more: Any) -> Case:
    return case(autoscaler(targets), *rest, **more)


#: More than once: 1 core for app alone, and for both; what the script says then.
ONE, CORE = {"app": {"cpu": "1"}}, {"app": {"cpu": "1000m"}}
FULL = {"app": {"cpu": "1000m", "memory": "1024Mi"}}
LESS = {"cpu": "250m", "memory": "262144k"}
LESS_SAID = {"cpu": "250m", "memory": "250Mi"}
TWO = ONE | {"proxy": {"cpu": "1"}}
HEAD = "workload,container,cpu,memory\n"
INIT = {"initContainers": [container("init", "3", "1Gi")]}
SUM = {"resources": {"requests": {"cpu": "3", "memory": "3Gi"}}}

CASES: dict[str, Case] = {
    "one of two": vpa({"app": LESS}, (750, 506), {"app": LESS_SAID}),
    "the other of two": vpa(
        {"proxy": {"cpu": "50m", "memory": "28Mi"}},
        (2050, 2076),
        {"proxy": {"cpu": "50m", "memory": "28Mi"}},
    ),
    "both": vpa(
        {"app": LESS, "proxy": {"cpu": "500m", "memory": "512Mi"}},
        (750, 762),
        {"app": LESS_SAID, "proxy": {"memory": "512Mi"}},
    ),
    "cpu alone": vpa(ONE, (1500, 2304), CORE),
    "memory alone": vpa({"app": {"memory": "1Gi"}}, (2500, 1280), {"app": {"memory": "1024Mi"}}),
    "bytes that are no MiB": vpa(
        {"app": {"memory": "1000001"}}, (2500, 257), {"app": {"memory": "1000001"}}
    ),
    "switched off for one": case(autoscaler(TWO, **off("proxy")), (1500, 2304), CORE),
    "switched off for all": case(autoscaler(TWO, **off("*")), None),
    "as before": vpa({"app": {"cpu": "2000m"}}, None),
    "a container that is not there": vpa(ONE | {"istio": {"cpu": "3"}}, (1500, 2304), CORE),
    "a limit in the way": vpa(
        {"app": {"cpu": "4", "memory": "8Gi"}},
        (2500, 3072),
        {"app": {"cpu": "2500m", "memory": "3072Mi"}},
        containers=[LIMITED],
    ),
    "below the limit": vpa(ONE, (1000, 2048), CORE, containers=[LIMITED]),
    "a sidecar that is an init container": vpa(
        {"log": {"cpu": "300m"}}, (2800, 2368), {"log": {"cpu": "300m"}}, initContainers=[NATIVE]
    ),
    "an init container larger than the rest": vpa(ONE, None, CORE, **INIT),
    "an init container itself": vpa({"init": {"cpu": "1"}}, None, **INIT),
    "overhead stays": vpa(ONE, (1750, 2424), CORE, overhead={"cpu": "250m", "memory": "120Mi"}),
    "a request of the pod itself": vpa(ONE, None, CORE, **SUM),
    "a manifest of both": case(
        manifest(container("app", "1", "1Gi"), container("proxy", "500m", "256Mi")),
        (1500, 1280),
        FULL,
    ),
    "a manifest without the injected one": case(
        manifest(container("app", "1", "1Gi")), (1500, 1280), FULL
    ),
    "a manifest that says nothing of memory": case(
        manifest(container("app", "1", "")), (1500, 2304), CORE
    ),
    "a manifest of another name": case(manifest(container("server", "1", "1Gi")), None),
    "a line for a container": case(
        f"{HEAD}web,proxy,100m,\n", (2100, 2304), {"proxy": {"cpu": "100m"}}
    ),
    "a line for each": case(
        f"{HEAD}web,proxy,100m,64Mi\nweb,app,1,1Gi\n",
        (1100, 1088),
        FULL | {"proxy": {"cpu": "100m", "memory": "64Mi"}},
    ),
    "a line for the pod": case(
        "workload,cpu,memory\nweb,1250m,1152Mi\n",
        (1250, 1152),
        FULL | {"proxy": {"cpu": "250m", "memory": "128Mi"}},
    ),
    "from one to the other": vpa(
        {"app": {"cpu": "1500m"}, "proxy": {"cpu": "1"}},
        None,
        {"app": {"cpu": "1500m"}, "proxy": {"cpu": "1000m"}},
    ),
    "more than now": vpa(
        {"proxy": {"cpu": "1", "memory": "1Gi"}},
        (3000, 3072),
        {"proxy": {"cpu": "1000m", "memory": "1024Mi"}},
    ),
}


def asked(folder: Path, what: Any) -> Path:
    """Write what is asked for as CSV or JSON."""
    path = folder / ("new.csv" if isinstance(what, str) else "new.json")
    path.write_text(what if isinstance(what, str) else json.dumps(what))
    return path


def shop(folder: Path, what: Any, containers: list[Json], **spec: Any) -> Imported:
    """Import `web` on the first of two nodes with what is asked."""
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"], containers, **spec)]
    return imported(folder, objects, new_requests=read_new_requests(asked(folder, what)))


def moved(done: Imported) -> Json:
    """Return the steps of the plan that moves the only pod."""
    return document(done.problem, moves(done, ("web-7d9f-0", "n2")), done.origin)


@pytest.mark.parametrize("name", CASES)
def test_by_container(name: str, tmp_path: Path) -> None:
    """The instance has the sum, the step what changes, and the scheduler takes the copy."""
    what, containers, spec, size, requests = CASES[name]
    done = shop(tmp_path, what, containers, **spec)
    record = services(done)["web-7d9f-0"]
    new = (record.get("new_cpu_millicores"), record.get("new_memory_mib"))
    assert new == (size or (None, None))
    steps = moved(done)
    assert steps["steps"][0].get("requests", {}) == requests
    found = validate(StepsDocument, steps)
    assert verify_files(found, [tmp_path / "cluster.json"]) == []


@pytest.mark.parametrize("name", ["one of two", "both", "a sidecar that is an init container"])
def test_the_script_leaves_the_others_alone(name: str, tmp_path: Path) -> None:
    """Templates get what was asked, at the container that was named, and nothing else."""
    what, containers, spec, _, requests = CASES[name]
    done = shop(tmp_path, what, containers, **spec)
    script = export(done.problem, moves(done, ("web-7d9f-0", "n2")), done.origin)
    patches = [
        json.loads(line.split(" -p ", 1)[1].strip("'"))["spec"]["template"]["spec"]
        for line in script.splitlines()
        if '-p \'{"spec":{"template"' in line
    ]
    key = "initContainers" if "log" in requests else "containers"
    listed = [{"name": n, "resources": {"requests": r}} for n, r in sorted(requests.items())]
    assert patches == [{key: listed}] * 2


NOTES = {
    "a container that is not there": ("ignored", "default/web istio"),
    "a limit in the way": ("assumption", "above the limit of its container"),
    "an init container itself": ("not-expressed", "default/web init"),
    "from one to the other": ("assumption", "add up to those of now"),
    "a manifest of another name": ("ignored", "default/web server"),
}


@pytest.mark.parametrize("name", NOTES)
def test_what_cannot_be_taken_up_is_named(name: str, tmp_path: Path) -> None:
    what, containers, spec, *_ = CASES[name]
    topic, said = NOTES[name]
    assert said in texts(shop(tmp_path, what, containers, **spec), topic)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (autoscaler({"app": {"cpu": "1"}}, kind="StatefulSet"), "StatefulSet default/web"),
        ("workload,cpu,memory\nwbe,1,1Gi\n", "default/wbe"),
        ("workload,container,cpu,memory\nwbe,app,1,1Gi\n", "default/wbe"),
        ("namespace,workload,cpu,memory\nshop,web,1,1Gi\n", "shop/web"),
    ],
)
def test_requests_of_nobody_are_named(what: Any, said: str, tmp_path: Path) -> None:
    """A wrong kind, name or namespace changes nothing, and is not passed over in silence."""
    done = shop(tmp_path, what, BOTH)
    assert "new_cpu_millicores" not in services(done)["web-7d9f-0"]
    assert f"without a replica here: {said}" in texts(done, "ignored")


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ("web,,1,1Gi\nweb,,2,1Gi", "line 3: default/web stands twice"),
        ("web,app,1,1Gi\nweb,app,2,1Gi", "line 3: default/web stands twice with 'app'"),
        ("web,app,1,1Gi\nweb,,2,1Gi", "line 3: default/web stands twice"),
        ("web,,1,1Gi\nweb,app,2,1Gi", "line 3: default/web stands twice with 'app'"),
        ("web,app,x,1Gi", "line 2"),
    ],
)
def test_tables_that_contradict_themselves(rows: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=where):
        read_new_requests(asked(tmp_path, f"{HEAD}{rows}\n"))


def test_an_autoscaler_without_a_recommendation_is_named(tmp_path: Path) -> None:
    """Beside others; alone there is nothing to do, which is an error."""
    silent = autoscaler({})
    with pytest.raises(DocumentError, match="neither workloads nor recommendations"):
        read_new_requests(asked(tmp_path, silent))
    other = autoscaler({"app": {"cpu": "1"}})
    other["metadata"]["name"] = "second"
    done = shop(tmp_path, {"kind": "List", "items": [silent, other]}, BOTH)
    assert services(done)["web-7d9f-0"]["new_cpu_millicores"] == 1500
    assert "without a recommendation: default/web" in texts(done, "ignored")


def test_pods_that_stay_keep_theirs(tmp_path: Path) -> None:
    table = asked(tmp_path, f"{HEAD}web,app,1,1Gi\n")
    objects = [node("n1"), node("n2"), *deployment("web", ["n1"], BOTH)]
    objects += deployment("free", ["n1"])
    pins, new = {"pins": [("Deployment", "web")]}, read_new_requests(table)
    done = imported(tmp_path, objects, rules=pins, new_requests=new)
    assert "new_cpu_millicores" not in services(done)["web-7d9f-0"]
    assert "keep their size: default/web-7d9f-0" in texts(done, "not-expressed")


def test_the_largest_defaults_count_where_nothing_is_said(tmp_path: Path) -> None:
    """A container without a request takes the default of its LimitRange beside a new target."""
    space = {"kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}}
    limits = [{"type": "Container", "defaultRequest": {"cpu": "300m", "memory": "128Mi"}}]
    containers = [container("app", "2", "2Gi"), container("proxy", "", "")]
    objects = [node("n1"), {**space, "apiVersion": "v1", "spec": {"limits": limits}}]
    objects += deployment("web", [None], containers)[:1]
    table = asked(tmp_path, f"{HEAD}web,app,1,1Gi\n")
    done = imported(tmp_path, objects, new_requests=read_new_requests(table))
    record = services(done)["web"]
    assert (record["cpu_millicores"], record["new_cpu_millicores"]) == (2300, 1300)


@pytest.mark.parametrize("to", ["edge-cloud", "rescheduling"])
def test_problems_without_new_sizes_refuse_them(to: str, tmp_path: Path) -> None:
    table = asked(tmp_path, "workload,cpu,memory\nweb,1,1Gi\n")
    objects = [node("n1"), *deployment("web", ["n1"], BOTH)]
    with pytest.raises(UsageError, match="--new-requests is of rolling updates and temporal"):
        imported(tmp_path, objects, to, new_requests=read_new_requests(table))


def test_the_report_lists_what_changes(tmp_path: Path) -> None:
    """By workload and container, now and after, on the page and in markdown."""
    done = shop(tmp_path, CASES["one of two"][0], BOTH)
    made = approved(done, ("web-7d9f-0", "n2"))
    row = ("default/web", "app", "2000m", "250m", "2,048 MiB", "250 MiB")
    assert made.new_requests == [row]
    assert "New requests of containers" in ApprovalPage(made).html()
    assert "| default/web | app | 2000m | 250m | 2,048 MiB | 250 MiB |" in markdown(made, "x")


@pytest.mark.parametrize(("file", "name"), [("vpa.json", "one of two"), ("vpa_both.json", "both")])
def test_cases_from_outside(file: str, name: str, kubernetes_data: Path, tmp_path: Path) -> None:
    *_, size, requests = CASES[name]
    folder = kubernetes_data / "kubernetes_cases"
    objects = json.loads((folder / "vpa_cluster.json").read_text())["items"]
    done = imported(tmp_path, objects, new_requests=read_new_requests(folder / file))
    record = services(done)["web-7d9f-0"]
    assert (record["new_cpu_millicores"], record["new_memory_mib"]) == size
    assert moved(done)["steps"][0]["requests"] == requests
