"""Stamps: which script wrote a page, as it was, with what settings, and that nobody edited it.

A script ends with ``stamps.write(page, text, __file__, settings)``. The last line of the page is
then a comment with

* `script`: the file;
* `settings`: what it was told;
* `code`: a hash of the script, of the files under ``benchmarks/`` and ``papers/`` that it imports,
  and of the settings. Comments and layout do not count, nor do this file and what draws tables;
* `text`: a hash of the page above the stamp.

`edited` tells of a page that was edited by hand: a test fails. `old` tells of a page that is older
than its script: ``make pages``, which is run before a release, fails. The package itself does not
count: every page would be old at once.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
#: What draws tables and stamps, and measures nothing.
_APART = {BENCHMARKS / f"{name}.py" for name in ("stamps", "machine", "harness", "cpu_clock")}
_STAMP = re.compile(r"\n<!-- stamp (\{.*\}) -->\n\Z")


def short_hash(text: str) -> str:
    """Return 16 hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def code_hash(script: Path, settings: Mapping[str, Any]) -> str:
    """Return the hash of a script, of what it imports here, and of its settings."""
    parts = [ast.dump(ast.parse(file.read_text(encoding="utf-8"))) for file in sources(script)]
    return short_hash("\n".join([*parts, json.dumps(settings, sort_keys=True)]))


def sources(script: Path) -> list[Path]:
    """Return a script and all files below ``benchmarks/`` that it imports, sorted by path."""
    found, ahead = set(), [script.resolve()]
    while ahead:
        file = ahead.pop()
        if file not in found:
            found.add(file)
            ahead += _imported(file)
    return sorted(found)


def _imported(script: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        for name in names:
            folders = (ROOT,) if name.startswith("papers.") else (BENCHMARKS, script.parent)
            for folder in folders:
                file = folder / (name.replace(".", "/") + ".py")
                if file.exists() and file not in _APART:
                    yield file


def write(page: Path, text: str, script: str | Path, settings: Mapping[str, Any]) -> None:
    """Write a page with its stamp.

    Parameters
    ----------
    page : path of the page.
    text : the whole page.
    script : the ``__file__`` of the script that made the text.
    settings : what JSON can hold: the arguments of the run.
    """
    page, script = Path(page).resolve(), Path(script).resolve()
    body, plain = text.rstrip("\n") + "\n", json.loads(json.dumps(settings, default=str))
    stamp = {
        "script": str(script.relative_to(ROOT)),
        "settings": plain,
        "code": code_hash(script, plain),
        "text": short_hash(body),
    }
    page.write_text(f"{body}\n<!-- stamp {json.dumps(stamp)} -->\n", encoding="utf-8")


def _stamp(page: Path) -> tuple[str, dict[str, Any]] | None:
    """Return the text of a page and its stamp, None where it has none."""
    text = page.read_text(encoding="utf-8")
    end = _STAMP.search(text)
    return None if end is None else (text[: end.start()], json.loads(end[1]))


def edited(page: Path) -> str:
    """Return why a page is not what its script wrote, in words; empty if it is."""
    stamped = _stamp(page)
    if stamped is None:
        return "it has no stamp: write it with stamps.write"
    text, stamp = stamped
    if short_hash(text) != stamp["text"]:
        return f"it was edited after {stamp['script']} wrote it: run the script again"
    if not (ROOT / stamp["script"]).exists():
        return f"its script {stamp['script']} is gone: delete the page too"
    return ""


def old(page: Path) -> str:
    """Return that the script of a page has changed since, in words; empty if it has not."""
    stamped = _stamp(page)
    if stamped is None:
        return ""
    stamp = stamped[1]
    if code_hash(ROOT / stamp["script"], stamp["settings"]) == stamp["code"]:
        return ""
    return f"it is older than {stamp['script']}"


def pages() -> list[Path]:
    """Return all pages that scripts write."""
    papers = ROOT / "papers"
    return sorted([*BENCHMARKS.rglob("*.md"), papers / "results.md", *papers.glob("results/*.md")])


def main() -> None:
    """Fail for pages that were edited by hand, and for those that are older than their scripts."""
    wrong = {page: reason for page in pages() if (reason := edited(page) or old(page))}
    for page, reason in wrong.items():
        print(f"error: {page.relative_to(ROOT)}: {reason}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
