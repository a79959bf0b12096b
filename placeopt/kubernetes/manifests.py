"""The objects of a set of files: lists of `kubectl get -o json` and multi-document manifests.

Objects of Karmada are read, too. Other kinds are passed over and named by what they could change
(`placeopt.kubernetes.kinds`).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes import objects
from placeopt.kubernetes.faults import tolerated
from placeopt.kubernetes.kinds import ABSENT, KINDS, UNSPACED, WORKLOADS, absent, matters, note_of
from placeopt.kubernetes.labels import REGION, ZONE, completed
from placeopt.kubernetes.notes import note, note_file
from placeopt.kubernetes.objects import (
    ContainerSpec,
    KubernetesNode,
    KubernetesService,
    ObjectMeta,
    Pod,
    PodDisruptionBudget,
    PodSpec,
    Workload,
    pod_spec,
)
from placeopt.kubernetes.pool_disruption import disruption_notes
from placeopt.kubernetes.reading import STDIN, View, read, require_whole, with_folders

_MAX_NESTED_LISTS = 5
#: Kinds that say how the nodes of a NodePool are made.
NODE_CLASSES = ("EC2NodeClass", "AKSNodeClass")
#: Phases of pods that have ended.
ENDED = ("Succeeded", "Failed")


@dataclass
class ClusterObjects:
    """What the files hold, in their order."""

    nodes: dict[str, KubernetesNode] = field(default_factory=dict)
    candidates: set[str] = field(default_factory=set)  # nodes of a table: not there yet
    pods: list[Pod] = field(default_factory=list)
    workloads: dict[tuple[str, str, str], Workload] = field(default_factory=dict)
    services: list[KubernetesService] = field(default_factory=list)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    claims: dict[tuple[str, str], View] = field(default_factory=dict)  # (namespace, name) -> spec
    volumes: dict[str, View] = field(default_factory=dict)  # PersistentVolume -> as it stands
    classes: dict[str, View] = field(default_factory=dict)  # StorageClass -> as it stands
    priorities: dict[str, View] = field(default_factory=dict)  # PriorityClass -> as it stands
    volume_limits: dict[str, dict[str, int]] = field(default_factory=dict)  # node -> driver -> most
    attachments: list[View] = field(default_factory=list)  # the specs of VolumeAttachments
    runtimes: dict[str, View] = field(default_factory=dict)  # RuntimeClass -> as it stands
    quotas: list[tuple[ObjectMeta, View]] = field(default_factory=list)
    sets: dict[tuple[str, str], View] = field(default_factory=dict)  # ReplicaSets of Deployments
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)  # name -> labels
    uid: str | None = None  # that of the namespace kube-system, which stands for the cluster
    limit_ranges: dict[str, list[View]] = field(default_factory=dict)  # of containers
    ranges: dict[str, list[tuple[str, View]]] = field(default_factory=dict)  # and of pods, by name
    lost_claims: set[tuple[str, str]] = field(default_factory=set)  # or being deleted
    leaving: set[str] = field(default_factory=set)  # namespaces that are being deleted
    entries: set[tuple[str, str]] = field(default_factory=set)  # services that an Ingress names
    policies: list[View] = field(default_factory=list)
    recommendations: list[View] = field(default_factory=list)
    owners: dict[tuple[str, str, str], tuple[str, str]] = field(
        default_factory=dict
    )  # a ReplicaSet's or Job's own controller
    _tops: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    _templates: dict[tuple[str, str], dict[str, ContainerSpec]] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    documents: list[View] = field(default_factory=list)

    def template_of(self, pod: Pod) -> dict[str, ContainerSpec]:
        """Return the containers of the template that copies of a pod are made of, by name.

        None where the files do not have its ReplicaSet.
        """
        kind, name = pod.meta.owner or ("", "")
        key = pod.meta.namespace, name
        if kind != "ReplicaSet" or key not in self.sets:
            return {}
        if key not in self._templates:
            spec = objects.pod_spec(self.sets[key]["spec"]["template"]["spec"])
            self._templates[key] = {c.name: c for c in spec.lasting}
        return self._templates[key]

    def named_node(self, pod: Pod) -> str:
        """Return the node that the template of a pod names, empty for none: copies start there."""
        kind, name = pod.meta.owner or ("", "")
        view = self.sets.get((pod.meta.namespace, name)) if kind == "ReplicaSet" else None
        if view is not None:
            return view["spec"]["template"]["spec"]["nodeName"].name()
        known = self.workloads.get((pod.meta.namespace, *self.owner(pod)))
        return "" if known is None or known.meta.view["kind"].value == "Pod" else known.spec.node

    def asked_of_volumes(self) -> set[str]:
        """Return the keys of labels of nodes that volumes and their classes ask for."""
        required = (v["spec"]["nodeAffinity"]["required"] for v in self.volumes.values())
        terms = [t for one in required for t in one["nodeSelectorTerms"].items()]
        said = [e for term in terms for e in term["matchExpressions"].items()]
        for view in self.classes.values():
            for term in view["allowedTopologies"].items():
                said += term["matchLabelExpressions"].items()
        return {e["key"].text() for e in said}

    def owner(self, pod: Pod) -> tuple[str, str]:
        """Return (kind, name) of the workload at the top of a pod's chain of controllers.

        It is the pod itself where nothing owns it.
        """
        key = pod.meta.namespace, pod.meta.name
        if key not in self._tops:
            self._tops[key] = self._top(pod)
        return self._tops[key]

    def _top(self, pod: Pod) -> tuple[str, str]:
        result = pod.meta.owner
        if result is None:
            return "Pod", pod.meta.name
        for _ in range(10):
            above = self.owners.get((pod.meta.namespace, *result))
            if above is None:
                return _named_after(pod.meta, *result)
            result = above
        return result


def _named_after(pod: ObjectMeta, kind: str, name: str) -> tuple[str, str]:
    """Return the Deployment of a ReplicaSet that is not in the files.

    Its name is that of the ReplicaSet without the hash of the template.
    """
    digest = pod.labels.get("pod-template-hash")
    deployment = name.removesuffix(f"-{digest}")
    if kind == "ReplicaSet" and digest and deployment and deployment != name:
        return "Deployment", deployment
    return kind, name


def load(paths: Iterable[AnyPath]) -> ClusterObjects:
    """Return the objects of files; see `read_documents` and `objects_of`."""
    return objects_of(read_documents(paths))


def read_documents(paths: Iterable[AnyPath]) -> list[tuple[str, list[View]]]:
    """Return (name, documents) of files, ``-`` for stdin; of a folder its JSON and YAML files.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    results = []
    for path in with_folders(paths):
        documents: list[View] = []
        with tolerated():
            documents = read(path)
        results.append(("<stdin>" if str(path) == STDIN else str(path), documents))
    return results


def objects_of(
    files: Iterable[tuple[str, list[View]]],
) -> ClusterObjects:
    """Return what the documents of files hold, as one cluster.

    Parameters
    ----------
    files : iterable of (name, documents)

    Raises
    ------
    DocumentError
        Names the files, the lines and what is wrong.
    """
    cluster = ClusterObjects()
    seen = dict[tuple[str, ...], View]()
    held = set[str]()
    for file, documents in files:
        kinds: Counter[str] = Counter()
        for view in itertools.chain.from_iterable(map(_flat, documents)):
            with tolerated():
                kinds[_take(cluster, view, seen)] += 1
        cluster.files.append(file)
        cluster.documents += documents
        note_file(file, kinds)
        held |= kinds.keys()
    if cluster.pods and cluster.nodes:
        claims = any(claim for pod in cluster.pods for _, _, claim in pod.spec.volumes)
        for kind in absent(held, volumes=claims):
            note("assumption", ABSENT, kind)
    for k, pod in enumerate(cluster.pods):
        with tolerated():
            spec = with_runtime(pod.spec, cluster.runtimes, pod.meta.label)
            if spec is not pod.spec:
                own = objects.held(spec, pod.meta.view["status"])
                cluster.pods[k] = replace(pod, spec=own)
    for workload in cluster.workloads.values():
        with tolerated():
            label = workload.meta.label
            workload.spec = with_runtime(workload.spec, cluster.runtimes, label)
    return cluster


def zones(documents: Iterable[tuple[str, list[View]]]) -> dict[str, list[str]]:
    """Return the zones of the nodes in documents, by region; what cannot be read is passed over."""
    results: dict[str, set[str]] = {}
    for value in (view.value for _, views in documents for view in views):
        if not isinstance(value, dict):
            continue
        for node in (value, *_members(value.get("items"))):
            labels = (node.get("metadata") or {}).get("labels") if isinstance(node, dict) else None
            known = completed(labels, {}) if isinstance(labels, dict) else {}
            if isinstance(zone := known.get(ZONE), str):
                results.setdefault(str(known.get(REGION, "")), set()).add(zone)
    return {region: sorted(own) for region, own in results.items()}


def node_classes(documents: Iterable[View]) -> dict[tuple[str, str], View]:
    """Return what documents say of how nodes are made, by (kind, name)."""
    results = {}
    for view in documents:
        value = view.value if isinstance(view.value, dict) else {}
        items = _members(value.get("items"))
        listed = [isinstance(one, dict) and one.get("kind") in NODE_CLASSES for one in items]
        members = itertools.compress(view["items"].items(), listed) if any(listed) else ()
        for one in (view, *members) if value.get("kind") in NODE_CLASSES else members:
            results[one["kind"].text(), one["metadata"]["name"].name("?")] = one
    return results


def _members(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _flat(view: View, depth: int = 0, kind: str = "") -> Iterable[View]:
    """Yield the objects of a document, the members of lists one by one; gather what is none.

    Members of a PodList need not say that they are pods.
    """
    own = None
    with tolerated():
        own = _kind_of(view, depth, kind)
    if own is None:
        return
    if _is_list(view, own):
        for item in view["items"].items():
            yield from _flat(item, depth + 1, own.removesuffix("List"))
    else:
        if view["kind"].value is None:
            view.value["kind"] = own
        yield view


def _is_list(view: View, kind: str) -> bool:
    return kind.endswith("List") and isinstance(view.value.get("items"), list)


def _kind_of(view: View, depth: int, kind: str) -> str:
    """Return the kind of an object, `kind` where it does not say.

    Raises
    ------
    DocumentError
        It is no object, a list that was cut off, or lists stand too deep in lists.
    """
    if not isinstance(view.value, dict):
        raise view.fault(
            "not an object of Kubernetes", "give objects with apiVersion, kind and metadata"
        )
    own = view["kind"].text(kind)
    if not own:
        remedy = "give objects with apiVersion, kind and metadata"
        if "external_services" in str(list(view.value.values())[:1])[:5000]:
            remedy = "this looks like a workmodel: placeopt import mubench"
        raise view.fault("not an object of Kubernetes: no kind", remedy)
    if own.endswith("List"):
        require_whole(view)
    if _is_list(view, own) and depth >= _MAX_NESTED_LISTS:
        raise view.fault("lists within lists within lists", f"legal: {_MAX_NESTED_LISTS} levels")
    return own


def _take(
    cluster: ClusterObjects,
    view: View,
    seen: dict[tuple[str, ...], View],
) -> str:
    """Add an object to the cluster; return its kind."""
    kind = view["kind"].text()
    group = view["apiVersion"].text().rpartition("/")[0]
    if kind not in KINDS or (view["apiVersion"] and group not in KINDS[kind]):
        shown = kind if re.fullmatch(r"[A-Za-z]{1,80}", kind) else "objects of an odd kind"
        if matters(shown):
            _note_known(shown, view)
        elif _may_make_pods(view):
            text = f"{shown} may make pods: how is not known, only pods that run count"
            note("left-out", text, view["metadata"]["name"].text("?")[:253])
        elif not (shown.endswith("List") and view.value.get("items") == []):
            note(*note_of(shown))
        return shown
    if kind in _KEPT:
        _KEPT[kind](cluster).append(view)
        if kind == "VerticalPodAutoscaler":
            _note_autoscaler(view)
        return kind
    about = objects.meta(view, namespaced=kind not in UNSPACED)
    identity = (kind, about.namespace, about.name)
    if identity in seen:
        if seen[identity].value != view.value:
            raise view.fault(
                f"{kind} {about.namespace}/{about.name} stands twice, and differs".replace(
                    " /", " "
                ),
                "give every object once",
            )
        note("assumption", "objects that stand twice, alike, are one", about.label)
        return kind
    seen[identity] = view
    _READERS[kind](cluster, view, about)
    return kind


def _note_autoscaler(view: View) -> None:
    """Note what a VerticalPodAutoscaler would do to the copies of a plan."""
    label = objects.meta(view).label
    text = "VerticalPodAutoscaler: its recommendation counts only in a file of --new-requests"
    note("ignored", text, label)
    if view["spec"]["updatePolicy"]["updateMode"].text("Auto") != "Off":
        text = "VerticalPodAutoscalers that set requests: copies get their target (--new-requests)"
        note("not-expressed", text, label)


def _note_known(kind: str, view: View) -> None:
    """Name a kind that is not read, and what each NodePool of Karpenter does by itself."""
    note(*note_of(kind))
    if kind == "NodePool":
        name = view["metadata"]["name"].text("?")[:253]
        for text, subject in disruption_notes(view, name):
            note("not-expressed", text, subject)


def _may_make_pods(view: View) -> bool:
    """Return whether an object of an unknown kind looks as if it made pods."""
    spec = view.value.get("spec")
    if not isinstance(spec, dict):
        return False
    template = spec.get("template")
    makes = isinstance(template, dict) and isinstance(template.get("spec"), dict)
    return makes or isinstance(spec.get("replicas"), int) or isinstance(spec.get("pods"), list)


#: Objects kept as they stand: kind -> where.
_KEPT: dict[str, Callable[[ClusterObjects], list[View]]] = {
    "PropagationPolicy": attrgetter("policies"),
    "ClusterPropagationPolicy": attrgetter("policies"),
    "VerticalPodAutoscaler": attrgetter("recommendations"),
}


def _node(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    make = objects.node if view["kind"].value == "Node" else objects.member
    cluster.nodes[about.name] = make(view, about)


def _pod(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    if view["status"] or view["spec"]["nodeName"]:
        cluster.pods.append(objects.pod(view, about))
    else:
        _workload(cluster, view, about)


def _workload(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    kind = view["kind"].text()
    if about.owner is not None:
        cluster.owners[about.namespace, kind, about.name] = about.owner
        if kind == "ReplicaSet":
            cluster.sets[about.namespace, about.name] = view
        return  # a ReplicaSet of a Deployment, a Job of a CronJob: the owner is what counts
    cluster.workloads[about.namespace, kind, about.name] = objects.workload(view, about)


def _claim(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    cluster.claims[about.namespace, about.name] = view["spec"]
    if view["metadata"]["deletionTimestamp"] or view["status"]["phase"].value == "Lost":
        cluster.lost_claims.add((about.namespace, about.name))


def _volume(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    cluster.volumes[about.name] = view


def _volume_limits(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    cluster.volume_limits[about.name] = {
        driver["name"].text(): driver["allocatable"]["count"].whole(0, maximum=10**9)
        for driver in view["spec"]["drivers"].items()
        if driver["allocatable"]["count"]
    }


def _namespace(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    cluster.namespaces[about.name] = about.labels
    if view["metadata"]["deletionTimestamp"] or view["status"]["phase"].value == "Terminating":
        cluster.leaving.add(about.name)
    if about.name == "kube-system":
        cluster.uid = about.uid


def _limit_range(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    limits = list(view["spec"]["limits"].items())
    existing = [v for v in limits if v["type"].value in ("Container", "Pod")]
    own = [v for v in limits if v["type"].value == "Container"]
    cluster.ranges.setdefault(about.namespace, []).extend((about.name, v) for v in existing)
    if own:
        cluster.limit_ranges.setdefault(about.namespace, []).extend(own)


def _ingress(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    space, spec = about.namespace, view["spec"]
    backends = [spec["defaultBackend"]]
    backends += [
        path["backend"] for rule in spec["rules"].items() for path in rule["http"]["paths"].items()
    ]
    names = [b["service"]["name"].text() or b["serviceName"].text() for b in backends]
    cluster.entries.update((space, name) for name in names if name)


def _autoscaler(cluster: ClusterObjects, view: View, about: ObjectMeta) -> None:
    target = view["spec"]["scaleTargetRef"]
    text = "HorizontalPodAutoscaler: the number of replicas is taken as it is now"
    note(
        "not-expressed",
        text,
        f"{about.label} of {target['kind'].text('?')[:60]} {target['name'].text('?')[:60]}",
    )


_READERS: dict[str, Callable[[ClusterObjects, View, ObjectMeta], Any]] = {
    **dict.fromkeys(WORKLOADS, _workload),
    "Node": _node,
    "Cluster": _node,
    "Pod": _pod,
    "Service": lambda cluster, view, about: cluster.services.append(objects.service(view, about)),
    "PodDisruptionBudget": lambda cluster, view, about: cluster.budgets.append(
        objects.budget(view, about)
    ),
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "Namespace": _namespace,
    "LimitRange": _limit_range,
    "ResourceQuota": lambda cluster, view, about: cluster.quotas.append((about, view)),
    "StorageClass": lambda cluster, view, about: cluster.classes.update({about.name: view}),
    "PriorityClass": lambda cluster, view, about: cluster.priorities.update({about.name: view}),
    "CSINode": _volume_limits,
    "VolumeAttachment": lambda cluster, view, about: cluster.attachments.append(view["spec"]),
    "RuntimeClass": lambda cluster, view, about: cluster.runtimes.update({about.name: view}),
    "Ingress": _ingress,
    "HorizontalPodAutoscaler": _autoscaler,
}


def nothing(cluster: ClusterObjects, what: str, remedy: str) -> DocumentError:
    """Return the error for files that lack something: it names the first document and its line."""
    if not cluster.documents:
        file = ", ".join(cluster.files) or None
        return DocumentError(f"no {what}", file=file, path="line 1", remedy=remedy)
    kinds = Counter(v["kind"].text("?")[:60] for v in cluster.documents)
    return cluster.documents[0].fault(
        f"no {what} here, only " + ", ".join(f"{n} {kind}" for kind, n in list(kinds.items())[:8]),
        remedy,
    )


# -- runtime classes -------------------------------------------------------------------------------


def with_runtime(spec: PodSpec, runtimes: Mapping[str, View], label: str) -> PodSpec:
    """Return a spec with the overhead, node selector and tolerations of its runtime class."""
    name = spec.view["runtimeClassName"].text()
    if not name:
        return spec
    runtime = runtimes.get(name)
    if runtime is None:
        if not spec.view["overhead"]:
            text = f"RuntimeClass {name[:63]} is not in the files: it is taken to add nothing"
            note("assumption", text, label)
        return spec
    scheduling, value = runtime["scheduling"], dict(spec.view.mapping())
    value.setdefault("overhead", runtime["overhead"]["podFixed"].mapping())
    value["nodeSelector"] = scheduling["nodeSelector"].labels() | spec.selector
    own = [t.value for t in spec.view["tolerations"].items()]
    more = [t.value for t in scheduling["tolerations"].items() if t.value not in own]
    value["tolerations"] = [*own, *more]
    view = spec.view
    return pod_spec(View(value, view.source, view.document, view.parent, view.key))
