"""``placeopt backtest``: what policies would have cost on a trace, and whom they would disturb."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.commands import CLUSTERS, add
from placeopt.cli.screen import AsJson, Quiet, emit_json, emit_table, for_people, say, warn
from placeopt.core.errors import UsageError
from placeopt.core.fronts.words import counted

if TYPE_CHECKING:
    from placeopt.backtest.trace import ClusterTrace


def register(app: typer.Typer, imports: typer.Typer, _exports: typer.Typer) -> None:
    """Add the commands."""
    add(
        app,
        backtest,
        "placeopt backtest trace.json --policy karpenter --policy placeopt:interval=24h -o month",
        "placeopt backtest trace.json --policy placeopt --sweep interval=1h,24h moves=0,1%,all",
        group=CLUSTERS,
    )
    add(imports, trace, "placeopt import trace prometheus/ -o trace.json")


def backtest(
    trace: Annotated[
        Path, Argument(metavar="TRACE", help="ClusterTrace: see `placeopt schema trace`.")
    ],
    policy: Annotated[
        list[str] | None,
        Option(
            "--policy",
            help="Policy with its settings, as placeopt:interval=24h,moves=1%. Repeatable.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        Option("--sweep", help="Values of a setting, as interval=1h,24h. Repeatable."),
    ] = None,
    more: Annotated[list[str] | None, Argument(metavar="[SWEEP]...", help="Further ones.")] = None,
    seeds: Annotated[int, Option(min=1, max=1000, help="Runs of each, with seeds from 1.")] = 1,
    jobs: Annotated[int, Option(min=1, max=256, help="Processes.")] = 1,
    scheduler: Annotated[
        str | None,
        Option(metavar="tcp://HOST:PORT", help="Run on a Dask cluster instead of --jobs."),
    ] = None,
    output: Annotated[
        Path,
        Option("-o", "--output", metavar="DIR", help="Folder. Runs that it has are not run again."),
    ] = Path("backtest"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Play policies on the trace of a cluster.

    DIR gets the table (table.json), the front over policies (front.json) and a page (index.html).

    Ctrl-C or a kill stops it. Run it again to resume.
    """
    from placeopt.backtest.page import baseline, page, rows
    from placeopt.backtest.policies import names
    from placeopt.backtest.study import front_of, settings_of, study
    from placeopt.backtest.trace import read
    from placeopt.core.files.documents import write_json, write_text
    from placeopt.core.runs.workers import Workers

    if more and not sweep:
        raise UsageError(f"unexpected {more[0]!r}; legal behind --sweep: setting=value,value")
    policies = settings_of(
        policy or ["none", "karpenter", "placeopt"], [*(sweep or ()), *(more or ())]
    )
    document = read(trace)
    say(f"{len(policies) * seeds} runs; there are the policies {', '.join(names())}")
    workers = Workers(jobs, scheduler)
    results = study(
        document, policies, range(1, seeds + 1), output / "runs", workers, on_result=_Progress()
    )
    front = front_of(results)
    write_json(output / "table.json", results)
    write_json(output / "front.json", front.to_document())
    write_text(output / "index.html", page(results))
    if for_people(as_json):
        head, cells = rows(results, few=True)
        emit_table(head, cells)
        say(baseline(results))
    else:
        emit_json(_short(results))
    say(f"wrote {output / 'index.html'}; beside it table.json and front.json")


def _short(results: dict[str, Any]) -> dict[str, Any]:
    """Return the table without its series."""
    policies = [
        {key: value for key, value in one.items() if key != "series"} for one in results["policies"]
    ]
    return {**results, "policies": policies}


class _Progress:
    """Says what has ended, and which is the cheapest so far."""

    def __init__(self) -> None:
        self._best: tuple[float, str] | None = None

    def __call__(self, ended: int, of: int, result: dict[str, Any]) -> None:
        usd = float(result["figures"]["usd"])
        self._best = min(self._best or (usd, result["policy"]), (usd, result["policy"]))
        best, name = self._best
        run = f"{result['policy']}, seed {result['seed']}"
        say(f"{ended} of {of}: {run}: {usd:,.2f} USD; best so far {name} {best:,.2f}")


def trace(
    source: Annotated[
        Path,
        Argument(
            metavar="SOURCE",
            help="A folder of Prometheus exports, of dumps, or of CSV files: machines.csv and "
            "pods.csv (name, cpu_millicores, memory_mib, from_s, to_s; 500m, 2Gi and "
            "2026-01-05T10:00:00Z are read too) at least.",
        ),
    ],
    output: Annotated[Path, Option("-o", "--output", help="Trace to write.")] = Path("trace.json"),
    prices: Annotated[
        Path | None,
        Option(help="CSV file of prices: machine (with or without zone), usd_per_hour."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Read the trace of a cluster from what recorded it."""
    from placeopt.backtest.readers import read, unpriced
    from placeopt.core.files.documents import write_json

    result: ClusterTrace = read(source, prices)
    if names := unpriced(result):
        warn([f"machines without a price cost nothing: {', '.join(names[:8])}; see --prices"])
    write_json(output, result.model_dump(mode="json", exclude_defaults=True))
    size = counted(len(result.nodes), "node"), counted(len(result.pods), "pod")
    say(f"{', '.join(size)}, {result.seconds / 86400:.1f} days")
