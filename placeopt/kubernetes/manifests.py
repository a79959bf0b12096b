"""The objects of a set of files: lists of `kubectl get -o json` and multi-document manifests.

Objects of Karmada are read, too. Other kinds are passed over and named by what they could change
(`placeopt.kubernetes.names`)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from placeopt.core.errors import DocumentError
from placeopt.core.files.paths import AnyPath
from placeopt.kubernetes import objects
from placeopt.kubernetes.files import STDIN, Item, Place, read, with_folders
from placeopt.kubernetes.names import (
    ABSENT,
    DUMP,
    KINDS,
    REGION,
    UNSPACED,
    WORKLOADS,
    ZONE,
    absent,
    completed,
    matters,
    note_of,
)
from placeopt.kubernetes.objects import (
    Container,
    KubernetesNode,
    ObjectMeta,
    Pod,
    PodSpec,
    Workload,
)
from placeopt.kubernetes.origin import note, note_file, tolerated
from placeopt.kubernetes.values import Labels, form

#: (namespace, name) of a workload, whatever its kind.
Key = tuple[str, str]

# -- what Karpenter does by itself -----------------------------------------------------------------

#: Where a NodePool says what becomes of its nodes.
_DISRUPTION = ("consolidationPolicy", "consolidateAfter", "expireAfter")
MAX_SAID = 250


def disruption_notes(spec: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the text of each note about the disruption of a NodePool, and what it is about."""
    disruption = spec.disruption
    told = [(key, getattr(disruption, key)) for key in _DISRUPTION]
    told.append(("expireAfter", spec.template.spec.expireAfter))
    said = [f"{key} {shown(value)}" for key, value in told if value is not None]
    said += [f"budget {_budget(one)}" for one in disruption.budgets]
    if said:
        text = "disruption of NodePools is Karpenter's own: a plan frees nodes whatever it says"
        yield text, f"{name}: {', '.join(said)}"[:MAX_SAID]
    if disruption.consolidateAfter == "Never" or any(map(_keeps, disruption.budgets)):
        text = "Karpenter frees no node of these NodePools by itself: delete what a plan empties"
        yield text, name


def _budget(one: Any) -> str:
    """Return a disruption budget in words: how many nodes, when, and for which reasons."""
    result = f"nodes {shown(one.nodes)}"
    if one.schedule is not None:
        result += f" at {shown(one.schedule)} for {shown(one.duration)}"
    return result + (f" if {' or '.join(map(shown, one.reasons))}" if one.reasons else "")


def _keeps(one: Any) -> bool:
    """Return whether a budget never lets an empty node be freed."""
    return str(one.nodes) in ("0", "0%") and one.schedule is None and not one.reasons


def shown(value: object) -> str:
    """Return a value as it stands, cut where it is long."""
    return str(value)[:60]


_MAX_NESTED_LISTS = 5
#: Kinds that say how the nodes of a NodePool are made.
NODE_CLASSES = ("EC2NodeClass", "AKSNodeClass")
#: Phases of pods that have ended.
ENDED = ("Succeeded", "Failed")


@dataclass
class ClusterObjects:
    """What the files hold, in their order: objects of `objects`, most by their names.

    `claims` and `volume_limits` say what their specs do.
    """

    nodes: dict[str, KubernetesNode] = field(default_factory=dict)
    candidates: set[str] = field(default_factory=set)  # nodes of a table: not there yet
    pods: list[Pod] = field(default_factory=list)
    workloads: dict[tuple[str, str, str], Workload] = field(default_factory=dict)
    services: list[Any] = field(default_factory=list)
    budgets: list[Any] = field(default_factory=list)
    claims: dict[tuple[str, str], objects.ClaimSpec] = field(default_factory=dict)
    volumes: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, Any] = field(default_factory=dict)
    priorities: dict[str, Any] = field(default_factory=dict)
    volume_limits: dict[str, dict[str, int]] = field(default_factory=dict)  # node -> driver -> most
    attachments: list[Any] = field(default_factory=list)
    runtimes: dict[str, Any] = field(default_factory=dict)
    quotas: list[Any] = field(default_factory=list)
    sets: dict[tuple[str, str], Workload] = field(default_factory=dict)  # those of Deployments
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)  # name -> labels
    uid: str | None = None  # that of the namespace kube-system, which stands for the cluster
    ranges: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)  # limits, by LimitRange
    lost_claims: set[tuple[str, str]] = field(default_factory=set)  # or being deleted
    leaving: set[str] = field(default_factory=set)  # namespaces that are being deleted
    entries: set[tuple[str, str]] = field(default_factory=set)  # services that an Ingress names
    policies: list[Any] = field(default_factory=list)
    recommendations: list[Any] = field(default_factory=list)
    owners: dict[tuple[str, str, str], tuple[str, str]] = field(
        default_factory=dict
    )  # a ReplicaSet's or Job's own controller
    _tops: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    #: What `admission.under_way` found, kept for those who ask again.
    changing: dict[tuple[str, str, str], Any] | None = field(default=None, init=False, repr=False)
    files: list[str] = field(default_factory=list)
    documents: list[tuple[Place, str]] = field(default_factory=list)  # and their kinds

    def template_of(self, pod: Pod) -> dict[str, Container]:
        """Return the containers of the template that copies of a pod are made of, by name.

        None where the files do not have its ReplicaSet.
        """
        kind, name = pod.meta.owner or ("", "")
        made = self.sets.get((pod.meta.namespace, name)) if kind == "ReplicaSet" else None
        return {} if made is None else {c.name: c for c in made.spec.lasting}

    def named_node(self, pod: Pod) -> str:
        """Return the node that the template of a pod names, empty for none: copies start there."""
        kind, name = pod.meta.owner or ("", "")
        known = self.sets.get((pod.meta.namespace, name)) if kind == "ReplicaSet" else None
        if known is None and kind:
            known = self.workloads.get((pod.meta.namespace, *self.owner(pod)))
        return "" if known is None else known.spec.node

    def limits_of_containers(self, namespace: str) -> list[Any]:
        """Return the limits of containers of the LimitRanges of a namespace."""
        return [limit for _, limit in self.ranges.get(namespace, ()) if limit.type == "Container"]

    def asked_of_volumes(self) -> set[str]:
        """Return the keys of labels of nodes that volumes and their classes ask for."""
        required = (v.spec.nodeAffinity.required for v in self.volumes.values())
        keys = {e.key for one in required for e in one.requirements}
        terms = (term for one in self.classes.values() for term in one.allowedTopologies)
        return keys | {e.key for term in terms for e in term.matchLabelExpressions}

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


# -- documents -------------------------------------------------------------------------------------

_KIND_FIELDS = {"kind": str, "apiVersion": str | None}
_KIND = form({**_KIND_FIELDS, "items": Any})
_HEAD = form(
    {
        **_KIND_FIELDS,
        "metadata": {"continue": Any, "remainingItemCount": Any},
        "items": list[msgspec.Raw] | None,
    }
)
#: How servers begin an object.
_SAID_FIRST = re.compile(rb'\{\s*"apiVersion":\s*"([\w./-]*)",\s*"kind":\s*"(\w+)"', re.ASCII)


def read_documents(paths: Iterable[AnyPath]) -> list[tuple[str, list[Item]]]:
    """Return (name, objects) of files, ``-`` for stdin; of a folder its JSON and YAML files.

    The members of lists are given one by one. What is no object is gathered as a fault.

    Raises
    ------
    DocumentError
        Names the file, the line and what is wrong.
    """
    results = []
    for path in with_folders(paths):
        found: list[Item] = []
        with tolerated():
            found = [one for document in read(path) for one in flat(document)]
        results.append(("<stdin>" if str(path) == STDIN else str(path), found))
    return results


def flat(item: Item, depth: int = 0, kind: str = "") -> Iterator[Item]:
    """Yield the objects of a document, the members of lists one by one; gather what is none.

    Members of a PodList need not say that they are pods.
    """
    said = _SAID_FIRST.match(memoryview(item.raw)[:300])
    if said is not None and not said[2].endswith(b"List"):
        item.group, item.kind = said[1].rpartition(b"/")[0].decode(), said[2].decode()
        yield item
        return
    with tolerated():
        head = _head(item, kind)
        item.kind = head.kind or kind
        item.group = None if head.apiVersion is None else head.apiVersion.rpartition("/")[0]
        if not item.kind.endswith("List"):
            yield item
            return
        if depth >= _MAX_NESTED_LISTS:
            legal = f"legal: {_MAX_NESTED_LISTS} levels"
            raise item.place.fault("lists within lists within lists", legal)
        _require_whole(item, head.metadata)
        if head.items is None:
            yield item
        for k, raw in enumerate(head.items or ()):
            inside = Item(raw, item.place.at("items", k))
            yield from flat(inside, depth + 1, item.kind.removesuffix("List"))


def _head(item: Item, kind: str) -> Any:
    """Return what an object says that it is.

    Raises
    ------
    DocumentError
        It is no object, or does not say its kind, and `kind` does neither.
    """
    remedy = "give objects with apiVersion, kind and metadata"
    if not item.begins(b"{"):
        raise item.place.fault("not an object of Kubernetes", remedy)
    try:
        head = item.decode(_HEAD)
    except DocumentError:  # its items are no list
        head = item.decode(_KIND)
    if not (head.kind or kind):
        if b"external_services" in bytes(memoryview(item.raw)[:5000]):
            remedy = "this looks like a workmodel: placeopt import mubench"
        raise item.place.fault("not an object of Kubernetes: no kind", remedy)
    return head


def _require_whole(item: Item, about: Any) -> None:
    """Raise if a list of the API was cut off: what it lacks would count as not there.

    Servers cut a list at the ``limit`` of a request, and say where to go on.
    """
    more, left = getattr(about, "continue"), about.remainingItemCount
    if more or left:
        lacks = f"lacks {left} objects" if isinstance(left, int) else "lacks objects"
        raise item.place.fault(
            f"the list is not whole: it was cut off by a limit and {lacks}",
            "ask for it without a limit, or follow continue and give one list of all objects; "
            "kubectl get -o json does so",
            "metadata",
            "continue" if more else "remainingItemCount",
        )


# -- objects ---------------------------------------------------------------------------------------


def objects_of(files: Iterable[tuple[str, list[Item]]]) -> ClusterObjects:
    """Return what the objects of files are, as one cluster.

    Parameters
    ----------
    files : iterable of (name, objects)

    Raises
    ------
    DocumentError
        Names the files, the lines and what is wrong.
    """
    cluster = ClusterObjects()
    seen = dict[tuple[str, ...], Any]()
    held = set[str]()
    for file, items in files:
        kinds: Counter[str] = Counter()
        for item in items:
            with tolerated():
                kinds[_take(cluster, item, seen)] += 1
        cluster.files.append(file)
        cluster.documents += [(item.place, item.kind) for item in items]
        note_file(file, kinds)
        held |= kinds.keys()
    if cluster.pods and cluster.nodes:
        claims = any(volume.claim for pod in cluster.pods for volume in pod.spec.volumes)
        for kind in absent(held, volumes=claims):
            note("assumption", ABSENT, kind)
    made: tuple[Pod | Workload, ...] = (*cluster.pods, *cluster.workloads.values())
    for one in made:
        one.spec = with_runtime(one.spec, cluster.runtimes, one.meta.label)
    return cluster


_LABELLED = form({"metadata": {"labels": Labels}})


def zones(documents: Iterable[tuple[str, list[Item]]]) -> dict[str, list[str]]:
    """Return the zones of the nodes in documents, by region; what cannot be read is passed over."""
    results: dict[str, set[str]] = {}
    for item in (item for _, items in documents for item in items if item.kind == "Node"):
        try:
            known = completed(item.decode(_LABELLED).metadata.labels, {})
        except DocumentError:
            continue
        if zone := known.get(ZONE):
            results.setdefault(known.get(REGION, ""), set()).add(zone)
    return {region: sorted(own) for region, own in results.items()}


def node_classes(items: Iterable[Item]) -> dict[tuple[str, str], Any]:
    """Return what objects say of how nodes are made, by (kind, name)."""
    made = [(one.kind, one.decode(objects.NODE_CLASS)) for one in items if one.kind in NODE_CLASSES]
    return {(kind, one.metadata.name or "?"): one for kind, one in made}


def _take(cluster: ClusterObjects, item: Item, seen: dict[tuple[str, ...], Any]) -> str:
    """Add an object to the cluster; return its kind."""
    kind = item.kind
    if kind not in KINDS or (item.group is not None and item.group not in KINDS[kind]):
        return _unread(item)
    made = item.decode(_FORMS[kind])
    meta: ObjectMeta = made.meta if kind == "Pod" else made.metadata
    meta.place = item.place
    if not meta.name:
        raise item.place.fault(
            "an object without a name",
            "give metadata.name" + (", not generateName" if meta.generate_name else ""),
            "metadata",
        )
    meta.namespace = "" if kind in UNSPACED else meta.namespace or "default"
    identity = (kind, meta.namespace, meta.name)
    if identity in seen:
        if seen[identity] != made:
            named = f"{kind} {meta.namespace}/{meta.name}".replace(" /", " ")
            problem = f"{named} stands twice, and differs"
            raise item.place.fault(problem, "give every object once")
        note("assumption", "objects that stand twice, alike, are one", meta.label)
        return kind
    seen[identity] = made
    if kind in _KEPT:
        _KEPT[kind](cluster, made)
    elif kind == "Pod":
        _pod(cluster, made)
    else:
        _workload(cluster, kind, made)
    return kind


_ODD = form({"metadata": {"name": Any}, "spec": Any})


def _unread(item: Item) -> str:
    """Note an object that is not read; return its kind, as notes name it."""
    shown = item.kind if re.fullmatch(r"[A-Za-z]{1,80}", item.kind) else "objects of an odd kind"
    if shown == "NodePool":
        pool = item.decode(objects.NODE_POOL)
        for text, subject in disruption_notes(pool.spec, pool.metadata.name or "?"):
            note("not-expressed", text, subject)
    if matters(shown):
        note(*note_of(shown))
        return shown
    odd = item.decode(_ODD)
    if _may_make_pods(odd.spec):
        text = f"{shown} may make pods: how is not known, only pods that run count"
        note("left-out", text, str(odd.metadata.name or "?")[:253])
    elif not (shown.endswith("List") and item.decode(_KIND).items == []):
        note(*note_of(shown))
    return shown


def _may_make_pods(spec: Any) -> bool:
    """Return whether the spec of an unknown kind looks as if it made pods."""
    if not isinstance(spec, dict):
        return False
    template = spec.get("template")
    makes = isinstance(template, dict) and isinstance(template.get("spec"), dict)
    return makes or isinstance(spec.get("replicas"), int) or isinstance(spec.get("pods"), list)


def _pod(cluster: ClusterObjects, made: Pod) -> None:
    made.spec.place = made.meta.place.at("spec")
    if made.status is not None or made.spec.node:
        cluster.pods.append(made)
    elif made.meta.owner is None:
        meta = made.meta
        own = Workload(meta, made.spec, 1, meta.labels, meta.annotations)
        cluster.workloads[meta.namespace, "Pod", meta.name] = own
    else:
        cluster.owners[made.meta.namespace, "Pod", made.meta.name] = made.meta.owner


def _workload(cluster: ClusterObjects, kind: str, made: Any) -> None:
    meta = made.metadata
    if meta.owner is None:
        cluster.workloads[meta.namespace, kind, meta.name] = objects.workload(kind, made)
        return
    # a ReplicaSet of a Deployment, a Job of a CronJob: the owner is what counts
    cluster.owners[meta.namespace, kind, meta.name] = meta.owner
    if kind == "ReplicaSet":
        cluster.sets[meta.namespace, meta.name] = objects.workload(kind, made)


def _node(cluster: ClusterObjects, made: Any) -> None:
    cluster.nodes[made.metadata.name] = objects.node(made)


def _member(cluster: ClusterObjects, made: Any) -> None:
    cluster.nodes[made.metadata.name] = objects.member(made)


def _claim(cluster: ClusterObjects, made: Any) -> None:
    key = made.metadata.namespace, made.metadata.name
    cluster.claims[key] = made.spec
    if made.metadata.deletion_timestamp or made.status.phase == "Lost":
        cluster.lost_claims.add(key)


def _volume_limits(cluster: ClusterObjects, made: Any) -> None:
    known = ((driver.name, driver.allocatable.count) for driver in made.spec.drivers)
    cluster.volume_limits[made.metadata.name] = {n: most for n, most in known if most is not None}


def _namespace(cluster: ClusterObjects, made: Any) -> None:
    name = made.metadata.name
    cluster.namespaces[name] = made.metadata.labels
    if made.metadata.deletion_timestamp or made.status.phase == "Terminating":
        cluster.leaving.add(name)
    if name == "kube-system":
        cluster.uid = made.metadata.uid


def _limit_range(cluster: ClusterObjects, made: Any) -> None:
    own = cluster.ranges.setdefault(made.metadata.namespace, [])
    known = (one for one in made.spec.limits if one.type in ("Container", "Pod"))
    own += ((made.metadata.name, one) for one in known)


def _ingress(cluster: ClusterObjects, made: Any) -> None:
    paths = [path.backend for rule in made.spec.rules for path in rule.http.paths]
    names = (one.service.name or one.serviceName for one in (made.spec.defaultBackend, *paths))
    cluster.entries.update((made.metadata.namespace, name) for name in names if name)


def _autoscaler(cluster: ClusterObjects, made: Any) -> None:
    target = made.spec.scaleTargetRef
    text = "HorizontalPodAutoscaler: the number of replicas is taken as it is now"
    subject = f"{made.metadata.label} of {(target.kind or '?')[:60]} {(target.name or '?')[:60]}"
    note("not-expressed", text, subject)


def _recommender(cluster: ClusterObjects, made: Any) -> None:
    """Keep a VerticalPodAutoscaler; note what it would do to the copies of a plan."""
    cluster.recommendations.append(made)
    text = "VerticalPodAutoscaler: its recommendation counts only in a file of --new-requests"
    note("ignored", text, made.metadata.label)
    if made.spec.updatePolicy.updateMode != "Off":
        text = "VerticalPodAutoscalers that set requests: copies get their target (--new-requests)"
        note("not-expressed", text, made.metadata.label)


_Keep = Callable[[ClusterObjects, Any], Any]


def _listed(field: str) -> _Keep:
    return lambda cluster, made: getattr(cluster, field).append(made)


def _named(field: str) -> _Keep:
    return lambda cluster, made: getattr(cluster, field).update({made.metadata.name: made})


#: Kind -> the form of its objects.
_FORMS: dict[str, Any] = {
    **dict.fromkeys(WORKLOADS, objects.CONTROLLER),
    "Pod": Pod,
    "Node": objects.NODE,
    "Cluster": objects.MEMBER,
    "Service": objects.SERVICE,
    "PodDisruptionBudget": objects.BUDGET,
    "PersistentVolumeClaim": objects.CLAIM,
    "PersistentVolume": objects.VOLUME,
    "Namespace": objects.NAMESPACE,
    "LimitRange": objects.LIMIT_RANGE,
    "ResourceQuota": objects.QUOTA,
    "StorageClass": objects.STORAGE_CLASS,
    "PriorityClass": objects.PRIORITY_CLASS,
    "CSINode": objects.VOLUME_LIMITS,
    "VolumeAttachment": objects.ATTACHMENT,
    "RuntimeClass": objects.RUNTIME_CLASS,
    "Ingress": objects.INGRESS,
    "HorizontalPodAutoscaler": objects.AUTOSCALER,
    "VerticalPodAutoscaler": objects.RECOMMENDER,
    "PropagationPolicy": objects.NAMED,
    "ClusterPropagationPolicy": objects.NAMED,
}
#: Kind -> what keeps its objects.
_KEPT: dict[str, _Keep] = {
    "Node": _node,
    "Cluster": _member,
    "Service": _listed("services"),
    "PodDisruptionBudget": _listed("budgets"),
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _named("volumes"),
    "Namespace": _namespace,
    "LimitRange": _limit_range,
    "ResourceQuota": _listed("quotas"),
    "StorageClass": _named("classes"),
    "PriorityClass": _named("priorities"),
    "CSINode": _volume_limits,
    "VolumeAttachment": _listed("attachments"),
    "RuntimeClass": _named("runtimes"),
    "Ingress": _ingress,
    "HorizontalPodAutoscaler": _autoscaler,
    "VerticalPodAutoscaler": _recommender,
    "PropagationPolicy": _listed("policies"),
    "ClusterPropagationPolicy": _listed("policies"),
}


def nothing(cluster: ClusterObjects, what: str, remedy: str) -> DocumentError:
    """Return the error for files that lack something: it names the first object and its line."""
    if not cluster.documents:
        file = ", ".join(cluster.files) or None
        return DocumentError(f"no {what}", file=file, path="line 1", remedy=remedy)
    kinds = Counter(kind[:60] for _, kind in cluster.documents)
    return cluster.documents[0][0].fault(
        f"no {what} here, only " + ", ".join(f"{n} {kind}" for kind, n in list(kinds.items())[:8]),
        remedy,
    )


# -- runtime classes -------------------------------------------------------------------------------


def with_runtime(spec: PodSpec, runtimes: Mapping[str, Any], label: str) -> PodSpec:
    """Return a spec with the overhead, node selector and tolerations of its runtime class."""
    name = spec.runtime_class_name
    if not name:
        return spec
    runtime = runtimes.get(name)
    if runtime is None:
        if spec.overhead is None:
            text = f"RuntimeClass {name[:63]} is not in the files: it is taken to add nothing"
            note("assumption", text, label)
        return spec
    scheduling = runtime.scheduling
    more = (one for one in scheduling.tolerations if one not in spec.tolerations)
    return spec.changed(
        overhead=runtime.overhead.podFixed if spec.overhead is None else spec.overhead,
        selector=Labels({**scheduling.nodeSelector, **spec.selector}),
        tolerations=(*spec.tolerations, *more),
    )


# -- dumps of one cluster, taken at intervals ------------------------------------------------------
#
# The time of a dump is that in the name of its file, or of the folder that it lies in:
# 2026-11-01T1000Z, 20261101-100000, or seconds since 1970. Without an offset it is UTC.


_IN_NAME = re.compile(
    r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T_. -]?(\d\d)[:_.-]?(\d\d)(?:[:_.-]?(\d\d))?(?:\.\d+)?"
    r"(?:Z|([+-])(\d\d):?(\d\d))?(?!\d)"
)
_EPOCH = re.compile(r"(?<!\d)1\d{9}(?!\d)")
_STATED = re.compile(
    rb'(?:lastHeartbeatTime|creationTimestamp|renewTime|startedAt|finishedAt|startTime)"?: *"?'
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)"
)
#: Seconds that clocks of machines may differ.
_SLACK = 60.0


class Moment(NamedTuple):
    """Dumps that were taken at one time: s since 1970, and the documents of each file."""

    at: float
    files: list[tuple[str, list[Item]]]


def moments(folder: Path) -> Iterator[Moment]:
    """Yield the moments of a folder, one after another: only one is in memory.

    Raises
    ------
    DocumentError
        There is one moment alone, a name has no time, or a dump is later than its name says.
    """
    files: dict[float, list[Path]] = defaultdict(list)
    for file in map(Path, with_folders([folder])):
        at = _time_in(file.relative_to(folder).parts)
        if at is None:
            raise DocumentError(
                "has no time in its name",
                file=str(file),
                remedy="name it by its time, such as 2026-11-01T10:00:00Z.json, or take it away",
            )
        files[at].append(file)
    if len(files) < 2:
        raise DocumentError(
            "has dumps of one moment only, which tell of no time",
            file=str(folder),
            remedy="take one every ten minutes, with its time as name: "
            f'{DUMP} > "$(date -u +%FT%TZ).json"',
        )
    for moment in sorted(files):
        for file in files[moment]:
            _require_earlier(file, moment)
        yield Moment(moment, read_documents(files[moment]))


def has_several(folder: Path) -> bool:
    """Whether a folder has dumps whose names say several times."""
    files = (f for f in folder.glob("*.*") if f.suffix in (".json", ".yaml", ".yml"))
    return len({_time_in([file.name]) for file in files} - {None}) > 1


def _time_in(parts: Iterable[str]) -> float | None:
    for part in reversed(list(parts)):
        if found := _IN_NAME.search(part):
            *numbers, sign, hours, minutes = found.groups(default="0")
            year, month, day, hour, minute, second = map(int, numbers)
            offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
            try:
                said = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
                return (said - offset).timestamp()
            except ValueError:
                continue
        if seconds := _EPOCH.search(part):
            return float(seconds[0])
    return None


def latest_stated(places: Iterable[Place]) -> str:
    """Return the latest time that files state, as Kubernetes writes it; empty for none."""
    sources = {id(place.source): place.source for place in places}.values()
    found = max((_latest(source.raw()) for source in sources), default="")
    return found + "Z" * bool(found)


def _latest(raw: bytes) -> str:
    return max((said[1] for said in _STATED.finditer(raw)), default=b"").decode()


def seconds_of(text: str) -> float:
    """Return a time of Kubernetes, such as 2026-11-01T10:00:00Z, in s since 1970."""
    return datetime.fromisoformat(text[:19] + "+00:00").timestamp()


def _require_earlier(file: Path, at: float) -> None:
    """Raise where a dump states a time after that of its name."""
    raw = file.read_bytes()
    latest = _latest(raw)
    if latest and seconds_of(latest) > at + _SLACK:
        line = raw.count(b"\n", 0, raw.index(latest.encode())) + 1
        raise DocumentError(
            f"states {latest}Z, after the time of its name: the clock goes back",
            file=str(file),
            path=f"line {line}",
            remedy="name dumps by their time in UTC, as date -u +%FT%TZ prints it",
        )
