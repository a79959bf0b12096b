"""The answer of ``placeopt consolidate`` in words; in a folder with the front, steps and script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from placeopt.core.errors import OutputError, PlaceoptError
from placeopt.core.files.documents import layout, write_text
from placeopt.core.fronts.words import counted, number
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.approval import Approval, ApprovalPage, listed
from placeopt.kubernetes.cluster import DEAR
from placeopt.kubernetes.consolidate.answer import (
    FEWER,
    ConsolidationAnswer,
    NodeRecord,
    ReasonRecord,
)
from placeopt.kubernetes.consolidate.situation import NODES, Situation
from placeopt.kubernetes.consolidate.situation import in_words as money
from placeopt.kubernetes.names import ABSENT
from placeopt.kubernetes.origin import OriginNote
from placeopt.plot.blocks import Block, Figures, Folded, Sentence, Table, html
from placeopt.plot.blocks import markdown as in_markdown

#: Lifts, reasons and nodes that are shown, and nodes that one line names.
_LIFTS, _REASONS, _NODES, _NAMED = 10, 40, 500, 8


def _amount(amount: float) -> str:
    """Return an amount; what is large without cents."""
    return number(round(amount) if amount >= 100 else round(amount, 2))


def sentences(found: ConsolidationAnswer) -> list[str]:
    """Return what costs what, in sentences."""
    unit, share = found.unit, found.saving / found.cost_now if found.cost_now else 0.0
    priced = unit != NODES
    now, after = (f", {money(c, unit)}" * priced for c in (found.cost_now, found.cost_after))
    saved = f"The plan saves {money(found.saving, unit)} ({share:.0%})."
    limited = any(reason.text == FEWER for node in found.nodes for reason in node.reasons)
    none = "No part of the plan keeps the limits." if limited else "No cheaper plan was found."
    told = [saved if found.saving > 0 else none]
    if found.removes:
        told = [_removal(found)]
    told.append(f"Now: {counted(found.nodes_now, 'node')}{now}.")
    if found.saving > 0:
        told.append(f"Enough: {counted(found.nodes_after, 'node')}{after}.")
    told.append(f"Cluster: {found.name}{_taken(found.taken)}.")
    stops = "none stops before its new copy runs"
    if found.stops:
        verb = "stops" if found.stops == 1 else "stop"
        stops = f"{number(found.stops)} {verb} before the new copy runs"
    beside = f" (beside {number(found.with_nodes)} that come with their node)" * (
        found.with_nodes > 0
    )
    told.append(f"{number(found.moves)} of {counted(found.pods, 'pod')}{beside} move; {stops}.")
    if found.days_to_pay is not None:
        restarts = counted(found.starts, "restart")
        told.append(f"The plan pays for its {restarts} in {counted(found.days_to_pay, 'day')}.")
    told += [f"Breaks: {text}." for text in found.breaks]
    if found.together:
        names = listed(list(found.together), _NAMED)
        told.append(f"All replicas in one place at the end, which no rule forbids: {names}.")
    if found.gone:
        told.append(f"These nodes go, in this order: {listed(list(found.gone), _NAMED)}.")
    if found.idle:
        told.append(f"Empty already: {listed(list(found.idle), _NAMED)}.")
    if found.bought:
        told.append(f"Buy first: {listed(list(found.bought), _NAMED)}.")
    if found.unpriced:
        names = listed(list(found.unpriced), _NAMED)
        told.append(f"Without a price, counted as 0: {names}.")
    told += [f"Left out: {_about(note)}." for note in found.notes if note.topic == "left-out"]
    told += [f"Assumed: {_about(n)}." for n in found.notes if "(--missing-requests)" in n.text]
    told += [f"{_about(n)}." for n in found.notes if n.text == DEAR]
    lacks = (n.subjects for n in found.notes if n.text == ABSENT)
    told += [f"{ABSENT.capitalize()}: {', '.join(kinds)}." for kinds in lacks]
    told.append(_bound(found))
    return [text for text in (*told, *_stopping(found)) if text]


def _taken(time: str) -> str:
    return f", as it was on {time[:10]} at {time[11:16]} UTC or later" if time else ""


def _about(note: OriginNote) -> str:
    """Return a note with the first that it is about."""
    more = f" and {note.count - 3} more" if note.count > 3 else ""
    return f"{note.text}: {', '.join(note.subjects[:3])}{more}" if note.subjects else note.text


def _removal(found: ConsolidationAnswer) -> str:
    """Return whether the one node that was asked for can go."""
    if found.gone:
        saved = f", which saves {money(found.saving, found.unit)}" * (found.saving > 0)
        return f"{found.removes} can go{saved}."
    return f"{found.removes} stays: {'; '.join(_why(node) for node in found.nodes)}."


def _bound(found: ConsolidationAnswer) -> str:
    if found.removes:
        proven = "No plan that keeps all rules and pins frees it: that is proven."
        return "" if found.gone or found.at_most > 0 else proven
    if found.at_most <= 0:
        return "No plan is cheaper: that is proven."
    left = money(found.at_most, found.unit)
    return f"A better plan could save {left} more at most: that is proven."


def _stopping(found: ConsolidationAnswer) -> list[str]:
    more = found.if_stopping
    if more is None:
        return []
    told = (
        f"With --allow-stops: {money(more.saves, found.unit)} less; "
        f"{counted(more.stops, 'pod')} would be down for a while"
    )
    return [f"{told}.", *(f"It would break: {text}." for text in more.breaks)]


def blocks(found: ConsolidationAnswer) -> list[Block]:
    """Return the answer: sentences, why nodes stay, what to lift."""
    results: list[Block] = [*map(Sentence, sentences(found))]
    if found.nodes:
        count = len(found.nodes)
        title = f"Why {counted(count, 'node')} {'stays' if count == 1 else 'stay'}"
        priced = () if found.unit == NODES else (found.unit,)
        columns = ("why", "nodes", *priced, "lifting it saves")
        results.append(Table(title, columns, _reasons(found), "reasons", _REASONS))
        rows = [(n.name, n.machine_type, n.cost, n.pods, _why(n)) for n in found.nodes]
        head = ("node", "machine", found.unit, "pods", "why")
        each = Table("Nodes that stay", head, rows, "nodes", _NODES)
        results.append(Folded("Each node that stays", [each]))
    if found.pods_move:
        moved = [(move.pod, move.node, move.to) for move in found.pods_move]
        results.append(Table("Where pods go", ("pod", "now on", "goes to"), moved, "pods"))
    if len({stage.steps for stage in found.stages}) > 1:
        stages = [(str(s.steps), s.node, _amount(s.saves)) for s in found.stages]
        goes = ("steps", "node that goes", f"saves {found.unit} so far")
        results.append(Table("What the first steps save", goes, stages, "nodes"))
    if found.costs:
        costs = [(c.name, c.now, c.after, round(c.after - c.now, 2)) for c in found.costs]
        groups = (found.by, "now", "after", "change")
        results.append(Table(f"{found.unit} by {found.by}", groups, costs, "rows"))
    if worth := [lift for lift in found.lifts if lift.saves]:
        lifts = [(one.change, _saved(one.saves, one.between), len(one.frees)) for one in worth]
        changes = ("change", f"saves {found.unit}", "nodes freed")
        results.append(Table("What to lift, each alone", changes, lifts, "changes", _LIFTS))
    elif found.lifts:
        proven = all(lift.between is None for lift in found.lifts if lift.saves is not None)
        text = "saves nothing" if proven else "saves nothing that was found; that is not proven"
        results.append(Sentence(f"Lifting one rule or pin alone {text}."))
    if unsolved := sum(lift.saves is None for lift in found.lifts):
        text = f"{counted(unsolved, 'change')} of nodes that cost less were not computed."
        results.append(Sentence(text))
    return results


def _saved(amount: float | None, between: tuple[float, float] | None) -> str:
    """Return what a lift saves; where that is not proven, what it lies between."""
    if between is None:
        return "" if amount is None else _amount(amount)
    return f"between {_amount(between[0])} and {_amount(between[1])}"


def _reasons(found: ConsolidationAnswer) -> list[tuple[str, ...]]:
    """Return a row for each reason: its nodes, what they cost, what lifting it saves."""
    groups: dict[tuple[str, str], tuple[ReasonRecord, list[NodeRecord]]] = {}
    for node in found.nodes:
        for reason in node.reasons:
            groups.setdefault((reason.text, reason.subject), (reason, []))[1].append(node)
    order = sorted(groups.values(), key=lambda row: -sum(node.cost for node in row[1]))
    return [
        (
            in_words(reason, pods=False),
            listed([node.name for node in nodes], _NAMED),
            *([] if found.unit == NODES else [_amount(sum(node.cost for node in nodes))]),
            _saved(reason.lifting_saves, reason.lifting_between),
        )
        for reason, nodes in order
    ]


def in_words(reason: ReasonRecord, *, pods: bool = True) -> str:
    """Return a reason with its workload, and how many pods, in words."""
    count = f" x {reason.pods}" if pods and reason.pods > 1 else ""
    return f"{reason.subject}{count}: {reason.text}" if reason.subject else reason.text


def _why(node: NodeRecord) -> str:
    return "; ".join(in_words(reason) for reason in node.reasons)


def markdown(found: ConsolidationAnswer, title: str = "Could the cluster be smaller?") -> str:
    """Return the answer for a pull request or a log of a pipeline."""
    return in_markdown(blocks(found), title)


class AnsweredPage:
    """An approval with the answer before it: a `placeopt.core.spec.Approved`."""

    def __init__(self, page: ApprovalPage, found: ConsolidationAnswer):
        self.page, self.found = page, found
        self.saving, self.breaks = page.saving, page.breaks

    def tiles(self) -> list[tuple[str, str, str]]:
        """Return large figures."""
        return self.page.tiles()

    def html(self) -> str:
        """Return the answer and what approvers read, as HTML."""
        made = blocks(self.found)
        return html([*made, *(b for b in self.page.blocks() if _what(b) not in map(_what, made))])

    def markdown(self, title: str) -> str:
        """Return the answer and what approvers read, as markdown."""
        return f"{markdown(self.found, title)}\n\n{self.page.markdown('The plan')}"


def _what(block: Block) -> str:
    """Return what a block is about, so that nothing is said twice."""
    if isinstance(block, Figures):
        return str(block.entries)
    return block.text if isinstance(block, Sentence) else block.title


# -- a folder --------------------------------------------------------------------------------------

#: The files of a folder, and what each is.
FILES = {
    "answer.json": "the answer",
    "answer.md": "the answer for a pull request",
    "instance.json": "the cluster as an instance, its names in instance.origin.json",
    "front.json": "the plan, as placeopt pick, plot and report read it",
    "steps.json": "the steps, as placeopt verify reads them",
    "steps.sh": "the steps as a script for kubectl",
    "report.html": "a page to approve the plan",
    "import.md": "what was assumed, pinned and left out",
}


def write(folder: Path, base: Situation, found: ConsolidationAnswer) -> Iterator[str]:
    """Write the files of an answer; yield a sentence for each that cannot be made.

    Raises
    ------
    OutputError
        The folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot make the folder: {error.strerror}") from None
    origin = base.imported.origin
    texts: dict[str, Callable[[], str]] = {
        "answer.json": lambda: layout(found.model_dump(mode="json")),
        "answer.md": lambda: markdown(found),
        "instance.json": lambda: layout(base.imported.document),
        "front.json": base.front.to_json,
        "steps.json": lambda: _exported(base, "json"),
        "steps.sh": lambda: _exported(base, "commands"),
        "report.html": lambda: _report(base, found),
        "import.md": lambda: base.imported.notes.markdown("rolling-update"),
    }
    for name, text in texts.items():
        try:
            made = text()
        except PlaceoptError as error:
            (folder / name).unlink(missing_ok=True)  # of another day
            yield f"{name} is not written: {error}"
            continue
        write_text(folder / name, made.rstrip("\n") + "\n")
    origins.write(origins.beside(folder / "instance.json"), origin)
    script = folder / "steps.sh"
    if script.exists():
        script.chmod(script.stat().st_mode | 0o111)


def _exported(base: Situation, form: str) -> str:
    from placeopt.kubernetes.export import export

    return export(base.problem, base.plan, base.imported.origin, form=form)


def _report(base: Situation, found: ConsolidationAnswer) -> str:
    from placeopt import report

    front = base.front
    index = next((k for k, p in enumerate(front.points) if p.plan == base.plan), None)
    approval = Approval(base.problem, base.plan, front, base.imported.origin)
    page = AnsweredPage(ApprovalPage(approval), found)
    return report.html(front, problem=base.problem, index=index, approved=page)
