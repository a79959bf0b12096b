"""What a cluster would save if one thing were lifted: a pin, a rule, a quota, a taint.

A lift is a change of the cluster's objects, or of an option. Its saving is the difference between
two cheapest plans: that of the cluster as it is, and that of the cluster so changed, which is
imported and solved anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placeopt.core.errors import PlaceoptError
from placeopt.kubernetes.capacity import keeping
from placeopt.kubernetes.consolidate import edits
from placeopt.kubernetes.consolidate.edits import Change, on_objects, on_pods
from placeopt.kubernetes.consolidate.situation import Situation, solved
from placeopt.kubernetes.importing import ReadTables
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.replicas import Replica, grouped
from placeopt.kubernetes.volumes import SINGLE

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME = "kubernetes.io/hostname"
#: Pods of all clusters together that are solved to compute lifts; lifts at least.
_WORK, _LEAST = 90_000, 8
#: So many pods each counts for where nodes can be bought: a search tries each kind of them.
_BUYING = 10
#: Pods that the searches for one lift together place, and orders of the moves to a deployment.
_PODS, _ORDERS = 1000, 4


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
    pods : frozenset of (namespace, name)
        Whom it holds.
    pins : bool
        Whether they can move nowhere; else a rule says where they may.
    change : callable
        What to change in the objects of the cluster.
    options : ImportOptions, optional
        Other options of the import.
    tables : callable, optional
        What to change in the tables beside the files of the cluster.
    """

    cause: str
    subject: str
    words: str
    pods: frozenset[tuple[str, str]]
    pins: bool
    change: Change = edits.nothing
    options: ImportOptions | None = None
    tables: Callable[[ReadTables], ReadTables] | None = None

    @property
    def reason(self) -> str:
        """Why a node stays that it frees."""
        rules = not (self.pins or self.options or self.tables)
        return f"required: {self.cause}" if rules else self.cause

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
    def frees(self) -> list[str]:
        """The nodes that stay as it is, and do not after it; none where it saves nothing."""
        if self.other is None or not self.saving or self.saving < 1e-6:
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
    """Return the cluster after a lift; None where the changed cluster cannot be imported."""
    try:
        imported = base.imported.source.changed(lift.change, lift.options, lift.tables)
    except PlaceoptError:
        return None
    bought = base.problem.arrays.candidate.any()  # then one search from the plan must do
    work = 0 if bought and lift.tables is None else _PODS
    other = solved(imported, base=base, work=work, tries=_ORDERS, seed=seed)
    # new requests may be more than can be started
    return other if lift.options is None or other.is_legal or not base.is_legal else None


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
        own = np.array([number[pod] for pod in lift.pods if pod in number], dtype=np.int64)
        own = own[there[own]]
        here = np.bincount(base.final[own], minlength=size)
        others = pinned - np.bincount(base.final[own[a.stuck[own]]], minlength=size)
        share = np.minimum(here, 1) if lift.pins else here / np.maximum(pods, 1)
        results.append(float((price * share * (others == 0)).sum()))
    return results


# -- pods that stay --------------------------------------------------------------------------------


def causes(base: Situation) -> dict[tuple[str, str], str]:
    """Return why pods stay: (namespace, name) of each that does -> the cause."""
    label = {f"{u.namespace}/{u.name}": (u.namespace, u.name) for u in base.imported.cluster.units}
    results: dict[tuple[str, str], str] = {}
    for text, subjects in base.imported.notes.of("pinned"):
        for subject in subjects:
            if subject in label:
                results.setdefault(label[subject], text)
    return results


def _pins(base: Situation) -> Iterator[Lift]:
    why = causes(base)
    held = [u for u in base.imported.cluster.site.units if (u.namespace, u.name) in why]
    groups = grouped(held, lambda u: (why[u.namespace, u.name], _subject(why, u)))
    for (cause, subject), own in groups.items():
        made = next((f(base, own, cause) for start, f in _PINS.items() if start in cause), None)
        words, change, options = made or ("", edits.nothing, None)
        if words:
            pods = frozenset((u.namespace, u.name) for u in own)
            yield Lift(cause, subject, words, pods, True, change, options)


def _subject(why: dict[tuple[str, str], str], unit: Replica) -> str:
    """Return what has to be changed so that a pod may move."""
    cause = why[unit.namespace, unit.name]
    if "--pin-namespace" in cause or cause.startswith(_OF_NAMESPACES):
        return unit.namespace
    if cause.startswith("pods on nodes annotated"):
        return unit.node or ""
    return "all nodes" if cause.startswith("pods that share volumes") else subject_of(unit)


#: Beginnings of causes that hold a whole namespace.
_OF_NAMESPACES = ("ResourceQuota", "LimitRange", "namespace", "pods of other namesp")


def subject_of(unit: Replica) -> str:
    """Return how answers name the workload of a pod."""
    return f"{unit.namespace}/{unit.workload}"


Made = tuple[str, Change, ImportOptions | None]


def _on(words: str, change: edits.PodChange) -> Callable[[Situation, list[Replica], str], Made]:
    """Return what makes the lift that changes the pods of an owner."""

    def made(base: Situation, mine: list[Replica], cause: str) -> Made:
        owner = subject_of(mine[0])
        return words.format(owner), _pods(mine, change), None

    return made


def _pods(mine: Sequence[Replica], change: edits.PodChange) -> Change:
    return on_pods({(u.namespace, u.name) for u in mine}, mine[0].owner, change)


def _as_deployment(base: Situation, mine: list[Replica], cause: str) -> Made:
    words = "give {0} a Deployment" if mine[0].kind == "Pod" else "run {0} as a Deployment"
    change = edits.of_deployment(mine[0].workload)
    return words.format(subject_of(mine[0])), _pods(mine, change), None


def _after_rollout(base: Situation, mine: list[Replica], cause: str) -> Made:
    space, _, name = mine[0].owner
    sets = {
        (s, n)
        for (s, n) in base.imported.cluster.objects.sets
        if base.imported.cluster.objects.owners.get((s, "ReplicaSet", n)) == mine[0].owner[1:]
        and s == space
    }
    pods = _pods(mine, edits.of_one_revision(name))
    change = edits.both(pods, on_objects("Deployment", {(space, name)}, edits.settled))
    if sets:
        change = edits.both(change, on_objects("ReplicaSet", sets, edits.of_none))
    return f"wait until the rollout of {subject_of(mine[0])} has ended", change, None


def _recreating(base: Situation, mine: list[Replica], cause: str) -> Made:
    space, _, name = mine[0].owner
    change = on_objects("Deployment", {(space, name)}, edits.rolling)
    return f"let {space}/{name} roll instead of recreate", change, None


def _shared_claims(base: Situation, mine: list[Replica], cause: str) -> Made:
    claims = {(u.namespace, claim) for u in mine for _, _, claim in u.spec.volumes if claim}
    change = on_objects("PersistentVolumeClaim", claims, edits.shared) if claims else edits.nothing
    return f"give {subject_of(mine[0])} a ReadWriteMany volume", change, None


def _not_ready(base: Situation, mine: list[Replica], cause: str) -> Made:
    owner = mine[0].owner
    every = [u for u in base.imported.cluster.units if u.owner == owner]
    return f"get all pods of {subject_of(mine[0])} ready", _pods(every, edits.ready), None


def _of_node(base: Situation, mine: list[Replica], cause: str) -> Made:
    name = mine[0].node or ""
    change = edits.without_annotations(edits.DO_NOT_DISRUPT, edits.SCALE_DOWN_DISABLED)
    words = f"remove do-not-disrupt and scale-down-disabled from node {name}"
    return words, on_objects("Node", {("default", name)}, change), None


def _quota(base: Situation, mine: list[Replica], cause: str) -> Made:
    label = cause.split()[1]
    space, _, name = label.partition("/")
    change = on_objects("ResourceQuota", {(space, name)}, edits.unlimited)
    return f"raise ResourceQuota {label}", change, None


def _limit_range(base: Situation, mine: list[Replica], cause: str) -> Made:
    label = cause.split()[1]
    space, _, name = label.partition("/")
    change = on_objects("LimitRange", {(space, name)}, edits.without_limits)
    return f"widen LimitRange {label}", change, None


def _attaching(base: Situation, mine: list[Replica], cause: str) -> Made:
    change = on_objects("CSINode", (), edits.attaching_all)
    return "let nodes attach more volumes", change, None


def _with_rules(base: Situation, words: str, **rules: object) -> Made:
    options = base.imported.source.options
    changed = replace(options, rules=replace(options.rules, **rules))  # type: ignore[arg-type]
    return words, edits.nothing, changed


def _of_namespace(base: Situation, mine: list[Replica], cause: str) -> Made:
    space = mine[0].namespace
    rules = base.imported.source.options.rules
    if "--pin-namespace" in cause:
        kept = tuple(name for name in rules.fixed_namespaces if name != space)
        return _with_rules(base, f"let pods of {space} move", fixed_namespaces=kept)
    return _with_rules(base, f"plan {space}, too", namespaces=(*rules.namespaces, space))


def _unpinned(base: Situation, mine: list[Replica], cause: str) -> Made:
    names = {(mine[0].kind.lower(), mine[0].workload), *(("pod", u.name) for u in mine)}
    rules = base.imported.source.options.rules
    kept = tuple(pin for pin in rules.pins if (pin[0].lower(), pin[1]) not in names)
    return _with_rules(base, f"leave {subject_of(mine[0])} out of --pin", pins=kept)


#: Part of a cause -> what makes the lift.
_PINS: dict[str, Callable[[Situation, list[Replica], str], Made]] = {
    "annotated safe-to-evict": _on(
        'remove safe-to-evict: "false" from {0}', edits.without_annotations(edits.SAFE_TO_EVICT)
    ),
    "pods on nodes annotated": _of_node,
    "annotated do-not-disrupt": _on(
        "remove do-not-disrupt from {0}", edits.without_annotations(edits.DO_NOT_DISRUPT)
    ),
    "--pin-namespace": _of_namespace,
    "of other namespaces": _of_namespace,
    "named by --pin": _unpinned,
    "pods without a controller": _as_deployment,
    "pods of a StatefulSet": _as_deployment,
    "which steps cannot move": _as_deployment,
    "pods of a Job": _on("wait until {0} has ended", edits.ended),
    "that recreates": _recreating,
    "in the middle of a rollout": _after_rollout,
    "with resource claims": _on(
        "run {0} without resource claims", edits.without_fields("resourceClaims")
    ),
    "hostPath volume": _on('annotate {0} safe-to-evict: "true"', edits.safe_to_evict),
    "volume on disk": _on('annotate {0} safe-to-evict: "true"', edits.safe_to_evict),
    "with a local volume": _on(
        "give {0} a volume that is not local", edits.without_volumes(["local"])
    ),
    "one node at a time": _on(
        "give {0} a volume that several nodes attach", edits.without_volumes(SINGLE)
    ),
    "volume claim": _shared_claims,
    "with a port of their node": _on("run {0} without a port of its node", edits.without_ports),
    "is not ready": _not_ready,
    "ResourceQuota": _quota,
    "LimitRange": _limit_range,
    "share volumes": _attaching,
    "with required affinity to pods": _on(
        "drop the required affinity of {0}", edits.without_affinity("podAffinity")
    ),
}


# -- pods that rules hold --------------------------------------------------------------------------


def _rules(base: Situation) -> Iterator[Lift]:
    """Yield the lifts of required rules: of every workload whose pods may move."""
    why = causes(base)
    free = [u for u in base.imported.cluster.site.units if (u.namespace, u.name) not in why]
    held: dict[tuple[str, str], list[Replica]] = {}
    changes: dict[str, edits.PodChange] = {}
    for unit in free:
        for cause, change in _rules_of(unit).items():
            held.setdefault((cause, subject_of(unit)), []).append(unit)
            changes[cause] = change
    for (cause, subject), own in held.items():
        words = f"prefer the {cause} of {subject} instead of requiring it"
        pods = frozenset((u.namespace, u.name) for u in own)
        yield Lift(cause, subject, words, pods, False, _pods(own, changes[cause]))


def _rules_of(unit: Replica) -> dict[str, edits.PodChange]:
    """Return the required rules of a pod about places and other pods: name -> its removal."""
    affinity, result = unit.spec.affinity, dict[str, edits.PodChange]()
    for term in unit.spec.view["topologySpreadConstraints"].items():
        if term["whenUnsatisfiable"].text("DoNotSchedule") == "DoNotSchedule":
            key = term["topologyKey"].text()
            result[f"spread over {_plural(key)}"] = edits.without_spread(key)
    for kind, name in (("podAntiAffinity", "anti-affinity"), ("podAffinity", "affinity")):
        for term in affinity[kind][_REQUIRED].items():
            key = term["topologyKey"].text()
            result[f"{name} by {_short(key)}"] = edits.without_affinity(kind, key)
    if unit.spec.selector or affinity["nodeAffinity"][_REQUIRED].value:
        result["node selector"] = edits.without_affinity("nodeAffinity")
    return result


def _short(key: str) -> str:
    return key.rpartition("/")[2]


def _plural(key: str) -> str:
    return f"{_short(key)}s"


def _taints(base: Situation) -> Iterator[Lift]:
    """Yield the lifts of taints that keep pods away, by key."""
    nodes = [base.imported.cluster.objects.nodes[name] for name in base.there]
    for key in dict.fromkeys(taint[0] for node in nodes for taint in keeping(node)):
        if not key.startswith(("node.kubernetes.io/", "node-role.kubernetes.io/")):
            change = on_objects("Node", (), edits.without_taint(key))
            every = frozenset(base.owners)
            yield Lift("taint", key, f"remove the taint {key} from nodes", every, False, change)
