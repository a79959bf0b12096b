"""Where replicas are by zone, now and after, and a mark where redundancy falls."""

from __future__ import annotations

from pathlib import Path

import pytest
from little_clusters import ZONE_KEY, Json, approved, deployment, imported, node

from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import InstanceName, Objective, Point
from placeopt.kubernetes.approval import ApprovalPage, WorkloadPlaces, markdown
from placeopt.kubernetes.importing import Imported
from placeopt.plot.front_scene import scene
from placeopt.plot.scene import Words
from placeopt.rolling_update import views as summary

#: Replicas per node now and after, per zone now and after -> what is said.
FALLS: list[tuple[list[int], list[int], Json, Json, str]] = [
    ([1, 1], [1, 1], {"a": 1, "b": 1}, {"a": 1, "b": 1}, ""),
    ([1, 1], [1, 1], {"a": 1, "b": 1}, {"a": 2}, "one zone"),
    ([1, 1], [2], {"a": 1, "b": 1}, {"a": 2}, "one zone"),
    ([1, 1], [2], {"a": 2}, {"a": 2}, "one node"),
    ([1, 1], [2], {"a": 2}, {"b": 2}, "one node"),
    ([1, 1, 1], [2, 1], {"a": 3}, {"a": 3}, "2 of 3 nodes"),
    ([1, 1, 1], [1, 1, 1], {"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 1}, "2 of 3 zones"),
    ([1, 1, 1], [2, 1], {"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 1}, "2 of 3 zones"),
    ([2, 1], [1, 1, 1], {"a": 2, "b": 1}, {"a": 2, "b": 1}, ""),
    ([2], [1, 1], {"a": 2}, {"a": 1, "b": 1}, ""),
    ([2, 2], [3, 1], {"a": 2, "b": 2}, {"a": 2, "b": 2}, "3 of 4 in one node"),
    ([2, 2], [2, 2], {"a": 2, "b": 2}, {"a": 3, "b": 1}, "3 of 4 in one zone"),
    ([2, 2], [3, 1], {"a": 2, "b": 2}, {"a": 3, "b": 1}, "3 of 4 in one zone"),
    ([3, 1], [2, 2], {"a": 3, "b": 1}, {"a": 2, "b": 2}, ""),
    ([3], [3], {"a": 3}, {"a": 3}, ""),
    ([3], [3], {"a": 3}, {"b": 3}, ""),
    ([], [2], {}, {"a": 2}, ""),
    ([], [1, 1], {}, {"a": 1, "b": 1}, ""),
    ([1], [2], {"a": 1}, {"a": 2}, ""),
    ([2, 2], [2, 1], {"a": 2, "b": 2}, {"a": 2, "b": 1}, "2 of 3 in one zone"),
    ([2, 1], [1, 1], {"a": 2, "b": 1}, {"a": 1, "b": 1}, ""),
    ([4], [2, 2], {"a": 4}, {"a": 4}, ""),
    ([1, 1, 1, 1], [1, 1, 1, 1], {"a": 2, "b": 2}, {"a": 2, "c": 2}, ""),
    ([1, 1, 1, 1], [2, 2], {"a": 2, "b": 2}, {"a": 2, "b": 2}, "2 of 4 nodes"),
    ([2, 1, 1], [2, 2], {"a": 2, "b": 1, "c": 1}, {"a": 2, "b": 2}, "2 of 3 zones"),
    ([1, 1, 1], [3], {"a": 1, "b": 1, "c": 1}, {"a": 3}, "one zone"),
]


@pytest.mark.parametrize(("now", "after", "zones_now", "zones", "said"), FALLS)
def test_what_falls(
    now: list[int], after: list[int], zones_now: Json, zones: Json, said: str
) -> None:
    places = WorkloadPlaces("shop/web", sum(after), now, after, zones_now, zones)
    assert places.falls == said
    assert places.is_changed == ((now, zones_now) != (after, zones))


ZONES = ("us-east-1a", "us-east-1b")


def shop(folder: Path, *, zones: tuple[str | None, ...] = (*ZONES, ZONES[0])) -> Imported:
    """Import three nodes: `web` on the first two, `api` twice on the third."""
    objects = [node(f"n{k}", labels={ZONE_KEY: zone}) for k, zone in enumerate(zones)]
    objects += deployment("web", ["n0", "n1"]) + deployment("api", ["n2", "n2"])
    return imported(folder, objects, missing_prices="default=0.1")


def test_zones_by_name_before_and_after(tmp_path: Path) -> None:
    made = approved(shop(tmp_path), ("web-7d9f-1", "n0"))
    web = made.workloads[0]
    assert web.name == "default/web" and web.falls == "one zone"
    assert web.zones_before == {ZONES[0]: 1, ZONES[1]: 1} and web.zones == {ZONES[0]: 2}
    page, text = ApprovalPage(made).html(), markdown(made, "x")
    row = "| default/web | 2 | 1 + 1 | 2 | us-east-1a 1, us-east-1b 1 | us-east-1a 2 | "
    row += "falls: one zone |"
    assert row in text and "per zone now | per zone after | redundancy |" in text
    assert "falls: one zone" in page and "us-east-1a 1, us-east-1b 1" in page


def test_what_stays_is_folded_away(tmp_path: Path) -> None:
    """The workload that moves is shown; the other one stands in a part that is closed."""
    page = ApprovalPage(approved(shop(tmp_path), ("web-7d9f-1", "n0"))).html()
    fold = page.index("1 workload of several replicas stays as it is")
    assert page.index("default/web") < fold < page.index("default/api")
    assert "<details" in page[fold - 200 : fold]
    page = ApprovalPage(approved(shop(tmp_path))).html()
    assert "2 workloads of several replicas stay as they are" in page
    assert "Replicas per node and zone" not in page


@pytest.mark.parametrize(
    ("zones", "word"),
    [
        (ZONES, "zone"),
        ((ZONES[0], ZONES[0]), "zone"),
        ((None, None), "region"),
        ((ZONES[0], None), "zone"),
    ],
)
def test_zones_are_called_zones(zones: tuple[str | None, ...], word: str, tmp_path: Path) -> None:
    done = shop(tmp_path, zones=(*zones, zones[0]))
    assert done.document["cluster_word"] == word
    facts: dict[str, str] = dict(summary.instance(done.problem))  # type: ignore[arg-type]
    assert f" {word}" in facts["nodes"] and "cluster" not in facts["nodes"]
    plan = approved(done, ("web-7d9f-1", "n0")).problem.plan([(1, 0)])
    page = summary.plan(done.problem, plan)  # type: ignore[arg-type]
    assert f">{word}<" in page and ">cluster<" not in page


def test_one_zone_needs_no_columns(tmp_path: Path) -> None:
    made = approved(shop(tmp_path, zones=(ZONES[0],) * 3), ("web-7d9f-1", "n0"))
    assert "per zone" not in ApprovalPage(made).html() and "per zone" not in markdown(made, "x")
    assert "| default/web | 2 | 1 + 1 | 2 | falls: one node |" in markdown(made, "x")


@pytest.mark.parametrize(
    ("values", "planes"),
    [
        ([(1.0, 2.0, 0.0), (2.0, 1.0, 0.0)], 1),
        ([(1.0, 2.0, 0.0), (1.0, 1.0, 0.0)], 1),
        ([(1.0, 2.0, 0.0), (2.0, 1.0, 1.0)], 3),
        ([(1.0, 2.0, 3.0)], 1),
    ],
)
def test_two_numbers_need_no_space(values: list[tuple[float, ...]], planes: int) -> None:
    """What is the same in all plans is no axis; three goals have planes, the third by colour."""
    goals = tuple(Objective(name, "") for name in ("cost", "starts", "stops"))
    points = tuple(Point(v, {}) for v in values)
    shapes = scene([Front(InstanceName("rolling-update", "shop", "0" * 64), goals, points)]).shapes
    across = [s for s in shapes if isinstance(s, Words) and s.anchor == "middle"]
    assert sum(not s.text[0].isdigit() for s in across) == planes
