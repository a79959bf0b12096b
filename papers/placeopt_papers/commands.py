"""Commands that the papers' distribution adds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from placeopt.cli.commands import add
from placeopt.cli.screen import Output, deliver, warn
from placeopt.core.files.paths import require_outputs


def register(app: typer.Typer, imports: typer.Typer, exports: typer.Typer) -> None:
    """Add the commands to those of placeopt."""
    paper = (
        "placeopt import cnsm-csv --requests Services.csv --prices AWS_EC2_Pricing.csv "
        "--latency AWS_EC2_Latency.csv -o paper.json"
    )
    add(imports, import_cnsm_csv, paper, name="cnsm-csv")


def import_cnsm_csv(
    requests: Annotated[Path, Option(help="CSV: cpu, ram, duration, location, replicas.")],
    prices: Annotated[
        Path,
        Option(
            help="CSV: DataCenter, Instance, On-Demand, Reserved, Spot, vCPU, RAM, "
            "InterruptFrequency (per cent)."
        ),
    ],
    latency: Annotated[
        Path, Option(help="CSV in ms: one row per origin, one column per destination.")
    ],
    name: Annotated[str, Option(help="Name of the instance.")] = "cnsm",
    horizon: Annotated[int, Option(help="Number of slots in the scheduling period.")] = 100,
    slot_hours: Annotated[float, Option(help="Hours per slot.")] = 1.0,
    output: Output = None,
) -> None:
    """Import the CSV files of the CNSM 2024 paper as a temporal instance."""
    from placeopt_papers.cnsm_csv import read

    from placeopt.core.files.documents import layout
    from placeopt.registry import from_document

    require_outputs(output, inputs=(requests, prices, latency))
    document = read(
        requests, prices, latency, name=name, horizon_slots=horizon, slot_hours=slot_hours
    )
    problem = from_document(document)
    deliver(layout(document), output)
    warn(problem.warnings())
