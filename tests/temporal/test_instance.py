"""The temporal problem: its referee against an oracle that walks slot by slot in exact fractions.

What is legal, odd, impossible.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.core.errors import DocumentError, UsageError
from placeopt.registry import from_document
from placeopt.temporal.problem import Temporal

PRICE = {
    "on-demand": "on_demand_usd_per_hour",
    "reserved": "reserved_usd_per_hour",
    "spot": "spot_usd_per_hour",
}


def exact(value: float) -> Fraction:
    return Fraction(Decimal(repr(float(value))))


def oracle(
    document: Mapping[str, Any], plan: Mapping[str, Any]
) -> tuple[tuple[float, ...], Counter[str]]:
    """Return the three values and how often each rule is broken.

    Slot by slot and replica by replica.
    """
    requests = {r["name"]: r for r in document["requests"]}
    offers = {(o["location"], o["size"]): o for o in document["offers"]}
    broken: Counter[str] = Counter()
    horizon, n = document["horizon_slots"], len(requests)
    for name, request in requests.items():
        if name not in plan["starts"]:
            broken["not-scheduled"] += 1
        elif not 0 <= plan["starts"][name] <= horizon - request["duration_slots"]:
            broken["outside-horizon"] += 1
    placed = Counter((name, k) for machine in plan["instances"] for name, k in machine["replicas"])
    broken["replica-placement"] += sum(
        placed[name, k] != 1 for name, r in requests.items() for k in range(r["replicas"])
    )
    worst: dict[str, Fraction] = dict.fromkeys(requests, Fraction(0))
    cost = interruption = Fraction(0)
    for machine in plan["instances"]:
        offer = offers[machine["location"], machine["size"]]
        price = exact(offer[PRICE[machine["pricing"]]]) * exact(document["slot_hours"])
        busy = 0
        over = set()
        for slot in range(-40, 80):
            started = [
                (requests[m], slot - plan["starts"][m])
                for m, _ in machine["replicas"]
                if m in plan["starts"]
            ]
            here = [request for request, age in started if 0 <= age < request["duration_slots"]]
            busy += bool(here)
            over |= {
                r
                for r in ("cpu_cores", "memory_gib")
                if sum(exact(x[r]) for x in here) > exact(offer[r])
            }
        broken["cpu-capacity"] += "cpu_cores" in over
        broken["memory-capacity"] += "memory_gib" in over
        cost += price * (horizon if machine["pricing"] == "reserved" else busy)
        for name, _ in machine["replicas"]:
            latency = document["latency_ms"][requests[name]["origin"]].get(machine["location"])
            broken["unreachable"] += latency is None
            worst[name] = max(worst[name], exact(latency or 0))
            if machine["pricing"] == "spot":
                interruption += exact(offer["spot_interruption"]) / requests[name]["replicas"]
    leased = Counter((m["location"], m["size"]) for m in plan["instances"])
    broken["max-instances"] += sum(
        count > offers[key].get("max_instances", 99) for key, count in leased.items()
    )
    return (float(sum(worst.values()) / n), float(cost), float(interruption / n)), +broken


# -- instances and plans, legal and broken --

CORES = st.sampled_from([0.25, 0.5, 1, 1.5, 2, 3])
PRICES = st.integers(0, 9999).map(lambda x: x / 10_000)


@st.composite
def instances(draw: st.DrawFn) -> dict[str, Any]:
    places = ["a", "b", "c"][: draw(st.integers(1, 3))]
    latency = {x: {y: draw(st.integers(0, 9999)) / 100 for y in places} for x in places}
    if draw(st.booleans()):
        latency["a"].pop(places[-1])
    offers = []
    for place in places:
        for size in ("small", "large")[: draw(st.integers(1, 2))]:
            kinds = draw(
                st.lists(st.sampled_from(sorted(PRICE)), min_size=1, max_size=3, unique=True)
            )
            offer: dict[str, Any] = {
                "location": place,
                "size": size,
                "cpu_cores": draw(CORES) * 2,
                "memory_gib": draw(CORES) * 2,
            }
            offer |= {PRICE[kind]: draw(PRICES) for kind in kinds}
            if "spot" in kinds:
                offer["spot_interruption"] = draw(st.integers(0, 100)) / 100
            if draw(st.booleans()):
                offer["max_instances"] = draw(st.integers(0, 2))
            offers.append(offer)
    requests = [
        {
            "name": f"r{k}",
            "cpu_cores": draw(CORES),
            "memory_gib": draw(CORES),
            "duration_slots": draw(st.integers(1, 6)),
            "replicas": draw(st.integers(1, 3)),
            "origin": draw(st.sampled_from(places)),
        }
        for k in range(draw(st.integers(1, 4)))
    ]
    horizon, hours = draw(st.integers(4, 10)), draw(st.sampled_from([1.0, 0.5, 2]))
    return {
        "problem": "temporal",
        "name": "drawn",
        "horizon_slots": horizon,
        "slot_hours": hours,
        "latency_ms": latency,
        "offers": offers,
        "requests": requests,
    }


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """An instance and a plan, whole or broken in any way that its form allows."""
    document = draw(instances())
    leasable = [
        (o, kind) for o in document["offers"] for kind, field in PRICE.items() if field in o
    ]
    machines: list[dict[str, Any]] = [
        {"location": o["location"], "size": o["size"], "pricing": kind, "replicas": []}
        for o, kind in draw(st.lists(st.sampled_from(leasable), min_size=1, max_size=4))
    ]
    starts = {}
    for request in document["requests"]:
        latest = document["horizon_slots"] - request["duration_slots"]
        begin = draw(
            st.one_of(
                st.integers(0, max(latest, 0)),
                st.integers(-3, document["horizon_slots"] + 3),
                st.none(),
            )
        )
        if begin is not None:
            starts[request["name"]] = begin
        for replica in range(request["replicas"]):
            for machine in draw(
                st.lists(
                    st.sampled_from(machines),
                    min_size=0 if draw(st.integers(0, 9)) == 0 else 1,
                    max_size=1,
                )
            ):
                machine["replicas"].append([request["name"], replica])
            if draw(st.integers(0, 14)) == 0:
                draw(st.sampled_from(machines))["replicas"].append([request["name"], replica])
    return document, {"starts": starts, "instances": machines}


@given(cases())
def test_referee_equals_the_oracle(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Values to the last bit, violations by kind, on legal and broken plans."""
    document, plan = case
    verdict = from_document(document).evaluate(plan)
    values, broken = oracle(document, plan)
    assert verdict.values == values
    assert Counter(v.kind for v in verdict.violations) == broken
    assert verdict.feasible == (not broken)
    assert all(v.amount > 0 and v.message for v in verdict.violations)


@given(cases())
def test_values_are_whole_steps(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """`step` is a divisor of every value."""
    problem = from_document(case[0])
    for value, objective in zip(problem.evaluate(case[1]).values, problem.objectives, strict=True):
        assert objective.step is not None
        assert value / objective.step == pytest.approx(round(value / objective.step), abs=1e-6)


@given(cases(), st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(
    case: tuple[dict[str, Any], dict[str, Any]], chance: Any
) -> None:
    """Renamed and shuffled, the plan has the same values and breaks as much."""
    document, plan = case
    before = from_document(document).evaluate(plan)
    renamed = json.loads(
        json.dumps(document)
        .replace('"r', '"x')
        .replace('"xeplicas', '"replicas')
        .replace('"xe', '"re')
        .replace('"small', '"tiny')
    )
    moved = json.loads(
        json.dumps(plan)
        .replace('"r', '"x')
        .replace('"xeplicas', '"replicas')
        .replace('"xe', '"re')
        .replace('"small', '"tiny')
    )
    for part in (
        renamed["offers"],
        renamed["requests"],
        moved["instances"],
        *(m["replicas"] for m in moved["instances"]),
    ):
        chance.shuffle(part)
    after = from_document(renamed).evaluate(moved)
    assert after.values == before.values
    assert Counter(v.kind for v in after.violations) == Counter(v.kind for v in before.violations)


@given(cases())
def test_cost_follows_the_currency(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Twice the prices cost twice as much, to the last bit; ten times within rounding.

    Nothing else changes.
    """
    document, plan = case
    before = from_document(document).evaluate(plan)
    for factor in (2, 10):
        dearer = copy.deepcopy(document)
        for offer in dearer["offers"]:
            offer.update(
                {field: offer[field] * factor for field in PRICE.values() if field in offer}
            )
        after = from_document(dearer).evaluate(plan)
        assert (after.values[0], after.values[2], after.violations) == (
            before.values[0],
            before.values[2],
            before.violations,
        )
        assert after.values[1] == (
            before.values[1] * 2 if factor == 2 else pytest.approx(before.values[1] * 10)
        )


# -- by hand --


def toy(**changes: Any) -> dict[str, Any]:
    offer = {
        "location": "a",
        "size": "s",
        "cpu_cores": 2,
        "memory_gib": 4,
        "on_demand_usd_per_hour": 0.2,
    }
    request = {
        "name": "r1",
        "cpu_cores": 1,
        "memory_gib": 2,
        "duration_slots": 3,
        "replicas": 2,
        "origin": "a",
    }
    document = {
        "problem": "temporal",
        "name": "toy",
        "horizon_slots": 10,
        "slot_hours": 0.5,
        "latency_ms": {"a": {"a": 2}},
    }
    return (
        document
        | {
            "offers": [offer | changes.get("offer", {})],
            "requests": [request | changes.get("request", {})],
        }
        | changes.get("document", {})
    )


def on(*machines: list[list[Any]], start: int = 0, pricing: str = "on-demand") -> dict[str, Any]:
    return {
        "starts": {"r1": start},
        "instances": [
            {"location": "a", "size": "s", "pricing": pricing, "replicas": m} for m in machines
        ],
    }


def test_busy_slots_are_paid_once() -> None:
    """Two replicas on one machine: 3 slots of half an hour at 0.2; on two machines twice that.

    Reserved for all 10 slots.
    """
    problem = from_document(toy(offer={"reserved_usd_per_hour": 0.1}))
    assert problem.evaluate(on([["r1", 0], ["r1", 1]])).values == (2.0, 0.3, 0.0)
    assert problem.evaluate(on([["r1", 0]], [["r1", 1]])).values == (2.0, 0.6, 0.0)
    assert problem.evaluate(on([["r1", 0], ["r1", 1]], pricing="reserved")).values == (
        2.0,
        0.5,
        0.0,
    )


def test_max_instances_counts_all_prices_together() -> None:
    """Two machines of one offer, at most one allowed."""
    problem = from_document(toy(offer={"max_instances": 1, "reserved_usd_per_hour": 0.1}))
    plan = on([["r1", 0]], [["r1", 1]])
    plan["instances"][1]["pricing"] = "reserved"
    verdict = problem.evaluate(plan)
    assert [(v.kind, v.amount) for v in verdict.violations] == [("max-instances", 1.0)]
    assert verdict.violations[0].message == "2 machines of a s are leased; legal: at most 1"
    assert problem.evaluate(on([["r1", 0], ["r1", 1]])).feasible


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (
            on([["r1", 0], ["r1", 1]], pricing="spot"),
            "instances[0].pricing: a s has no spot price; use a pricing that is offered",
        ),
        (
            on([["r1", 2]]),
            "instances[0].replicas: unknown replica 'r1' 2; replicas are numbered from 0 within a "
            "request",
        ),
        (on([["r9", 0]]), "instances[0].replicas: unknown replica 'r9' 0"),
        ({"starts": {"r9": 0}, "instances": []}, "starts: unknown request 'r9'"),
        (
            {
                "starts": {},
                "instances": [{"location": "b", "size": "s", "pricing": "spot", "replicas": []}],
            },
            "instances[0]: no offer b s; name",
        ),
        ({"starts": {}}, "instances: this field is missing; add it"),
        (
            {"starts": {"r1": "soon"}, "instances": []},
            "starts.r1: 'soon' is not legal; legal: a valid integer",
        ),
        (
            {"starts": {"r1": 0}, "instances": [{"location": "a"}]},
            "instances[0].size: this field is missing",
        ),
    ],
)
def test_a_plan_of_another_form_is_refused(plan: dict[str, Any], said: str) -> None:
    """With the path of what is wrong."""
    with pytest.raises(DocumentError) as caught:
        from_document(toy()).evaluate(plan)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"request": {"duration_slots": 11}},
            "request 'r1' runs for 11 slots, longer than the horizon of 10",
        ),
        (
            {"request": {"cpu_cores": 3}},
            "request 'r1' needs 3 vCPU and 2 GiB a replica, which fits no offer",
        ),
        (
            {"offer": {"max_instances": 0}},
            "request 'r1' needs 1 vCPU and 2 GiB a replica; every offer that fits has "
            "max_instances 0",
        ),
        (
            {"offer": {"max_instances": 1}, "request": {"replicas": 3}},
            "'r1' has 3 replicas that run together; all machines that may be leased",
        ),
        (
            {"document": {"latency_ms": {"a": {}}}},
            "no offer that fits is reachable: latency_ms has no latency from 'a' to its location",
        ),
    ],
)
def test_why_an_instance_is_infeasible(changes: dict[str, Any], said: str) -> None:
    """Request by request, in the instance's own names."""
    (reason,) = from_document(toy(**changes)).infeasibility()
    assert said in reason
    assert (
        from_document(toy()).infeasibility()
        == ()
        == from_document(toy(offer={"max_instances": 1})).infeasibility()
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"request": {"origin": "b"}}, "requests[0].origin: unknown origin 'b'; legal: a"),
        (
            {"offer": {"on_demand_usd_per_hour": None}},
            "offers[0]: the offer has no price; give on_demand_",
        ),
        (
            {"offer": {"spot_usd_per_hour": 0.1}},
            "offers[0]: a spot price without spot_interruption; give the share",
        ),
        (
            {"offer": {"spot_usd_per_hour": 0.1, "spot_interruption": 1.5}},
            "offers[0].spot_interruption: 1.5 is not legal",
        ),
        (
            {"request": {"replicas": 0}},
            "requests[0].replicas: 0 is not legal; legal: greater than or equal to 1",
        ),
        (
            {"request": {"cpus": 1}},
            "requests[0].cpus: unknown field 'cpus'; did you mean 'cpu_cores'? legal: name, cpu",
        ),
        (
            {"document": {"latency_ms": {"a": {"a": -1}}}},
            "latency_ms.a.a: -1 is not legal; legal: greater than or equal to 0",
        ),
    ],
)
def test_what_is_not_legal_says_where(changes: dict[str, Any], said: str) -> None:
    """Path, value, what is legal."""
    with pytest.raises(DocumentError) as caught:
        from_document(toy(**changes))
    assert str(caught.value).startswith(said)


def test_names_are_unique() -> None:
    """Of requests, and of offers in one place."""
    document = toy()
    with pytest.raises(
        DocumentError, match=r"^requests\[1\]: request 'r1' stands twice; names must be unique"
    ):
        from_document(document | {"requests": document["requests"] * 2})
    with pytest.raises(DocumentError, match=r"^offers\[1\]: offer 'a s' stands twice"):
        from_document(document | {"offers": document["offers"] * 2})


def test_odd_prices_and_idle_places_are_warned_of() -> None:
    """They are legal."""
    odd = toy(
        offer={"spot_usd_per_hour": 0.3, "spot_interruption": 0.1, "reserved_usd_per_hour": 0.25}
    )
    odd["latency_ms"]["a"]["z"] = 1
    spot, reserved, idle = from_document(odd).warnings()
    assert spot == "a s: the spot price 0.3 USD/h is above on-demand 0.2 USD/h"
    assert reserved == "a s: the reserved price 0.25 USD/h is above on-demand 0.2 USD/h"
    assert idle == "latency_ms names places that nothing uses: z"
    assert from_document(toy()).warnings() == ()


@given(instances())
def test_documents_round_trip(document: dict[str, Any]) -> None:
    """Nothing is added, lost or rounded; the name in fronts depends on the content."""
    problem = from_document(document)
    assert problem.to_document() == document
    assert from_document(problem.to_document()).instance_name == problem.instance_name


def test_generation_is_seeded_and_sized() -> None:
    """The paper's ranges; the same seed, the same instance; impossible sizes are refused."""
    problem = Temporal.generate(7, requests=200, horizon=60, places=3, max_replicas=4)
    assert (
        problem
        == Temporal.generate(7, requests=200, horizon=60, places=3, max_replicas=4)
        != Temporal.generate(8, requests=200)
    )
    for field, low, high in (
        ("cpu_cores", 1, 6),
        ("memory_gib", 2, 16),
        ("duration_slots", 10, 50),
        ("replicas", 1, 4),
    ):
        drawn = {getattr(r, field) for r in problem.requests}
        assert drawn <= set(range(low, high + 1)) and {low, high} <= drawn
    assert {o.location for o in problem.offers} == {"eu-south-1", "eu-west-2", "us-east-1"} and len(
        problem.offers
    ) == 9
    assert Temporal.sizes() == {
        "requests": 50,
        "horizon": 100,
        "places": 6,
        "max_replicas": 6,
        "corrected": False,
    }
    with pytest.raises(UsageError, match="places is 7; legal: 1 to 6"):
        Temporal.generate(places=7)


def test_a_plan_in_words() -> None:
    """Machines by place, size and price; the share on spot."""
    problem = from_document(toy(offer={"spot_usd_per_hour": 0.1, "spot_interruption": 0.1}))
    plan = on([["r1", 0]], [["r1", 1]])
    plan["instances"][1]["pricing"] = "spot"
    assert problem.describe(plan) == {
        "machines": "2",
        "fleet": "1 x a s on-demand, 1 x a s spot",
        "replicas on spot": "50%",
    }
