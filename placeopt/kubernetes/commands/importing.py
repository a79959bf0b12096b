"""``placeopt import kubernetes`` and ``import prices``: a cluster, and prices of its machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.commands import add, epilog
from placeopt.cli.completion import cluster_names, words
from placeopt.cli.screen import Output, Quiet, deliver, say, split_pair
from placeopt.core.errors import UsageError
from placeopt.core.files.paths import require_outputs
from placeopt.core.files.shipped import find_cluster, find_prices
from placeopt.kubernetes.commands.completion import import_targets
from placeopt.kubernetes.kinds import DUMP

if TYPE_CHECKING:
    from placeopt.kubernetes.faults import Faults
    from placeopt.kubernetes.importing import Imported
    from placeopt.kubernetes.options import ImportOptions

_MOVE, _PRICES, _TIME = "What may move", "Prices and latencies", "Options of one problem"
_PINNED = "KIND/NAME such as Deployment/cart or Pod/cart-1"

Files = Annotated[
    list[str],
    Argument(
        metavar="FILE...",
        help="JSON of kubectl get or cluster-info dump, YAML manifests, a folder, - for stdin, or "
        "`shop`, which comes with placeopt.",
        autocompletion=cluster_names,
    ),
]
Missing = Annotated[
    list[str] | None,
    Option(
        metavar="POLICY",
        help="What containers without requests need: error (default), limits (as their limits), or "
        "default=100m,128Mi. Repeatable: the first that says something counts.",
        autocompletion=words("error", "limits", "default="),
    ),
]
Overlays = Annotated[
    list[str] | None,
    Option(
        "--overlay",
        metavar="PATTERN=CHANGE",
        help="Change prices, such as 'm5.*=-20%' or 'us-east-1/*:spot=+0.01'. Percentages come "
        "first, then amounts. Repeatable.",
    ),
]
PriceFiles = Annotated[
    list[Path] | None,
    Option(
        "--prices",
        help="Prices: on-demand table, spot advisor, OpenCost, CSV, or `shop`. Repeatable.",
        autocompletion=cluster_names,
        rich_help_panel=_PRICES,
    ),
]
Report = Annotated[
    Path | None, Option(help="Write what was assumed, pinned and left out: .json or .md.")
]


def register(imports: typer.Typer) -> None:
    """Add the commands to ``placeopt import``."""
    shop = "placeopt import kubernetes shop --prices shop --to rolling-update -o shop.json"
    imports.info.epilog = epilog(shop)
    add(
        imports,
        import_kubernetes,
        shop,
        f"{DUMP} | placeopt import kubernetes - --to rolling-update -o mine.json",
        name="kubernetes",
    )
    add(
        imports,
        import_prices,
        "placeopt import prices on-demand.json advisor.json --overlay '*=-10%' -o prices.json",
        name="prices",
    )


# The options of `import_kubernetes`.
ToOption = Annotated[
    str,
    Option(
        metavar="PROBLEM",
        help="rolling-update, edge-cloud, rescheduling or temporal.",
        autocompletion=import_targets,
    ),
]
NameOption = Annotated[
    str | None, Option(help="Name of the instance (default: that of the output).")
]
NodesOption = Annotated[
    Path | None,
    Option(help="CSV of nodes: name, cpu, memory; optional: zone, region, layer, price, count ..."),
]
CandidatesOption = Annotated[
    Path | None,
    typer.Option(
        help="rolling-update: machines that a plan may buy. CSV (machine_type, cpu, memory, zone, "
        "on_demand_usd_per_hour, spot_usd_per_hour, count ...) or NodePools of Karpenter.",
        rich_help_panel=_PRICES,
    ),
]
NamespaceOption = Annotated[
    list[str] | None,
    Option(help="Namespace to plan (default: all). Repeatable.", rich_help_panel=_MOVE),
]
PinNamespaceOption = Annotated[
    list[str] | None,
    Option(
        help="Namespace whose pods stay (default: kube-system). Repeatable.",
        rich_help_panel=_MOVE,
    ),
]
EmptyDirOption = Annotated[
    str,
    Option(
        help="Pods with an emptyDir on disk: pin or move.",
        autocompletion=words("pin", "move"),
        rich_help_panel=_MOVE,
    ),
]
CordonedOption = Annotated[
    str,
    Option(
        help="Cordoned nodes: leave-out or drain.",
        autocompletion=words("leave-out", "drain"),
        rich_help_panel=_MOVE,
    ),
]
DrainOption = Annotated[
    list[str] | None,
    Option(help="Node that must be empty at the end. Repeatable.", rich_help_panel=_MOVE),
]
PinOption = Annotated[
    list[str] | None,
    Option(
        metavar="KIND/NAME",
        help="Workload or pod that stays. Repeatable.",
        rich_help_panel=_MOVE,
    ),
]
ExpendableOption = Annotated[
    int | None,
    Option(
        metavar="PRIORITY",
        help="Pods of a lower priority take room but keep no node in use, such as those of an "
        "overprovisioner. The cluster-autoscaler uses -10.",
        rich_help_panel=_MOVE,
    ),
]
ArchitecturesOption = Annotated[
    str,
    Option(
        help="rolling-update: known (pods stay on architectures that their images are known to run "
        "on) or any.",
        autocompletion=words("known", "any"),
        rich_help_panel=_MOVE,
    ),
]
UnplaceableOption = Annotated[
    str,
    Option(
        help="Replicas that no node has room for: error or leave-out.",
        autocompletion=words("error", "leave-out"),
    ),
]
HeadroomOption = Annotated[
    float,
    typer.Option(
        min=0,
        max=0.9,
        help="rolling-update: share of every node's cpu and memory to keep free, such as 0.1.",
        rich_help_panel=_MOVE,
    ),
]
SpreadOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="node|zone",
        help="rolling-update: spread the replicas of every workload over nodes or zones. "
        "Repeatable.",
        autocompletion=words("node", "zone"),
        rich_help_panel=_MOVE,
    ),
]
SurviveOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="replicas|room",
        help="rolling-update: survive the loss of any one node. replicas: workloads with several "
        "replicas keep enough of them (one more goal). room: its pods fit on the other nodes in "
        "use. Repeatable.",
        autocompletion=words("replicas", "room"),
        rich_help_panel=_MOVE,
    ),
]
MaxShareOption = Annotated[
    float,
    typer.Option(
        min=0.01,
        max=1,
        help="rolling-update: maximum share of a workload's replicas on one node, such as 0.5.",
        rich_help_panel=_MOVE,
    ),
]
MaxSpotShareOption = Annotated[
    float,
    typer.Option(
        min=0.01,
        max=1,
        help="rolling-update: maximum share of the nodes in use that are spot nodes of one machine "
        "type, such as 0.3, where a plan adds one. One is always legal.",
        rich_help_panel=_MOVE,
    ),
]
NewRequestsOption = Annotated[
    Path | None,
    Option(
        help="New requests of workloads: manifests, VerticalPodAutoscalers or CSV.",
        rich_help_panel=_MOVE,
    ),
]
ReplicasOption = Annotated[
    list[str] | None,
    Option(
        metavar="[NAMESPACE/]NAME=N",
        help="rolling-update: new number of replicas of a running Deployment, such as shop/cart=5. "
        "Repeatable.",
        rich_help_panel=_MOVE,
    ),
]
MissingPricesOption = Annotated[
    str,
    Option(
        help="Nodes without a price: error or default=0.10.",
        autocompletion=words("error", "default="),
        rich_help_panel=_PRICES,
    ),
]
CommitmentsOption = Annotated[
    Path | None,
    Option(
        help="rolling-update: CSV of nodes that are paid for in any case: machine_type, nodes or "
        "share, region.",
        rich_help_panel=_PRICES,
    ),
]
RegionOption = Annotated[
    str | None, Option(help="Region of nodes without a region label.", rich_help_panel=_PRICES)
]
LatencyOption = Annotated[
    Path | None,
    Option(
        help="CSV in ms, by node, zone or region: one row per origin, one column per destination.",
        rich_help_panel=_PRICES,
    ),
]
MaxLatencyMsOption = Annotated[
    float | None,
    Option(
        min=0, help="Latency limit of calls without an AppGroup limit.", rich_help_panel=_PRICES
    ),
]
SourceOption = Annotated[
    str | None,
    Option(help="edge-cloud: node that the data come from.", rich_help_panel=_TIME),
]
NetworkCostOption = Annotated[
    float, Option(min=0, help="edge-cloud: cost per unit of data.", rich_help_panel=_TIME)
]
GatewayOption = Annotated[
    str | None,
    Option(help="rescheduling: service that users call.", rich_help_panel=_TIME),
]
ExecutionOption = Annotated[
    str,
    Option(
        metavar="MS|CSV",
        help="rescheduling: execution time of a service in ms, or CSV: service, kind, ms.",
        rich_help_panel=_TIME,
    ),
]
UserLatencyMsOption = Annotated[
    float | None,
    Option(min=0, help="rescheduling: latency from users to a node, in ms.", rich_help_panel=_TIME),
]
ParallelCallsOption = Annotated[
    bool,
    Option(help="rescheduling: a service makes its calls in parallel.", rich_help_panel=_TIME),
]
HorizonOption = Annotated[
    int, Option(min=1, help="temporal: number of slots.", rich_help_panel=_TIME)
]
SlotHoursOption = Annotated[
    float, Option(min=0, help="temporal: hours per slot.", rich_help_panel=_TIME)
]
DurationOption = Annotated[
    int | None,
    Option(
        min=1,
        help="temporal: slots that a workload runs (default: all).",
        rich_help_panel=_TIME,
    ),
]
OriginOption = Annotated[
    str | None,
    Option(help="temporal: place that requests come from.", rich_help_panel=_TIME),
]
OutputOption = Annotated[
    Path | None,
    Option("-o", "--output", help="Instance to write; its .origin.json is written beside it."),
]


def import_kubernetes(
    files: Files,
    to: ToOption,
    name: NameOption = None,
    missing_requests: Missing = None,
    nodes: NodesOption = None,
    candidates: CandidatesOption = None,
    namespace: NamespaceOption = None,
    pin_namespace: PinNamespaceOption = None,
    empty_dir: EmptyDirOption = "pin",
    cordoned: CordonedOption = "leave-out",
    drain: DrainOption = None,
    pin: PinOption = None,
    expendable: ExpendableOption = None,
    architectures: ArchitecturesOption = "known",
    unplaceable: UnplaceableOption = "error",
    headroom: HeadroomOption = 0.0,
    spread: SpreadOption = None,
    max_share: MaxShareOption = 1.0,
    max_spot_share: MaxSpotShareOption = 1.0,
    survive: SurviveOption = None,
    new_requests: NewRequestsOption = None,
    replicas: ReplicasOption = None,
    prices: PriceFiles = None,
    overlay: Overlays = None,
    missing_prices: MissingPricesOption = "error",
    commitments: CommitmentsOption = None,
    region: RegionOption = None,
    latency: LatencyOption = None,
    max_latency_ms: MaxLatencyMsOption = None,
    source: SourceOption = None,
    network_cost: NetworkCostOption = 0.0,
    gateway: GatewayOption = None,
    execution: ExecutionOption = "10",
    user_latency_ms: UserLatencyMsOption = None,
    parallel_calls: ParallelCallsOption = False,
    horizon: HorizonOption = 24,
    slot_hours: SlotHoursOption = 1.0,
    duration: DurationOption = None,
    origin: OriginOption = None,
    output: OutputOption = None,
    report: Report = None,
    quiet: Quiet = False,
) -> None:
    """Import what kubectl or helm template prints.

    It contacts neither your cluster nor the network. Options decide what the files leave open.

    --report lists everything that was assumed, pinned or left out.
    """
    from placeopt.kubernetes import origin as origins
    from placeopt.kubernetes import replica_counts
    from placeopt.kubernetes.faults import Faults
    from placeopt.kubernetes.importing import import_files
    from placeopt.kubernetes.prices import overlay as read_overlay

    tables = (nodes, candidates, commitments, latency, new_requests, execution)
    beside = None if output is None else origins.beside(output)
    require_outputs(output, beside, report, inputs=(*files, *(prices or ()), *tables))
    if not 0 < slot_hours <= 1e6:
        raise UsageError(f"--slot-hours {slot_hours}; legal: above 0, up to 1,000,000")
    _require_words("--spread", spread, "node", "zone")
    _require_words("--survive", survive, "replicas", "room")
    faults = Faults()  # told with what the import finds
    options = import_options(
        policies=missing_requests or ["error"],
        namespace=namespace,
        pin_namespace=pin_namespace,
        empty_dir=empty_dir,
        pin=pin,
        expendable=expendable,
        name=name or (output.stem if output else "cluster"),
        missing_prices=missing_prices,
        region=region,
        drain=tuple(drain or ()),
        headroom=headroom,
        spread=tuple(spread or ()),
        max_share=max_share,
        max_spot_share=max_spot_share,
        survive=tuple(survive or ()),
        leave_out=choice("--unplaceable", unplaceable, "error", "leave-out"),
        any_architecture=choice("--architectures", architectures, "known", "any"),
        drain_cordoned=choice("--cordoned", cordoned, "leave-out", "drain"),
        max_latency_ms=max_latency_ms,
        replicas=replica_counts.parse(replicas or ()),
        source=source,
        gateway=gateway,
        origin=origin,
        network_cost=network_cost,
        user_latency_ms=user_latency_ms,
        parallel_calls=parallel_calls,
        horizon=horizon,
        slot_hours=slot_hours,
        duration=duration,
        **options_in_files(execution, new_requests, commitments, faults),
    )
    done = import_files(
        [find_cluster(file) for file in files],
        to,
        options,
        nodes=nodes,
        candidates=candidates,
        prices=[find_prices(file) for file in prices or ()],
        latency=latency,
        overlays=[read_overlay(text) for text in overlay or []],
        faults=faults,
    )
    _write(done, output, report)


def import_options(
    *,
    policies: list[str],
    namespace: list[str] | None,
    pin_namespace: list[str] | None,
    empty_dir: str,
    pin: list[str] | None,
    expendable: int | None,
    **more: Any,
) -> ImportOptions:
    """Return the options of an import; `more` are those that need no reading.

    Raises
    ------
    UsageError
        One is not legal.
    """
    from placeopt.kubernetes.options import ImportOptions
    from placeopt.kubernetes.replicas import MovingRules
    from placeopt.kubernetes.sizes import MissingRequests

    rules = MovingRules(
        MissingRequests.parse(policies),
        namespace or (),
        ("kube-system",) if pin_namespace is None else pin_namespace,
        choice("--empty-dir", empty_dir, "pin", "move"),
        [split_pair(text, "/", "--pin", _PINNED) for text in pin or ()],
        expendable,
    )
    return ImportOptions(rules=rules, **more)


def options_in_files(
    execution: str | None,
    new_requests: Path | None,
    commitments: Path | None,
    faults: Faults,
) -> dict[str, Any]:
    """Return the options of an import that stand in files; what is wrong in them is gathered."""
    from placeopt.kubernetes.commitments import read_commitments
    from placeopt.kubernetes.new_requests import execution_times, read_new_requests

    results: dict[str, Any] = {}
    if execution is not None:
        with faults.gather():
            results["execution_ms"], results["execution"] = execution_times(execution)
    if new_requests is not None:
        with faults.gather():
            results["new_requests"] = read_new_requests(new_requests)
    if commitments is not None:
        with faults.gather():
            results["commitments"] = tuple(read_commitments(commitments))
    return results


def _write(done: Imported, output: Path | None, report: Path | None) -> None:
    """Write an imported instance, its origin and the report."""
    from placeopt.core.files.documents import layout, write_text
    from placeopt.kubernetes import origin
    from placeopt.kubernetes.importing import report_text

    deliver(layout(done.document), output)
    if output is not None:
        origin.write(origin.beside(output), done.origin)
        say(f"wrote {origin.beside(output)}")
    if report is not None:
        write_text(report, report_text(done, report) + "\n")
        say(f"wrote {report}")
    for line in done.notes.summary():
        say(line)


def _require_words(option: str, given: list[str] | None, *legal: str) -> None:
    for word in given or ():
        if word not in legal:
            raise UsageError(f"{option} {word!r}; legal: {', '.join(legal)}")


def choice(option: str, given: str, no: str, yes: str) -> bool:
    """Return whether an option says `yes`; raise where it says neither."""
    if given not in (no, yes):
        raise UsageError(f"{option} {given!r}; legal: {no}, {yes}")
    return given == yes


def import_prices(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE...",
            help="Prices: on-demand table, spot advisor, OpenCost CSV, plain CSV, NodeOverlays.",
        ),
    ],
    overlay: Overlays = None,
    location: Annotated[
        list[str] | None,
        Option(help="Location to keep; * matches any characters. Repeatable."),
    ] = None,
    size: Annotated[
        list[str] | None,
        Option(help="Machine type to keep; * matches any characters. Repeatable."),
    ] = None,
    system: Annotated[str, Option(help="Operating system, for the spot advisor.")] = "Linux",
    output: Output = None,
    report: Report = None,
    quiet: Quiet = False,
) -> None:
    """Join price tables into one file that import kubernetes reads."""
    from fnmatch import fnmatchcase

    from placeopt.core.files.documents import layout, write_text
    from placeopt.kubernetes.notes import Notes
    from placeopt.kubernetes.price_files import read_prices
    from placeopt.kubernetes.prices import overlay as read_overlay

    require_outputs(output, report, inputs=files)
    notes = Notes()
    book = read_prices(files, notes, [read_overlay(text) for text in overlay or []], system=system)
    wanted = (location or ["*"], size or ["*"])
    book.offers = {
        place: offer
        for place, offer in book.offers.items()
        if all(
            any(fnmatchcase(part, pattern) for pattern in patterns)
            for part, patterns in zip(place, wanted, strict=True)
        )
    }
    if not book.offers and not book.nodes:
        raise UsageError("no offer is left; see --location and --size")
    notes.counts = {"offers": len(book.offers), "single nodes": len(book.nodes)}
    deliver(layout(book.document()), output)
    if report is not None:
        write_text(
            report,
            (
                notes.markdown("prices")
                if report.suffix == ".md"
                else layout(notes.document("prices"))
            )
            + "\n",
        )
    for line in notes.summary():
        say(line)
