"""Prices: kinds of files, overlays in order, and what is wrong with a table, by file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from placeopt.core.errors import DocumentError, UsageError
from placeopt.kubernetes.machines import PriceBook, apply, overlay, read_prices
from placeopt.kubernetes.origin import Notes

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file: ``write(name, text)``."""

    def writer(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return writer


#: The column of a price in tables of our own.
USD = "on_demand_usd_per_hour"
ON_DEMAND = json.dumps(
    {"usd_per_hour": {"us-east-1": {"m5.large": 0.096, "m5.xlarge": 0.192, "t3.nano": 0.0052}}},
    indent=1,
)
RANGES = ((0, "<5%", 5), (1, "5-10%", 11), (4, ">20%", 100))
SIZES = (("m5.large", 2, 8.0, 60, 1), ("m5.xlarge", 4, 16.0, 70, 4), ("gone", 1, 1, 50, 0))
ADVISOR = json.dumps(
    {
        "ranges": [{"index": k, "label": label, "max": most} for k, label, most in RANGES],
        "instance_types": {name: {"cores": c, "ram_gb": gib} for name, c, gib, _, _ in SIZES},
        "spot_advisor": {
            "us-east-1": {"Linux": {name: {"s": s, "r": r} for name, _, _, s, r in SIZES}}
        },
    },
    indent=1,
)


def test_on_demand_and_advisor_together(write: Write) -> None:
    """Spot is on demand less the saving; interruption is the upper end of its class."""
    notes = Notes()
    book = read_prices([write("a.json", ADVISOR), write("o.json", ON_DEMAND)], notes)
    large = {"cpu_cores": 2.0, "memory_gib": 8.0, USD: 0.096, "spot_usd_per_hour": 0.0384}
    large["spot_interruption"] = 0.10
    offers = {size: {k: float(v) for k, v in o.items()} for (_, size), o in book.offers.items()}
    assert offers["m5.large"] == large and offers["m5.xlarge"]["spot_interruption"] == 0.25
    assert offers.keys() == {"m5.large", "m5.xlarge", "t3.nano"}
    assert "us-east-1 gone" in dict(notes.of("left-out"))["spot savings without an on-demand price"]
    own = {"location": "us-east-1", "size": "m5.large", **large}
    text = json.dumps({"format": "placeopt/prices@1", "offers": [own], "nodes": {"rack-7": 0.21}})
    again = read_prices([write("own.json", text)], Notes())
    key = "us-east-1", "m5.large"
    assert again.offers[key] == book.offers[key]
    assert again.nodes == {"rack-7": Decimal("0.21")}


def test_the_karpenter_table(kubernetes_data: Path) -> None:
    """1,367 prices of us-east-1."""
    book = read_prices([kubernetes_data / "aws_price" / "ondemand_karpenter.json"], Notes())
    assert len(book.offers) == 1367
    assert book.offers["us-east-1", "m5.large"] == {USD: Decimal("0.096")}


def test_opencost_and_plain_tables(write: Write) -> None:
    """Nodes by instance type or by name; other assets are passed over; a later file counts."""
    text = (
        "EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,Version\n"
        "2026-01-01 00:00:00 UTC,x,us-east-2,node,metadata.labels.foo,m5.large,0.096,v1\n"
        ",rack-7,,node,metadata.name,,0.21,\n,c5.large,us-east-2,node,metadata.labels.node.kubernetes.io/instance-type,,0.085,\n"
        ",pvc-1,us-east-2,pv,metadata.name,,0.001,\n"
    )
    plain = f"location,size,cpu_cores,memory_gib,{USD}\nus-east-2,m5.large,2,8,0.09\n"
    notes = Notes()
    book = read_prices([write("opencost.csv", text), write("plain.csv", plain)], notes)
    assert book.nodes == {"rack-7": Decimal("0.21")}
    found = {size: float(o[USD]) for (_, size), o in book.offers.items()}
    assert found == {"m5.large": 0.09, "c5.large": 0.085}
    assert any("the later counts" in text for text, _ in notes.of("assumption"))


def test_percentages_come_before_fixed_amounts() -> None:
    """Whatever the order in which they are given; a price that is set comes first; none below 0."""
    for texts in (("*=-20%", "m5.*=+0.05"), ("m5.*=+0.05", "*=-20%")):
        book = PriceBook({("us", "m5.large"): {USD: Decimal("1")}})
        apply(book, [overlay(t) for t in texts], Notes())
        assert book.offers["us", "m5.large"][USD] == Decimal("0.85")
    spot = {"spot_usd_per_hour": Decimal("0.5"), "spot_interruption": Decimal("0.1")}
    one = {USD: Decimal("1")}
    book = PriceBook({("us", "a"): one | spot, ("eu", "a"): dict(one)})
    texts = ("us/a:spot=-50%", "eu/*=-3", "a=0.4", "*=+10%")
    apply(book, [overlay(t) for t in texts], Notes())
    us, eu = book.offers["us", "a"], book.offers["eu", "a"]
    assert (us[USD], us["spot_usd_per_hour"]) == (Decimal("0.44"), Decimal("0.22"))
    assert eu[USD] == 0 and "spot_usd_per_hour" not in eu


def test_overlays_against_fractions() -> None:
    """Exact products and sums, then nine decimals."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        base = Fraction(int(rng.integers(1, 10**6)), 10**4)
        percents, fixed = rng.integers(-50, 51, 2).tolist(), rng.integers(-99, 100, 2).tolist()
        price = Decimal(base.numerator) / Decimal(base.denominator)
        book = PriceBook({("us", "a"): {USD: price}})
        texts = [f"a={p:+d}%" for p in percents]
        texts += [f"a={'-' if f < 0 else '+'}0.{abs(f):02d}" for f in fixed]
        apply(book, [overlay(texts[k]) for k in rng.permutation(4)], Notes())
        exact = base
        for p in percents:
            exact *= Fraction(100 + p, 100)
        exact = max(Fraction(0), exact + Fraction(sum(fixed), 100))
        found = Fraction(book.offers["us", "a"][USD])
        assert abs(found - exact) <= Fraction(1, 10**9)


ODD = ("m5", "=+1%", "m5=", "m5=10%", "m5=abc", "m5:monthly=+1%", "m5=1e9999", "m5=+-1", "m5=NaN%")


@pytest.mark.parametrize("text", [*ODD, "m5=" + "9" * 99])
def test_odd_overlays(text: str) -> None:
    """Say what is legal."""
    with pytest.raises(UsageError, match="legal: SIZE=CHANGE"):
        overlay(text)


ADVICE = '{"spot_advisor": {"us": {"Linux": {"m5": {"s": 60, "r": 7}}}},\n'
ADVICE += ' "ranges": [], "instance_types": {}}'
HEAD = f"location,size,{USD}\n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", f"{HEAD}us,m5,-1\n", f"line 2: {USD} is '-1'"),
        ("a.csv", f"{HEAD}us,m5,nan\n", f"line 2: {USD} is 'nan'"),
        ("a.csv", f"{HEAD}us,m5,1e999999999\n", "line 2"),
        ("a.csv", f"{HEAD}us,<script>,1\n", "line 2: size is '<script>'"),
        ("a.csv", f"{HEAD}us,m5\n", "line 2: 2 cells"),
        ("a.csv", "location,size,price\nus,m5,1\n", "line 1: column 'price' is unknown"),
        ("a.csv", "location,size\nus,m5\n", "line 2: neither a price nor a size"),
        ("a.csv", f'{HEAD}us,"m5,1\n', "line 1: not CSV"),
        ("a.csv", HEAD, "line 1: no prices"),
        (
            "a.csv",
            "InstanceID,AssetClass,MarketPriceHourly\nx,node,\n",
            "line 2: MarketPriceHourly is empty",
        ),
        ("a.csv", "location,size,\x00\n", "line 1: the control character"),
        (
            "a.json",
            '{"usd_per_hour": {"us":\n {"m5": "free"}}}',
            "line 2, usd_per_hour.us.m5: 'free' is not legal",
        ),
        ("a.json", '{"usd_per_hour": {"us": {"m5": -1}}}', "is not legal"),
        ("a.json", '{"usd_per_hour": {"us": {"<b>": 1}}}', "is no name of a place or a machine"),
        ("a.json", '{"usd_per_hour": {}}', "line 1: no prices"),
        ("a.json", "[1, 2]", "line 1: not a file of prices"),
        ("a.json", ADVICE, "the range 7"),
        (
            "a.json",
            '{"spot_advisor": {}, "ranges": [{"index": 0, "label": "often"}]}',
            "cannot be read",
        ),
        ("a.json", '{"format": "placeopt/prices@1", "offers": [{"location": "us"}]}', "is no size"),
        ("a.yaml", "kind: NodeOverlay\nspec:\n  price: 1\n", "not a file of prices"),
    ],
)
def test_what_is_wrong_with_a_table(write: Write, name: str, text: str, says: str) -> None:
    """By file and line."""
    path = write(name, text)
    with pytest.raises(DocumentError) as error:
        read_prices([path], Notes())
    assert all(part in str(error.value) for part in (str(path), says, "line "))
