"""Build the site: ``python docs/build.py OUTPUT``; warnings are errors, nothing is fetched.

The pages keep their places (``docs/``, ``models/``, ``benchmarks/``), so that their links to each
other hold. Pages about problems, methods and schemas are written from what the package declares.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "papers"), str(ROOT / "docs")]

import terminal  # noqa: E402
from papers import run  # noqa: E402

import placeopt  # noqa: E402
from placeopt import registry  # noqa: E402
from placeopt.cli.catalogue import parameters_of, shown  # noqa: E402
from placeopt.core.spec import ROLES, Role  # noqa: E402
from placeopt.plot import plot_plan  # noqa: E402

#: What pages link to, beside pages.
COPIED = ("docs", "models", "benchmarks", "papers", "examples")
KEPT = {".md", ".png", ".svg", ".py", ".toml", ".csv", ".yaml", ".json", ".html"}

#: The instance that a problem's page shows a plan of, and the method that makes it.
ANSWERS = {
    "temporal": ("toy", "greedy"),
    "edge-cloud": ("corner-5", "greedy"),
    "rolling-update": ("shop", "repack"),
    "rescheduling": ("chain-12", "greedy"),
    "multi-cluster": ("stream-4x100", "greedy"),
}

#: README is the start page, and this its list of pages.
PAGES = {
    "Clusters": ("docs/kubernetes", "docs/export", "docs/backtest"),
    "Research": (
        "docs/problems/index",
        "docs/methods/index",
        "docs/front",
        "docs/enumerate",
        "docs/sweeps",
        "docs/learning",
        "docs/own-problem",
        "docs/results",
    ),
    "Reference": (
        "docs/questions",
        "docs/terminal",
        "docs/reference",
        "docs/schemas/index",
        "docs/inside",
        "CONTRIBUTING",
        "CHANGELOG",
        "benchmarks/index",
        "papers/index",
    ),
}
#: Where a browser begins.
FRONT_DOOR = '<meta http-equiv="refresh" content="0; url=README.html"><title>placeopt</title>\n'


def assemble(site: Path) -> None:
    """Write the sources of all pages into a folder."""
    if terminal.PAGE.read_text(encoding="utf-8") != terminal.page():
        raise SystemExit(f"{terminal.PAGE} shows what commands no longer say: {terminal.__doc__}")
    for folder in COPIED:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in KEPT and "__pycache__" not in file.parts:
                copy_page(file, site / file.relative_to(ROOT))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff"):
        copy_page(ROOT / name, site / name)
    with (site / "README.md").open("a", encoding="utf-8") as start:
        for title, pages in PAGES.items():
            start.write("\n" + toctree("\n".join(pages), f":caption: {title}\n:hidden:\n"))
    docs = site / "docs"
    write_problems(docs / "problems")
    write_methods(docs / "methods")
    write_schemas(docs / "schemas")
    run.write_html(docs / "papers.html")
    for folder, title in (("benchmarks", "Benchmarks"), ("papers", "Studies of the papers")):
        found = sorted((site / folder).rglob("*.md"))
        listed = "\n".join(str(page.relative_to(site / folder).with_suffix("")) for page in found)
        text = f"# {title}\n\nA script beside each page writes it.\n\n{toctree(listed)}"
        (site / folder / "index.md").write_text(text, encoding="utf-8")


def copy_page(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def toctree(entries: str, options: str = "") -> str:
    return f"```{{toctree}}\n{options}:maxdepth: 1\n\n{entries}\n```\n"


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table; bars inside cells are kept from ending them."""
    lines = [columns, tuple("---" for _ in columns), *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def an_answer(kind: str, folder: Path) -> str:
    """Solve a shipped instance, draw the knee, and return the section that shows it."""
    name, method = ANSWERS[kind]
    problem = placeopt.load(name)
    front = placeopt.solve(problem, method, evaluations=2000, seed=1)
    point = front.pick()
    plot_plan(front, front.points.index(point), folder / f"{kind}.svg", problem=problem)
    facts = [(fact, str(value)) for fact, value in problem.describe(point.plan).items()]
    values = [
        (o.name, f"{v:.6g} {o.unit}") for o, v in zip(front.objectives, point.values, strict=True)
    ]
    return (
        f"## An instance and a plan\n\nThe knee of {len(front)} plans of the instance `{name}`:\n\n"
        f"![a plan of {name}]({kind}.svg)\n\n{table(('', 'of this plan'), values + facts)}\n"
        f"`placeopt solve {name} --method {method} --evaluations 2000 --seed 1 -o front.json` and "
        f"`placeopt plot front.json --point knee -o plan.svg` make both.\n\n"
    )


def write_problems(folder: Path) -> None:
    """One page for each problem: what it asks, who serves it, and its mathematics."""
    folder.mkdir(parents=True)
    kinds = [name.replace("_", "-") for name in registry.PACKAGES]
    for kind in kinds:
        cls = registry.problem_class(kind)
        problem = cls.generate(0)
        goals = [(f"`{o.name}`", o.unit) for o in problem.objectives]
        serving = [
            (f"[{m.name}](../methods/{m.name}.md)", m.of[kind].summary)
            for m in registry.methods().values()
            if kind in m.of
        ]
        sizes = [(f"`--size {name}=...`", shown(d)) for name, d in cls.sizes().items()]
        mathematics = f"../../models/{kind.replace('-', '_')}/README.md"
        text = (
            f"# {kind}\n\n{(sys.modules[cls.__module__].__doc__ or '').splitlines()[0]}\n\n"
            f"The mathematics, equation by equation: [models]({mathematics}). "
            f"The documents, field by field: [schema](../schemas/{kind}.md).\n\n"
            f"{an_answer(kind, folder)}"
            f"## Objectives\n\nAll are minimised.\n\n{table(('objective', 'unit'), goals)}\n"
            f"## Methods that serve it\n\n{table(('method', 'what it does'), serving)}\n"
            f"## Random instances\n\n`placeopt generate {kind} --seed 1 -o instance.json`\n\n"
            f"{table(('option', 'default'), sizes)}"
        )
        (folder / f"{kind}.md").write_text(text, encoding="utf-8")
    models = "\n".join(f"../../models/{kind.replace('-', '_')}/README" for kind in kinds)
    extra = "\n".join(
        (
            "../../models/README",
            "../../models/temporal/bin_plans",
            "../../examples/data/README",
            "../../examples/machine_reassignment/README",
        )
    )
    (folder / "index.md").write_text(
        "# Problems\n\n"
        + toctree("\n".join(kinds))
        + "\n## Mathematics\n\n"
        + toctree(f"{models}\n{extra}"),
        encoding="utf-8",
    )


def write_methods(folder: Path) -> None:
    """One page for each method: parameters as declared, source, and what was measured."""
    folder.mkdir(parents=True)
    notes = tomllib.loads((ROOT / "docs" / "methods.toml").read_text(encoding="utf-8"))
    ours = registry.methods()
    for name, method in ours.items():
        note = notes[name]
        rows = [
            (f"`{p.name}`", ", ".join(kinds), shown(p.default), p.legal or p.type, p.help)
            for p, kinds in parameters_of(method)
        ]
        columns = ("parameter", "problems", "default", "legal", "what it does")
        parameters = table(columns, rows) if rows else "It has none.\n"
        kinds = ", ".join(f"[{kind}](../problems/{kind}.md)" for kind in method.problems)
        needs = f" Needs `pip install 'placeopt[{method.extra}]'`." if method.extra else ""
        text = (
            f"# {name}\n\n{method.summary[0].upper()}{method.summary[1:]}.\n\n"
            f"Role: {method.role}. Serves {kinds}.{needs}\n\n"
            f"## Parameters\n\nGive them as `--param KEY=VALUE`, or as keywords in Python.\n\n"
            f"{parameters}\n"
            f"## Source\n\n{note['source']}\n\n"
            f"## Measured\n\n{note['measured']}\n\n"
            f"The table: [{note['table']}](../../{note['table']})\n"
        )
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "index.md").write_text(
        "# Methods\n\n"
        + "\n".join(_methods_of(role, ours) for role in ROLES)
        + "\n```{toctree}\n:hidden:\n\n"
        + "\n".join(ours)
        + "\n```\n",
        encoding="utf-8",
    )


_ROLE_TITLES: dict[Role, str] = {
    "search": "Search",
    "exact": "Exact",
    "bound": "Bounds",
    "baseline": "Baselines: simple rules to compare with",
    "published": "Published methods, as their papers have them",
}


def _methods_of(role: Role, ours: Mapping[str, registry.MethodEntry]) -> str:
    """Return the section of one role in the list of methods."""
    rows = [
        (f"[{m.name}]({m.name}.md)", ", ".join(m.problems), m.summary)
        for m in ours.values()
        if m.role == role
    ]
    return f"## {_ROLE_TITLES[role]}\n\n" + table(("method", "problems", "what it does"), rows)


def write_schemas(folder: Path) -> None:
    """One page for each kind of document: its fields in words, and the smallest example."""
    from placeopt.cli.catalogue import class_of
    from placeopt.core.files.documents import adapter

    kinds = [name.replace("_", "-") for name in registry.PACKAGES]
    for kind in kinds:
        example = (folder / f"{kind}.json").read_text(encoding="utf-8")
        text = (
            f"# Documents of {kind}\n\n`placeopt schema {kind}` prints this as JSON Schema.\n\n"
            f"## The smallest instance\n\n```json\n{example}```\n\n## Instance\n\n"
            + "\n".join(records(adapter(class_of(kind, plan=False)).json_schema(by_alias=True)))
            + "\n## Plan\n\n"
            + "\n".join(records(adapter(class_of(kind, plan=True)).json_schema(by_alias=True)))
        )
        (folder / f"{kind}.md").write_text(text, encoding="utf-8")
    for name in ("front", "steps"):
        text = (
            f"# {name.capitalize()} files\n\n`placeopt schema {name}` prints the JSON Schema.\n\n"
        )
        text += "\n".join(records(adapter(class_of(name, plan=False)).json_schema(by_alias=True)))
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    listed = "\n".join([*kinds, "front", "steps"])
    (folder / "index.md").write_text(f"# Documents\n\n{toctree(listed)}", encoding="utf-8")


def records(schema: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the fields of a record, and of each record inside it."""
    inner = {name: part for name, part in schema.get("$defs", {}).items() if "properties" in part}
    for name, record in {"": schema, **inner}.items():
        needed = record.get("required", [])
        rows = [
            (
                f"`{key}`",
                type_of(field),
                "yes" if key in needed else default_of(field),
                field.get("description", ""),
            )
            for key, field in record["properties"].items()
        ]
        title = f"### {name.lstrip('_')}\n\n" if name else ""
        yield f"{title}{table(('field', 'type', 'needed, or default', 'what it is'), rows)}"


def type_of(field: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2].lstrip("_")
    if "anyOf" in field:
        return " or ".join(type_of(one) for one in field["anyOf"])
    if "enum" in field or "const" in field:
        return ", ".join(f'`"{v}"`' for v in field.get("enum", [field.get("const")]))
    if field.get("type") == "array" and "items" in field:
        return f"list of {type_of(field['items'])}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"name -> {type_of(field['additionalProperties'])}"
    return str(field.get("type", "any"))


def default_of(field: dict[str, Any]) -> str:
    return f"`{json.dumps(field['default'])}`" if "default" in field else "empty"


def main() -> int:
    from sphinx.cmd.build import build_main

    output = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site")
    with tempfile.TemporaryDirectory(prefix="placeopt-site-") as folder:
        assemble(Path(folder))
        strict = ["-W", "--keep-going", "-q", "-E", "-j", "auto"]
        failed = build_main([*strict, "-c", str(ROOT / "docs"), folder, str(output)])
    (output / "index.html").write_text(FRONT_DOOR, encoding="utf-8")
    run.write_html(output / "docs" / "papers.html")
    return failed


if __name__ == "__main__":
    sys.exit(main())
