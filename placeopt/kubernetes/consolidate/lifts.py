"""What a cluster would save if one thing were lifted: a pin, a rule, a quota, a taint.

A lift changes the cluster as it was read: it takes a reason away from pods, a rule from their
specs, a taint from nodes. Its saving is the difference between two cheapest plans: that of the
cluster as it is, and that of the cluster so changed, of which an instance is made and solved anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace as replace_in

from placeopt.core.errors import PlaceoptError
from placeopt.kubernetes.capacity import keeping
from placeopt.kubernetes.consolidate.situation import Situation, repeated, solved
from placeopt.kubernetes.importing import Imported, with_objects
from placeopt.kubernetes.objects import GOING, KubernetesNode, PodSpec
from placeopt.kubernetes.pinned import NOT_READY, OTHER_NAMESPACES, without_protection
from placeopt.kubernetes.replicas import SINGLE, Replica, attached_by
from placeopt.kubernetes.values import Labels, NodeAffinity

_HASH = "pod-template-hash"
#: Pods of all clusters together that are solved to compute lifts; lifts at least.
_WORK, _LEAST = 90_000, 8
#: So many pods each counts for where nodes can be bought: a search tries each kind of them.
_BUYING = 10
#: Pods that the searches for one lift together place, and orders of the moves to a deployment.
_PODS, _ORDERS = 1000, 4
#: Less than this is no saving, in the unit of costs: prices have nine decimals.
LEAST_SAVING = 1e-6
#: Namespace and name of a pod.
_Pod = tuple[str, str]


@dataclass(frozen=True)
class Lift:
    """One thing that may be lifted.

    Attributes
    ----------
    cause : str
        Why pods stay, as the import says it, or what kind of rule holds them.
    subject : str
        Whose: a workload, a node, a namespace, a taint.
    words : str
        What to do.
    kind : str
        What holds pods: a ``pin``, so that they can move nowhere; a ``rule``, which says where they
        may; their ``size``; the ``machines`` that may be bought.
    pods : frozenset of (namespace, name)
        Whom it holds.
    change : callable
        ``change(imported) -> imported`` without what is lifted.
    alone : frozenset of (namespace, name)
        Those of `pods` that nothing else pins.
    """

    cause: str
    subject: str
    words: str
    kind: Literal["pin", "rule", "size", "machines"]
    pods: frozenset[_Pod]
    change: Callable[[Imported], Imported]
    alone: frozenset[_Pod]

    @property
    def reason(self) -> str:
        """Why a node stays that it frees."""
        return f"required: {self.cause}" if self.kind == "rule" else self.cause

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.cause, self.subject


@dataclass(frozen=True)
class Lifted:
    """A lift, and what it saves.

    Attributes
    ----------
    lift : Lift
    base : Situation
        The cluster as it is.
    other : Situation or None
        The cluster after the lift; None where no plan was looked for.
    """

    lift: Lift
    base: Situation
    other: Situation | None = None

    @cached_property
    def saving(self) -> float | None:
        """What it saves in the unit of costs; None where no plan was looked for."""
        return None if self.other is None else max(0.0, self.base.cost - self.other.cost)

    @cached_property
    def between(self) -> tuple[float, float] | None:
        """What the difference of the two cheapest plans is proven to lie between."""
        if self.other is None:
            return None
        base, other = self.base, self.other
        if other is base:
            return 0.0, 0.0
        least = base.cost - base.at_most - other.cost
        return max(0.0, least), max(0.0, base.cost - other.cost + other.at_most)

    @cached_property
    def frees(self) -> list[str]:
        """The nodes that stay as it is, and do not after it; none where it saves nothing."""
        if self.other is None or not self.saving or self.saving < LEAST_SAVING:
            return []
        left = set(self.other.staying)
        return [name for name in self.base.staying if name not in left]


def lifts_of_places(base: Situation) -> list[Lift]:
    """Return what may be lifted of where pods may be: by cause and owner."""
    return [*_pins(base), *_rules(base), *_taints(base)]


def lifted(base: Situation, lifts: Sequence[Lift], *, seed: int = 1) -> list[Lifted]:
    """Return what each lift saves; those whose nodes cost most come first.

    As many are computed as the cluster's size allows, fewer where nodes can be bought. The order,
    and so the answer, does not depend on the speed of the machine.
    """
    a = base.problem.arrays
    work = len(a.home) * (_BUYING if a.candidate.any() else 1)
    count = max(_LEAST, _WORK // work)
    promise = _promises(base, lifts)
    order = sorted(range(len(lifts)), key=lambda k: -promise[k])
    return [
        Lifted(lifts[k], base, _solved(base, lifts[k], seed) if place < count else None)
        for place, k in enumerate(order)
    ]


def _solved(base: Situation, lift: Lift, seed: int) -> Situation | None:
    """Return the cluster after a lift; None where no plan keeps all its rules.

    Where its program allows nothing cheaper than that of the cluster as it is, no plan is looked
    for.
    """
    if not lift.alone:
        return base
    try:
        imported = lift.change(base.imported)
    except PlaceoptError:
        return None
    same = repeated(base, imported)
    if same.is_legal and same.cost - same.at_most >= base.cost - base.at_most - LEAST_SAVING:
        return same
    bought = base.problem.arrays.candidate.any()  # then one search from the plan must do
    work = 0 if bought and lift.kind != "machines" else _PODS
    stops = base.stops
    other = solved(imported, stops=stops, base=base, work=work, tries=_ORDERS, seed=seed)
    # new requests may be more than can be started, and so may pods that waited
    return other if other.is_legal or not base.is_legal else None


def _promises(base: Situation, lifts: Sequence[Lift]) -> list[float]:
    """Return what the nodes cost that each lift could free at once: those with no other pinned pod.

    Of a rule so much of each node counts as the pods that it holds are among all there.
    """
    a, size = base.problem.arrays, len(base.problem.arrays.price)
    number = {pod: m for m, pod in enumerate(base.owners)}
    price = np.array(
        [
            0.0 if name in base.unremovable or n == a.waiting else base.due(name)
            for n, name in enumerate(a.node_names)
        ]
    )
    there = base.final >= 0
    pods = np.bincount(base.final[there], minlength=size)
    pinned = np.bincount(base.final[there & a.stuck], minlength=size)
    results = []
    for lift in lifts:
        own = np.array([number[pod] for pod in lift.alone if pod in number], dtype=np.int64)
        own = own[there[own]]
        here = np.bincount(base.final[own], minlength=size)
        others = pinned - np.bincount(base.final[own[a.stuck[own]]], minlength=size)
        share = np.minimum(here, 1) if lift.kind == "pin" else here / np.maximum(pods, 1)
        results.append(float((price * share * (others == 0)).sum()))
    return results


# -- pods that stay --------------------------------------------------------------------------------


def causes(base: Situation) -> dict[_Pod, tuple[str, ...]]:
    """Return why pods stay: (namespace, name) of each that does -> all reasons."""
    label = {u.label: (u.namespace, u.name) for u in base.imported.cluster.site.units}
    results: dict[_Pod, dict[str, None]] = {
        (u.namespace, u.name): dict.fromkeys(u.pins)
        for u in base.imported.cluster.site.units
        if u.pins
    }
    for text, subjects in base.imported.notes.of("pinned"):  # those that rules found, too
        for subject in subjects:
            if subject in label:
                results.setdefault(label[subject], {})[text] = None
    return {pod: tuple(own) for pod, own in results.items()}


def _pins(base: Situation) -> Iterator[Lift]:
    why = causes(base)
    held = [
        (cause, u)
        for u in base.imported.cluster.site.units
        for cause in why.get((u.namespace, u.name), ())
    ]
    groups: dict[tuple[str, str], list[Replica]] = {}
    for cause, unit in held:
        groups.setdefault((cause, _subject(cause, unit)), []).append(unit)
    for (cause, subject), own in groups.items():
        pin = next((pin for start, pin in _PINS.items() if start in cause), None)
        if pin is not None:
            pods = frozenset((u.namespace, u.name) for u in own)
            gone = (cause, *(text.format(*cause.split()[:2]) for text in pin.clears))
            alone = frozenset(p for p in pods if all(text.startswith(gone) for text in why[p]))
            words = pin.words.format(subject_of(own[0]), subject, *cause.split()[:2])
            change = _Pinless(base, own, pin, gone)
            yield Lift(cause, subject, words, "pin", pods, change, alone)


def _subject(cause: str, unit: Replica) -> str:
    """Return what has to be changed so that a pod may move."""
    if "--pin-namespace" in cause or cause.startswith(_OF_NAMESPACES):
        return unit.namespace
    if cause.startswith("pods on nodes annotated"):
        return unit.node or ""
    return "all nodes" if cause.startswith("pods that share volumes") else subject_of(unit)


#: Beginnings of causes that hold a whole namespace.
_OF_NAMESPACES = ("ResourceQuota", "LimitRange", "namespace", OTHER_NAMESPACES)


def subject_of(unit: Replica) -> str:
    """Return how answers name the workload of a pod."""
    return f"{unit.namespace}/{unit.workload}"


class _Pin(NamedTuple):
    """What lifts a reason why pods stay.

    `words` say what to do: {0} is the workload, {1} the subject, {2} and {3} the first words of the
    cause. `clears` are the beginnings of other reasons that go with it. `spec` changes pods that
    are lifted, `unit` all of their workload; `cluster` is what else changes.
    """

    words: str
    clears: tuple[str, ...] = ()
    spec: Callable[[PodSpec], PodSpec] | None = None
    unit: Callable[[Replica], Replica | None] | None = None
    cluster: Callable[[Imported, str], Imported] | None = None


class _Pinless:
    """The change of an import that takes a reason from some pods."""

    def __init__(self, base: Situation, own: Sequence[Replica], pin: _Pin, gone: tuple[str, ...]):
        self.pin, self.gone = pin, gone
        self.pods = {(u.namespace, u.name) for u in own}
        self.owners = {u.owner for u in own}
        self.node = own[0].node or ""
        waits = (u for u in base.waits if gone[0] == NOT_READY and u.owner in self.owners)
        self.waits = tuple(waits)

    def __call__(self, imported: Imported) -> Imported:
        cluster = imported.cluster
        objects = cluster.objects

        def freed(unit: Replica) -> Replica | None:
            result: Replica | None = unit
            if (unit.namespace, unit.name) in self.pods:
                result = replace(unit, pins=tuple(p for p in unit.pins if not self._goes(p)))
                if self.pin.spec is not None:
                    spec = self.pin.spec(unit.spec)
                    attached = attached_by(objects, unit.namespace, unit.name, spec)
                    result = replace(result, spec=spec, attached=attached)
            if result is not None and self.pin.unit is not None and unit.owner in self.owners:
                result = self.pin.unit(result)
            return result

        cluster = cluster.mapped(freed)
        if self.waits:
            site = replace(cluster.site, units=(*cluster.site.units, *self.waits))
            cluster = replace(cluster, units=(*cluster.units, *self.waits), site=site)
        made = replace(imported, cluster=cluster)
        if self.pin.cluster is not None:
            made = self.pin.cluster(made, self.node)
        return made.changed(made.cluster)

    def _goes(self, text: str) -> bool:
        return text.startswith(self.gone)


def _without_ports(spec: PodSpec) -> PodSpec:
    containers, inits = (
        tuple(replace_in(c, ports=()) for c in every) for every in (spec.containers, spec.inits)
    )
    return spec.changed(containers=containers, inits=inits, host_network=False)


def _without_volumes(*kinds: str) -> Callable[[PodSpec], PodSpec]:
    return lambda spec: spec.changed(volumes=tuple(v for v in spec.volumes if v.kind not in kinds))


def _without_places(spec: PodSpec) -> PodSpec:
    """Remove the required node affinity and the node selector."""
    nodes = NodeAffinity(preferred=spec.affinity.nodes.preferred)
    return spec.changed(affinity=replace_in(spec.affinity, nodes=nodes), selector=Labels())


def _without_terms(side: str, topology: str = "") -> Callable[[PodSpec], PodSpec]:
    """Remove required terms towards other pods, of one topology key or all.

    `side` is ``pods`` for affinity or ``anti`` for anti-affinity.
    """

    def change(spec: PodSpec) -> PodSpec:
        own = getattr(spec.affinity, side)
        kept = tuple(t for t in own.required if topology and t.topology_key != topology)
        own = replace_in(own, required=kept)
        return spec.changed(affinity=replace_in(spec.affinity, **{side: own}))

    return change


def _without_spread(topology: str) -> Callable[[PodSpec], PodSpec]:
    """Prefer the spread over a topology key instead of requiring it."""

    def change(spec: PodSpec) -> PodSpec:
        terms = (
            replace_in(term, when_unsatisfiable="ScheduleAnyway")
            if term.topology_key == topology
            else term
            for term in spec.spread
        )
        return spec.changed(spread=tuple(terms))

    return change


def _unannotated(made: Imported, name: str) -> Imported:
    """Let a node be annotated with nothing that keeps it."""
    node = made.cluster.objects.nodes[name]
    annotations = without_protection(node.meta.annotations)
    return _with_nodes(
        made, {name: replace(node, meta=replace_in(node.meta, annotations=annotations))}
    )


def _attaching_all(made: Imported, _: str) -> Imported:
    """Let nodes attach any number of volumes."""
    objects = replace(made.cluster.objects, volume_limits={})
    return replace(made, cluster=replace(made.cluster, objects=objects))


def _with_nodes(made: Imported, changed: dict[str, KubernetesNode]) -> Imported:
    """Return an import with other nodes in the place of some."""
    objects = made.cluster.objects
    objects = replace(objects, nodes={**objects.nodes, **changed})
    return replace(made, cluster=with_objects(made.cluster, objects, made.options))


def _of_one_revision(unit: Replica) -> Replica:
    return replace(unit, labels={**unit.labels, _HASH: "placeopt"})


_ON_DISK = ("pods with a hostPath", "pods with an emptyDir", "pods with an ephemeral")
_SAFE = _Pin('annotate {0} safe-to-evict: "true"', (*_ON_DISK, "annotated safe-to-evict"))
#: Part of a cause -> what lifts it.
_PINS: dict[str, _Pin] = {
    "annotated safe-to-evict": _Pin('remove safe-to-evict: "false" from {0}'),
    "pods on nodes annotated": _Pin(
        "remove do-not-disrupt and scale-down-disabled from node {1}", cluster=_unannotated
    ),
    "annotated do-not-disrupt": _Pin("remove do-not-disrupt from {0}"),
    "--pin-namespace": _Pin("let pods of {1} move"),
    OTHER_NAMESPACES: _Pin("plan {1}, too"),
    "named by --pin": _Pin("leave {0} out of --pin"),
    "pods without a controller": _Pin("give {0} a Deployment"),
    "pods of a StatefulSet": _Pin("run {0} as a Deployment"),
    "which steps cannot move": _Pin("run {0} as a Deployment"),
    "pods of a Job": _Pin("wait until {0} has ended", ("",), unit=lambda unit: None),
    "that recreates": _Pin("let {0} roll instead of recreate"),
    "in the middle of a rollout": _Pin(
        "wait until the rollout of {0} has ended", unit=_of_one_revision
    ),
    "with resource claims": _Pin("run {0} without resource claims"),
    "hostPath volume": _SAFE,
    "volume on disk": _SAFE,
    "with a local volume": _Pin(
        "give {0} a volume that is not local", spec=_without_volumes("local")
    ),
    "one node at a time": _Pin(
        "give {0} a volume that several nodes attach", spec=_without_volumes(*SINGLE)
    ),
    "volume claim": _Pin("give {0} a ReadWriteMany volume"),
    "with a port of their node": _Pin("run {0} without a port of its node", spec=_without_ports),
    "is not ready": _Pin("get all pods of {0} ready", unit=lambda unit: replace(unit, ready=True)),
    "ResourceQuota": _Pin("raise ResourceQuota {3}", ("ResourceQuota {1} ",)),
    "LimitRange": _Pin("widen LimitRange {3}", ("LimitRange {1} ",)),
    "share volumes": _Pin("let nodes attach more volumes", cluster=_attaching_all),
    "with required affinity to pods": _Pin(
        "drop the required affinity of {0}", spec=_without_terms("pods")
    ),
}


# -- pods that rules hold --------------------------------------------------------------------------


def _rules(base: Situation) -> Iterator[Lift]:
    """Yield the lifts of required rules: of every workload whose pods may move."""
    why = causes(base)
    free = [u for u in base.imported.cluster.site.units if (u.namespace, u.name) not in why]
    held: dict[tuple[str, str], list[Replica]] = {}
    changes: dict[str, Callable[[PodSpec], PodSpec]] = {}
    for unit in free:
        for cause, change in _rules_of(unit).items():
            held.setdefault((cause, subject_of(unit)), []).append(unit)
            changes[cause] = change
    for (cause, subject), own in held.items():
        words = f"prefer the {cause} of {subject} instead of requiring it"
        pods = frozenset((u.namespace, u.name) for u in own)
        lifted = _Pinless(base, own, _Pin(words, spec=changes[cause]), (cause,))
        yield Lift(cause, subject, words, "rule", pods, lifted, pods)


def _rules_of(unit: Replica) -> dict[str, Callable[[PodSpec], PodSpec]]:
    """Return the required rules of a pod about places and other pods: name -> its removal."""
    affinity, result = unit.spec.affinity, dict[str, Callable[[PodSpec], PodSpec]]()
    for spread in unit.spec.spread:
        if spread.is_required:
            key = spread.topology_key
            result[f"spread over {_plural(key)}"] = _without_spread(key)
    for side, name in (("anti", "anti-affinity"), ("pods", "affinity")):
        for term in getattr(affinity, side).required:
            key = term.topology_key
            result[f"{name} by {_short(key)}"] = _without_terms(side, key)
    if unit.spec.selector or affinity.nodes.required.terms:
        result["node selector"] = _without_places
    return result


def _short(key: str) -> str:
    return key.rpartition("/")[2]


def _plural(key: str) -> str:
    return f"{_short(key)}s"


def _taints(base: Situation) -> Iterator[Lift]:
    """Yield the lifts of taints that keep pods away, by key."""
    nodes = [base.imported.cluster.objects.nodes[name] for name in base.there]
    every = frozenset(base.owners)
    for key in dict.fromkeys(taint[0] for node in nodes for taint in keeping(node)):
        told = key in GOING or key.startswith(("node.kubernetes.io/", "node-role.kubernetes.io/"))
        if not told:
            words = f"remove the taint {key} from nodes"
            yield Lift("taint", key, words, "rule", every, partial(_untainted, key=key), every)


def _untainted(imported: Imported, key: str) -> Imported:
    nodes = {
        name: replace(node, taints=[taint for taint in node.taints if taint[0] != key])
        for name, node in imported.cluster.objects.nodes.items()
    }
    made = _with_nodes(imported, nodes)
    return made.changed(made.cluster)
