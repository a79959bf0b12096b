"""The size and manner of this code beside those of well-kept libraries.

python benchmarks/side_by_side.py --peers DIR

DIR holds a checkout of each peer: PyVRP, PyJobShop, linopy, httpx, Gymnasium. Only Python files are
read, by `ast` and `tokenize`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import ROOT, Benchmark, table

#: Library -> folders of its code, its tests and its benchmarks.
LIBRARIES = {
    "placeopt": ("placeopt", "tests", "benchmarks papers"),
    "PyVRP": ("pyvrp", "tests", "benchmarks"),
    "PyJobShop": ("pyjobshop", "tests", "benchmarks"),
    "linopy": ("linopy", "test", "benchmark benchmarks"),
    "httpx": ("httpx", "tests", ""),
    "Gymnasium": ("gymnasium", "tests", ""),
}
BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.With)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Source:
    """One file: lines, functions as (lines, complexity, has a docstring), names, comments."""

    lines: int
    functions: list[tuple[int, int, bool, bool]]
    public_names: int
    comments: int


def read(path: Path) -> Source:
    """Return what is counted of a file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    tree = ast.parse(text)
    names = [n.name for n in tree.body if isinstance(n, Function | ast.ClassDef)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Source(
        len(text.splitlines()),
        [measured(node) for node in ast.walk(tree) if isinstance(node, Function)],
        sum(not name.startswith("_") for name in names),
        sum(token.type == tokenize.COMMENT for token in tokens),
    )


def measured(node: Function) -> tuple[int, int, bool, bool]:
    """Return lines without the docstring, complexity, whether public, whether with a docstring."""
    begin = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    lines, first = (node.end_lineno or begin) - begin + 1, node.body[0]
    told = ast.get_docstring(node) is not None
    if told:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    inside = list(ast.walk(node))
    choices = sum(isinstance(n, BRANCHES) for n in inside)
    choices += sum(len(n.values) - 1 for n in inside if isinstance(n, ast.BoolOp))
    return lines, 1 + choices, not node.name.startswith("_"), told


def sources(top: Path, folders: str) -> Iterator[Source]:
    """Yield the Python files of some folders."""
    for folder in folders.split():
        for path in sorted((top / folder).rglob("*.py")):
            yield read(path)


def spread(values: list[int]) -> str:
    """Return median, 90th percentile and maximum."""
    return " / ".join(f"{v:.0f}" for v in np.percentile(values, [50, 90, 100]))


def row(name: str, top: Path) -> list[str]:
    """Return the row of a library."""
    code, tests, benchmarks = (list(sources(top, folders)) for folders in LIBRARIES[name])
    lines = sum(f.lines for f in code)
    functions = [one for f in code for one in f.functions]
    public = [told for _, _, is_public, told in functions if is_public]
    return [
        name,
        f"{len(code)} / {lines:,}",
        spread([f.lines for f in code]),
        f"{len(functions):,}; {spread([one[0] for one in functions])}",
        spread([one[1] for one in functions]),
        f"{sum(f.public_names for f in code):,}",
        f"{sum(public) / len(public):.0%}",
        f"{100 * sum(f.comments for f in code) / lines:.1f}%",
        f"{sum(f.lines for f in tests) / lines:.2f}",
        f"{sum(f.lines for f in benchmarks):,}" if benchmarks else "-",
    ]


def main() -> None:
    """Read the checkouts and write the page."""
    run = Benchmark(__file__, __doc__, peers="peers")
    tops = {path.name.split("+")[-1]: path for path in Path(run.peers).iterdir()}
    run.write(
        "This code beside that of others",
        "Spreads are median / 90th percentile / maximum. Lines of functions are those without "
        "their docstring; complexity is one more than the branches; public names are functions and "
        "classes of modules; docstrings are those of public functions.",
        table(
            "library | files / lines | lines of files | functions; lines | complexity "
            "| public names | with docstring | comments | test : code | benchmarks and studies",
            [row(name, tops.get(name, ROOT)) for name in LIBRARIES],
        ),
    )


if __name__ == "__main__":
    main()
