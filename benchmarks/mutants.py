"""Faults put into the judges, one at a time, and whether a test notices: ``make mutants``.

    python benchmarks/mutants.py                     # 300 faults, and the page
    python benchmarks/mutants.py --only dominance    # all faults of one file, told on the terminal

A fault changes one operator, comparison, constant, condition or choice between two functions in the
syntax tree of a file. The tests of the file are collected and run once; then a process of its own
has the changed functions and runs them until one fails. Faults that no test notices stand on the
page; ``mutants.toml`` says of each why nothing else could be seen. Judges are plain Python;
compiled kernels are compared with them by other tests.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import os
import random
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
import stamps
from machine import table

ROOT = Path(__file__).resolve().parents[1]
#: Faults that no test notices, each with the reason why none can.
KNOWN = ROOT / "benchmarks" / "mutants.toml"
#: Seconds after which the tests of one fault are taken not to end.
LONGEST = 300
#: File of `placeopt` -> the tests of it, quick ones first.
JUDGES = {
    "temporal/referee": ["test_judges.py", "temporal/test_instance.py"],
    "edge_cloud/referee": ["test_judges.py", "edge_cloud/test_instance.py"],
    "rolling_update/referee": [
        "test_judges.py",
        "rolling_update/test_replicas.py",
        "rolling_update/test_instance.py",
        "rolling_update/test_rules.py",
        "rolling_update/test_limits.py",
        "rolling_update/test_survival.py",
    ],
    "multi_cluster/referee": ["test_judges.py", "multi_cluster/test_instance.py"],
    "rescheduling/referee": ["test_judges.py", "rescheduling/test_instance.py"],
    "core/fronts/dominance": ["core/test_dominance.py"],
    "core/fronts/certificate": ["core/test_gap.py", "test_proofs_never_cost_fronts.py"],
    "core/goals": ["core/test_limit_rules.py"],
    "core/budget": ["core/test_budget.py"],
    "kubernetes/pinned": ["kubernetes/test_budget_rules.py", "kubernetes/test_who_may_move.py"],
    "kubernetes/approval": ["kubernetes/test_money.py", "kubernetes/test_approval.py"],
    "kubernetes/verify": ["kubernetes/test_verify_filters.py"],
}
#: Where other things stand in the file of a judge: the functions and classes that judge.
JUDGING = {
    "core/fronts/dominance": (
        "minimal",
        "all_reached",
        "nondominated",
        "hypervolume",
        "contributions",
        "join_bounds",
        "_maxima",
        "_Staircase",
        "worst",
        "scaled",
        "igd_plus",
        "epsilon",
        "_behind",
    ),
    "core/goals": (
        "read_limits",
        "_split",
        "_number",
        "upper_limits",
        "excess",
        "judged",
        "fewest",
        "nothing_inside",
        "window",
    ),
    "kubernetes/pinned": (
        "hold_by_budgets",
        "_selected",
        "origin_budgets",
        "budgets_by_pod",
        "budgets_of",
        "allowed_now",
        "_allowed",
        "share_of",
        "broken_budgets",
    ),
    "kubernetes/approval": (
        "SpotUse",
        "Transition",
        "spot_use",
        "NamespaceCost",
        "Deployed",
        "namespace_costs",
    ),
}
#: Operator -> what takes its place.
OPERATORS = {"Lt": "LtE", "Gt": "GtE", "Eq": "NotEq", "Is": "IsNot", "In": "NotIn", "And": "Or"}
OPERATORS |= {to: op for op, to in OPERATORS.items()}
OPERATORS |= {"Add": "Sub", "Sub": "Add", "Mult": "Add", "Div": "Mult", "FloorDiv": "Mult"}
#: Function -> what takes its place.
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}


class Fault(NamedTuple):
    """The change number `change` of the node number `node` of a file."""

    name: str
    node: int
    change: int

    def trees(self) -> tuple[ast.AST, ast.AST, ast.Module]:
        """Return the node before and after, and the changed syntax tree."""
        before, after = parsed(self.name), parsed(self.name)
        old, new = (list(ast.walk(tree))[self.node] for tree in (before, after))
        changes(new)[self.change]()
        return old, new, after

    def __str__(self) -> str:
        old, new, _ = self.trees()
        parts = [getattr(one, "test", one) for one in (old, new)]  # of `if` the condition alone
        return " -> ".join(map(ast.unparse, parts))


def parsed(name: str) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse((ROOT / "placeopt" / f"{name}.py").read_text(encoding="utf-8"))


def faults(name: str) -> Iterator[Fault]:
    """Yield every fault of a file; what is only printed, and what judges nothing, is left out."""
    tree = parsed(name)
    passed: list[ast.AST] = [one for one in ast.walk(tree) if isinstance(one, ast.JoinedStr)]
    # that nobody changes an object, and that two lists are of one length, changes no verdict
    names = ("strict", "frozen")
    passed += [one for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg in names]
    if name in JUDGING:
        passed += [one for one in tree.body if getattr(one, "name", "") not in JUDGING[name]]
    left_out = {id(part) for one in passed for part in ast.walk(one)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in left_out:
            yield from (Fault(name, number, k) for k in range(len(changes(node))))


def changes(node: Any) -> list[Callable[[], None]]:
    """Return what can be changed of a node, as functions that do it."""

    def other(op: ast.AST) -> Any:
        return getattr(ast, OPERATORS[type(op).__name__])()

    match node:
        case ast.Compare():
            ops = enumerate(node.ops)
            return [lambda k=k, op=op: node.ops.__setitem__(k, other(op)) for k, op in ops]
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() if type(node.op).__name__ in OPERATORS:
            return [lambda: setattr(node, "op", other(node.op))]
        case ast.Constant(value=bool()):
            return [lambda: setattr(node, "value", not node.value)]
        case ast.Constant(value=int() | float() as value):
            to = value * 2 if abs(value) > 1000 else value + 1
            return [lambda: setattr(node, "value", to)]
        case ast.If() | ast.IfExp() if not isinstance(node.test, ast.Compare):
            return [lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))]
        case ast.Name() if node.id in CALLED:
            return [lambda: setattr(node, "id", CALLED[node.id])]
        case ast.Attribute() if node.attr in CALLED:
            return [lambda: setattr(node, "attr", CALLED[node.attr])]
    return []


def serve(name: str, tree: ast.Module) -> None:
    """Give the functions of a module, and its constants, what a changed syntax tree has."""
    module = importlib.import_module("placeopt." + name.replace("/", "."))
    file = str(module.__file__)
    code = compile(ast.fix_missing_locations(tree), file, "exec")
    new = {one.co_qualname: one for one in codes(code)}
    for function in (one for one in gc.get_objects() if isinstance(one, FunctionType)):
        if function.__code__.co_filename == file and function.__code__.co_qualname in new:
            function.__code__ = new[function.__code__.co_qualname]
    fresh = {"__name__": module.__name__, "__file__": file}
    exec(code, fresh)
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
    made = {one.__qualname__: one for one in functions if one.__globals__ is fresh}
    for function in functions:
        if function.__globals__ is vars(module) and function.__qualname__ in made:
            function.__defaults__ = made[function.__qualname__].__defaults__
            function.__kwdefaults__ = made[function.__qualname__].__kwdefaults__
    constants = [(module, key, value) for key, value in fresh.items()]
    for name, kind in fresh.items():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            constants += [(getattr(module, name), k, value) for k, value in vars(kind).items()]
    for holder, key, value in constants:
        if isinstance(value, int | float | tuple) and not key.startswith("__"):
            setattr(holder, key, value)


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from codes(one)


class Trial:
    """Runs the tests of one file, without a fault and with each."""

    def __init__(self, name: str, tried: list[Fault]):
        self.name, self.tried, self.survived = name, tried, list[Fault]()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop, which is run once."""
        if not session.items or not passes(session):
            return True
        for fault in self.tried:
            if (child := os.fork()) == 0:
                signal.alarm(LONGEST)
                serve(self.name, fault.trees()[2])
                os._exit(0 if passes(session) else 1)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
                self.survived.append(fault)
                line = getattr(fault.trees()[0], "lineno", 0)
                print(f"{self.name}.py:{line}: {fault}", file=sys.stderr, flush=True)
        return True


def passes(session: pytest.Session) -> bool:
    """Run tests until one fails."""
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return False
    return True


def main() -> None:
    """Try the faults, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="faults, drawn from all files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="all faults of files with this in their name")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_PROFILE"] = "unshrunk"
    there = [fault for name in JUDGES if asked.only in name for fault in faults(name)]
    drawn = there if asked.only else random.Random(asked.seed).sample(there, asked.count)
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    rows, survivors = [], []
    for name, tests in JUDGES.items():
        trial = Trial(name, [fault for fault in drawn if fault.name == name])
        if not trial.tried:
            continue
        options = ["-o", "addopts=--import-mode=importlib", "-s", "-p", "no:terminal"]
        options += ["-p", "no:cacheprovider", "-p", "no:benchmark"]
        if pytest.main([*options, *(f"tests/{one}" for one in tests)], plugins=[trial]):
            sys.exit(f"{name}: its tests fail without a fault, or cannot be collected")
        noticed = len(trial.tried) - len(trial.survived)
        rows.append((f"`{name}.py`", len(trial.tried), noticed, ", ".join(tests)))
        for what in map(str, trial.survived):
            shown = what.replace("|", "\\|")
            survivors.append((f"`{name}.py`", f"`{shown}`", known.get(name, {}).get(what, "")))
    same = sum(bool(why) for *_, why in survivors)
    told = (
        f"{len(drawn) - len(survivors)} of {len(drawn)} faults are noticed, {same} change nothing"
    )
    print(told)
    if not asked.only:
        told += f"; they were drawn from {len(there)}."
        lines = ["# Faults in the judges", "", told, ""]
        lines += table(("file", "faults", "noticed", "by the tests"), rows)
        lines += ["", "Not noticed:", "", *table(("file", "change", "why"), survivors)]
        stamps.write(Path(__file__).with_suffix(".md"), "\n".join(lines), __file__, vars(asked))


if __name__ == "__main__":
    main()
