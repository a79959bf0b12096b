"""The page and the markdown of those who approve a rolling update, from its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.core.files.paths import AnyPath
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.words import number
from placeopt.core.problem import Problem
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.approval import (
    STEP_MINUTES,
    TOPICS_OF_APPROVERS,
    Approval,
    NamespaceCost,
    SpotUse,
    WorkloadPlaces,
    approve,
    listed,
)
from placeopt.plot.blocks import Block, Bullets, Figures, Folded, Sentence, Table, html
from placeopt.plot.blocks import markdown as in_markdown
from placeopt.plot.markup import Bar, Cell, Mark

_MAX_STEPS, _MAX_SPACES = 200, 40
_LEAVING, _MONTHS = ("node", "pods out", "workloads"), ("namespace", "now", "after", "change")
_REQUESTS = ("workload", "container", "cpu now", "cpu after", "memory now", "memory after")


class ApprovalPage:
    """An approval as pages and commands take it: a `placeopt.core.spec.Approved`."""

    def __init__(self, approval: Approval):
        self.approval = approval
        self.saving, self.breaks = approval.saving, bool(approval.verdict.violations)

    def tiles(self) -> list[tuple[str, str, str]]:
        """Return large figures: money first."""
        return self.approval.tiles()

    def blocks(self) -> list[Block]:
        """Return what an approver reads below the figures."""
        return blocks(self.approval)

    def html(self) -> str:
        """Return what an approver reads, as HTML."""
        return html(self.blocks())

    def markdown(self, title: str) -> str:
        """Return what an approver reads, as markdown for a pull request."""
        return markdown(self.approval, title)


def approved(
    front: Front, problem: Problem, index: int | None = None, beside: AnyPath | None = None
) -> ApprovalPage:
    """Return what approvers want to know of a plan of a rolling update.

    Parameters
    ----------
    front : Front
    problem : Problem
    index : int, optional
        The point; the knee by default.
    beside : path, optional
        The origin file of the instance.

    Raises
    ------
    UnsupportedError
        The problem is not rolling-update, or the plan does not fit the instance.
    UsageError
        The front has no points.
    DocumentError
        The file is no origin, or that of another instance.
    """
    origin = None if beside is None else origins.read(beside)
    if origin is not None:
        origin.check(problem, str(beside))
    try:
        return ApprovalPage(approve(front, problem, index, origin))
    except DocumentError as error:
        raise UnsupportedError(f"the plan does not fit the instance: {error}") from None


def _money(approval: Approval) -> list[str]:
    """Return sentences about spot nodes and about what runs twice on the way."""
    results = []
    before, after = approval.spot
    if before.spot or after.spot:
        results.append(
            f"Spot nodes: {before.spot} of {before.nodes} in use now ({before.share:.0%}), "
            f"{after.spot} of {after.nodes} after ({after.share:.0%})"
            f"{_interruptions(before, after)}."
        )
    return [*results, *([_transition(approval)] if approval.steps else [])]


def _transition(approval: Approval) -> str:
    """Return what runs twice while the plan is carried out, in a sentence."""
    extra = approval.transition
    if not extra.nodes:
        return "On the way no node is paid for twice: all that the plan uses host something now."
    unit, several = f" {approval.unit}" if approval.unit else "", "" if extra.nodes == 1 else "s"
    told = (
        f"On the way {extra.nodes} newly used node{several} ({number(extra.price)}{unit}) run"
        f"{'' if several else 's'} beside those that are freed at the end"
    )
    if approval.is_hourly:
        told += (
            f": about {number(round(extra.cost, 2))} {approval.currency}, at {STEP_MINUTES:g} "
            f"minutes for each of {len(approval.steps)} steps"
        )
        if approval.saving > 0:
            hours = number(round(extra.cost / approval.saving, 1))
            told += f"; the saving pays for it in {hours} h"
    return f"{told}."


def _interruptions(before: SpotUse, after: SpotUse) -> str:
    """Return how often spot nodes are expected to be taken away; empty where no rate is known."""
    if before.interruptions is None or after.interruptions is None:
        return ""
    told = (
        f"; expected interruptions a month: {number(round(before.interruptions, 3))} now, "
        f"{number(round(after.interruptions, 3))} after"
    )
    unknown = max(before.unknown, after.unknown)
    return told + (f" (no rate is known for {unknown} of them)" if unknown else "")


def _rests_on(approval: Approval) -> list[tuple[str, list[str]]]:
    """Return what the plan rests on: (heading, sentences)."""
    results = []
    for topic, heading in TOPICS_OF_APPROVERS.items():
        told = [
            f"{note.text}: {note.count} ({listed(list(note.subjects), 4)})"
            if note.subjects
            else note.text
            for note in approval.notes
            if note.topic == topic
        ]
        if told:
            results.append((heading, told))
    return results


def blocks(approval: Approval) -> list[Block]:
    """Return what an approver reads below the figures."""
    told = [Sentence(f"Buy first: {approval.buy}.")] if approval.buy else []
    told += [Sentence(f"Freed: {listed(approval.freed)}.")] if approval.freed else []
    told += [Sentence(f"Newly used: {listed(approval.opened)}.")] if approval.opened else []
    broken = [f"The plan breaks the instance: {v.message}" for v in approval.verdict.violations[:8]]
    told += [Sentence(text, strong=True) for text in (*broken, *approval.broken_budgets[:12])]
    told += map(Sentence, (approval.gap(), *_money(approval)))
    if approval.survival:
        told.append(Sentence(f"Survives the loss of any one node: {approval.survival}."))
    result: list[Block] = [*told]
    if approval.namespaces:
        months = _months(approval)
        title = f"{approval.currency} a month by namespace"
        rows = [(name, round(a, 2), round(b, 2), round(c, 2)) for name, a, b, c in months]
        result.append(Table(title, _MONTHS, rows))
    if approval.leaving:
        result.append(Table("What leaves which node", _LEAVING, approval.leaving, "nodes"))
    result += _places_tables(approval)
    if approval.new_requests:
        result.append(Table("New requests of containers", _REQUESTS, approval.new_requests))
    result.append(Folded(f"Steps, in order ({len(approval.steps):,})", [_steps_table(approval)]))
    loads = [(name, Bar(before), Bar(after)) for name, before, after in approval.headroom]
    result.append(Table("In use, of the nodes in use", ("resource", "now", "after"), loads))
    return [*result, *(Bullets(*told) for told in _rests_on(approval))]


def approval_html(approval: Approval) -> str:
    """Return what an approver reads, as HTML; a page has the figures on top."""
    return html(blocks(approval))


def markdown(approval: Approval, title: str) -> str:
    """Return what an approver reads, as markdown for a pull request."""
    return in_markdown([Figures(approval.tiles()), *blocks(approval)], title)


def _places_tables(approval: Approval) -> list[Block]:
    """Return where replicas are, now and after; what does not change is folded away."""
    changed = [w for w in approval.workloads if w.is_changed]
    same = [w for w in approval.workloads if not w.is_changed]
    columns, results = _columns_of_places(approval), list[Block]()
    if changed:
        rows = [_places(approval, w) for w in changed]
        title = f"Replicas per node and {_zone(approval)}"
        results.append(Table(title, columns, rows, "workloads"))
    if same:
        rows = [_places(approval, w) for w in same]
        one = len(same) == 1
        count = f"{len(same):,} workload{'' if one else 's'} of several replicas"
        title = f"{count} {'stays as it is' if one else 'stay as they are'}"
        results.append(Folded(title, [Table("As now", columns, rows, "workloads")]))
    return results


def _zone(approval: Approval) -> str:
    """Return what a cluster of the instance is called: zone, where it was imported."""
    return approval.problem.cluster_word


def _columns_of_places(approval: Approval) -> tuple[str, ...]:
    zones = (f"per {_zone(approval)} now", f"per {_zone(approval)} after")
    several = len(approval.problem.arrays.clusters) > 1
    return (
        "workload",
        "replicas",
        "per node now",
        "per node after",
        *(zones * several),
        "redundancy",
    )


def _places(approval: Approval, w: WorkloadPlaces) -> tuple[Cell, ...]:
    """Return the row of a workload, with a mark where its redundancy falls."""
    several = len(approval.problem.arrays.clusters) > 1
    zones = (_by_zone(w.zones_before), _by_zone(w.zones)) if several else ()
    alone = len(w.nodes) == 1
    mark: Cell = ""
    if w.falls:
        mark = Mark(f"falls: {w.falls}", "bad" if w.falls.startswith("one ") else "warn")
    elif alone:
        mark = Mark("one node", "warn")
    return w.name, w.replicas, _per_node(w.nodes_before), _per_node(w.nodes), *zones, mark


def _per_node(counts: Sequence[int]) -> str:
    return " + ".join(map(str, counts[:8])) + (" + ..." if len(counts) > 8 else "")


def _by_zone(counts: Mapping[str, int]) -> str:
    return listed([f"{zone} {count}" for zone, count in sorted(counts.items())], 4)


def _months(approval: Approval) -> list[tuple[str, float, float, float]]:
    """Return (namespace, now, after, change) a month.

    The rest of many namespaces is one row, and so are those that cost as much as now.
    """
    same = [row for row in approval.namespaces if abs(row.change) < 0.005]
    rows = [row for row in approval.namespaces if abs(row.change) >= 0.005]
    if len(same) < 2:
        rows, same = list(approval.namespaces), []
    if same:
        rows.append(_sum(f"{len(same)} namespaces that cost as much as now", same))
    if len(rows) > _MAX_SPACES:
        rest = rows[_MAX_SPACES - 1 :]
        rows[_MAX_SPACES - 1 :] = [_sum(f"{len(rest)} others", rest)]
    rows.append(_sum("together", approval.namespaces))
    return [(row.name, row.now, row.after, row.change) for row in rows]


def _sum(name: str, rows: Sequence[NamespaceCost]) -> NamespaceCost:
    return NamespaceCost(name, sum(row.now for row in rows), sum(row.after for row in rows))


def _steps_table(approval: Approval) -> Table:
    """Return the steps by workloads; those who make them find the pods in the script."""
    rows: list[tuple[Cell, ...]] = [
        (str(k + 1), what, Mark(action, tone), source, target)
        for k, (what, action, tone, source, target) in enumerate(approval.journeys())
    ]
    columns = ("step", "workload", "what", "from", "to")
    return Table("Steps by workload", columns, rows, "steps", _MAX_STEPS)
