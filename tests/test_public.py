"""What is public, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import placeopt

HEAVY = {
    "pyomo",
    "pymoo",
    "jmetal",
    "pandas",
    "matplotlib",
    "scipy",
    "numba",
    "torch",
    "gymnasium",
    "networkx",
}
#: The command line shows its help without these, too.
LIGHT = {"numpy", "moocore", "pydantic", "joblib", "highspy", "pyscipopt"}

PUBLIC = [
    "Budget",
    "Front",
    "PlaceoptError",
    "Point",
    "__version__",
    "enumerate",
    "evaluate",
    "front_of",
    "instances",
    "load",
    "merge",
    "methods",
    "read_model",
    "register",
    "solve",
    "sweep",
]


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after running `code`."""
    names = "{name.split('.')[0] for name in sys.modules}"
    script = f"{code}\nimport json, sys\nprint('\\n' + json.dumps(sorted({names})))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_public_names() -> None:
    """The public names are these; the rest may move."""
    assert sorted(placeopt.__all__) == PUBLIC
    assert dir(placeopt) == sorted([*PUBLIC, "ask", "environments", "models"])
    for name in dir(placeopt):
        assert getattr(placeopt, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        _ = placeopt.sovle


def test_all_submodules_of_the_lazy_names_differ_from_them() -> None:
    """A module called like a public name would shadow it."""
    assert not set(placeopt._MODULE_OF) & set(placeopt._MODULE_OF.values())


@pytest.mark.parametrize(
    "code",
    [
        "import placeopt, placeopt.cli",
        "import sys, placeopt.cli\ntry:\n placeopt.cli.main(['--help'])\n"
        "except SystemExit as end:\n assert end.code == 0",
        "import sys, placeopt.cli\ntry:\n placeopt.cli.main(['solve', '--help'])\n"
        "except SystemExit as end:\n assert end.code == 0",
    ],
    ids=["import", "help", "solve-help"],
)
def test_the_command_line_loads_nothing_heavy(code: str) -> None:
    """Importing the package and the command line, and its help, load no library that computes."""
    loaded = loaded_by(code)
    assert not HEAVY & loaded
    assert not LIGHT & loaded - {
        "pydantic"
    }  # typer itself asks it for types when it parses a command


def test_registry_and_problems_load_nothing_heavy() -> None:
    """Looking at what there is loads none of the libraries that the methods need."""
    assert not HEAVY & loaded_by(
        "import placeopt.registry, placeopt.core.fronts.front\n"
        "placeopt.registry.problem_class('temporal')"
    )


def test_importing_changes_nothing() -> None:
    """No handler, no output, no numpy global state."""
    code = "import logging, placeopt, placeopt.cli\nassert not logging.getLogger().handlers"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
