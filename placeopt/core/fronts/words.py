"""Fronts in words: goals, values, proofs, runs; for terminal, page and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placeopt.core.fronts.values import CERTIFY, percent

if TYPE_CHECKING:
    from placeopt.core.fronts.front import Front
    from placeopt.core.fronts.values import Objective, Point, Run, Status

#: What the status of a point means.
STATUSES: dict[Status, str] = {
    "optimal": "proven: no feasible plan is better",
    "bounded": "proven to be no further from the best than its gap",
    "heuristic": "found, with no proof of its own",
}
_COMPLETE = "complete: every proven bound is reached by a plan, so no plan is missing"
_BEYOND = "; beyond these values plans may exist that are not counted"
#: Runs that a page names.
_MAX_RUNS = 8

# -- goals and numbers -----------------------------------------------------------------------------


def bare_name(objective: Objective) -> str:
    """Return the name of an objective without its unit, such as ``latency`` for ``latency_ms``."""
    name = objective.name.replace("_", " ")
    ending = " " + objective.unit.lower()
    return name[: -len(ending)] if name.lower().endswith(ending) else name


def in_page(objective: Objective) -> tuple[float, str]:
    """Return by what a page multiplies a value of an objective, and the unit that it shows.

    Examples
    --------
    >>> from placeopt.core.fronts.values import Objective
    >>> in_page(Objective("latency_ms", "ms")), in_page(Objective("lost", "share"))
    ((1.0, 'ms'), (100.0, '%'))
    """
    if objective.unit == "share":
        return 100.0, "%"
    # Prices are in the user's own currency, which no file names.
    return 1.0, "" if objective.unit in ("price", objective.name) else objective.unit


def least(objective: Objective) -> str:
    """Return what the best value of an objective is: the least, or the greatest."""
    return "greatest" if objective.sign < 0 else "least"


def label(objective: Objective) -> str:
    """Return the axis label of an objective, with its unit once.

    Examples
    --------
    >>> from placeopt.core.fronts.values import Objective
    >>> label(Objective("latency_ms", "ms")), label(Objective("profit", "EUR", sense="max"))
    ('latency (ms)', 'profit (EUR), maximised')
    """
    unit = f" ({objective.unit})" if objective.unit else ""
    return bare_name(objective) + unit + (", maximised" if objective.sign < 0 else "")


def bound_name(front: Front) -> str:
    """Return what proven bounds are called in a legend."""
    senses = {o.sense for o in front.objectives}
    if len(senses) > 1:
        return "bound"
    return "upper bound" if "max" in senses else "lower bound"


def number(value: float) -> str:
    """Return a number for people: thousands apart, at most five significant digits.

    Examples
    --------
    >>> number(1234567), number(0.0123456), number(61.0), number(123456.78)
    ('1,234,567', '0.012346', '61', '123,457')
    """
    if abs(value) >= 1e15:
        return f"{value:.5g}"
    if float(value).is_integer():
        return f"{int(value):,}"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.5g}"


def counted(count: float, what: str) -> str:
    """Return how many there are of something, by its name in the singular.

    Examples
    --------
    >>> counted(1, "plan"), counted(1200, "plan"), counted(0, "more run")
    ('1 plan', '1,200 plans', '0 more runs')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


def up_to(objectives: Sequence[Objective], corner: Sequence[float]) -> str:
    """Return in a phrase the part of the space of values that a reference point cuts off.

    Examples
    --------
    >>> from placeopt.core.fronts.values import Objective
    >>> up_to((Objective("cost", "EUR"), Objective("profit", "EUR", sense="max")), (5.5, 2.0))
    'up to cost 5.5, down to profit 2'
    """
    phrases = [f"{o.name} {x:.4g}" for o, x in zip(objectives, corner, strict=True)]
    ways = ["down to" if o.sign < 0 else "up to" for o in objectives]
    before = [None, *ways]
    told = zip(ways, before, phrases, strict=False)
    return ", ".join(text if way == last else f"{way} {text}" for way, last, text in told)


# -- plans -----------------------------------------------------------------------------------------


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


# -- proof -----------------------------------------------------------------------------------------


def origin_of(point: Point) -> str:
    """Return what is proven of a plan, and which methods found it, in a sentence.

    >>> from placeopt.core.fronts.values import Point
    >>> origin_of(Point((1.0,), {}, "bounded", 0.031, "moead", 7))
    'within 3.10% of optimal; found by moead, seed 7'
    """
    status = {"optimal": "proven optimal", "heuristic": "not proven optimal"}.get(point.status)
    if status is None:
        status = "with a bound" if point.gap is None else f"within {percent(point.gap)} of optimal"
    return f"{status}; found by {finders(point)}" if point.found_by else status


def finders(point: Point) -> str:
    """Return which methods found a plan, and the seed."""
    seed = "" if point.seed is None else f", seed {point.seed}"
    return (", ".join(point.found_by) or "unknown") + seed


def proof_in_words(points: tuple[Point, ...]) -> str:
    """Return how many plans there are, and what is proven of them, in a sentence.

    >>> from placeopt.core.fronts.values import Point
    >>> proof_in_words((Point((1.0,), {}), Point((2.0,), {})))
    '2 plans, none proven optimal.'
    """
    counts = Counter(point.status for point in points)
    plans = counted(len(points), "plan")
    if counts["optimal"] == len(points):
        return f"{plans}, {'all ' * (len(points) > 1)}proven optimal."
    if set(counts) == {"heuristic"}:
        return f"{plans}, {'none' if len(points) > 1 else 'not'} proven optimal."
    words: dict[Status, str] = {
        "optimal": "proven optimal",
        "bounded": "with a proven gap",
        "heuristic": "unproven",
    }
    parts = [f"{counts[status]:,} {told}" for status, told in words.items() if counts[status]]
    return f"{plans}: {', '.join(parts)}."


def gap_in_words(front: Front) -> str:
    """Return in a phrase how much the front may miss, empty where nothing is proven.

    Examples
    --------
    >>> from placeopt.core.fronts.front import Front
    >>> from placeopt.core.fronts.values import InstanceName, Objective, Point
    >>> goals = (Objective("latency_ms", "ms"), Objective("cost_usd", "USD"))
    >>> name = InstanceName("temporal", "toy", "")
    >>> gap_in_words(Front(name, goals, (Point((5.0, 1.0), {}),), ((5.0, 1.0), (1.0, 10.0))))
    'at most 0.01% of the attainable hypervolume is missing (up to latency_ms 5.5, cost_usd 1.1); \
beyond these values plans may exist that are not counted'
    """
    gap = front.gap()
    if gap is None:
        return ""
    if front.complete:
        return _COMPLETE
    within = up_to(front.objectives, front.reference().tolist())
    told = f"at most {percent(gap)} of the attainable hypervolume is missing ({within})"
    return told + (_BEYOND if front.open_beyond else "")


def only_started(front: Front) -> list[str]:
    """Return a sentence for each search of this front that ended before its first generation."""
    return [
        f"{run.method} ended before its first generation: its plans are those that it began with. "
        "Give it more evaluations or time."
        for run in front.runs
        if run.parameters.get("generations") == 0
    ]


def certificate(front: Front) -> list[str]:
    """Return what is proven of a front, a plain sentence each."""
    counts = Counter(p.status for p in front.points)
    sentences = [
        f"{count:,} {'plan is' if count == 1 else 'plans are'} {status}: {meaning}."
        for status, meaning in STATUSES.items()
        if (count := counts[status])
    ]
    sentences += only_started(front)
    gaps = [p.gap for p in front.points if p.status == "bounded" and p.gap is not None]
    if gaps:
        sentences.append(
            f"The gaps of the bounded plans are {percent(min(gaps))} to {percent(max(gaps))}."
        )
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
    away = f", {max(0.001, abs(best / bound - 1)):.1%} {beyond}" if bound > 0 else ""
    result = f"the {least(objective)} found is {value(objective, best)}{away}"
    return f"{limit} {value(objective, bound)}; {result}."


# -- runs ------------------------------------------------------------------------------------------


def run_in_words(run: Run) -> str:
    """Return who ran, and what it took."""
    counts = [(run.evaluations, "evaluations"), (run.solver_calls, "solver calls")]
    facts = [f"{run.seconds:.2f} s", *(f"{n:,} {what}" for n, what in counts if n)]
    seed = "" if run.seed is None else f", seed {run.seed}"
    return f"{run.method}{seed}: {', '.join(facts)}"


def made(front: Front) -> list[str]:
    """Return how a front was made, a run a line, and how much it may miss."""
    lines = [run_in_words(run) for run in front.runs[:_MAX_RUNS]]
    if len(front.runs) > _MAX_RUNS:
        lines.append(f"and {counted(len(front.runs) - _MAX_RUNS, 'more run')}")
    if gap := gap_in_words(front):
        lines.append(f"Grey crosses are proven {bound_name(front)}s. The front: {gap}.")
    return lines


def sentences(front: Front, kept: Front) -> list[str]:
    """Return how many plans there are, how good they are, and what is proven of them."""
    verb = "is" if len(kept) == 1 else "are"
    written = f" {len(kept):,} of them {verb} written." if len(kept) < len(front) else ""
    told = [proof_in_words(front.points) + written]
    told += [*only_started(front), quality(kept)]
    if front.bounds:
        told.append(f"The front: {gap_in_words(front)}.")
        if len(kept) < len(front):
            told.append(f"The plans written: {gap_in_words(kept)}.")
    return told


def quality(front: Front) -> str:
    """Return the hypervolume and its reference point; `placeopt compare` prints the same."""
    corner = front.reference().tolist()
    share = front.hypervolume(corner, plain=True)
    within = up_to(front.objectives, corner)
    return f"Quality (hypervolume): {share:.4f} of the box from the best values {within}."
