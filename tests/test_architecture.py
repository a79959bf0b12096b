"""The house rules that a reader relies on, read off the source: layers, kernels, lengths, and what is never used."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "placeopt").rglob("*.py"))

LAYERS = (
    ("errors", "documents", "budget", "dominance", "front", "front_file", "compiled"),
    ("problems",),
    ("models", "encoders", "sequential"),
    ("heuristics",),
    ("exact", "evolve", "rl"),
    ("api", "registry"),
    ("cli", "plot", "report", "kubernetes", "__main__", "__init__"),
)
LAYER = {name: height for height, names in enumerate(LAYERS) for name in names}
#: Layers whose packages never import each other.
APART = {2, 4}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
LEGAL_RANDOM = {"Generator", "default_rng", "SeedSequence", "BitGenerator", "PCG64"}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def package_of(path: Path) -> str:
    return path.relative_to(ROOT / "placeopt").parts[0].removesuffix(".py")


def imported(tree: ast.Module) -> list[tuple[int, str]]:
    """Return (line, part of placeopt) of every import, wherever it stands."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write imports in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found += [
            (node.lineno, parts[1])
            for name in names
            if len(parts := name.split(".")) > 1 and parts[0] == "placeopt"
        ]
    return [(line, part) for line, part in found if part in LAYER]


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_imports_go_down(path: Path) -> None:
    """A module imports its own package and lower layers only; faces and methods never import each other."""
    mine = package_of(path)
    assert mine in LAYER, f"{mine} has no layer: add it to LAYERS"
    for line, part in imported(tree_of(path)):
        where = f"{label(path)}:{line} imports placeopt.{part}"
        assert LAYER[part] <= LAYER[mine], f"{where}, which is a layer above"
        if part != mine:
            assert LAYER[part] != LAYER[mine] or LAYER[mine] not in APART, (
                f"{where}, which is beside it"
            )


def kernels_of(tree: ast.Module) -> list[ast.FunctionDef]:
    def is_kernel(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == "kernel"

    return [
        n
        for n in tree.body
        if isinstance(n, ast.FunctionDef) and any(map(is_kernel, n.decorator_list))
    ]


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_kernels_use_their_own_file_only(path: Path) -> None:
    """A cached kernel is served by the age of its own file: what it calls or reads from another file would go stale."""
    tree = tree_of(path)
    kernels = kernels_of(tree)
    names = {k.name for k in kernels}
    tuples = {
        n.name
        for n in tree.body
        if isinstance(n, ast.ClassDef)
        and any(ast.unparse(base) == "NamedTuple" for base in n.bases)
    }
    others = (
        {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        - names
        - tuples
    )
    foreign = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("placeopt")
        for alias in node.names
    }
    for function in kernels:
        local = {a.arg for a in function.args.args}
        for node in (n for statement in function.body for n in ast.walk(statement)):
            if isinstance(node, ast.Name) and node.id not in local:
                where = f"{label(path)}:{node.lineno} kernel {function.name} uses {node.id}"
                assert node.id not in foreign, f"{where} of another file"
                assert node.id not in others, f"{where}, which is not a kernel"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id in names | tuples or hasattr(builtins, node.func.id), (
                    f"{label(path)}:{node.lineno} calls {node.func.id}"
                )


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_files_stay_short(path: Path) -> None:
    """A file that needs more is two files."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_nothing_is_pickled_evaluated_or_left_to_global_chance(path: Path) -> None:
    """No pickle, eval, exec, global random state; no note of work left undone."""
    text = path.read_text(encoding="utf-8")
    assert not {"TODO", "FIXME", "XXX"} & set(text.replace(":", " ").split())
    for node in ast.walk(ast.parse(text)):
        where = f"{label(path)}:{getattr(node, 'lineno', 0)}"
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not FORBIDDEN_MODULES & {module.split(".")[0] for module in modules}, where
        assert "random" not in modules, f"{where}: pass a numpy Generator"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"eval", "exec", "compile"}, where
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "random"
        ):
            assert (
                ast.unparse(node.value) not in {"np.random", "numpy.random"}
                or node.attr in LEGAL_RANDOM
            ), f"{where}: pass a numpy Generator"


def test_every_problem_has_the_same_file_name_in_every_layer() -> None:
    """The file of a problem is named as its row in `KINDS`."""
    from placeopt.problems import KINDS

    for kind, (module, _) in KINDS.items():
        assert module == kind.replace("-", "_")
        assert (ROOT / "placeopt" / "problems" / f"{module}.py").exists()


def test_every_method_can_be_found() -> None:
    """Every entry of the registry names a function that exists, for every problem that it supports."""
    import importlib

    from placeopt.problems import KINDS
    from placeopt.registry import METHODS

    for method in METHODS.values():
        for kind in method.problems:
            assert kind in KINDS
            if method.extra is None:
                module, _, function = method.entry.format(row=KINDS[kind][0]).partition(":")
                assert callable(getattr(importlib.import_module(module), function)), (
                    method.name,
                    kind,
                )
