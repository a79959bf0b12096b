"""Compiled kernels: an edit is never served stale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forks import Forks

MODULE = """
from placeopt.core.kernels.compile import kernel

FACTOR = {factor}

@kernel
def inner(x):
    return FACTOR * x

@kernel
def outer(x):
    return inner(x) + 0
"""


@pytest.fixture(scope="module")
def warm() -> Iterator[Forks]:
    """Yield a process that has compiled a kernel, for whom numba's start costs no more."""
    forks = Forks(
        "import numba, numpy\nfrom placeopt.core.kernels.compile import kernel\n"
        "from placeopt.core.runs import compiling\nnumba.njit(lambda x: x + 1)(1)"
    )
    yield forks
    forks.end()


@pytest.fixture
def run(warm: Forks) -> Callable[..., str]:
    """Return what runs code in a folder, in a process of its own, and returns what it printed."""

    def run(folder: Path, code: str, *arguments: str) -> str:
        name = "PYTHONDONTWRITEBYTECODE"
        environment = {name: os.environ.get(name, "1")}
        code = f"import numba; numba.config.reload_config()\n{code}"  # of its own environment
        done = warm.run(code, *arguments, path=[folder], cwd=folder, environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def start(folder: Path, code: str, *arguments: str) -> str:
    """As `run`, where numba is to compile for another CPU than this one."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
    ).stdout.strip()


def test_an_edit_is_not_served_stale(run: Callable[..., str], tmp_path: Path) -> None:
    """The same file name, length and time of change, another constant or mark: the new one is used;
    without an edit, the cache is.
    """
    module = tmp_path / "edited.py"
    seen = []
    for factor, mark in (
        (2, "kernel           "),
        (3, "kernel           "),
        (3, "inlined_kernel   "),
        (3, "allocating_kernel"),
    ):
        text = MODULE.format(factor=factor)
        module.write_text(text.replace("import kernel", f"import {mark} as kernel"))
        os.utime(module, (1_700_000_000, 1_700_000_000))
        code = "import edited; print(edited.outer(5), len(edited.outer.stats.cache_hits))"
        seen.append((run(tmp_path, code), run(tmp_path, code)))
    assert seen == [("10 0", "10 1"), *[("15 0", "15 1")] * 3]


def test_what_is_compiled_of_old_bytecode_is_not_kept(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python runs what was there before an edit of the same length and time; not for long.

    The kernel may be one that another file calls.
    """
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    caller = CALLER.format(imports=CALLERS["names"][0], call=CALLERS["names"][1])
    (tmp_path / "caller.py").write_text(caller)
    callee = tmp_path / "callee.py"
    code = "import callee, caller; print(callee.inner(5), caller.outer(5))"
    seen = []
    for factor in (2, 3):
        callee.write_text(CALLEE.format(factor=factor, scale=1))
        os.utime(callee, (1_700_000_000, 1_700_000_000))
        seen.append(run(tmp_path, code))
    for file in (tmp_path / "__pycache__").glob("*.pyc"):
        file.unlink()
    assert [*seen, run(tmp_path, code)] == ["10 10", "10 10", "15 15"]


def test_another_way_to_compile_is_not_served_stale(
    run: Callable[..., str], tmp_path: Path
) -> None:
    """Without an edit of a kernel, too: how kernels are compiled is part of the stamp."""
    (tmp_path / "same.py").write_text(MODULE.format(factor=2))
    code = (
        "import sys; from placeopt.core.kernels import compiler as way\n"
        "way._compiler = lambda: sys.argv[1]\n"
        "import same; print(same.outer(5), len(same.outer.stats.cache_hits))"
    )
    assert [run(tmp_path, code, way) for way in "aba"] == ["10 0", "10 0", "10 0"]
    own = "import same; same.outer(5); print(len(same.outer.stats.cache_hits))"
    assert [run(tmp_path, own) for _ in range(2)] == ["0", "1"]


CALLEE = """
from placeopt.core.kernels.compile import kernel

SCALE = {scale}

@kernel
def inner(x):
    return {factor} * x
"""
CALLER = """
from typing import NamedTuple

from placeopt.core.kernels.compile import kernel
{imports}

@kernel
def outer(x):
    return {call}
"""
#: Imports and call of a kernel that depends on another file, by the name of its module.
CALLERS = {
    "names": ("from callee import SCALE, inner", "inner(x) * SCALE"),
    "module": ("import callee", "callee.inner(x) * callee.SCALE"),
    "two_files_away": ("import middle", "middle.through(x)"),
}
CODE = "".join(
    f"import {name}; print({name}.outer(5), len({name}.outer.stats.cache_hits))\n"
    for name in CALLERS
)


def test_an_edit_in_another_file_is_not_served_stale(
    run: Callable[..., str], tmp_path: Path
) -> None:
    """A kernel, or a constant, of another file changes: the caller is compiled again, else not."""
    for name, (imports, call) in CALLERS.items():
        (tmp_path / f"{name}.py").write_text(CALLER.format(imports=imports, call=call))
    (tmp_path / "middle.py").write_text(
        "from callee import SCALE, inner\nfrom placeopt.core.kernels.compile import kernel\n\n"
        "@kernel\ndef through(x):\n    return inner(x) * SCALE\n"
    )
    seen = []
    for factor, scale in ((2, 1), (3, 1), (3, 10), (3, 10)):
        (tmp_path / "callee.py").write_text(CALLEE.format(factor=factor, scale=scale))
        os.utime(tmp_path / "callee.py", (1_700_000_000, 1_700_000_000))
        seen.append(run(tmp_path, CODE))
    assert seen == ["\n".join([said] * 3) for said in ("10 0", "15 0", "150 0", "150 1")]


TUPLES = """
from typing import NamedTuple

from uses import read

class Pair(NamedTuple):
    {first}: int
    {second}: int

print(read(Pair({first}=1, {second}=2)))
"""


def test_a_named_tuple_that_was_changed_is_compiled_anew(
    run: Callable[..., str], tmp_path: Path
) -> None:
    """The kernel's file does not import the class, and the types of its fields are the same.

    Renamed, it is in the cache as a class that is there no more.
    """
    (tmp_path / "uses.py").write_text(
        "from placeopt.core.kernels.compile import kernel\n\n"
        "@kernel\ndef read(pair):\n    return pair.a\n"
    )
    (tmp_path / "tuples.py").write_text(TUPLES.format(first="a", second="b"))
    assert run(tmp_path, "import tuples") == "1"
    (tmp_path / "tuples.py").write_text(TUPLES.format(first="b", second="a"))
    os.utime(tmp_path / "tuples.py", (1_700_000_000, 1_700_000_000))
    assert run(tmp_path, "import tuples") == "2"
    renamed = TUPLES.format(first="b", second="a").replace("Pair", "Couple")
    (tmp_path / "tuples.py").write_text(renamed)
    assert run(tmp_path, "import tuples") == "2"


COUNTED = """
from placeopt.core.kernels.compile import kernel

@kernel
def inner(x, mode):
    return x + mode

@kernel
def outer(x):
    return inner(x, 1) + inner(x, 2) + inner(x, mode=3) + inner(x, x)
"""


def test_constants_make_no_specialisations(run: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "counted.py").write_text(COUNTED)
    code = "import counted; print(counted.outer(5), len(counted.inner._callee.overloads))"
    assert run(tmp_path, code) == "31 1"


CALLEES = """
import numpy as np
from placeopt.core.kernels.compile import kernel

@kernel
def inner(values, k):
    if k < 0:
        raise ValueError("k is negative")
    values[k] += 1
    return values.sum()

@kernel
def outer(values, k):
    return 2 * inner(values, k)

@kernel
def outermost(values, k):
    return outer(values, k) + inner(values, k)
"""


def test_a_kernel_serves_kernels_and_python_in_any_order(
    run: Callable[..., str], tmp_path: Path
) -> None:
    """What only kernels call has no machine code of its own; an error comes through."""
    (tmp_path / "callees.py").write_text(CALLEES)
    start = "import numpy as np, callees as c; zeros = lambda: np.zeros(3); "
    own = "; print([len(k.overloads) for k in (c.inner, c.outer, c.outermost)])"
    assert run(tmp_path, start + "print(c.outermost(zeros(), 1))" + own) == "4.0\n[0, 0, 1]"
    inner_first = "print(c.inner(zeros(), 1), c.outer(zeros(), 1), c.outermost(zeros(), 1))"
    assert run(tmp_path, start + inner_first + own) == "1.0 2.0 4.0\n[1, 1, 1]"
    assert run(tmp_path, start + inner_first + own) == "1.0 2.0 4.0\n[1, 1, 1]"
    fails = "\ntry: c.outermost(zeros(), -1)\nexcept ValueError as error: print(error)"
    assert run(tmp_path, start + fails) == "k is negative"


def test_who_watches_is_told_what_is_compiled(run: Callable[..., str], tmp_path: Path) -> None:
    """Once for each kernel, and at the end; not when the cache has it. The collector runs again."""
    (tmp_path / "counted.py").write_text(COUNTED)
    code = (
        "import gc\n"
        "from placeopt.core.runs.compiling import CLOCK\n"
        "import counted\n"
        "seen = []\n"
        "with CLOCK.watched(seen.append):\n"
        "    counted.outer(5)\n"
        "counted.outer(5.0)\n"
        "print([(s.package, s.kernel, s.kernels, s.kept) for s in seen], gc.isenabled())\n"
    )
    told = [("counted", "outer", 1, True), ("counted", "inner", 2, True), ("counted", "", 2, True)]
    assert run(tmp_path, code) == f"{told} True"
    assert run(tmp_path, code) == "[] True"


@pytest.mark.parametrize("home_is_writable", [True, False])
def test_where_the_folder_is_not_writable_the_users_cache_is_used(
    run: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    home_is_writable: bool,
) -> None:
    """Where neither is, kernels work and say that they are not kept."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    home = tmp_path / "home"
    home.mkdir() if home_is_writable else home.write_text("no folder")
    monkeypatch.setenv("HOME", str(home))
    package = tmp_path / "package"
    package.mkdir()
    (package / "counted.py").write_text(COUNTED)
    (package / "__pycache__").write_text("no folder: nothing can be written here, not even by root")
    code = "import counted as c; print(c.outer(5), c.outer.kept, len(c.outer.stats.cache_hits))"
    seen = (run(package, code), run(package, code))
    assert seen == (("31 True 0", "31 True 1") if home_is_writable else ("31 False 0",) * 2)
    assert bool(list(tmp_path.rglob("*.nbi"))) == home_is_writable


ARRAYS = """
import numpy as np

from placeopt.core.kernels.compile import allocating_kernel, kernel

@allocating_kernel
def made(n):
    return np.ones(n)

@allocating_kernel
def total(n):
    return part(made(n))

@kernel
def part(x):
    first = x[1:]
    return first.sum()

@kernel
def view(x):
    return x[1:], len(x)

@kernel
def viewed(x):
    return view(x)[0][0]

@allocating_kernel
def counted(x):
    return view(x)[0][0]

@kernel
def uncounted(n):
    return made(n)[0]

@kernel
def makes(n):
    return np.ones(n)[0]
"""


def test_arrays_stay_with_those_who_count_them(run: Callable[..., str], tmp_path: Path) -> None:
    """What counts references and what does not hand no arrays to each other, or to Python."""
    (tmp_path / "arrays.py").write_text(ARRAYS)
    code = (
        "import sys, arrays, numpy as np\n"
        "for call in sys.argv[1:]:\n"
        "    try:\n"
        "        print(float(eval('arrays.' + call)))\n"
        "    except Exception as error:\n"
        "        print(str(error).replace('\\n', ' '))\n"
    )
    expected = {
        "total(5)": "4.0",
        "viewed(np.arange(3.0))": "1.0",
        "made(2).sum()": "2.0",
        "view(np.ones(3))": "view returns an array: mark it allocating_kernel",
        "counted(np.ones(3))": "view returns an array: mark it allocating_kernel",
        "uncounted(3)": "made returns an array: mark its caller allocating_kernel",
        "makes(3)": "np.ones",
    }
    lines = run(tmp_path, code, *expected).splitlines()
    for (call, said), line in zip(expected.items(), lines, strict=True):
        assert said in line, call


SHIPPED = """
import os, sys
from pathlib import Path

import numba
import placeopt
from placeopt.core.runs.compiling import CLOCK
from placeopt.core.kernels import compiler

if len(sys.argv) > 1:
    numba.__version__ = sys.argv[1]
compiler.SHIPPED = Path("wheel")
placeopt.__path__.append(os.getcwd())
import placeopt.counted

print(placeopt.counted.outer(5), CLOCK.kernels)
"""


def test_what_a_wheel_brings_is_loaded_where_it_fits(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled for any CPU, and only read; else the kernel is compiled, into the user's cache."""

    monkeypatch.delenv("PLACEOPT_KERNELS", raising=False)

    def told(*arguments: str) -> str:
        cache = tempfile.mkdtemp(dir=tmp_path)
        monkeypatch.setenv("NUMBA_CACHE_DIR", cache)
        said = run(tmp_path, SHIPPED, *arguments)
        assert bool(list(Path(cache).rglob("*.nbi"))) == said.endswith(" 2")
        return said

    module, wheel = tmp_path / "counted.py", tmp_path / "wheel"
    module.write_text(COUNTED)
    with monkeypatch.context() as build:
        for name in ("PLACEOPT_FOR_ANY_CPU", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
            build.setenv(name, {"NUMBA_CPU_NAME": "generic"}.get(name, ""))
        assert start(tmp_path, SHIPPED) == "31 2"
    brought = {file: file.read_bytes() for file in wheel.iterdir()}
    assert len(brought) == 2 and told() == "31 0"
    assert told("0.1") == "31 2", "it is of another numba"
    for file in brought:
        file.write_bytes(b"damaged")
        assert told() == "31 2"
        file.write_bytes(brought[file])
    module.write_text(COUNTED.replace("inner(x, 1)", "inner(x, 2)"))
    assert told() == "32 2", "it is of another source"
    module.write_text(COUNTED)
    assert told() == "31 0"
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.devnull)
    monkeypatch.setenv("HOME", os.devnull)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "__pycache__").write_text("no folder")
    assert run(tmp_path, SHIPPED) == "31 0", "where nothing can be written"
    assert {file: file.read_bytes() for file in wheel.iterdir()} == brought


def test_checkouts_share_a_folder_of_kernels(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one compiled serves another with the same sources; others do not take its place."""
    monkeypatch.setenv("PLACEOPT_KERNELS", str(tmp_path / "kept"))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "counted.py").write_text(COUNTED)
    assert run(tmp_path / "one", SHIPPED) == "31 2"
    assert run(tmp_path / "other", SHIPPED) == "31 0"
    (tmp_path / "one" / "counted.py").write_text(COUNTED.replace("inner(x, 1)", "inner(x, 2)"))
    assert run(tmp_path / "one", SHIPPED) == "32 2"
    assert run(tmp_path / "other", SHIPPED) == "31 0"
    assert not list(tmp_path.glob("o*/**/*.nbi"))
