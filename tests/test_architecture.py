"""The rules of the house, read off the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "placeopt").rglob("*.py"))
}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in SOURCES.items()}
METHODS = {"exact", "evolve", "rollout", "rl"}
PROBLEMS = {"temporal", "edge_cloud", "rolling_update", "multi_cluster", "rescheduling"}
#: Ways in and out: nothing else imports them, so that each could be a distribution of its own.
DOORS = {"kubernetes"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
LEGAL_RANDOM = {"Generator", "default_rng", "SeedSequence", "BitGenerator", "PCG64"}


@cache
def nodes(name: str) -> list[ast.AST]:
    """Return all nodes of a module's tree."""
    return list(ast.walk(ast.parse(TEXTS[name])))


def imports_of(tree: Iterable[ast.AST], known: set[str]) -> set[str]:
    """Return the modules of placeopt that a file imports, wherever the import stands."""
    found = set()
    for node in tree:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write imports in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name in known}


@cache
def imports() -> dict[str, set[str]]:
    known = set(SOURCES)
    return {name: imports_of(nodes(name), known) for name in SOURCES}


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def breaches(graph: dict[str, set[str]]) -> list[str]:
    """Return the imports that no room may make.

    Core imports core. Methods import core. Problems import core, methods, and what is common to all
    drawings and pages; never each other. The rest stands above; doors stand above all.
    """
    found = []
    for module, used in graph.items():
        mine = part(module)
        if mine == "core":
            legal = {"core"}
        elif mine in METHODS:
            legal = {"core", mine}
        elif mine in PROBLEMS:
            legal = {"core", *METHODS, "plot", mine}
        else:
            continue
        found += [f"{module} imports {other}" for other in used if part(other) not in legal]
    above = {
        f"{module} imports {other}"
        for module, used in graph.items()
        for other in used
        if part(module) in {"plot", "report", "registry", "api", "portfolio"}
        and part(other) in PROBLEMS
    }
    behind = {
        f"{module} imports {other}"
        for module, used in graph.items()
        for other in used
        if part(other) in DOORS and part(other) != part(module)
    }
    return sorted({*found, *above, *behind})


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Return the files that import each other, directly or through others; each circle once."""
    import networkx as nx

    edges = [(module, other) for module, used in graph.items() for other in used]
    groups = nx.strongly_connected_components(nx.DiGraph(edges))
    loops = [f"{module} imports itself" for module, used in graph.items() if module in used]
    return sorted([*loops, *(" <-> ".join(sorted(group)) for group in groups if len(group) > 1)])


def test_imports_go_down() -> None:
    assert breaches(imports()) == []


def test_no_files_import_each_other() -> None:
    """Not even for types, or inside a function."""
    assert circles(imports()) == []


def kubernetes_rooms() -> dict[str, int]:
    """Return the number of the room of each file of the Kubernetes door, by its own table."""
    import placeopt.kubernetes

    results, room = {}, -1
    for line in str(placeopt.kubernetes.__doc__).split("\n=")[2].splitlines()[1:]:
        room += not line.startswith(" ")
        results |= dict.fromkeys(line[10:40].replace(",", " ").split(), room)
    return results


def upward(graph: dict[str, set[str]], rooms: dict[str, int]) -> list[str]:
    """Return the imports of the Kubernetes door from a room further down; unknown files, too."""
    found = []
    for module, used in graph.items():
        if part(module) != "kubernetes" or module.count(".") < 2:
            continue
        mine = rooms.get(module.split(".")[2], -1)
        found += [
            f"{module} imports {other}"
            for other in used
            if part(other) == "kubernetes" and other.count(".") >= 2
            if rooms.get(other.split(".")[2], 99) > mine
        ]
    return sorted(found)


def test_rooms_of_the_kubernetes_door_are_in_order() -> None:
    rooms, graph = kubernetes_rooms(), imports()
    files = {name.split(".")[2] for name in graph if name.startswith("placeopt.kubernetes.")}
    assert set(rooms) == files
    assert upward(graph, rooms) == []
    wrong = {"placeopt.kubernetes.rules": {"placeopt.kubernetes.verify"}}
    assert upward(wrong, rooms) == ["placeopt.kubernetes.rules imports placeopt.kubernetes.verify"]


@pytest.mark.parametrize(
    ("module", "line", "finds"),
    [
        ("placeopt.core.fronts.front", "from placeopt.evolve import moead", breaches),
        ("placeopt.core.fronts.front", "from placeopt.temporal.problem import Temporal", breaches),
        ("placeopt.evolve.moead", "from placeopt.exact import engines", breaches),
        ("placeopt.exact.engines", "from placeopt.temporal import referee", breaches),
        ("placeopt.rl.play", "from placeopt import registry", breaches),
        ("placeopt.rl", "from placeopt import registry", breaches),
        ("placeopt.report.page", "from placeopt.kubernetes.approval import Approval", breaches),
        ("placeopt.cli", "def f():\n    import placeopt.kubernetes.origin", breaches),
        ("placeopt.doors", "from placeopt import kubernetes", breaches),
        ("placeopt.temporal.referee", "import placeopt.edge_cloud.arrays", breaches),
        ("placeopt.plot.style", "from placeopt.temporal import drawing", breaches),
        ("placeopt.core.errors", "from placeopt.core.fronts.front import Front", circles),
        (
            "placeopt.core.fronts.dominance",
            "def f():\n    from placeopt.core.fronts.front import Front",
            circles,
        ),
        (
            "placeopt.core.spec",
            "if TYPE_CHECKING:\n    from placeopt.core.problem import Problem",
            circles,
        ),
    ],
)
def test_a_wrong_import_is_found(module, line, finds) -> None:
    graph = dict(imports())
    before = finds(graph)
    graph[module] = imports_of([*nodes(module), *ast.walk(ast.parse(line))], set(SOURCES))
    assert len(finds(graph)) > len(before)


def test_nothing_is_unsafe() -> None:
    """No pickle, no eval, no global random generator."""
    for name in SOURCES:
        for node in nodes(name):
            where = f"{name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & FORBIDDEN_MODULES, where
            if isinstance(node, ast.ImportFrom):
                assert node.module not in FORBIDDEN_MODULES, where
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile"}, where
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                legal = node.attr in LEGAL_RANDOM
                where += ": pass a numpy Generator"
                assert legal or ast.unparse(node.value) not in {"np.random", "numpy.random"}, where


def test_members_of_an_interface_are_declared() -> None:
    """Nobody asks by name whether an object happens to have a member."""
    for name in SOURCES:
        for node in nodes(name):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                where = f"{name}:{node.lineno}"
                assert not (node.func.id == "getattr" and len(node.args) == 3), where


def functions_of(name: str) -> list[ast.FunctionDef]:
    return [node for node in nodes(name) if isinstance(node, ast.FunctionDef)]


def is_kernel(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "kernel" for d in function.decorator_list)


def test_functions_are_short() -> None:
    """70 lines, without signature and docstring; ruff has the columns."""
    for name, text in TEXTS.items():
        assert "fmt: skip" not in text and "fmt: off" not in text, name
        for function in functions_of(name):
            docstring = ast.get_docstring(function, clean=False) or ""
            length = function.end_lineno - function.body[0].lineno - docstring.count("\n")
            assert length <= 70, f"{name}.{function.name} has {length} lines"


def test_classes_have_names_of_their_own() -> None:
    """No two public classes of one name."""
    found = defaultdict(list)
    for name, text in TEXTS.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_kernels_say_their_shapes() -> None:
    """A public kernel has a docstring; one that takes arrays names a shape somewhere in its
    file.
    """
    for name in SOURCES:
        for function in functions_of(name):
            if is_kernel(function) and not function.name.startswith("_"):
                assert ast.get_docstring(function), f"{name}.{function.name}"


def test_every_method_can_be_found() -> None:
    """Every entry of the registry names a function that exists, for every problem it supports."""
    from placeopt.registry import methods, specs

    for method in methods().values():
        for kind in method.problems:
            assert kind in specs()
            if method.installed:
                assert callable(method.load(kind)), (method.name, kind)


def test_every_spec_names_what_exists() -> None:
    from dataclasses import fields

    from placeopt.registry import specs

    for spec in specs().values():
        for member in fields(spec):
            plain = {"kind", "methods", "auto", "auto_alone", "quick", "gap_of"}
            if member.name not in plain and spec.has(member.name):
                assert spec.load(member.name) is not None, (spec.kind, member.name)
