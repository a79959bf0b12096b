"""Limits on goals: every method of every problem keeps them, and what they do not cut stays."""

import json

import numpy as np
import pytest
from effort import tries
from temporal_instances import tiny

import placeopt
from placeopt import registry
from placeopt.core.errors import PlaceoptError, UnsupportedError
from placeopt.core.fronts.dominance import hypervolume
from placeopt.core.fronts.values import names_of

SMALL = {
    "temporal": {"requests": 3, "max_replicas": 2, "horizon": 20},
    "edge-cloud": {"applications": 4},
    "rolling-update": {"applications": 5, "microservices": 4},
    "multi-cluster": {"requests": 8},
    "rescheduling": {"services": 4},
}
NOT_RUN = {"policy"}  # a trained policy has to be there


def small(kind, seed=1):
    cls = registry.problem_class(kind)
    sizes = {k: v for k, v in SMALL[kind].items() if k in cls.sizes()}
    return cls.generate(seed, **sizes)


def solve(problem, method, **options):
    if method in ("epsilon-constraint", "decomposition"):
        return placeopt.solve(problem, method, seconds=1, **options)
    return placeopt.solve(problem, method, evaluations=400, **options)


@pytest.fixture(scope="module")
def asked():
    fronts = {}

    def of(kind):
        if kind not in fronts:
            problem = small(kind)
            fronts[kind] = problem, solve(problem, "auto")
        return fronts[kind]

    return of


PAIRS = [
    (kind, name)
    for kind in SMALL
    for name, entry in registry.methods().items()
    if kind in entry.of and name not in NOT_RUN
]


@pytest.mark.parametrize(("kind", "method"), PAIRS)
def test_every_point_keeps_its_limits(asked, kind, method):
    problem, whole = asked(kind)
    name = whole.objectives[0].name
    limits = {name: float(np.median(whole.values[:, 0]))}
    try:
        front = solve(problem, method, limits=limits)
    except (UnsupportedError, PlaceoptError) as error:
        pytest.skip(f"{method} refuses: {error}")
    assert (front.values <= [limits.get(o.name, np.inf) for o in front.objectives]).all()
    if not front.points:
        assert front.reasons
        assert front.rejected is not None


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("method", ["auto", "moead", "nsga2", "greedy"])
def test_limits_that_cut_nothing_change_nothing(asked, kind, method):
    problem, free = asked(kind)
    if kind not in registry.method(method).of:
        pytest.skip("no such method")
    if method != "auto":
        free = solve(problem, method)
    wide = {o.name: 1e9 for o in free.objectives}
    assert np.array_equal(solve(problem, method, limits=wide).values, free.values)


@pytest.mark.parametrize("seed", range(1, tries(2, 4) + 1))
@pytest.mark.parametrize("goal", [0, 1, 2])
def test_exact_fronts_are_the_part_inside(seed, goal):
    problem = tiny(seed)
    whole = placeopt.solve(problem, "bin-plans")
    limits = {whole.objectives[goal].name: float(np.median(whole.values[:, goal]))}
    inside = whole.values[whole.values[:, goal] <= [*limits.values()]]
    for method in ("bin-plans", "epsilon-constraint"):
        front = placeopt.solve(problem, method, limits=limits)
        assert np.allclose(front.values, inside, rtol=1e-9)
        assert {p.status for p in front.points} == {"optimal"}


def test_an_exact_search_asks_less_inside():
    problem = tiny(4)
    whole = placeopt.solve(problem, "epsilon-constraint")
    name = whole.objectives[0].name
    front = placeopt.solve(problem, "epsilon-constraint", limits={name: float(whole.ideal[0])})
    assert front.runs[0].solver_calls < whole.runs[0].solver_calls


def test_a_search_finds_more_inside():
    problem = registry.problem_class("temporal").generate(3, requests=30)
    whole = placeopt.solve(problem, "moead", evaluations=4000, seed=2)
    most = np.quantile(whole.values, 0.6, axis=0)
    limits = dict(zip(names_of(whole.objectives), most.tolist(), strict=True))
    front = placeopt.solve(problem, "moead", evaluations=4000, seed=2, limits=limits)
    assert front.points
    inside = whole.values[(whole.values < most).all(axis=1)]
    assert front.hypervolume(most) > hypervolume(inside, most.tolist())


@pytest.mark.parametrize("kind", ["temporal", "edge-cloud"])
def test_bounds_inside_still_hold(kind):
    problem = small(kind)
    whole = solve(problem, "auto", certify=True)
    limits = {whole.objectives[0].name: float(np.median(whole.values[:, 0]))}
    front = solve(problem, "auto", certify=True, limits=limits)
    bounds = np.array(front.bounds)
    assert (bounds[:, 0] <= limits[whole.objectives[0].name]).all()
    for point in front.points:
        assert (bounds <= np.array(point.values) * (1 + 1e-9)).all(axis=1).any()


def test_nothing_inside_says_what_is_nearest(asked):
    problem, _whole = asked("temporal")
    front = solve(problem, "moead", limits=["cost_usd<=0.0001"])
    assert not front.points
    assert front.rejected is not None
    assert front.reasons[0].startswith("no plan within cost_usd <= 0.0001 was found; the nearest")


def test_jobs_and_run_directory_know_limits(asked, tmp_path):
    problem, whole = asked("temporal")
    limits = {"cost_usd": float(np.median(whole.values[:, 1]))}
    options = {"methods": ["moead", "nsga2"], "limits": limits}
    one = solve(problem, "ensemble", **options)
    two = solve(problem, "ensemble", jobs=2, run_dir=tmp_path, **options)
    assert np.array_equal(one.values, two.values)
    free = solve(problem, "ensemble", methods=["moead", "nsga2"], run_dir=tmp_path)
    assert len(free.points) > len(two.points)


def test_sweeps_keep_limits(asked):
    _problem, whole = asked("temporal")
    most = float(np.median(whole.values[:, 1]))
    plan = {
        "instances": [{"problem": "temporal", "seed": 1, **SMALL["temporal"]}],
        "methods": ["moead"],
        "evaluations": [300],
        "limits": [f"cost_usd<={most}"],
    }
    (front,) = placeopt.sweep(plan).fronts
    assert (front.values[:, 1] <= most).all()


def test_the_command(tmp_path, capsys):
    from placeopt import cli

    def run(*limits):
        wanted = [part for limit in limits for part in ("--limit", limit)]
        with pytest.raises(SystemExit) as ended:
            cli.main(["solve", "toy", "--evaluations", "500", "-o", path, *wanted])
        return ended.value.code or 0, capsys.readouterr().err

    path = str(tmp_path / "front.json")
    assert run("latency_ms<=10", "cost_usd=1")[0] == 0
    front = json.loads((tmp_path / "front.json").read_text())
    assert all(p["values"][0] <= 10 and p["values"][1] <= 1 for p in front["points"])
    code, said = run("cost_usd=0.001")
    assert code == 3
    assert "the nearest one has cost_usd" in said
    code, said = run("speed<=1")
    assert code == 2
    assert "speed" in said
