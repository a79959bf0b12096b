"""What placeopt takes from libraries that these do not promise to keep, by name.

Where one of these fails with a new version of a library, its bound in pyproject.toml stays.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "placeopt"
#: Module, class or function, and the members of it that are used.
PARTS = {
    "numba.core.caching:CompileResultCacheImpl": ("locator", "check_cachable", "reduce"),
    "numba.core.caching:IndexDataCacheFile": ("load", "save", "flush", "_load_index"),
    "numba.core.compiler:CompileResult": ("_rebuild", "_replace"),
    "numba.core.compiler:compile_extra": (),
    "numba.core.dispatcher:_FunctionCompiler": ("_compile_core", "fold_argument_types"),
    "numba.core.registry:CPUDispatcher": (
        "add_overload",
        "get_call_template",
        "get_overload",
        "compile",
        "_compile_for_args",
    ),
    "numba.core.codegen:CPUCodeLibrary": (
        "_finalize_final_module",
        "_finalize_dynamic_globals",
        "_optimize_final_module",
    ),
    "numba.core.targetconfig:ConfigStack": ("top",),
    "highspy:_Highs": ("passModel", "setCallback", "changeColsBounds", "setSolution"),
    "pymoo.core.algorithm:Algorithm": ("_set_optimum",),
}
#: Where these may be written.
PLACES = {
    r"\bnumba\.core\b": "core/kernels/compiler.py",
    r"\bhighspy\._": "exact/engines.py",
    r"\._set_optimum\b": "evolve/nsga.py",
    r"(from|import) jmetal\b": "evolve/jmetal_",
}


@pytest.mark.parametrize("part", PARTS)
def test_the_part_is_there(part: str) -> None:
    module, _, name = part.partition(":")
    found = getattr(importlib.import_module(module), name)
    missing = [member for member in PARTS[part] if not hasattr(found, member)]
    assert not missing, f"{part} of {version(module.partition('.')[0])}"


@pytest.mark.parametrize("pattern", PLACES)
def test_one_place_has_it(pattern: str) -> None:
    files = [
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if re.search(pattern, file.read_text(encoding="utf-8"))
    ]
    assert files and all(file.startswith(PLACES[pattern]) for file in files)


@pytest.mark.parametrize("library", ["numba", "highspy", "pymoo", "jmetalpy"])
def test_the_version_has_a_bound(library: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["jmetal"]]
    (bound,) = (one for one in wanted if re.match(rf"{library}\b", one))
    assert re.search(r">=[\d.]+,<[\d.]+$", bound), bound


def test_a_numba_without_a_part_is_named() -> None:
    """One message, and exit code 2."""
    code = (
        "import numba.core.caching, sys\n"
        "del numba.core.caching.IndexDataCacheFile\n"
        "from placeopt.cli import main\n"
        "main(['solve', 'toy', '--evaluations', '10'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    said = " ".join(done.stderr.split())
    assert f"numba {version('numba')} lacks" in said and "IndexDataCacheFile" in said


def test_an_extra_that_is_missing_is_named() -> None:
    """The methods of jMetalPy, its problems, and tables of pandas."""
    code = (
        "import sys\n"
        "sys.modules.update(jmetal=None, pandas=None)\n"
        "import placeopt\n"
        "from placeopt.core.errors import MissingExtraError\n"
        "front = placeopt.solve('toy', 'greedy')\n"
        "for call in (\n"
        "    lambda: placeopt.solve('toy', 'jmetal-nsga2'),\n"
        "    lambda: __import__('placeopt.evolve.jmetal_adapter'),\n"
        "    front.to_pandas,\n"
        "):\n"
        "    try:\n"
        "        call()\n"
        "    except MissingExtraError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert [re.findall(r"'placeopt\[(\w+)\]'", one) for one in told] == [
        ["jmetal"],
        ["jmetal"],
        ["plot"],
    ], told
    assert told[0].startswith("method 'jmetal-nsga2' needs")
