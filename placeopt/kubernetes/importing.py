"""Files in, an instance out: what ``placeopt import kubernetes`` does."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from placeopt.core.errors import DocumentError, Faults, PlaceoptError, UsageError, did_you_mean
from placeopt.core.files.paths import AnyPath
from placeopt.core.problem import Problem
from placeopt.kubernetes import manifests
from placeopt.kubernetes.candidates import read_candidates
from placeopt.kubernetes.capacity import NodeCapacity, read_nodes, site
from placeopt.kubernetes.cluster import (
    ImportedInstance,
    Latencies,
    ReadCluster,
    WorkloadGraph,
    graph_of,
    latencies,
)
from placeopt.kubernetes.files import STDIN, Item, with_folders
from placeopt.kubernetes.machines import PriceBook, PriceOverlay, equipped, read_prices
from placeopt.kubernetes.manifests import ClusterObjects
from placeopt.kubernetes.names import DUMP
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.options import ImportOptions
from placeopt.kubernetes.origin import (
    TOPICS,
    InstanceRef,
    Notes,
    Origin,
    OriginNote,
    check_faults,
    digest,
    gathering,
    note,
    recorded,
    tolerated,
)
from placeopt.kubernetes.pinned import held, name_dropped_rules, origin_budgets, require_pins
from placeopt.kubernetes.replicas import Replica, units
from placeopt.registry import from_document

#: Problem -> what makes its instances.
TARGETS = {
    "rolling-update": "instance.rolling_update",
    "edge-cloud": "targets.edge_cloud",
    "rescheduling": "targets.rescheduling",
    "temporal": "targets.temporal",
}
_NEEDS_NODES = {"rolling-update", "edge-cloud", "rescheduling"}
#: Problems that place every workload anew: only pods that run and must not move stay, and only
#: where there are nodes.
_ANEW = {"edge-cloud", "temporal"}
#: Subjects of a note that stand in the origin.
_SUBJECTS_KEPT = 20


@dataclass
class Imported:
    """The instance, what its names are in the cluster, the notes of the import, and its source.

    Attributes
    ----------
    document, problem, origin, notes :
    cluster : ReadCluster
        What the instance was made from.
    options : ImportOptions
    files : sequence of path
        Of the cluster.
    read : Notes
        What was noted before the instance was made.
    """

    document: dict[str, Any]
    problem: Problem
    origin: Origin
    notes: Notes
    cluster: ReadCluster
    options: ImportOptions
    files: Sequence[AnyPath]
    read: Notes

    def changed(
        self,
        cluster: ReadCluster,
        options: ImportOptions | None = None,
        left_out: Mapping[str, str] = MappingProxyType({}),
    ) -> Imported:
        """Return the instance of a changed cluster: no file is read again.

        Parameters
        ----------
        cluster : ReadCluster
        options : ImportOptions, optional
            Other options.
        left_out : mapping of str to str
            What the change leaves out, by its label, and why.

        Raises
        ------
        PlaceoptError
            As `import_files` does.
        """
        read = Notes()
        read.taken((None, self.read))
        for label, text in left_out.items():
            read.leave_out(text, label)
        target = self.problem.problem
        with no_collection():
            return _instance_of(cluster, options or self.options, self.files, target, read)


def _instance_of(
    cluster: ReadCluster,
    options: ImportOptions,
    files: Sequence[AnyPath],
    target: str,
    read: Notes,
) -> Imported:
    """Make the instance of a cluster; `read` was noted before."""
    notes, objects = Notes(), cluster.objects
    notes.taken((None, read))
    instance = notes.taken(problem_stage(cluster, target, options))
    try:
        problem = from_document(instance.document)
    except DocumentError as error:
        raise error.in_file(", ".join(map(str, files))) from None
    for warning in problem.warnings():
        notes.add("assumption", f"warning of the instance: {warning}")
    existing = tuple(os.path.abspath(file) for file in files if str(file) != STDIN)
    if len(existing) < len(files) or not _can_replay(objects, target):
        existing = ()
    origin = Origin(
        instance=InstanceRef(**asdict(problem.instance_name)),
        items=instance.items,
        nodes=instance.nodes,
        budgets=origin_budgets(objects, cluster.units, instance.items),
        files=existing,
        digests=tuple(map(digest, existing)),
        cluster=objects.uid,
        price_unit=instance.document.get("price_unit"),
        notes=_kept(notes),
    )
    notes.counts = {
        "nodes": len(cluster.site.nodes),
        "workloads": len({unit.owner for unit in cluster.units}),
        "replicas": len(cluster.units),
        "calls": len(cluster.calls.edges),
    }
    return Imported(instance.document, problem, origin, notes, cluster, options, files, read)


def import_files(
    files: Sequence[AnyPath],
    target: str,
    options: ImportOptions,
    *,
    nodes: AnyPath | None = None,
    candidates: AnyPath | None = None,
    prices: Sequence[AnyPath] = (),
    overlays: Sequence[PriceOverlay] = (),
    latency: AnyPath | None = None,
    faults: Faults | None = None,
) -> Imported:
    """Return the instance that files describe.

    Parameters
    ----------
    files : sequence of path
        Lists of kubectl, manifests; ``-`` for stdin; of a folder its JSON and YAML files.
    target : str
        A problem of `TARGETS`.
    options : ImportOptions
    nodes, latency : path, optional
        CSV of nodes, of latencies.
    candidates : path, optional
        Machines that a rolling update may buy: CSV, or NodePools of Karpenter.
    prices : sequence of path
    overlays : sequence of Overlay
    faults : Faults, optional
        What is known to be wrong by now; it is told with what is found here.

    Raises
    ------
    DocumentError
        A file cannot be read, or lacks something; names the file and the line. What is wrong at
        several stages of an import is told at once.
    UsageError
        An option is not legal.
    InfeasibleInstanceError
        Replicas that do not run yet have no room.
    """
    if target not in TARGETS:
        raise UsageError(f"--to {target!r}; {did_you_mean(target, TARGETS)}")
    known, files = faults or Faults(), with_folders(files)
    tables = _Tables(nodes, candidates, prices, overlays, latency)
    with no_collection(), gathering(known):
        try:
            return _imported(files, target, options, tables)
        except PlaceoptError as error:
            if isinstance(error, DocumentError):
                with known.gather():
                    raise
            known.check()  # what is missing may be what could not be read
            raise
        except RecursionError:
            raise DocumentError(
                "nested too deeply",
                file=", ".join(map(str, files)),
                path="line 1",
                remedy="mend the file",
            ) from None


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Look for no garbage within: millions of values are made, and none of them is garbage.

    They are old afterwards, as if looked through: the next value that is made would have them all
    looked through at once.
    """
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # to the oldest generation
        if active:
            gc.enable()


def _imported(
    files: Sequence[AnyPath], target: str, options: ImportOptions, tables: _Tables
) -> Imported:
    """Make the stages one after another: documents, objects, the cluster, the instance."""
    if target != "rolling-update":
        _refuse_wishes(options, target)
    options = replace(options, rules=replace(options.rules, adopts=target == "rolling-update"))
    documents = manifests.read_documents(files)
    notes = Notes()
    read = notes.taken(tables_stage(tables, target, options, documents))
    objects = notes.taken(objects_stage(documents, read, options))
    del documents  # the bytes of the files
    cluster = notes.taken(cluster_stage(objects, read, tables.latency, target, options))
    return _instance_of(cluster, options, files, target, notes)


class ReadTables(NamedTuple):
    """What the tables of an import say: nodes, nodes to buy, with their file, and prices."""

    nodes: list[tuple[AnyPath, KubernetesNode]]
    prices: PriceBook | None


def tables_stage(
    tables: _Tables,
    target: str,
    options: ImportOptions,
    documents: Sequence[tuple[str, list[Item]]],
) -> tuple[ReadTables, Notes]:
    """Return what the files beside those of the cluster say; and what is to be noted."""
    nodes: list[tuple[AnyPath, KubernetesNode]] = []
    book: PriceBook | None = None
    with recorded() as notes:
        with tolerated():
            book = read_prices(tables.prices, notes, tables.overlays) if tables.prices else None
        if (path := tables.nodes) is not None:
            with tolerated():
                nodes += [(path, node) for node in read_nodes(path)]
        if (path := tables.candidates) is not None:
            if target != "rolling-update":
                raise UsageError(f"--candidates is of rolling updates; --to is {target}")
            with tolerated():
                classes = manifests.node_classes(item for _, own in documents for item in own)
                zones = manifests.zones(documents)
                bought = read_candidates(path, book, options.region, notes, zones, classes)
                nodes += [(path, node) for node in bought]
    return ReadTables(nodes, book), notes


def objects_stage(
    documents: Sequence[tuple[str, list[Item]]],
    read: ReadTables,
    options: ImportOptions,
) -> tuple[ClusterObjects, Notes]:
    """Return the objects of the documents, and the nodes of tables; and what is to be noted."""
    with recorded() as notes:
        objects = manifests.objects_of(documents)
        paths, nodes = [path for path, _ in read.nodes], [node for _, node in read.nodes]
        for path, node in zip(paths, equipped(objects, nodes), strict=True):
            with tolerated():
                _add_node(objects, path, node)
        if not objects.pods and not objects.workloads:
            check_faults()
            remedy = f"give manifests, or {DUMP}"
            raise manifests.nothing(objects, "workloads or pods", remedy)
    return objects, notes


def _add_node(objects: ClusterObjects, path: AnyPath, node: KubernetesNode) -> None:
    """Add a node of a table to those of the cluster."""
    if node.name in objects.nodes:
        raise DocumentError(
            f"node {node.name!r} stands twice",
            file=str(path),
            path="name",
            remedy="give every node once",
        )
    objects.nodes[node.name] = node
    objects.candidates.add(node.name)


def cluster_stage(
    objects: ClusterObjects,
    read: ReadTables,
    latency: AnyPath | None,
    target: str,
    options: ImportOptions,
) -> tuple[ReadCluster, Notes]:
    """Return the cluster that objects are, for a problem; and what is to be noted."""
    with recorded() as notes:
        units = _replicas(objects, target, options)
        workloads = {u.key: (u.labels, u.spec) for u in units if not u.bound}
        graph, delays = WorkloadGraph(), Latencies()
        with tolerated():
            graph = graph_of(objects, workloads)
        with tolerated():
            delays = latencies(latency)
        for policy in objects.policies:
            text = "PropagationPolicy: placements are what the plan decides"
            note("ignored", text, policy.metadata.name)
        here = NodeCapacity()
        if target in _NEEDS_NODES:
            here = _site(objects, units, options)
    return ReadCluster(objects, tuple(units), here, graph, delays, read.prices), notes


def problem_stage(
    cluster: ReadCluster, target: str, options: ImportOptions
) -> tuple[ImportedInstance, Notes]:
    """Return the instance of a problem that a cluster is; and what is to be noted."""
    with recorded() as notes:
        module, _, name = TARGETS[target].partition(".")
        made = importlib.import_module(f"placeopt.kubernetes.{module}")
        instance: ImportedInstance = getattr(made, name)(cluster, options)
        check_faults()
    return instance, notes


def _replicas(objects: ClusterObjects, target: str, options: ImportOptions) -> list[Replica]:
    """Return the replicas of a cluster, and which of them stay."""
    results = units(objects, options.rules)
    with tolerated():
        require_pins(results, options.rules)
    if target not in _ANEW or (target == "edge-cloud" and objects.pods):
        results = held(objects, results, options.rules)
    else:
        results = [u for u in results if options.rules.plans(u.namespace)]
    if all(unit.bound for unit in results):
        check_faults()
        remedy = "see the namespaces and the state of the pods"
        raise manifests.nothing(objects, "replicas that run or shall run", remedy)
    if target != "rolling-update":
        with tolerated():
            name_dropped_rules(results, target)
    return results


def with_objects(
    cluster: ReadCluster, objects: ClusterObjects, options: ImportOptions
) -> ReadCluster:
    """Return a cluster with other objects, its replicas being the same."""
    return replace(cluster, objects=objects, site=_site(objects, cluster.units, options))


def _site(
    objects: ClusterObjects, found: Sequence[Replica], options: ImportOptions
) -> NodeCapacity:
    """Return the nodes that take part and the replicas on them.

    Raises
    ------
    DocumentError
        There is no node, or nothing to place on one.
    """
    here = NodeCapacity()
    with tolerated():
        here = site(
            objects,
            found,
            drain=options.drain,
            drain_cordoned=options.drain_cordoned,
            policy=options.rules.policy,
        )
    if not here.nodes:
        check_faults()
        raise _no_nodes(objects)
    if not here.units:
        check_faults()
        raise _nothing_to_place(objects, found)
    return here


def _no_nodes(objects: ClusterObjects) -> DocumentError:
    """Return the error for files without a node that takes part: it names the first document."""
    if objects.nodes:
        first = next(iter(objects.nodes.values()))
        return first.meta.place.fault(
            "every node is left out (not ready, cordoned, or virtual), this one first",
            "see --cordoned",
        )
    return manifests.nothing(
        objects, "nodes", f"give nodes as well, with {DUMP}, or --nodes nodes.csv"
    )


def _can_replay(objects: ClusterObjects, target: str) -> bool:
    """Return whether steps and files have all nodes: those to be bought stand in the steps."""
    listed = len(objects.candidates)
    return not listed or (target == "rolling-update" and listed < len(objects.nodes))


def _kept(notes: Notes) -> tuple[OriginNote, ...]:
    """Return the notes of an import as they stand beside the instance."""
    return tuple(
        OriginNote(
            topic=topic, text=text, count=len(subjects), subjects=tuple(subjects[:_SUBJECTS_KEPT])
        )
        for topic in TOPICS
        for text, subjects in notes.of(topic)
    )


class _Tables(NamedTuple):
    """The files of an import besides those of the cluster."""

    nodes: AnyPath | None
    candidates: AnyPath | None
    prices: Sequence[AnyPath]
    overlays: Sequence[PriceOverlay]
    latency: AnyPath | None


def _refuse_wishes(options: ImportOptions, target: str) -> None:
    """Raise where availability is asked of a problem that cannot say it."""
    wanted = {
        "--spread": options.spread,
        "--max-share": options.max_share < 1,
        "--max-spot-share": options.max_spot_share < 1,
        "--headroom": options.headroom > 0,
        "--survive": options.survive,
        "--commitments": options.commitments,
    }
    for flag, value in wanted.items():
        if value:
            raise UsageError(f"{flag} is of rolling updates; --to is {target}")
    if options.new_requests and target != "temporal":
        raise UsageError(f"--new-requests is of rolling updates and temporal; --to is {target}")


def _nothing_to_place(objects: ClusterObjects, found: Sequence[Replica]) -> DocumentError:
    """Return the error for pods that are all on nodes that take no part."""
    free = [u for u in found if not u.bound]
    lost = [u for u in free if u.node is not None and u.node not in objects.nodes]
    some = f"{len(lost)} pod{' is' if len(lost) == 1 else 's are'}"
    why = (
        f"{some} on nodes that the files do not have, such as {lost[0].node!r}"
        if lost
        else ("all pods are on nodes that are left out (not ready, or cordoned)")
    )
    return DocumentError(
        f"nothing to place: {why}",
        file=", ".join(objects.files),
        path="line 1",
        remedy=f"give nodes and pods of the same moment, with {DUMP}; see --cordoned",
    )


def report_text(imported: Imported, path: Path) -> str:
    """Return the import report as the name of its file asks: JSON, or markdown for ``.md``."""
    from placeopt.core.files.documents import layout

    if path.suffix.lower() in (".md", ".markdown"):
        return imported.notes.markdown(imported.problem.problem)
    return layout(imported.notes.document(imported.problem.problem))
