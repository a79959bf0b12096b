"""What pods say about nodes and other pods, as rules of a rolling-update instance.

Taints, selectors, required node affinity, operating systems and the zones of volumes become sets of
allowed nodes. Required affinity and anti-affinity to other pods, topology spread and host ports
become rules between groups of pods; preferred ones become soft rules. Groups count what no plan
touches, too: pods that come with a node, pods that are ending, pods of nodes that are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placeopt.core.files.documents import Document
from placeopt.kubernetes.capacity import Tolerations, affinity_nodes, allowed
from placeopt.kubernetes.cluster import ReadCluster
from placeopt.kubernetes.objects import HostPort
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import note, tolerated
from placeopt.kubernetes.pinned import budgets_of
from placeopt.kubernetes.replicas import SHARED, Replica, claims_of, grouped
from placeopt.kubernetes.values import Requirement, Selector, Spread, Term, selects

HOSTNAME, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
#: The label that a ReplicaSet gives to its pods, and the fields that name such labels.
_HASH = "pod-template-hash"
_KEYS = {"match_label_keys": "In", "mismatch_label_keys": "NotIn"}
#: What rules call the domains of a topology key.
_PER = {HOSTNAME: "node"}


@dataclass
class PodRules:
    """Rules of an instance, and what they say of each replica and node.

    Attributes
    ----------
    rules : list of dict
        As in the document.
    node_sets : dict of str to list of str
    allowed : dict of int to str
        The node set of each replica that has one, by its place among the units.
    groups : dict of int to list of str
        The groups of each replica.
    keys : set of str
        Topology keys other than the hostname that rules are about.
    needs : dict of str to int
        Replicas that groups need when a node is lost.
    residents : dict of str to dict
        Node -> group -> copies on it that no plan touches.
    held : dict of int to str
        Why replicas have to stay that no rule can say, by their id.
    nowhere : dict of int to str
        Why copies of a replica may start nowhere, by its place among the units.
    """

    rules: list[Document] = field(default_factory=list)
    node_sets: dict[str, list[str]] = field(default_factory=dict)
    allowed: dict[int, str] = field(default_factory=dict)
    groups: dict[int, list[str]] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    needs: dict[str, int] = field(default_factory=dict)
    residents: dict[str, dict[str, int]] = field(default_factory=dict)
    held: dict[int, str] = field(default_factory=dict)
    nowhere: dict[int, str] = field(default_factory=dict)


def pod_rules(cluster: ReadCluster, options: ImportOptions) -> PodRules:
    """Return the rules of the pods of a cluster; notes which are kept, and what no rule can say."""
    return _Reader(cluster, options).read()


class _Chosen(NamedTuple):
    """What a term counts: replicas of the instance; by node, what no plan touches.

    Of the latter apart what is ending, and what comes with nodes and is not there yet.
    """

    members: list[int]
    residents: Counter[str]
    ending: Counter[str]
    coming: Counter[str]

    @property
    def keeping_away(self) -> Counter[str]:
        """What is there for sure, or may be there."""
        return self.residents + self.ending + self.coming


class _Reader:
    def __init__(self, cluster: ReadCluster, options: ImportOptions):
        self.objects, self.site, self.options = cluster.objects, cluster.site, options
        self.found = PodRules()
        self.sets: dict[frozenset[str], str] = {}
        spaces = grouped(cluster.units, lambda unit: unit.namespace)
        self.by_space = {space: _by_labels(own) for space, own in spaces.items()}
        self.place = {id(unit): k for k, unit in enumerate(self.site.units)}
        self.every = {**self.site.nodes, **self.site.closed}
        listed = cluster.objects.candidates
        self.absent = listed if len(listed) < len(cluster.objects.nodes) else set[str]()
        self.where: dict[int, list[str]] = {}
        for unit, name in self.site.residents:
            self.where.setdefault(id(unit), []).append(name)
        self.named: dict[Hashable, str] = {}
        self.members: dict[Hashable, _Chosen] = {}
        self.said: set[str] = set()
        self.spread_over: dict[tuple[object, ...], str | None] = {}

    def read(self) -> PodRules:
        self._allowed()
        holders: dict[Hashable, list[Replica]] = {}
        for unit in self.site.units:
            if any(True for _ in affinity_terms(unit)) or unit.spec.spread:
                holders.setdefault(_signature(unit), []).append(unit)
        for own in holders.values():
            with tolerated():
                self._rules_of(own)
        self._residents_keep_away()
        self._host_ports()
        self._volumes_to_come()
        with tolerated():
            self._note_silent()
        self._wishes()
        if "replicas" in self.options.survive:
            with tolerated():
                self._needs()
        self._keep_domains()
        self.found.rules = list(
            {json.dumps(r, sort_keys=True): r for r in self.found.rules}.values()
        )
        return self.found

    def _keep_domains(self) -> None:
        """Let no node be deleted on the way where other rules would see that it is gone.

        Some spread wants a number of domains, or rules count pods that go with their node.
        """
        if any(rule.get("min_domains", 1) > 1 for rule in self.found.rules):
            why = "with minDomains of some pod"
        elif any(self.found.residents.get(name) for name in self.site.nodes):
            why = "where rules count pods that come with a node"
        else:
            return
        for rule in self.found.rules:
            if rule.pop("shrinks", False):
                text = f"spreads over hostnames: {why}, empty nodes count"
                note("assumption", text, rule["group"])

    def _note_silent(self) -> None:
        """Name the workloads of several replicas that nothing keeps from sharing one node.

        kube-scheduler spreads them a little, softly, by defaults that no file has.
        """
        for own in grouped(self.site.units, lambda unit: unit.key).values():
            spec = own[0].spec
            anti = spec.affinity.anti
            if not (spec.spread or anti.required or anti.weighted) and len(own) > 1:
                text = "workloads that ask for no spread: all their replicas may end on one node"
                note("assumption", text, f"{own[0].namespace}/{own[0].workload}")

    def _wishes(self) -> None:
        """Add what the import was asked for: spread workloads, and a largest share on one node."""
        options, zone = self.options, _ZONE
        for own in grouped(self.site.units, lambda unit: unit.owner).values():
            if len(own) < 2 or all(map(self._stays, own)):
                continue
            rules: list[Document] = [
                {"kind": "spread", "max_skew": 1, "per": zone if per == "zone" else "node"}
                for per in options.spread
            ]
            most = max(1, int(options.max_share * len(own)))
            if most < len(own):
                rules.append({"kind": "apart", "max_copies": most, "per": "node"})
            if rules:
                who = self._group_of(own)
                if self.site.closed:  # they take nothing, and are no places to spread over
                    among = {"among": self._set(frozenset(self.site.nodes))}
                    rules = [rule | (among if rule["kind"] == "spread" else {}) for rule in rules]
                self.found.rules += [{**rule, "group": who} for rule in rules]
                self.found.keys |= {zone} if "zone" in options.spread else set()
                text = "asked for by --spread and --max-share; what runs may stay until it moves"
                note("kept", text, f"{own[0].namespace}/{own[0].workload}")

    def _needs(self) -> None:
        """Say how many replicas every workload of several needs when a node is lost.

        One, or what a budget of the workload alone keeps; a replica may always be missing.
        """
        budgets = budgets_of(self.objects, self.site.units)
        for owner, own in grouped(self.site.units, lambda unit: unit.owner).items():
            label = f"{own[0].namespace}/{own[0].workload}"
            left = len(own)
            if left < 2:
                text = "workloads of one replica are down while it starts elsewhere (--survive)"
                note("assumption", text, label)
                continue
            need = max(1, budgets.get(owner, 1))
            if need >= left:
                text = "budgets that need every replica: one may be missing when a node is lost"
                note("assumption", text, label)
            self.found.needs[self._group_of(own)] = min(need, left - 1)

    def _allowed(self) -> None:
        units, nodes = self.site.units, self.site.nodes
        everywhere = frozenset(nodes)
        for k, (unit, where) in enumerate(
            zip(units, allowed(units, self.objects, nodes), strict=True)
        ):
            if where >= everywhere:
                continue
            text = "node selectors, required node affinity, operating systems, volume zones"
            note("kept", f"taints, {text}", unit.label)
            self.found.allowed[k] = self._set(where)
            if unit.node is not None and unit.node not in where and not unit.stays:
                text = "pods on nodes that their own rules no longer allow may stay there"
                note("assumption", text, unit.label)

    def _set(self, where: frozenset[str]) -> str:
        """Return the name of a set of nodes."""
        if where not in self.sets:
            self.sets[where] = f"nodes-{len(self.sets) + 1}"
            self.found.node_sets[self.sets[where]] = [n for n in self.every if n in where]
        return self.sets[where]

    def _rules_of(self, mine: list[Replica]) -> None:
        """Add the rules of replicas that say the same of other pods."""
        unit, who = mine[0], self._group_of(mine)
        for kind, soft, terms in affinity_terms(unit):
            for adopted in _readings(unit, terms, soft):
                toward = self._toward(unit, terms, mine, kind, adopted)
                for term in terms:
                    self._add(mine, who, toward, term, {"kind": kind, **_soft(soft)})
        for term in unit.spec.spread:
            soft = term.when_unsatisfiable == "ScheduleAnyway"
            rule: Document = {"kind": "spread", **_soft(soft), "max_skew": term.max_skew}
            if term.min_domains is not None and not soft:
                rule["min_domains"] = term.min_domains
            if (where := self._among(unit, term, soft)) is not None:
                rule["among"] = where
            if not soft and term.topology_key == HOSTNAME:
                rule["shrinks"] = True  # steps delete the nodes that they empty
            for adopted in _readings(unit, [term], soft):
                toward = self._toward(unit, [term], mine, "spread", adopted)
                self._add(mine, who, toward, term, {**rule})

    def _among(self, unit: Replica, term: Spread, soft: bool) -> str | None:
        """Return the node set over which a spread counts, None for all nodes.

        Nodes that take nothing count where it is required, and not where it is preferred; nodes
        that lack the key of any required spread count for none.
        """
        required = {one.topology_key for one in unit.spec.spread if one.is_required}
        keys = frozenset() if soft else frozenset(required - _PER.keys())
        by_affinity = term.node_affinity_policy != "Ignore"
        by_taints = term.node_taints_policy == "Honor"
        key = soft, keys, by_affinity, by_taints, unit.spec.about_nodes
        if key not in self.spread_over:
            where = frozenset(
                name
                for name, node in (self.site.nodes if soft else self.every).items()
                if all(node.meta.labels.get(key) for key in keys)
            )
            if by_affinity:
                where &= affinity_nodes(unit.spec, self.every)
            if by_taints:
                tolerations = Tolerations(unit.spec)
                where &= {n for n, node in self.every.items() if tolerations.tolerate_all(node)}
            self.spread_over[key] = None if where >= self.every.keys() else self._set(where)
        return self.spread_over[key]

    def _add(
        self, mine: list[Replica], who: str, toward: str | None, term: Term, rule: Document
    ) -> None:
        soft, what = "soft" in rule, _WORDS[rule["kind"]]
        if toward is None:
            if rule["kind"] == "together" and "soft" not in rule:
                self._hold(mine, "pods with required affinity to pods that the files do not have")
            return
        key = term.topology_key
        rule |= {"group": who, "per": _PER.get(key, key)}
        if toward != who:
            rule["toward"] = toward
        if key not in _PER:
            self.found.keys.add(key)
        self.found.rules.append(rule)
        text = (
            f"preferred {what}: kept where it costs nothing, counted where not"
            if soft
            else f"required {what}"
        )
        for unit in mine:
            note("kept", text, unit.label)

    def _hold(self, mine: Iterable[Replica], why: str) -> None:
        """Pin what runs; what waits may start nowhere."""
        for unit in mine:
            k = self.place[id(unit)]
            self.found.nowhere[k] = why
            if unit.node is None:
                self.found.allowed[k] = self._set(frozenset())
            elif not self._stays(unit):
                self.found.held[id(unit)] = why
                note("pinned", why, unit.label)

    def _stays(self, unit: Replica) -> bool:
        return bool(unit.stays) or id(unit) in self.found.held

    def _group_of(self, mine: list[Replica]) -> str:
        """Return the group of replicas that say the same."""
        return self._group(
            f"{mine[0].namespace}/{mine[0].workload}", [self.place[id(u)] for u in mine]
        )

    def _toward(
        self,
        unit: Replica,
        terms: Sequence[Term],
        mine: list[Replica],
        kind: str,
        adopted: bool = False,
    ) -> str | None:
        """Return the group that all of some terms select, None where the files have no such pod.

        Pods that are ending keep others away until they are gone; no spread counts them, and they
        are no company to rely on. Nor is what comes with nodes that may be bought or not.
        """
        name, chosen = self._selected(unit, terms, adopted)
        if kind == "together" and chosen.ending:
            self._keep_company(mine, terms, chosen)
        if kind == "spread" and chosen.coming:
            self._hold(mine, "pods spread beside what comes with nodes and is not there yet")
        residents = chosen.keeping_away if kind == "apart" else chosen.residents
        if not chosen.members and not residents:
            return None
        return self._group(name, chosen.members, residents)

    def _keep_company(self, mine: list[Replica], terms: Sequence[Term], chosen: _Chosen) -> None:
        """Hold replicas so that none is the first of a group of which pods are ending.

        Such a pod may be there still, so that nobody is the first, or gone, so that it is no
        company. So one that runs stays, if nothing else does; without one all are held.
        """
        if len(chosen.members) < 2:
            self._hold(mine, "pods with required affinity to pods that are ending")
            return
        keys = {term.topology_key for term in terms} - _PER.keys()
        counted = {n for n, node in self.every.items() if all(map(node.meta.labels.get, keys))}
        units = [self.site.units[k] for k in chosen.members]
        running = [unit for unit in units if unit.node in counted]
        is_own = self.place[id(mine[0])] in chosen.members
        if not is_own or chosen.residents.keys() & counted or any(map(self._stays, running)):
            return
        copies = Counter(unit.node for unit in running)
        kept = [max(running, key=lambda unit: copies[unit.node])] if running else mine
        self._hold(kept, "pods with required affinity to pods that are ending")

    def _selected(
        self, unit: Replica, terms: Sequence[Term], adopted: bool = False
    ) -> tuple[str, _Chosen]:
        """Return what all of some terms select, and a name for it; see `_readings`."""
        existing = tuple((self._spaces(unit, t), selector_of(unit, t, adopted)) for t in terms)
        if existing not in self.members:
            spaces = sorted(set.intersection(*(set(spaces) for spaces, _ in existing)))
            alike = (own for s in spaces for own in self.by_space.get(s, ()))
            self.members[existing] = self._chosen(
                u
                for own in alike
                if all(selects(selector, own[0].labels) for _, selector in existing)
                for u in own
            )
        names = (f"{'+'.join(spaces)[:80]}/{in_words(s)}" for spaces, s in existing)
        return " and ".join(dict.fromkeys(names)), self.members[existing]

    def _chosen(self, units: Iterable[Replica]) -> _Chosen:
        """Return some units as a term counts them."""
        members = []
        residents, ending, coming = Counter[str](), Counter[str](), Counter[str]()
        for unit in units:
            if id(unit) in self.place:
                members.append(self.place[id(unit)])
            for name in self.where.get(id(unit), ()):
                comes = name in self.absent or (unit.pod is None and bool(self.objects.pods))
                (coming if comes else ending if unit.ending else residents)[name] += 1
        return _Chosen(sorted(members), residents, ending, coming)

    def _residents_keep_away(self) -> None:
        """Add the required anti-affinity of what no plan touches: it keeps others away."""
        holders: dict[Hashable, list[Replica]] = {}
        for unit, _ in {id(u): (u, n) for u, n in self.site.residents}.values():
            if unit.spec.affinity.anti.required:
                holders.setdefault(_signature(unit), []).append(unit)
        for own in holders.values():
            with tolerated():
                for term in own[0].spec.affinity.anti.required:
                    self._keep_away(own, term)

    def _keep_away(self, mine: list[Replica], term: Term) -> None:
        if not self._selected(mine[0], [term])[1].members:
            return
        toward, chosen = self._toward(mine[0], [term], mine, "apart"), self._chosen(mine)
        name = f"{mine[0].namespace}/{mine[0].workload} (comes with nodes)"
        who = self._group(name, [], chosen.keeping_away)
        key = term.topology_key
        self.found.keys |= {key} - _PER.keys()
        rule = {"kind": "apart", "group": who, "per": _PER.get(key, key), "toward": toward}
        self.found.rules.append(rule)

    def _host_ports(self) -> None:
        """Add that no node gives a port twice, of ports that some replica may yet ask for."""
        holders: dict[HostPort, list[Replica]] = {}
        residents = {id(u): u for u, _ in self.site.residents}
        for unit in (*self.site.units, *residents.values()):
            for port in unit.spec.host_ports:
                holders.setdefault(port, []).append(unit)
        open_to = {p for p, own in holders.items() if any(self._may_start(u) for u in own)}
        listed = [p for p in holders if any(p.meets(other) for other in open_to)]
        groups = {}
        for port in listed:
            chosen = self._chosen(holders[port])
            groups[port] = self._group(port.label, chosen.members, chosen.keeping_away)
        for k, port in enumerate(listed):
            for other in listed[k:]:
                if port.meets(other):
                    rule = {"kind": "apart", "group": groups[port], "per": "node"}
                    if groups[other] != groups[port]:
                        rule["toward"] = groups[other]
                    self.found.rules.append(rule)
                    for unit in holders[port]:
                        note("kept", "ports of their node (hostPort)", unit.label)

    def _volumes_to_come(self) -> None:
        """Keep together what waits for one volume that is not made yet: it is made at one place."""
        sharers: dict[tuple[str, str], list[Replica]] = {}
        shared = dict[tuple[str, str], bool]()
        for unit in (u for u in self.site.units if u.node is None):
            for name, spec in claims_of(self.objects, unit.namespace, unit.name, unit.spec):
                if spec is not None and not spec.volume_name:
                    key = unit.namespace, name
                    sharers.setdefault(key, []).append(unit)
                    shared[key] = not SHARED.isdisjoint(spec.access_modes)
        for key, own in sharers.items():
            if len(own) > 1:
                zoned = shared[key] and all(node.zone for node in self.every.values())
                chosen = self._chosen(own)
                who = self._group(f"{key[0]}/{key[1]} (volume)", chosen.members)
                self.found.keys |= {_ZONE} if zoned else set()
                rule = {"kind": "together", "group": who, "per": _ZONE if zoned else "node"}
                self.found.rules.append(rule)

    def _may_start(self, unit: Replica) -> bool:
        return id(unit) in self.place and not self._stays(unit)

    def _group(self, name: str, members: list[int], residents: Counter[str] | None = None) -> str:
        """Return the name of a group of replicas, made once; `residents` by their nodes."""
        key = tuple(members), frozenset((residents or {}).items())
        if key not in self.named:
            shown = name[:200]
            while shown in self.said:
                shown = f"{name[:200]} ({len(self.said)})"
            self.said.add(shown)
            self.named[key] = shown
            for k in members:
                self.found.groups.setdefault(k, []).append(shown)
            for node, count in (residents or {}).items():
                self.found.residents.setdefault(node, {})[shown] = count
        return self.named[key]

    def _spaces(self, unit: Replica, term: Term) -> tuple[str, ...]:
        """Return the namespaces whose pods a term is about."""
        labels, selector = self.objects.namespaces, term.namespace_selector
        if selector is not None and selector != Selector() and not labels:
            text = "namespace selectors, of namespaces that the files do not have: by name only"
            note("assumption", text, unit.label)
        return spaces_of(unit, term, {space: labels.get(space, {}) for space in self.by_space})


def _by_labels(units: Iterable[Replica]) -> list[list[Replica]]:
    """Return some replicas, those of the same labels together."""
    return list(grouped(units, lambda unit: tuple(sorted(unit.labels.items()))).values())


_WORDS = {
    "apart": "anti-affinity to other pods",
    "together": "affinity to other pods",
    "spread": "topology spread",
}


def _soft(soft: bool) -> Document:
    return {"soft": True} if soft else {}


def _signature(unit: Replica) -> Hashable:
    """Return a key that is the same for replicas that say the same of other pods."""
    return unit.namespace, unit.workload, frozenset(unit.labels.items()), unit.spec.about_pods


def affinity_terms(unit: Replica) -> Iterator[tuple[str, bool, Sequence[Term]]]:
    """Yield (kind of rule, whether it is soft, terms) of a pod's affinity to other pods.

    Company is whom all required terms of affinity select; every other term is one by itself.
    """
    affinity, anti = unit.spec.affinity.pods, unit.spec.affinity.anti
    if affinity.required:
        yield "together", False, affinity.required
    for term in anti.required:
        yield "apart", False, [term]
    for kind, side in (("together", affinity), ("apart", anti)):
        for term in side.preferred:
            yield kind, True, [term]


def spaces_of(
    unit: Replica, term: Term, labels: Mapping[str, Mapping[str, str]]
) -> tuple[str, ...]:
    """Return the namespaces whose pods a term of a pod is about, of namespaces with labels."""
    if term.namespace_selector is None:
        return tuple(sorted(set(term.namespaces))) or (unit.namespace,)
    chosen = {
        space
        for space, own in labels.items()
        if selects(term.namespace_selector, {"kubernetes.io/metadata.name": space, **own})
    }
    return tuple(sorted(chosen.union(term.namespaces)))


def _readings(unit: Replica, terms: Sequence[Term], soft: bool) -> tuple[bool, ...]:
    """Return how some terms are read: of a copy when it is made, and of one that is adopted.

    A copy has no hash of the template before its ReplicaSet adopts it, so that a label key of the
    hash counts as absent where it starts. It counts where the copy is placed again. Both are kept.
    """
    if soft or _HASH not in unit.labels:
        return (False,)
    keys = (key for term in terms for name in _KEYS for key in getattr(term, name))
    return (False, True) if _HASH in keys else (False,)


def selector_of(unit: Replica, term: Term, adopted: bool) -> Selector | None:
    """Return the label selector of a term, with its match label keys filled in."""
    selector = term.label_selector
    if selector is None:
        return None
    asked = tuple(
        Requirement(key, operator, (unit.labels[key],))
        for name, operator in _KEYS.items()
        for key in getattr(term, name)
        if key in unit.labels and (adopted or key != _HASH)
    )
    return Selector(selector.match_labels, (*selector.match_expressions, *asked))


def in_words(selector: Selector | None) -> str:
    """Return a selector in short."""
    return "none" if selector is None else selector.words
