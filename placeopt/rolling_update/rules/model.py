"""Rules in the packing model of rolling updates: counts of copies in domains at the end.

``models/rolling_update/README.md`` has the maths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from placeopt.rolling_update.rules.tables import APART, TOGETHER, RuleTables


class _Check(NamedTuple):
    """A rule as microservice m sees it; see `placeopt.rolling_update.rules.tables.RuleTables`."""

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


def assign(model: pyo.ConcreteModel) -> None:
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
