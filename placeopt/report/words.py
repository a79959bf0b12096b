"""Fronts in words: values with units, the knee, the extremes, and what is proven."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from placeopt.core.fronts.certificate import CERTIFY
from placeopt.core.fronts.gap import gap_in_words
from placeopt.plot.markup import number
from placeopt.plot.style import bare_name, least

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Objective, Point

#: What the status of a point means.
STATUSES = {
    "optimal": "proven: no feasible plan is better",
    "bounded": "proven to be no further from the best than its gap",
    "heuristic": "found, with no proof of its own",
}


def value(objective: Objective, amount: float) -> str:
    """Return a value with its unit, shares as per cent.

    Examples
    --------
    >>> from placeopt.core.fronts.values import Objective
    >>> value(Objective("latency_ms", "ms"), 18.25), value(Objective("lost", "share"), 0.011)
    ('18.25 ms', '1.1%')
    """
    if objective.unit == "share":
        return f"{amount * 100:.3g}%"
    if objective.unit == "price":  # in the user's own currency, which no file names
        return number(amount)
    unit = "" if objective.unit == objective.name else objective.unit
    return f"{number(amount)} {unit}".rstrip()


def values(front: Front, point: Point) -> str:
    """Return all values of a point in a phrase."""
    return ", ".join(
        f"{bare_name(o)} {value(o, v)}" for o, v in zip(front.objectives, point.values, strict=True)
    )


def extremes(front: Front) -> list[tuple[str, int]]:
    """Return (what it is, index of the point): the knee, and the best of every objective.

    Objectives that do not vary are left out; the other objectives break ties.
    """
    results = [("the knee", front.points.index(front.pick()))]
    names = [o.name for o in front.objectives]
    for k, objective in enumerate(front.objectives):
        if front.ideal[k] == front.nadir[k]:
            continue
        order = [objective.name, *(n for n in names if n != objective.name)]
        results.append(
            (
                f"{least(objective)} {bare_name(objective)}",
                front.points.index(front.pick(lexicographic=order)),
            )
        )
    return results


def trade_offs(front: Front) -> list[str]:
    """Return a sentence for the knee, and for every extreme how it differs from the knee."""
    knee = front.pick()
    if len(front) == 1:
        return [f"One plan is at once the best found in every objective: {values(front, knee)}."]
    sentences = [f"The knee, the balanced choice: {values(front, knee)}."]
    best = dict(extremes(front)[1:])
    for column, objective in enumerate(front.objectives):
        what = f"{least(objective)} {bare_name(objective)}"
        if what not in best:
            sentences.append(
                f"Every plan has {bare_name(objective)} {value(objective, knee.values[column])}."
            )
            continue
        point = front.points[best[what]]
        if point.values[column] == knee.values[column]:
            sentences.append(f"The knee also has the {what}.")
            continue
        won = (
            f"{_change(knee.values[column], point.values[column])} than the knee"
            if point.values[column]
            else "none at all"
        )
        paid = [
            f"{bare_name(o)} {value(o, after)} ({_change(before, after)})"
            for k, (o, before, after) in enumerate(
                zip(front.objectives, knee.values, point.values, strict=True)
            )
            if k != column and o.sign * before < o.sign * after
        ]
        price = " and ".join(paid) or "nothing else"
        sentences.append(
            f"The {what} is {value(objective, point.values[column])}, {won}; the price is {price}."
        )
    return sentences


def _change(before: float, after: float) -> str:
    """Return a change in words."""
    if before == after:
        return "the same"
    if before < 0 or after < 0:
        return f"{number(abs(after - before))} {'more' if after > before else 'less'}"
    if before == 0:
        return "up from none"
    ratio = after / before
    if ratio >= 3:
        return f"{ratio:.1f} times as much"
    return f"{abs(ratio - 1):.1%} {'more' if ratio > 1 else 'less'}"


def certificate(front: Front) -> list[str]:
    """Return what is proven of a front, a plain sentence each."""
    counts = Counter(p.status for p in front.points)
    sentences = [
        f"{count:,} {'plan is' if count == 1 else 'plans are'} {status}: {meaning}."
        for status, meaning in STATUSES.items()
        if (count := counts[status])
    ]
    gaps = [p.gap for p in front.points if p.status == "bounded" and p.gap is not None]
    if gaps:
        sentences.append(f"The gaps of the bounded plans are {min(gaps):.2%} to {max(gaps):.2%}.")
    notes = (run.parameters.get("note") for run in front.runs if run.method == CERTIFY)
    sentences += [f"{note[0].upper()}{note[1:]}." for note in notes if note]
    if front.gap() is None:
        if counts["optimal"] == len(front) > 0 and all(run.completed for run in front.runs):
            sentences.append(
                "No bound on the whole front is on file; that there are no further plans between "
                "these is not stated by the file."
            )
        else:
            unknown = (
                "better plans than these may exist, and how much better is not known. "
                "Solve with --certify to know."
            )
            sentences.append(f"No bounds are on file: {unknown}")
        return sentences
    sentences.append(f"The front: {gap_in_words(front)}.")
    if front.box:
        sentences.append("It is a part of a larger front; what was left out counts as missing.")
    for column, objective in enumerate(front.objectives):
        sentences.append(_bound_sentence(front, column, objective))
    return sentences


def _bound_sentence(front: Front, column: int, objective: Objective) -> str:
    sign, best = objective.sign, float(front.ideal[column])
    bound = sign * min(sign * b[column] for b in front.bounds)
    better, beyond = ("more", "below") if sign < 0 else ("less", "above")
    limit = f"No plan can have {better} {bare_name(objective)} than"
    if sign * best <= sign * bound:
        return f"{limit} {value(objective, best)}, which is on this front."
    away = f", {abs(best / bound - 1):.1%} {beyond}" if bound > 0 else ""
    result = f"the {least(objective)} found is {value(objective, best)}{away}"
    return f"{limit} {value(objective, bound)}; {result}."
