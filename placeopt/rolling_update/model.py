"""Rolling updates as mixed-integer programs: the paper's, corrected, and a packing.

The paper's model is indexed by time. The packing is what is left without time. Equations are those
of M. Zambianco, S. Cretti, D. Siracusa, "Cost Minimization in Multi-cloud Systems with Runtime
Microservice Re-orchestration". ``models/rolling_update/README.md`` has the maths, says which
component is which equation, and what is wrong with the equations as printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyomo.environ as pyo
from pydantic import Field

from placeopt.core.errors import InfeasibleInstanceError, UnsupportedError, UsageError
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Problem, of_kind
from placeopt.exact.goals import declare, remember
from placeopt.rolling_update.arrays import UpdateArrays
from placeopt.rolling_update.problem import RollingUpdate
from placeopt.rolling_update.rules import APART, TOGETHER, RuleTables

# -- rules -----------------------------------------------------------------------------------------


class _Check(NamedTuple):
    """A rule as microservice m sees it; see `placeopt.rolling_update.rules.RuleTables`."""

    m: int
    kind: int
    counter: int
    bound: int
    own: int
    forgiven: bool


def add_row(model: pyo.ConcreteModel, rows: pyo.ConstraintList, relation: Any) -> None:
    """Add a relation to a list; of numbers alone it holds, or the model has no solution."""
    if not isinstance(relation, bool | np.bool_):
        rows.add(relation)
    elif not relation:
        rows.add(model.none >= 1)


def add_end(model: pyo.ConcreteModel) -> None:
    """Add that every check holds at the end, but for what rests and is forgiven.

    Needs ``at``, and ``rest``: whether a microservice is left alone.
    """
    rules = model.problem.arrays.rules
    model.rule_end = pyo.ConstraintList(doc="rules, at the end")
    if not len(rules.checks):
        return
    model.DOMAINS = pyo.Set(dimen=2, initialize=_domains(rules), doc="counter, domain")
    model.COUNTERS = pyo.Set(initialize=range(len(rules.domain)))
    model.end_count = pyo.Var(
        model.DOMAINS, domain=pyo.NonNegativeIntegers, doc="copies at the end"
    )
    model.end_alone = pyo.Var(model.COUNTERS, domain=pyo.Binary, doc="at most one at the end")
    model.end_counted = pyo.Constraint(
        model.DOMAINS, rule=lambda k, c, d: k.end_count[c, d] == _ends_in(k, c, d)
    )
    model.end_single = pyo.Constraint(
        model.COUNTERS,
        rule=lambda k, c: _sum(k.end_count, rules, c) <= 1 + _most(rules) * (1 - k.end_alone[c]),
    )
    for check in _checks(rules):
        rests = model.rest[check.m] if check.m in model.nodes_of else 1
        slack = rests if check.forgiven else 0
        for d, here in _here(model, check, lambda m, n: model.at[m, n]).items():
            others = model.end_count[check.counter, d] - check.own * here if d >= 0 else 0
            if d >= 0 and check.kind not in (APART, TOGETHER):
                others = model.end_count[check.counter, d]
            _add_check(
                model,
                model.rule_end,
                check,
                d,
                here,
                others,
                lambda c, k: model.end_count[c, k],
                model.end_alone[check.counter],
                slack,
                lambda c, k: _is_unused(model, c, k),
            )


def _shrinking(model: pyo.ConcreteModel) -> list[int]:
    """Return the nodes that are no domains of some counter once they are emptied for good."""
    a = model.problem.arrays
    counters = np.flatnonzero(a.rules.shrinks)
    result = (a.rules.domain[counters] >= 0).any(axis=0) & a.rules.priced & ~a.hosting(a.fixed)
    nodes: list[int] = np.flatnonzero(result).tolist()
    return nodes


def _node_of(model: pyo.ConcreteModel, c: int, d: int) -> int:
    """Return the node that domain d of a counter that shrinks is; -1 where it never leaves."""
    rules = model.problem.arrays.rules
    n = int(np.flatnonzero(rules.domain[c] == d)[0])
    return n if rules.shrinks[c] and n in _shrinking(model) else -1


def _is_unused(model: pyo.ConcreteModel, c: int, d: int) -> Any:
    """Return whether a domain of a counter is none any more at the end."""
    n = _node_of(model, c, d)
    return 1 - model.used[n] if n >= 0 else 0


def _add_check(
    model: pyo.ConcreteModel,
    rows: pyo.ConstraintList,
    check: _Check,
    d: int,
    here: Any,
    others: Any,
    count: Callable[[int, int], Any],
    alone: Any,
    slack: Any,
    left: Callable[[int, int], Any],
) -> None:
    """Add one check in domain d; -1 is none.

    Parameters
    ----------
    here
        Whether the microservice is there.
    others
        What the check counts there: the others, or to spread, all.
    count
        (counter, domain) -> what runs there beside it.
    alone
        Whether it is the only one.
    slack
        Whether it does not count.
    left
        (counter, domain) -> whether it is no domain any more.
    """
    rules = model.problem.arrays.rules
    big = _most(rules) + check.bound
    if check.kind == APART:
        if d >= 0:
            add_row(model, rows, others <= check.bound + big * (1 - here) + big * slack)
    elif d < 0:
        add_row(model, rows, here <= slack)
    elif check.kind == TOGETHER:
        rows.add(here <= others + (alone if check.own else 0) + slack)
    else:
        if rules.floor[check.counter]:
            add_row(model, rows, others <= check.bound + big * (1 - here) + big * slack)
        for k in _range(rules, check.counter):
            if k != d:
                fewest = count(check.counter, k)
                gone = left(check.counter, k)
                rows.add(
                    others - fewest <= check.bound + big * (1 - here) + big * slack + big * gone
                )


def assign_rules(model: pyo.ConcreteModel) -> None:
    """Give the variables of the rules the values that follow from the others."""
    rules = model.problem.arrays.rules
    if not len(rules.checks):
        return
    for (c, d), variable in model.end_count.items():
        variable.set_value(round(pyo.value(_ends_in(model, c, d))))
    for c, variable in model.end_alone.items():
        variable.set_value(int(pyo.value(_sum(model.end_count, rules, c)) <= 1))


def _domains(rules: RuleTables) -> list[tuple[int, int]]:
    return [(c, d) for c in range(len(rules.domain)) for d in _range(rules, c)]


def _range(rules: RuleTables, c: int) -> range:
    """Return the domains of counter c."""
    return range(int(rules.first[c + 1] - rules.first[c]) - 1)


def _most(rules: RuleTables) -> int:
    """Return more copies than can be counted anywhere, both copies of a move among them."""
    return len(rules.check_first) - 1 + int(rules.base.max(initial=0)) + 2


def _checks(rules: RuleTables) -> Iterator[_Check]:
    for m in range(len(rules.check_first) - 1):
        for k in range(rules.check_first[m], rules.check_first[m + 1]):
            kind, c, bound, own = rules.checks[k].tolist()
            yield _Check(m, kind, c, min(bound, _most(rules)), own, bool(rules.forgiven[k]))


def _base(rules: RuleTables, c: int, d: int) -> int:
    """Return the copies that counter c counts in domain d and that come with the nodes."""
    return int(rules.base[rules.first[c] + d])


def _members(rules: RuleTables, c: int) -> list[int]:
    """Return the microservices that counter c counts."""
    at = np.flatnonzero(rules.add == c)
    results: list[int] = (np.searchsorted(rules.add_first, at, side="right") - 1).tolist()
    return results


def _ends_in(model: pyo.ConcreteModel, c: int, d: int) -> Any:
    """Return how many copies that counter c counts end in domain d."""
    a = model.problem.arrays
    domain, total = a.rules.domain[c], _base(a.rules, c, d)
    for m in _members(a.rules, c):
        if m in model.nodes_of:
            total += pyo.quicksum(model.at[m, n] for n in model.nodes_of[m] if domain[n] == d)
        else:
            total += int(domain[a.home[m]] == d)
    return total


def _here(model: pyo.ConcreteModel, check: _Check, at: Callable[[int, int], Any]) -> dict[int, Any]:
    """Return domain -> whether the microservice of a check is there; -1 is no domain."""
    a, result = model.problem.arrays, dict[int, Any]()
    domain = a.rules.domain[check.counter].tolist()
    if check.m not in model.nodes_of:
        return {domain[a.home[check.m]]: 1}
    for n in model.nodes_of[check.m]:
        result[domain[n]] = result.get(domain[n], 0) + at(check.m, n)
    return result


def _sum(count: Any, rules: RuleTables, c: int) -> Any:
    return pyo.quicksum(count[c, d] for d in _range(rules, c))


# -- the loss of a node ----------------------------------------------------------------------------


def add_survival(model: pyo.ConcreteModel) -> None:
    """Add what is lost with each node, and that the others have room; needs ``at``, ``used``."""
    a = model.problem.arrays
    if a.survival.asked:
        _add_lost(model)
    if a.survival.room:
        _add_room(model)


def survival_goal(model: pyo.ConcreteModel) -> dict[str, Any]:
    """Return name -> expression of the objective; nothing where it is not asked for."""
    return {"lost_at_worst": model.lost} if model.problem.arrays.survival.asked else {}


def assign_survival(model: pyo.ConcreteModel, end: np.ndarray) -> None:
    """Give the variables the values of a deployment, int array (M,) of nodes."""
    s = model.problem.arrays.survival
    if not s.asked:
        return
    model.lost.set_value(int(s.lost(end[None])[0]))
    for g, n in model.short:
        count = int((end[s.member[s.group == g]] == n).sum())
        model.short[g, n].set_value(max(0, count - int(s.spare[g])))


def _add_lost(model: pyo.ConcreteModel) -> None:
    a = model.problem.arrays
    s = a.survival
    members = [s.member[s.group == g].tolist() for g in range(len(s.spare))]
    model.lost = pyo.Var(domain=pyo.NonNegativeIntegers, doc="w: copies lost at worst")
    model.short = pyo.Var(
        range(len(members)),
        range(len(s.capacity)),
        domain=pyo.NonNegativeReals,
        doc="v: copies of g that the loss of n takes and that g needs",
    )
    model.short_rows = pyo.ConstraintList(doc="v >= copies of g on n less those that may miss")
    for g, n in model.short:
        there = pyo.quicksum([_on(model, a.home, m, n) for m in members[g]])
        model.short_rows.add(there - model.short[g, n] <= int(s.spare[g]))
    model.lost_rows = pyo.Constraint(
        range(len(s.capacity)),
        rule=lambda k, n: pyo.quicksum(k.short[g, n] for g in range(len(members))) <= k.lost,
        doc="w >= sum of v on n",
    )


def _on(model: pyo.ConcreteModel, home: np.ndarray, m: int, n: int) -> Any:
    """Return whether microservice m ends on node n."""
    if m not in model.nodes_of:
        return int(home[m] == n)
    return model.at[m, n] if n in model.nodes_of[m] else 0


def _add_room(model: pyo.ConcreteModel) -> None:
    """Add that the nodes in use have room for all without any one of them: necessary, not enough.

    The search's cuts exclude deployments whose copies find no place one by one.
    """
    a = model.problem.arrays
    s, need = a.survival, a.new.sum(axis=0).tolist()
    nodes = range(len(s.capacity))

    def in_use(n: int) -> Any:
        return 1 if s.standing[n] or n not in model.CLOSABLE else model.used[n]

    priced = [n for n in model.CLOSABLE if n in nodes and not s.standing[n]]
    model.hosts = pyo.Constraint(
        priced,
        rule=lambda k, n: k.used[n] <= pyo.quicksum([k.at[m, n] for m in k.arrivals[n]]),
        doc="a node without anything is not in use",
    )
    model.room_left = pyo.ConstraintList(doc="room without n")
    for r, wanted in enumerate(need):
        total = pyo.quicksum([int(s.capacity[n, r]) * in_use(n) for n in nodes])
        for n in nodes if wanted else ():
            left = total - int(s.capacity[n, r]) * in_use(n)
            add_row(model, model.room_left, left >= wanted)


# -- limits ----------------------------------------------------------------------------------------


def add_limits(model: pyo.ConcreteModel) -> None:
    """Add the limits of nodes; needs ``used`` and ``at``."""
    a = model.problem.arrays
    if not a.limits.any:
        return
    model.use_hosts = pyo.Constraint(
        [n for n in model.CLOSABLE if n < a.num_real],
        rule=lambda k, n: k.used[n] <= pyo.quicksum([k.at[m, n] for m in k.arrivals[n]]),
        doc="a node without anything is not in use",
    )
    count = len(a.limits.most)
    model.adds = pyo.Var(range(count), domain=pyo.Binary, doc="z: a node of it is newly used")
    model.few = pyo.Var(range(count), domain=pyo.Binary, doc="w: one node of the limit at most")
    model.limit_rows = pyo.ConstraintList(doc="limits of nodes")
    for k in range(count):
        _add_limit(model, k)


def _add_limit(model: pyo.ConcreteModel, k: int) -> None:
    a, limits = model.problem.arrays, model.problem.arrays.limits
    own = np.flatnonzero(limits.amount[k]).tolist()
    for n in own:
        if not limits.now[n] and n in model.CLOSABLE:
            model.limit_rows.add(model.used[n] <= model.adds[k])
    slack = int(limits.amount[k].sum()) - int(limits.most[k])
    if slack > 0:
        total = pyo.quicksum([int(limits.amount[k, n]) * _used(model, n) for n in own])
        model.limit_rows.add(total <= int(limits.most[k]) + slack * (1 - model.adds[k]))
    if limits.share[k] < 1:
        there = pyo.quicksum([_used(model, n) for n in own])
        every = pyo.quicksum([_used(model, n) for n in range(a.num_real)])
        loose = len(own) * (1 - model.adds[k])
        model.limit_rows.add(there <= 1 + len(own) * (1 - model.few[k]) + loose)
        share = float(limits.share[k])
        model.limit_rows.add(there <= share * every + 1e-9 + len(own) * model.few[k] + loose)


def assign_limits(model: pyo.ConcreteModel, end: np.ndarray) -> None:
    """Give the variables the values of a deployment, int array (M,) of nodes."""
    a = model.problem.arrays
    if not a.limits.any:
        return
    used = np.bincount(end[end >= 0], minlength=len(a.price)) > 0
    for k in model.adds:
        own = used & (a.limits.amount[k] > 0)
        model.adds[k].set_value(int((own & ~a.limits.now).any()))
        model.few[k].set_value(int(own.sum() <= 1))


def _used(model: pyo.ConcreteModel, n: int) -> Any:
    return model.used[n] if n in model.CLOSABLE else 1


# -- size ------------------------------------------------------------------------------------------


def rules_size(a: UpdateArrays) -> int:
    """Return about how many coefficients the rules add to the packing model."""
    if not len(a.rules.checks):
        return 0
    domains = np.diff(a.rules.first) - 1
    of_check = domains[a.rules.checks[:, 1]]
    spread = np.where(a.rules.checks[:, 0] > TOGETHER, of_check**2 * 3, of_check * 3)
    return int(spread.sum() + len(a.rules.add) * len(a.price) + len(a.rules.checks) * len(a.price))


def static_size(problem: RollingUpdate) -> int:
    """Return about how many coefficients the static model has."""
    a = problem.arrays
    own = int(a.movable.sum()) * (3 + 2 * len(a.resources)) * len(a.price)
    more = rules_size(a) + survival_size(a)
    return own + 2 * len(a.tight_flows) * len(a.price) + more


def survival_size(a: UpdateArrays) -> int:
    """Return about how many coefficients the loss of nodes adds to the packing model."""
    s, nodes = a.survival, len(a.price)
    room = len(a.resources) * nodes**2 if s.room else 0
    return (len(s.member) + 2 * len(s.spare)) * nodes + room


# -- the model -------------------------------------------------------------------------------------

Slots = Annotated[
    int | None,
    Field(ge=0, le=10**6, description="Moves of a plan; by default one per microservice."),
]


def build(problem: Problem, *, slots: Slots = None) -> pyo.ConcreteModel:
    """Return the time-indexed model.

    Each slot has one move at most, every move is made once, and nothing is stopped.

    Returns
    -------
    pyomo.environ.ConcreteModel
        ``node_cost``, ``starts`` and ``disruptions`` (always 0) are its Expressions;
        ``epsilon[name]`` bounds one of them.

    Raises
    ------
    InfeasibleInstanceError
        The instance says so itself.
    UnsupportedError
        The instance has rules, limits of nodes, or asks what the loss of a node leaves.
    UsageError
        Fewer slots than microservices that must be restarted.
    """
    problem = of_kind(RollingUpdate, problem)
    a = problem.arrays
    if len(a.rules.checks) or a.limits.any or a.survival.asked or a.survival.room:
        raise UnsupportedError(
            "the time-indexed model knows no rules, limits of nodes or survival; "
            "use method 'decomposition', which proves with all of them"
        )
    required, most = (int((x | a.removed).sum()) for x in (a.mandatory, a.movable))
    slots = most if slots is None else slots
    if slots < required:
        raise UsageError(f"slots is {slots}; {required} microservices must be restarted or removed")
    model = _begin(problem)
    model.SLOTS = pyo.RangeSet(1, min(slots, most))
    model.move = pyo.Var(
        model.PLACEMENTS,
        model.SLOTS,
        domain=pyo.Binary,
        doc="x: the new copy of m starts on n in slot t",
    )
    model.rest = pyo.Var(model.MICROSERVICES, domain=pyo.Binary, doc="u: m is left alone")
    for m in model.MICROSERVICES:
        if a.mandatory[m] or (m, a.home[m]) not in model.PLACEMENTS:
            model.rest[m].fix(0)
    model.at = pyo.Expression(model.PLACEMENTS, rule=_ends_at, doc="X: m ends on n")
    _add_deployment(model)
    model.one_per_slot = pyo.Constraint(
        model.SLOTS, rule=lambda m, t: _moves_in(m, t) <= 1, doc="(7), over all applications"
    )
    model.no_gap = pyo.Constraint(model.SLOTS, rule=_no_gap, doc="idle slots come last")
    _add_loads(model)
    _add_replicas(model)
    for m, n in model.PLACEMENTS:
        if not a.may_host(m)[n]:  # it may rest there, and start there never again
            for t in model.SLOTS:
                model.move[m, n, t].fix(0)
    starts = _total(x for (m, _, _), x in model.move.items() if not a.removed[m])
    _declare(model, starts)
    return remember(model, problem, extract, assign=assign, omitted=OMITTED)


def build_static(problem: RollingUpdate) -> pyo.ConcreteModel:
    """Return the packing that is left when time is dropped: a relaxation of every plan.

    Plans with hops and stops are among them.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With the same Expressions; `starts` counts every microservice once that must start, or that
        ends elsewhere.

    Raises
    ------
    InfeasibleInstanceError
        The instance says so itself.
    """
    model = _begin(problem)
    a = problem.arrays
    model.at = pyo.Var(model.PLACEMENTS, domain=pyo.Binary, doc="X: m ends on n")
    resting = {m for m, n in model.PLACEMENTS if n == a.home[m] and not a.mandatory[m]}
    model.rest = {m: model.at[m, a.home[m]] if m in resting else 0 for m in model.nodes_of}
    _add_deployment(model)
    stay = [
        model.at[m, a.home[m]]
        for m in model.MICROSERVICES
        if not a.mandatory[m] and (m, a.home[m]) in model.PLACEMENTS
    ]
    _declare(model, int(a.movable.sum()) - _total(stay))
    return model


def size(problem: RollingUpdate, *, slots: Slots = None) -> int:
    """Return about how many coefficients the time-indexed model has."""
    a = problem.arrays
    moving = int((a.movable | a.removed).sum())
    return 10 * moving * len(a.price) * (moving if slots is None else slots)


#: What the time-indexed model cannot express.
OMITTED = "plans with stops or hops"


def extract(model: pyo.ConcreteModel) -> dict[str, Any]:
    """Return the plan of a solved time-indexed model."""
    moves = sorted(
        (t, m, n) for (m, n, t), variable in model.move.items() if (variable.value or 0) > 0.5
    )
    return model.problem.plan([(m, n) for _, m, n in moves])


def target(model: pyo.ConcreteModel) -> np.ndarray:
    """Return the node of every microservice at the end of a solved model, shape (M,)."""
    end = model.problem.arrays.stays_on.copy()
    for (m, n), where in model.at.items():
        if (pyo.value(where, exception=False) or 0) > 0.5:
            end[m] = n
    return end


def assign_target(model: pyo.ConcreteModel, end: np.ndarray) -> None:
    """Give the variables of a static model the values of a deployment, int array (M,) of nodes."""
    for (m, n), variable in model.at.items():
        variable.set_value(int(end[m] == n))
    _assign_used(model, end)
    assign_rules(model)


def _assign_used(model: pyo.ConcreteModel, end: np.ndarray) -> None:
    """Give the variables on nodes, stops and losses the values of a deployment."""
    hosting = set(end.tolist())
    for n, variable in model.used.items():
        variable.set_value(int(n in hosting))
    model.stops.set_value(0)
    model.none.set_value(0)
    assign_survival(model, end)
    assign_limits(model, end)


def assign(model: pyo.ConcreteModel, plan: Plan) -> bool:
    """Give the variables of a time-indexed model the values of a plan.

    Return False for a plan that the model does not allow: with stops, hops or too many moves.
    """
    steps = model.problem.steps(plan)
    moved = {m for m, _ in steps}
    if (
        len(moved) < len(steps)
        or len(steps) > len(model.SLOTS)
        or any(step not in model.PLACEMENTS for step in steps)
    ):
        return False
    for variable in model.move.values():
        variable.set_value(0)
    for m in model.MICROSERVICES:
        model.rest[m].set_value(int(m not in moved))
    for t, (m, n) in enumerate(steps, start=1):
        model.move[m, n, t].set_value(1)
    _assign_used(model, model.problem.arrays.final_nodes(steps))
    for n, r, t in model.node_load:
        model.node_load[n, r, t].set_value(round(pyo.value(_load_after(model, n, r, t))))
    return True


def _begin(problem: RollingUpdate) -> pyo.ConcreteModel:
    """Return the sets that both models share, and `used`."""
    if reasons := problem.infeasibility():
        raise InfeasibleInstanceError(reasons)
    a = problem.arrays
    model = pyo.ConcreteModel(name=problem.name)
    model.problem = problem
    moving = np.flatnonzero(a.movable | a.removed).tolist()
    model.nodes_of = {m: _nodes_for(problem, m) for m in moving}
    model.MICROSERVICES = pyo.Set(initialize=moving, doc="m in M^: may move, or is removed")
    model.NODES = pyo.Set(initialize=range(len(a.price)), doc="n in N")
    model.RESOURCES = pyo.Set(
        initialize=range(len(a.resources)), doc="CPU, memory, further resources"
    )
    model.PLACEMENTS = pyo.Set(
        dimen=2,
        initialize=[(m, n) for m, nodes in model.nodes_of.items() for n in nodes],
        doc="(m, n): the new copy fits alone, the node is not to be drained",
    )
    model.none = pyo.Var(bounds=(0, 0), doc="0: of rows that cannot hold")
    model.arrivals = {n: [] for n in model.NODES}
    for m, n in model.PLACEMENTS:
        model.arrivals[n].append(m)
    model.CLOSABLE = pyo.Set(
        initialize=np.flatnonzero(~a.hosting(a.fixed)).tolist(), doc="nodes with F = 0"
    )
    model.used = pyo.Var(
        model.CLOSABLE,
        domain=pyo.Binary,
        doc="y: n hosts something at the end; 1 for all other nodes, (8)",
    )
    return model


def _nodes_for(problem: RollingUpdate, m: int) -> list[int]:
    a = problem.arrays
    if a.pinned[m]:
        return [int(a.home[m])]
    result = a.may_host(m)
    if a.removed[m]:
        return np.flatnonzero(result).tolist()
    if not a.mandatory[m] and not a.drain[a.home[m]]:
        result[a.home[m]] |= (a.new[m] <= a.capacity[a.home[m]]).all()
    return np.flatnonzero(result).tolist()


def _add_deployment(model: pyo.ConcreteModel) -> None:
    """Add (3), (4), (6) and (8) at the end: a node each, room there, and latencies in limits."""
    a = model.problem.arrays
    model.assign_once = pyo.Constraint(
        model.MICROSERVICES,
        rule=lambda k, m: _total(k.at[m, n] for n in k.nodes_of[m]) == 1,
        doc="(6)",
    )

    def final(k: Any, n: int, r: int) -> Any:
        hosted = _total(int(a.new[m, r]) * k.at[m, n] for m in k.arrivals[n] if a.new[m, r])
        if isinstance(hosted, int):
            return pyo.Constraint.Skip
        room = int(a.capacity[n, r] - a.fixed_load[n, r])
        return hosted <= (room * k.used[n] if n in k.CLOSABLE else room)

    model.final_load = pyo.Constraint(
        model.NODES, model.RESOURCES, rule=final, doc="(3), at the end"
    )
    closable = [(m, n) for m, n in model.PLACEMENTS if n in model.CLOSABLE]
    model.opens = pyo.Constraint(
        closable, rule=lambda k, m, n: k.at[m, n] <= k.used[n], doc="sharper than final_load alone"
    )
    add_end(model)
    add_survival(model)
    add_limits(model)
    model.locality = pyo.ConstraintList(doc="(4), by clusters")
    for one, other, limit in a.tight_flows:
        _add_locality(model, one, other, a.latency <= limit)
        _add_locality(model, other, one, (a.latency <= limit).T)


def _add_locality(model: pyo.ConcreteModel, m: int, peer: int, legal: np.ndarray) -> None:
    """Add that where m is in a cluster, its peer is in one that is near enough."""
    a, nodes = model.problem.arrays, model.nodes_of
    if m not in nodes:
        return
    for c in range(len(a.clusters)):
        if legal[c].all():
            continue
        here = [model.at[m, n] for n in nodes[m] if a.cluster[n] == c]
        if not here:
            continue
        if peer not in nodes:
            if not legal[c, a.cluster[a.home[peer]]]:
                model.locality.add(_total(here) <= 0)
            continue
        near = [model.at[peer, n] for n in nodes[peer] if legal[c, a.cluster[n]]]
        model.locality.add(_total(here) <= _total(near))


def _cost(model: pyo.ConcreteModel) -> Any:
    """Return (2): what the nodes cost that host something at the end."""
    a = model.problem.arrays
    paid = sum(int(a.price[n]) for n in model.NODES if n not in model.CLOSABLE)
    return (
        paid + _total(int(a.price[n]) * model.used[n] for n in model.CLOSABLE if a.price[n])
    ) / a.price_scale


def _declare(model: pyo.ConcreteModel, starts: Any) -> None:
    """Declare the objectives; the number of stops is always 0: these models stop nothing."""
    model.stops = pyo.Var(domain=pyo.NonNegativeIntegers, doc="microservices stopped")
    model.no_stops = pyo.Constraint(expr=model.stops <= 0)
    goals = {"node_cost": _cost(model), "starts": starts, "disruptions": model.stops}
    declare(model, goals | survival_goal(model))


def _total(terms: Iterable[Any]) -> Any:
    return pyo.quicksum(list(terms))


def _ends_at(model: pyo.ConcreteModel, m: int, n: int) -> Any:
    moved = _total(model.move[m, n, t] for t in model.SLOTS)
    return moved + model.rest[m] if n == model.problem.arrays.home[m] else moved


def _moves_in(model: pyo.ConcreteModel, t: int) -> Any:
    return _total(model.move[m, n, t] for m, n in model.PLACEMENTS)


def _no_gap(model: pyo.ConcreteModel, t: int) -> Any:
    return pyo.Constraint.Skip if t == 1 else _moves_in(model, t) <= _moves_in(model, t - 1)


def _add_loads(model: pyo.ConcreteModel) -> None:
    """Add (5), with the load of a node after each slot as a variable.

    What arrives in a slot has room beside the load before it.
    """
    a = model.problem.arrays
    highest = np.maximum(a.initial_load, a.capacity).tolist()
    model.node_load = pyo.Var(
        model.NODES,
        model.RESOURCES,
        model.SLOTS,
        bounds=lambda _, n, r, t: (0, highest[n][r]),
        doc="L: after slot t",
    )
    model.leavers = [[m for m in model.MICROSERVICES if a.home[m] == n] for n in model.NODES]
    model.carry = pyo.Constraint(
        model.NODES,
        model.RESOURCES,
        model.SLOTS,
        rule=lambda k, n, r, t: k.node_load[n, r, t] == _load_after(k, n, r, t),
        doc="(5): loads",
    )

    def peak(k: Any, n: int, r: int, t: int) -> Any:
        arriving = [k.move[m, n, t] for m in k.arrivals[n]]
        if not arriving:
            return pyo.Constraint.Skip
        excess = max(0, int(a.initial_load[n, r] - a.capacity[n, r]))
        peak = _load_before(k, n, r, t) + _total(
            int(a.new[m, r]) * x for m, x in zip(k.arrivals[n], arriving, strict=True)
        )
        return peak <= int(a.capacity[n, r]) + excess * (1 - _total(arriving))

    model.peak = pyo.Constraint(
        model.NODES,
        model.RESOURCES,
        model.SLOTS,
        rule=peak,
        doc="(5): a copy arrives where it fits",
    )


def _add_replicas(model: pyo.ConcreteModel) -> None:
    """Add that of each replica set that grows and shrinks enough are ready after every slot."""
    sets = model.problem.arrays.sets

    def ready(k: Any, s: int, t: int) -> Any:
        one, until = sets[s], range(1, t + 1)
        removed, added = (
            _total(k.move[m, n, u] for m in own for n in k.nodes_of[m] for u in until)
            for own in (one.removed, one.added)
        )
        return removed - added <= one.spare

    model.replicas = pyo.Constraint(
        range(len(sets)), model.SLOTS, rule=ready, doc="as many as the smaller number are ready"
    )


def _load_before(model: pyo.ConcreteModel, n: int, r: int, t: int) -> Any:
    return int(model.problem.arrays.initial_load[n, r]) if t == 1 else model.node_load[n, r, t - 1]


def _load_after(model: pyo.ConcreteModel, n: int, r: int, t: int) -> Any:
    a = model.problem.arrays
    arrived = _total(int(a.new[m, r]) * model.move[m, n, t] for m in model.arrivals[n])
    left = _total(
        int(a.old[m, r]) * _total(model.move[m, k, t] for k in model.nodes_of[m])
        for m in model.leavers[n]
    )
    return _load_before(model, n, r, t) + arrived - left
