"""Files in, an instance out: what ``placeopt import kubernetes`` does."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from placeopt.core.errors import DocumentError, PlaceoptError, UsageError, did_you_mean
from placeopt.core.files import AnyPath
from placeopt.core.problem import Problem
from placeopt.kubernetes import edges, manifests
from placeopt.kubernetes.budgets import origin_budgets
from placeopt.kubernetes.candidates import read_candidates
from placeopt.kubernetes.dumps import with_folders
from placeopt.kubernetes.faults import Faults
from placeopt.kubernetes.gathered import Gathered, ImportedInstance, ImportOptions, require_nodes
from placeopt.kubernetes.latency import Latencies, latencies
from placeopt.kubernetes.notes import TOPICS, Notes
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.origin import InstanceRef, Origin, OriginNote
from placeopt.kubernetes.price_files import read_prices
from placeopt.kubernetes.prices import PriceBook, PriceOverlay
from placeopt.kubernetes.reading import STDIN
from placeopt.kubernetes.replica_counts import scale
from placeopt.kubernetes.sites import Site, read_nodes, site
from placeopt.kubernetes.staying import hold, require_pins
from placeopt.kubernetes.units import Unit, units
from placeopt.kubernetes.unsaid import name_dropped_rules
from placeopt.registry import from_document

#: Problem -> module that makes its instances.
TARGETS = {
    "rolling-update": "to_rolling_update",
    "edge-cloud": "to_edge_cloud",
    "rescheduling": "to_rescheduling",
    "temporal": "to_temporal",
}
_NEEDS_NODES = {"rolling-update", "edge-cloud", "rescheduling"}
#: Problems that place every workload anew: only pods that run and must not move stay, and only
#: where there are nodes.
_ANEW = {"edge-cloud", "temporal"}
#: Subjects of a note that stand in the origin.
_SUBJECTS_KEPT = 20

T = TypeVar("T")


@dataclass
class Imported:
    """The instance, what its names are in the cluster, and the notes of the import."""

    document: dict[str, Any]
    problem: Problem
    origin: Origin
    notes: Notes


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
    gathered, files = faults or Faults(), with_folders(files)
    tables = _Tables(nodes, candidates, prices, overlays, latency)
    # Millions of values are made and none is garbage: looking for garbage doubles the time.
    with _no_collection():
        try:
            return _imported(_gather(files, target, options, tables, gathered), files, target)
        except PlaceoptError as error:
            if isinstance(error, DocumentError):
                with gathered.gather():
                    raise
            gathered.check()  # what is missing may be what could not be read
            raise
        except RecursionError:
            raise DocumentError(
                "nested too deeply",
                file=", ".join(map(str, files)),
                path="line 1",
                remedy="mend the file",
            ) from None


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active:
            gc.enable()


def _imported(gathered: Gathered, files: Sequence[AnyPath], target: str) -> Imported:
    notes = gathered.notes
    if target in _NEEDS_NODES:
        if not gathered.site.nodes:
            gathered.faults.check()
        require_nodes(gathered, files)
    instance: ImportedInstance = importlib.import_module(
        f"placeopt.kubernetes.{TARGETS[target]}"
    ).build(gathered)
    gathered.faults.check()
    try:
        problem = from_document(instance.document)
    except DocumentError as error:
        raise error.in_file(", ".join(map(str, files))) from None
    for warning in problem.warnings():
        notes.add("assumption", f"warning of the instance: {warning}")
    reference = InstanceRef(**asdict(problem.instance_name))
    read = [os.path.abspath(file) for file in files if str(file) != STDIN]
    origin = Origin(
        instance=reference,
        items=instance.items,
        nodes=instance.nodes,
        budgets=origin_budgets(gathered.cluster, gathered.units, instance.items),
        files=tuple(read) if len(read) == len(files) and _can_replay(gathered, target) else (),
        cluster=gathered.cluster.uid,
        price_unit=instance.document.get("price_unit"),
        notes=_kept(notes),
    )
    workloads = {u.owner for u in gathered.units}
    notes.counts = {
        "nodes": len(gathered.site.nodes),
        "workloads": len(workloads),
        "replicas": len(gathered.units),
        "calls": len(gathered.graph.edges),
    }
    return Imported(instance.document, problem, origin, notes)


def _can_replay(gathered: Gathered, target: str) -> bool:
    """Return whether steps and files have all nodes: those to be bought stand in the steps."""
    listed = len(gathered.cluster.candidates)
    return not listed or (target == "rolling-update" and listed < len(gathered.cluster.nodes))


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


def _gather(
    files: Sequence[AnyPath],
    target: str,
    options: ImportOptions,
    tables: _Tables,
    faults: Faults,
) -> Gathered:
    """Read all that is given; what is wrong is left out, and gathered in `faults`."""
    notes = Notes()
    if target != "rolling-update":
        _refuse_wishes(options, target)
    options = replace(options, rules=replace(options.rules, adopts=target == "rolling-update"))
    cluster = manifests.load(files, notes, options.rules.namespaces, faults)
    book = _tried(faults, None, lambda: _priced(tables, notes))
    _tried(faults, None, lambda: _add_tables(cluster, tables, target, book, options, notes))
    if not cluster.pods and not cluster.workloads:
        faults.check()
        raise manifests.nothing(
            cluster, files, "workloads or pods", "give manifests, or kubectl get pods -A -o json"
        )
    pin = target not in _ANEW or (target == "edge-cloud" and bool(cluster.pods))
    found = units(cluster, options.rules, notes, faults)
    if not faults.found:
        require_pins(found, options.rules)
    if pin:
        hold(cluster, found, options.rules, notes, faults)
    elif options.rules.namespaces:
        found = [u for u in found if u.namespace in options.rules.namespaces]
    found = _tried(faults, found, lambda: scale(found, options.replicas, notes))
    if all(u.bound for u in found):
        faults.check()
        raise manifests.nothing(
            cluster,
            files,
            "replicas that run or shall run",
            "see the namespaces and the state of the pods",
        )
    if target != "rolling-update":
        _tried(faults, None, lambda: name_dropped_rules(found, notes, target))
    workloads = {u.key: (u.labels, u.spec) for u in found if not u.bound}
    none = edges.WorkloadGraph()
    graph = _tried(faults, none, lambda: edges.graph(cluster, workloads, notes))
    unknown = Latencies()
    delays = _tried(faults, unknown, lambda: latencies(tables.latency, cluster.topologies, notes))
    for view in cluster.policies:
        notes.add(
            "ignored",
            "PropagationPolicy: placements are what the plan decides",
            view["metadata"]["name"].name("?"),
        )
    here = Site({}, {})
    if target in _NEEDS_NODES:
        drain, cordoned = options.drain, options.drain_cordoned
        here = _tried(
            faults,
            here,
            lambda: site(cluster, found, notes, drain=drain, drain_cordoned=cordoned),
        )
        if not here.units:
            faults.check()
        if here.nodes and not here.units:
            raise _nothing_to_place(cluster, found, files)
    return Gathered(cluster, found, graph, here, book, delays, options, notes, faults)


def _tried(faults: Faults, default: T, read: Callable[[], T]) -> T:
    """Return what `read` returns, the default where a fault is gathered."""
    with faults.gather():
        return read()
    return default


def _priced(tables: _Tables, notes: Notes) -> PriceBook | None:
    return read_prices(tables.prices, notes, tables.overlays) if tables.prices else None


def _add_tables(
    cluster: manifests.ClusterObjects,
    tables: _Tables,
    target: str,
    book: PriceBook | None,
    options: ImportOptions,
    notes: Notes,
) -> None:
    """Add the nodes of tables to those of the cluster."""
    faults = Faults()
    if (nodes := tables.nodes) is not None:
        with faults.gather():
            _add_nodes(cluster, nodes, read_nodes(nodes))
    if (candidates := tables.candidates) is not None:
        if target != "rolling-update":
            raise UsageError(f"--candidates is of rolling updates; --to is {target}")
        with faults.gather():
            bought = read_candidates(candidates, book, options.region, notes)
            _add_nodes(cluster, candidates, bought)
    faults.check()


def _refuse_wishes(options: ImportOptions, target: str) -> None:
    """Raise where availability is asked of a problem that cannot say it."""
    asked = {
        "--spread": options.spread,
        "--max-share": options.max_share < 1,
        "--headroom": options.headroom > 0,
        "--survive": options.survive,
        "--replicas": options.replicas,
        "--commitments": options.commitments,
    }
    for flag, given in asked.items():
        if given:
            raise UsageError(f"{flag} is of rolling updates; --to is {target}")
    if options.new_requests and target != "temporal":
        raise UsageError(f"--new-requests is of rolling updates and temporal; --to is {target}")


def _nothing_to_place(
    cluster: manifests.ClusterObjects, found: Sequence[Unit], files: Sequence[AnyPath]
) -> DocumentError:
    """Return the error for pods that are all on nodes that take no part."""
    free = [u for u in found if not u.bound]
    lost = [u for u in free if u.node is not None and u.node not in cluster.nodes]
    some = f"{len(lost)} pod{' is' if len(lost) == 1 else 's are'}"
    why = (
        f"{some} on nodes that the files do not have, such as {lost[0].node!r}"
        if lost
        else ("all pods are on nodes that are left out (not ready, or cordoned)")
    )
    return DocumentError(
        f"nothing to place: {why}",
        file=", ".join(map(str, files)),
        path="line 1",
        remedy="give kubectl get nodes of the same moment; see --cordoned",
    )


def _add_nodes(
    cluster: manifests.ClusterObjects, path: AnyPath, nodes: Sequence[KubernetesNode]
) -> None:
    for node in nodes:
        if node.name in cluster.nodes:
            raise DocumentError(
                f"node {node.name!r} stands twice",
                file=str(path),
                path="name",
                remedy="give every node once",
            )
        cluster.nodes[node.name] = node
        cluster.candidates.add(node.name)


def report_text(imported: Imported, path: Path) -> str:
    """Return the import report as the name of its file asks: JSON, or markdown for ``.md``."""
    from placeopt.core.documents import layout

    if path.suffix.lower() in (".md", ".markdown"):
        return imported.notes.markdown(imported.problem.problem)
    return layout(imported.notes.document(imported.problem.problem))
