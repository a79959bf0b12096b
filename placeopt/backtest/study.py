"""Several policies and seeds on one trace: runs in parallel, kept on disk, taken up again."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, get_args

from pydantic import Field, model_validator

from placeopt.backtest.arrays import TraceArrays, arrays_of
from placeopt.backtest.bound import bound_usd
from placeopt.backtest.engine import run
from placeopt.backtest.ledger import FigureName, SeriesName
from placeopt.backtest.policies import depends_on, policy_of
from placeopt.backtest.trace import ClusterTrace
from placeopt.core.budget import Budget
from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.documents import read_json, sha256, validate, write_json
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.core.problem import Record
from placeopt.core.runs.workers import Call, Workers

#: The policy that leaves the cluster as it was recorded: what others save is against it.
NONE = "none"
#: Share of the CPU of the busiest hour from which on a cluster counts as running.
_RUNS = 0.1
GOALS = (
    Objective("cost_usd", "USD"),
    Objective("moved_pods", "pods"),
    Objective("wait_99_s", "s"),
)
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PlayedRun(Record):
    """The file of a run: a policy with a seed."""

    policy: str
    seed: int
    figures: dict[FigureName, _Amount]
    series: dict[SeriesName, list[_Amount]]
    disturbed: dict[str, int]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for part, names in (("figures", FigureName), ("series", SeriesName)):
            for name in get_args(names):
                if name not in getattr(self, part):
                    raise DocumentError("this field is missing", path=f"{part}.{name}")
        return self


def settings_of(texts: Sequence[str], sweep: Iterable[str]) -> list[str]:
    """Return policies as texts; a sweep gives each policy every combination of its values.

    Examples
    --------
    >>> settings_of(["placeopt:keep=1"], ["interval=1h,24h", "moves=0,all"])[1]
    'placeopt:keep=1,interval=1h,moves=all'

    Raises
    ------
    UsageError
        A part of the sweep is not ``setting=value,value``.
    """
    axes = []
    for part in sweep:
        key, equals, values = part.partition("=")
        if not (key and equals and values):
            raise UsageError(f"--sweep {part!r}; legal: setting=value,value, as interval=1h,24h")
        axes.append([f"{key}={value}" for value in values.split(",")])
    results = []
    for text in texts:
        for combination in itertools.product(*axes):
            joint = "," if ":" in text else ":"
            results.append(text + (joint + ",".join(combination) if combination else ""))
    for text in results:
        policy_of(text)
    return results


def study(
    trace: ClusterTrace,
    policies: Sequence[str],
    seeds: Sequence[int],
    folder: Path,
    workers: Workers,
    on_result: Callable[[int, int, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Run every policy with every seed, and return the table.

    Each run is a file in `folder`; those that are there are not run again. Its name says what the
    run depends on: the trace, the policy with its code and the files it names, the seed.

    Parameters
    ----------
    trace : ClusterTrace
    policies : sequence of str
        As `policy_of` reads them.
    seeds : sequence of int
    folder : Path
        Is made.
    workers : Workers
        Where the runs are made. The files are written here.
    on_result : callable, optional
        ``(ended, of, result)``, for each run as it ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays, key = arrays_of(trace), trace.sha256
    tasks = [(text, seed) for text in policies for seed in seeds]
    codes = {text: depends_on(text) for text in policies}
    files = [_file(folder, key, text, seed, codes[text]) for text, seed in tasks]
    done = {k: _read(file, *tasks[k]) for k, file in enumerate(files) if file.exists()}
    ahead = [k for k in range(len(tasks)) if k not in done]
    ended = len(tasks) - len(ahead)

    def keep(position: int, result: dict[str, Any]) -> None:
        nonlocal ended
        ended += 1
        done[ahead[position]] = result
        write_json(files[ahead[position]], result)
        if on_result is not None:
            on_result(ended, len(tasks), result)

    calls = [Call(_one, (arrays, *tasks[k])) for k in ahead]
    workers.run(calls, Budget(), keep)
    bound = bound_usd(arrays)
    of_policy = {
        text: [done[k] for k, task in enumerate(tasks) if task[0] == text] for text in policies
    }
    begins = _begins(of_policy[NONE]) if NONE in of_policy else 0
    none = _usd_from(of_policy[NONE], begins) if NONE in of_policy else None
    return {
        "backtest": trace.name,
        "trace_sha256": key,
        "seconds": trace.seconds,
        "pods": len(trace.pods),
        "bound_usd": bound,
        "seeds": list(seeds),
        "saved_from_hour": begins,
        "policies": [_summary(text, own, bound, none, begins) for text, own in of_policy.items()],
    }


def _file(folder: Path, key: str, text: str, seed: int, code: dict[str, str]) -> Path:
    name = sha256({"trace": key, "policy": text, "seed": seed, "code": code})
    return folder / f"run-{name[:16]}.json"


def _one(budget: Budget, arrays: TraceArrays, text: str, seed: int) -> dict[str, Any]:
    ledger, figures = run(arrays, policy_of(text), seed)
    most = ledger.of_workload.most_common(50)
    return {
        "policy": text,
        "seed": seed,
        "figures": figures,
        "series": {name: [round(v, 6) for v in values] for name, values in ledger.series.items()},
        "disturbed": {arrays.workloads[w]: count for w, count in most},
    }


def _read(file: Path, text: str, seed: int) -> dict[str, Any]:
    """Return what the file of a run says.

    Raises
    ------
    DocumentError
        It is damaged, or of another run.
    """
    try:
        run: PlayedRun = validate(PlayedRun, read_json(file), file=os.fspath(file))
        if (run.policy, run.seed) != (text, seed):
            raise DocumentError(f"it is of {run.policy} with seed {run.seed}")
    except DocumentError as error:
        remedy = "delete the file: its run is made again"
        raise DocumentError(
            f"is no run: {error.problem}", file=os.fspath(file), path=error.path, remedy=remedy
        ) from None
    return run.model_dump()


def _means(results: list[dict[str, Any]]) -> dict[str, float]:
    """Return the means of figures over seeds."""
    return {
        name: sum(one["figures"][name] for one in results) / len(results)
        for name in results[0]["figures"]
    }


def _begins(results: list[dict[str, Any]]) -> int:
    """Return the hour in which the cluster begins to run; what it cost before says nothing.

    It is the first in which pods use a share of the CPU that they use in the busiest.
    """
    cores = results[0]["series"]["cores"]
    busy = _RUNS * max(cores, default=0.0)
    return next((hour for hour, used in enumerate(cores) if used >= busy), 0)


def _usd_from(results: list[dict[str, Any]], hour: int) -> float:
    """Return the mean over seeds of what is paid from an hour on."""
    if hour == 0:
        return _means(results)["usd"]
    return sum(sum(one["series"]["usd"][hour:]) for one in results) / len(results)


def _summary(
    text: str, results: list[dict[str, Any]], bound: float, none: float | None, begins: int
) -> dict[str, Any]:
    """Return means over seeds, and what is saved against the cluster as it was recorded.

    Series and disturbed workloads are those of the first seed.
    """
    figures = _means(results)
    paid = _usd_from(results, begins)
    saved = None if none is None else none - paid
    return {
        "policy": text,
        "figures": figures,
        "usd_from": paid,
        "saved_usd": saved,
        "saved_share": saved / none if saved is not None and none else None,
        "over_bound": figures["usd"] / bound - 1 if bound > 0 else None,
        "usd_of_seeds": [one["figures"]["usd"] for one in results],
        "series": results[0]["series"],
        "disturbed": results[0]["disturbed"],
    }


def front_of(table: dict[str, Any]) -> Front:
    """Return the front over policies: dollars, pods disturbed, the 99th of waits."""
    points = tuple(
        Point(
            tuple(float(one["figures"][name]) for name in ("usd", "moved", "wait_99_s")),
            {"policy": one["policy"]},
        )
        for one in table["policies"]
    )
    name = InstanceName("backtest", table["backtest"], table["trace_sha256"])
    return Front(name, GOALS, points)
