"""``placeopt import kubernetes``: a cluster as an instance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.commands import add, epilog
from placeopt.cli.completion import cluster_names
from placeopt.cli.screen import Quiet, deliver, say
from placeopt.core.files.paths import require_outputs
from placeopt.core.files.shipped import find_cluster, find_prices
from placeopt.kubernetes.commands.asking import asks, import_targets, options_of
from placeopt.kubernetes.moving import PRICES
from placeopt.kubernetes.names import DUMP

if TYPE_CHECKING:
    from placeopt.kubernetes.importing import Imported

#: Options that are paths of files.
_FILES = ("commitments", "new_requests", "execution")

Files = Annotated[
    list[str],
    Argument(
        metavar="FILE...",
        help="JSON of kubectl get or cluster-info dump, YAML manifests, a folder, - for stdin, or "
        "`shop`, which comes with placeopt.",
        autocompletion=cluster_names,
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
        rich_help_panel=PRICES,
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


ToOption = Annotated[
    str,
    Option(
        metavar="PROBLEM",
        help="rolling-update, edge-cloud, rescheduling or temporal.",
        autocompletion=import_targets,
    ),
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
        rich_help_panel=PRICES,
    ),
]
LatencyOption = Annotated[
    Path | None,
    Option(
        help="CSV in ms, by node, zone or region: one row per origin, one column per destination.",
        rich_help_panel=PRICES,
    ),
]
OutputOption = Annotated[
    Path | None,
    Option("-o", "--output", help="Instance to write; its .origin.json is written beside it."),
]


@asks()
def import_kubernetes(
    files: Files,
    to: ToOption,
    nodes: NodesOption = None,
    candidates: CandidatesOption = None,
    prices: PriceFiles = None,
    overlay: Overlays = None,
    latency: LatencyOption = None,
    output: OutputOption = None,
    report: Report = None,
    quiet: Quiet = False,
    **given: Any,
) -> None:
    """Import what kubectl or helm template prints.

    It contacts neither your cluster nor the network. Options decide what the files leave open.

    --report lists everything that was assumed, pinned or left out.
    """
    from placeopt.core.errors import Faults
    from placeopt.kubernetes import origin as origins
    from placeopt.kubernetes.importing import import_files
    from placeopt.kubernetes.prices import overlay as read_overlay

    tables = (nodes, candidates, latency, *(given[name] for name in _FILES))
    beside = None if output is None else origins.beside(output)
    require_outputs(output, beside, report, inputs=(*files, *(prices or ()), *tables))
    faults = Faults()  # told with what the import finds
    name = given["name"] or (output.stem if output else "cluster")
    done = import_files(
        [find_cluster(file) for file in files],
        to,
        options_of(given, faults, name=name),
        nodes=nodes,
        candidates=candidates,
        prices=[find_prices(file) for file in prices or ()],
        latency=latency,
        overlays=[read_overlay(text) for text in overlay or []],
        faults=faults,
    )
    _write(done, output, report)


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
