"""Prices of machines: a book of offers, adjusted by overlays.

Percentages come first, then fixed amounts.

A book as JSON::

    {"format": "placeopt/prices@1",
     "offers": [{"location": "us-east-1", "size": "m5.large", "cpu_cores": 2, "memory_gib": 8,
                 "on_demand_usd_per_hour": 0.096, "spot_usd_per_hour": 0.0384,
                 "spot_interruption": 0.05}],
     "nodes": {"rack-7": 0.21}}

Every field of an offer but ``location`` and ``size`` may be absent; ``nodes`` are prices of single
machines by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase

from placeopt.core.errors import UsageError
from placeopt.kubernetes.leases import lease_of
from placeopt.kubernetes.notes import Notes, note
from placeopt.kubernetes.objects import KubernetesNode
from placeopt.kubernetes.tables import decimal

PRICES = {
    "on-demand": "on_demand_usd_per_hour",
    "reserved": "reserved_usd_per_hour",
    "spot": "spot_usd_per_hour",
}
NUMBERS = ("cpu_cores", "memory_gib", *PRICES.values(), "spot_interruption")
#: Decimals of a price.
_DIGITS = Decimal("1e-9")

Offer = dict[str, Decimal]


@dataclass
class PriceBook:
    """What machines cost.

    Attributes
    ----------
    offers : dict
        (location, size) -> a mapping of `NUMBERS`.
    nodes : dict
        Name of a node -> USD per hour.
    savings : dict
        (location, size) -> saving of spot in per cent, still without a price.
    """

    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    nodes: dict[str, Decimal] = field(default_factory=dict)
    savings: dict[tuple[str, str], Decimal] = field(default_factory=dict)

    def put(self, location: str, size: str, numbers: Offer, notes: Notes) -> None:
        """Add what is known of an offer; where a later file says otherwise, it counts."""
        offer = self.offers.setdefault((location, size), {})
        for key, value in numbers.items():
            if offer.get(key, value) != value:
                notes.add(
                    "assumption",
                    f"{key} differs between the files: the later counts",
                    f"{location} {size}",
                )
            offer[key] = value

    def settle(self, notes: Notes) -> None:
        """Turn savings of spot into prices: on-demand less the saving."""
        for (location, size), saving in self.savings.items():
            offer = self.offers[location, size]
            base = offer.get("on_demand_usd_per_hour")
            if "spot_usd_per_hour" in offer:
                continue
            if base is None:
                notes.add(
                    "left-out", "spot savings without an on-demand price", f"{location} {size}"
                )
                offer.pop("spot_interruption", None)
            else:
                offer["spot_usd_per_hour"] = (
                    (base * (100 - saving) / 100).quantize(_DIGITS).normalize()
                )
        for place in list(self.offers):
            if not set(PRICES.values()) & self.offers[place].keys():
                del self.offers[place]

    def price(self, node: KubernetesNode, region: str | None) -> float | None:
        """Return what a node costs in USD per hour, None where unknown.

        Its own price counts first, then that of its machine type in its region.
        """
        if node.price is not None:
            return node.price
        if node.name in self.nodes:
            return float(self.nodes[node.name])
        place, several = self._place(node, region)
        if several:
            note("assumption", f"nodes without a region: prices of {place}", node.name)
        offer = self.offers.get((place, node.instance_type or ""), {})
        lease = lease_of(node.meta.labels)
        wanted = PRICES[lease]
        if wanted not in offer and PRICES["on-demand"] in offer:
            note("assumption", f"no {lease} price: that on demand", node.name)
            wanted = PRICES["on-demand"]
        return float(offer[wanted]) if wanted in offer else None

    def interruptions(self, node: KubernetesNode, region: str | None) -> float | None:
        """Return the share of interruptions in a month of a spot node, None where unknown."""
        place, _ = self._place(node, region)
        rate = self.offers.get((place, node.instance_type or ""), {}).get("spot_interruption")
        return None if rate is None else float(rate)

    def _place(self, node: KubernetesNode, region: str | None) -> tuple[str, bool]:
        """Return the place whose offers hold for a node, and whether others could be meant."""
        if (named := node.region or region) is not None:
            return named, False
        places = sorted({a for a, b in self.offers if b == node.instance_type})
        return (places[0] if places else ""), len(places) > 1


def missing_price(policy: str) -> float | None:
    """Return what ``--missing-prices`` gives a node without a price; None for ``error``.

    Raises
    ------
    UsageError
        It is neither ``error`` nor ``default=USD``.
    """
    if policy == "error":
        return None
    word, _, value = policy.partition("=")
    price = decimal(value)
    if word != "default" or price is None or not 0 <= price <= 10**6:
        raise UsageError(
            f"--missing-prices {policy!r}; legal: error, default=USD such as default=0.10"
        )
    return float(price)


# -- overlays --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PriceOverlay:
    """A change of prices (``set``, ``percent``, ``fixed``) and the offers that it matches."""

    matches: Callable[[str, str, str], bool]
    kind: str
    amount: Decimal


_AMOUNT = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(%?)", re.ASCII)


def amount(text: str) -> tuple[str, Decimal] | None:
    """Read ``+10%``, ``-0.05`` or ``0.2``: (kind, amount); None for anything else.

    Examples
    --------
    >>> amount("-20%"), amount("+0.01"), amount("0.2")
    (('percent', Decimal('-20')), ('fixed', Decimal('0.01')), ('set', Decimal('0.2')))
    """
    form = _AMOUNT.fullmatch(text)
    value = decimal(form[1] + form[2]) if form else None
    if form is None or value is None or (form[3] and not form[1]):
        return None
    return ("percent" if form[3] else "fixed" if form[1] else "set"), value


def overlay(text: str) -> PriceOverlay:
    """Read ``SIZE=CHANGE``, ``LOCATION/SIZE=CHANGE`` or ``SIZE:PRICING=CHANGE``.

    ``*`` and ``?`` stand for any characters.

    Raises
    ------
    UsageError
        Not of this form.

    Examples
    --------
    >>> o = overlay("us-*/m5.*:spot=+10%")
    >>> o.matches("us-east-1", "m5.large", "spot"), o.matches("us-east-1", "m5.large", "on-demand")
    (True, False)
    """
    pattern, _, change = text.rpartition("=")
    place, colon, pricing = pattern.partition(":")
    location, slash, size = place.rpartition("/")
    result = amount(change.strip())
    if not size or result is None or (colon and pricing not in PRICES):
        raise UsageError(
            f"--overlay {text!r}; legal: SIZE=CHANGE, LOCATION/SIZE=CHANGE, SIZE:spot=CHANGE "
            "with CHANGE such as -20%, +0.05 or 0.2"
        )
    where = location if slash else "*"

    def matches(a: str, b: str, p: str) -> bool:
        return fnmatchcase(a, where) and fnmatchcase(b, size) and (not colon or p == pricing)

    return PriceOverlay(matches, *result)


def apply(book: PriceBook, overlays: Sequence[PriceOverlay], notes: Notes) -> None:
    """Adjust the prices of a book: prices that are set, then percentages, then fixed amounts.

    No price falls below 0.
    """
    for (location, size), offer in book.offers.items():
        for pricing, key in PRICES.items():
            own = [o for o in overlays if o.matches(location, size, pricing)]
            if not own or (key not in offer and not any(o.kind == "set" for o in own)):
                continue
            if key not in offer and pricing == "spot" and "spot_interruption" not in offer:
                continue  # how often spot is taken away is not known: no such offer
            value = next(
                (o.amount for o in reversed(own) if o.kind == "set"), offer.get(key, Decimal(0))
            )
            for o in own:
                value = value * (100 + o.amount) / 100 if o.kind == "percent" else value
            value += sum((o.amount for o in own if o.kind == "fixed"), Decimal(0))
            offer[key] = max(Decimal(0), value).quantize(_DIGITS).normalize()
            notes.add(
                "assumption",
                "prices changed by overlays: percentages first, then fixed amounts",
                f"{location} {size} {pricing}",
            )
