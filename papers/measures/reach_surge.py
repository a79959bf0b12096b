"""REACH: settings that fit the surge as well as the failure, with replicas after the surge open.

An autoscaler adds replicas of busy services, not of all: how many each of the four services has
after the surge, 3 to 5, is part of the fit, beside the eight open numbers of reach_fit.py. Settings
are drawn at random; those whose three schedulers are within 10 % of the paper in the failure and in
the surge are played with all five. REACH and RSDQL are the policies of reach_fit.py, trained on
other times; block search shows what could be reached from where the default scheduler leaves the
pods.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from machine import table
from papers.measures import reach_fit
from papers.measures.reach_fit import FAILURE, LOST, SCHEDULERS, SERVICES, SURGE, error, ordered

from placeopt.rescheduling import generator
from placeopt.rescheduling.generator import fail, surge
from placeopt.rescheduling.problem import Rescheduling
from placeopt.rl import policy_file

FULL = {"draws": 40_000, "kept": 60}
QUICK = {"draws": 1_500, "kept": 3}
BEFORE, MOST = 3, 5


def after_surge(
    name: str, times: np.ndarray, cores: np.ndarray, replicas: tuple[int, ...]
) -> float:
    """Return the latency of a scheduler after the surge; infinity where there is no room."""
    counts = np.zeros((4, 6))
    first = [s for s in range(4) for _ in range(BEFORE)]
    more = [s for s in range(4) for _ in range(replicas[s] - BEFORE)]
    if not all(reach_fit.scheduled(name, cores, counts, pods) for pods in (first, more)):
        return np.inf
    return reach_fit.chain_latency(counts, times)


def farthest(
    latency: Callable[..., float], paper: dict[str, float], stop: float, *setting: Any
) -> float:
    """Return the greatest deviation of the three schedulers, or one above `stop`."""
    worst = 0.0
    for name in SCHEDULERS:
        worst = max(worst, abs(latency(name, *setting) / paper[name] - 1))
        if worst > stop:
            break
    return worst


def search(draws: int, kept: int) -> dict[str, Any]:
    """Return settings with replicas that fit failure and surge best, and how many fit."""
    rng, found, failures = np.random.default_rng(1), [], 0
    choices = list(itertools.product(range(BEFORE, MOST + 1), repeat=4))
    for _ in range(draws):
        times, cores = reach_fit.drawn(rng)
        worst = farthest(reach_fit.after_failure, FAILURE, 0.1, times, cores)
        if worst > 0.1:
            continue
        failures += 1
        for replicas in choices:
            also = farthest(after_surge, SURGE, 0.1, times, cores, replicas)
            if also <= 0.1:
                setting = {"times": times.tolist(), "cores": cores.tolist()}
                found.append(setting | {"replicas": replicas, "error": max(worst, also)})
    found.sort(key=lambda one: one["error"])
    return {"failure": failures, "both": len(found), "best": found[:kept]}


def case(name: str, replicas: list[int], start: str) -> Rescheduling:
    """Return the chain of profile `tried` after a failure or the surge, a scheduler at work."""
    problem = Rescheduling.generate(0, profile="tried", replicas=BEFORE, start=start)
    if name == "failure":
        return fail(problem, LOST, start)
    for service, count in zip(SERVICES, replicas, strict=True):
        if count > BEFORE:
            problem = surge(problem, count, [service], start)
    return problem


def tried(setting: dict[str, Any]) -> dict[str, Any] | None:
    """Return a setting with the five in failure and surge; None where pods find no room."""
    generator.PROFILES["tried"] = {
        name: (cores, 2 * cores, ms)
        for name, cores, ms in zip(SERVICES, setting["cores"], setting["times"], strict=True)
    }
    try:
        return setting | {name: five(name, setting["replicas"]) for name in ("failure", "surge")}
    except (generator.InfeasibleInstanceError, generator.UsageError):
        return None
    finally:
        del generator.PROFILES["tried"]


def five(name: str, replicas: list[int]) -> dict[str, Any]:
    """Return the latency of the five and of block search, and moves, by name."""
    found: dict[str, Any] = {
        scheduler: case(name, replicas, start).initial_latency
        for scheduler, start in SCHEDULERS.items()
    }
    problem = case(name, replicas, "kubernetes")
    for agent, policy in (
        ("REACH", policy_file.read("rescheduling-testbed")),
        ("RSDQL", policy_file.read(str(reach_fit.DQN))),
    ):
        found[agent], found[f"{agent}, moves"] = reach_fit._played(problem, policy)
    found["block search"], found["block search, moves"] = reach_fit._searched(problem)
    return found


def measure(cells: Callable[..., Any], draws: int, kept: int) -> dict[str, Any]:
    """Search settings, and play all five in the best."""
    found = cells(f"search {draws} {kept}", lambda: search(draws, kept))
    judged = [
        cells(f"judged {draws} {k}", lambda o=one: tried(o)) for k, one in enumerate(found["best"])
    ]
    return {
        "draws": draws,
        "failure": found["failure"],
        "both": found["both"],
        "settings": [one for one in judged if one],
    }


# -- what entries and the page read ----------------------------------------------------------------


def within(one: dict[str, Any], searched: bool = False) -> float:
    """Return the greatest deviation of the five in both cases, or with block search for REACH."""
    deviations = []
    for name, paper in (("failure", FAILURE), ("surge", SURGE)):
        found = dict(one[name])
        if searched:
            found["REACH"] = found["block search"]
        deviations.append(error(found, paper))
    return max(deviations)


def near(result: Any, searched: bool = False) -> list[dict[str, Any]]:
    """Return the settings with the five within 10 % in both cases, the nearest first."""
    good = [one for one in result["settings"] if within(one, searched) <= 0.1]
    return sorted(good, key=lambda one: within(one, searched))


def in_order(result: Any) -> list[dict[str, Any]]:
    """Return those of `near` in which the five come in the printed order in both cases."""
    return [
        one
        for one in near(result)
        if ordered(one["failure"], FAILURE) and ordered(one["surge"], SURGE)
    ]


def best(result: Any) -> dict[str, Any]:
    """Return the nearest setting, in the printed order if one is."""
    return (in_order(result) or near(result) or sorted(result["settings"], key=within))[0]


def page(result: Any) -> Iterator[str]:
    yield "# REACH: failure and surge fitted together"
    yield ""
    yield (__doc__ or "").split("\n\n", 1)[1].replace("\n", " ").strip()
    yield ""
    yield (
        f"Of {result['draws']:,} settings drawn, {result['failure']} have the three schedulers "
        f"within 10 % in the failure; with the replicas after the surge, {result['both']} pairs "
        f"have them within 10 % in the surge too. The {len(result['settings'])} nearest were "
        f"played: all five are within 10 % in both cases in {len(near(result))}, in the printed "
        f"order as well in {len(in_order(result))}; with block search in the place of the policy "
        f"within 10 % in {len(near(result, True))}. The ten nearest:"
    )
    yield ""
    rows = [
        (
            ", ".join(f"{ms:g}" for ms in one["times"]),
            ", ".join(f"{cores:g}" for cores in one["cores"]),
            ", ".join(str(count) for count in one["replicas"]),
            " ".join(f"{one['failure'][name]:.0f}" for name in (*FAILURE, "block search")),
            " ".join(f"{one['surge'][name]:.0f}" for name in (*SURGE, "block search")),
            f"{within(one):.1%}",
        )
        for one in sorted(result["settings"], key=within)[:10]
    ]
    rows.append(
        (
            "paper",
            "",
            "",
            " ".join(f"{ms:.0f}" for ms in FAILURE.values()),
            " ".join(f"{ms:.0f}" for ms in SURGE.values()),
            "",
        )
    )
    names = ", ".join((*FAILURE, "block search"))
    head = (f"ms: {', '.join(SERVICES)}", "cores", "replicas after the surge")
    yield from table((*head, f"failure, ms: {names}", "surge, ms", "farthest"), rows)
