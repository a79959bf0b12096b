"""A stranger's first hour with the wheel: ``python tests/first_hour/run.py [WHEEL]``.

The wheel is installed into an environment of its own, used in a folder outside the checkout, with
nothing compiled before. Its libraries are those of the running interpreter, so that no network is
needed. Each step checks what it is answered; the first that is wrong ends the run. The code of
pages and the examples run in the suite.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: CPU seconds from `pip install` to the first front, with nothing compiled.
FIRST_FRONT_SECONDS = 25.0
#: CPU seconds of the first front where the wheel brings kernels.
BROUGHT_FRONT_SECONDS = 4.0
#: Seconds without a change on the terminal while that front is searched; where other programs take
#: the machine, of the share that this one had.
SILENT_SECONDS = 2.0

CONSUMER = """
from __future__ import annotations

import placeopt


def knee(path: str) -> tuple[float, ...]:
    front: placeopt.Front = placeopt.solve(path, "greedy", seed=1)
    point: placeopt.Point = front.pick()
    return point.values


print(knee("toy"))
"""

AS_DATA = """
import placeopt
front = placeopt.Front.read("front.json")
assert len(front) == len(list(front)) > 3
assert isinstance(front[0], placeopt.Point) and len(front[:2]) == 2
assert len(repr(front)) < 600 and len(repr(front[0])) < 400, repr(front)
assert "<table" in front._repr_html_() and front.hypervolume() > 0
try:
    import matplotlib
except ImportError:
    pass
else:
    front.plot()
"""

CHANGED_MODEL = """
import pyomo.environ as pyo
import placeopt
from placeopt import models
problem = placeopt.load("one.json")
model = models.edge_cloud.build(problem)
free = placeopt.enumerate(model, seconds=600)
model.mine = pyo.Constraint(expr=model.cost <= free.nadir[0] - 1)
less = placeopt.enumerate(model, seconds=600)
assert 0 < len(less) < len(free)
model.never = pyo.Constraint(expr=model.cost <= -1)
none = placeopt.enumerate(model, seconds=60)
assert len(none) == 0 and none.reasons
"""

BACK_FROM_PYMOO = """
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.optimize import minimize
import placeopt
from placeopt.core.interfaces import build_encoder
from placeopt.evolve.pymoo_adapter import EncodedProblem, Sample, Variation
problem = placeopt.load("toy")
encoded = EncodedProblem(build_encoder(problem))
algorithm = NSGA2(pop_size=20, sampling=Sample(), mating=Variation(), eliminate_duplicates=False)
result = minimize(encoded, algorithm, ("n_eval", 200), seed=1)
assert len(placeopt.front_of(result)) > 0
"""


class Stranger:
    """Somebody with an environment and a folder of their own."""

    def __init__(self, folder: Path):
        self.python = folder / "environment" / "bin" / "python"
        self.work = folder / "work"
        self.work.mkdir()
        self.times: list[tuple[str, float, float]] = []
        self.silence = 0.0
        home = folder / "home"
        home.mkdir()
        own = ("PYTHONPATH", "NUMBA_CACHE_DIR", "PLACEOPT_DATA", "PLACEOPT_KERNELS", "VIRTUAL_ENV")
        self.environment = {k: v for k, v in os.environ.items() if k not in own}
        self.environment |= {
            "HOME": str(home),
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
        }
        venv.create(self.python.parents[1], with_pip=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = self.python.parents[1] / "lib" / version / "site-packages"
        (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(self, *command: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command; it has to end with this code and without a traceback."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=self.work, env=self.environment
        )
        told = f"{' '.join(words)[:300]}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        assert done.returncode == code, told
        assert "Traceback" not in done.stderr, told
        return done

    def placeopt(self, line: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.run(self.python.parent / "placeopt", *line.split(), code=code)

    def on_a_terminal(self, line: str) -> str:
        """Run a command whose stderr is a terminal; return what it showed, without colours.

        Its longest silence is kept.
        """
        screen, terminal = pty.openpty()
        command = [str(self.python.parent / "placeopt"), *line.split()]
        environment = self.environment | {"TERM": "xterm", "COLUMNS": "120"}
        shown, times, cpu = b"", [time.perf_counter()], _cpu()
        with subprocess.Popen(command, stderr=terminal, cwd=self.work, env=environment) as process:
            os.close(terminal)
            while more := _read(screen):
                shown += more
                times.append(time.perf_counter())
        os.close(screen)
        times.append(time.perf_counter())
        text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode())
        assert process.returncode == 0, text
        share = min(1.0, (_cpu() - cpu) / (times[-1] - times[0]))
        self.silence = share * max(b - a for a, b in itertools.pairwise(times))
        return text

    def script(self, text: str) -> str:
        return self.run(self.python, "-c", text).stdout

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Take the time of a step, of this machine's clock and of the processes in it."""
        clock, cpu = time.perf_counter(), _cpu()
        yield
        self.times.append((name, time.perf_counter() - clock, _cpu() - cpu))
        print(f"ok: {name}: {self.times[-1][1]:.1f} s, {self.times[-1][2]:.1f} CPU s", flush=True)


def _read(screen: int) -> bytes:
    """Return what was written to a terminal since; nothing when the last writer is gone."""
    try:
        return os.read(screen, 65536)
    except OSError:
        return b""


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_front(me: Stranger, wheel: Path) -> None:
    """Three commands; a line moves all the time, and says what is compiled, if anything is."""
    with me.step("pip install"):
        me.run(me.python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    with me.step("the first front"):
        shown = me.on_a_terminal("solve toy -o front.json")
    light = wheel.stem.endswith("none-any")
    assert ("compiling temporal, once: " in shown) == light, shown[-1500:]
    assert "moead, seed 1" in shown, shown[-1500:]
    assert light or me.times[-1][2] <= BROUGHT_FRONT_SECONDS, me.times[-1]
    assert me.silence <= SILENT_SECONDS, me.silence
    with me.step("on screen"):
        point = json.loads(me.placeopt("pick front.json --knee").stdout)
    assert point["plan"]["instances"] and len(point["values"]) == 3
    with me.step("again"):
        again = me.placeopt("solve toy -o again.json")
    assert "compil" not in again.stderr, again.stderr
    where = me.script("import placeopt; print(placeopt.__file__)")
    assert str(me.python.parents[1]) in where, where


def what_there_is(me: Stranger) -> None:
    """Instances, methods with parameters, schemas with words, and messages that help."""
    with me.step("looking around"):
        assert "toy" in me.placeopt("instances").stdout
        alone = me.placeopt("solve", code=2).stderr
        assert "placeopt instances" in alone and "placeopt generate" in alone
        assert "aws-10" in me.placeopt("solve toyy", code=2).stderr
        assert "neighbours" in me.placeopt("methods moead").stdout
        listed = json.loads(me.placeopt("methods --json").stdout)
        assert any(one["parameters"] for one in listed)
        assert "equal shares of the budget" in me.placeopt("methods").stdout
        schema = json.loads(me.placeopt("schema temporal").stdout)
        assert "ms" in schema["properties"]["latency_ms"]["description"]
        assert "--install-completion" in me.placeopt("--help").stdout
        me.environment |= {"_PLACEOPT_COMPLETE": "complete_bash"}
        me.environment |= {"COMP_WORDS": "placeopt solve toy --method nsg", "COMP_CWORD": "4"}
        assert me.placeopt("").stdout.split() == ["nsga2", "nsga3"]
        for name in ("_PLACEOPT_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
            del me.environment[name]


def in_python(me: Stranger) -> None:
    """A front is data; scripts are typed; models can be changed; algorithms can be one's own."""
    with me.step("a front as data"):
        me.script(AS_DATA)
        assert "Parameters" in me.script("import placeopt; help(placeopt.solve)")
    with me.step("a typed script"):
        (me.work / "consumer.py").write_text(CONSUMER)
        wrong = CONSUMER.replace("tuple[float, ...]", "str")
        (me.work / "wrong.py").write_text(wrong)
        mypy = ("-m", "mypy", "--strict", "--no-incremental", "consumer.py", "wrong.py")
        found = me.run(me.python, *mypy, code=1).stdout
        assert "wrong.py" in found and "consumer.py" not in found, found
        assert me.run(me.python, "consumer.py").stdout.startswith("(")
    with me.step("a changed model"):
        me.placeopt("generate edge-cloud --seed 1 --size applications=1 -o one.json")
        me.script(CHANGED_MODEL)
    with me.step("back from pymoo"):
        me.script(BACK_FROM_PYMOO)


def experiments(me: Stranger) -> None:
    """Runs that go on, a sweep that resumes, a comparison with the best known front."""
    with me.step("going on"):
        me.placeopt("solve toy --evaluations 300 --start front.json --seed 2 -o more.json")
        table = me.placeopt("compare front.json more.json").stdout
        assert "gap to best known" in table, table
    with me.step("a sweep, twice"):
        (me.work / "study.toml").write_text(
            'name = "s"\ninstances = ["toy"]\nmethods = ["greedy", "moead"]\n'
            "seeds = [1, 2]\nevaluations = [300]\n"
        )
        me.placeopt("sweep study.toml --run-dir study")
        runs = {file: file.stat().st_mtime_ns for file in (me.work / "study/runs").rglob("*.json")}
        assert runs
        me.placeopt("sweep study.toml --run-dir study")
        assert runs == {file: file.stat().st_mtime_ns for file in runs}


def cluster(me: Stranger) -> None:
    """Manifests to a report and to steps; steps without commands say so."""
    shutil.copytree(ROOT / "examples" / "data", me.work / "data")
    with me.step("from manifests to a report"):
        me.placeopt(
            "import kubernetes data/shop.yaml --nodes data/nodes.csv "
            "--to rolling-update -o shop.json"
        )
        me.placeopt("solve shop.json --method repack -o plans.json")
        me.placeopt("report plans.json --instance shop.json -o shop.html")
        size = (me.work / "shop.html").stat().st_size
        assert 10_000 < size < 1_000_000, size
        done = me.placeopt(
            "export kubernetes plans.json --instance shop.json --format json -o s.json"
        )
        assert re.search(r"warning: \d+ of \d+ steps have no commands", done.stderr), done.stderr
        me.placeopt("evaluate shop.json s.json")


def own_problem(me: Stranger) -> None:
    """A problem of another distribution is served like ours."""
    site = next(me.python.parents[1].glob("lib/*/site-packages"))
    shutil.copy(ROOT / "examples" / "own_problem" / "backups.py", site)
    facts = site / "placeopt_backups-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: placeopt-backups\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[placeopt.problems]\nbackups = backups:SPEC\n")
    with me.step("a problem of one's own"):
        me.placeopt("generate backups --seed 1 -o backups.json")
        me.placeopt("check backups.json")
        me.placeopt("solve backups.json --method nsga2 --evaluations 400 -o backups-front.json")


STEPS: tuple[Callable[[Stranger], None], ...] = (
    what_there_is,
    in_python,
    experiments,
    cluster,
    own_problem,
)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def write_page(page: Path, me: Stranger) -> None:
    """Write what was measured."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import stamps
    from machine import facts, table

    cpu = sum(spent for _, _, spent in me.times[:3])
    met = "met" if cpu <= FIRST_FRONT_SECONDS else "missed"
    rows = [(name, f"{clock:.1f}", f"{spent:.1f}") for name, clock, spent in me.times]
    lines = [
        "# The first hour with the wheel",
        "",
        "Written by `python tests/first_hour/run.py --page benchmarks/first_hour.md`: an",
        "environment of its own, nothing compiled before, libraries already installed.",
        "",
        facts("numba", "numpy"),
        "",
        f"From `pip install` to the first front on screen, three commands: {cpu:.1f} CPU s;",
        f"at most {FIRST_FRONT_SECONDS:g} wanted: {met}. Longest time without a change on the",
        f"terminal until the front stands: {me.silence:.1f} s; {SILENT_SECONDS:g} allowed: met.",
        "",
        *table(("step", "s", "CPU s"), rows),
    ]
    stamps.write(page, "\n".join(lines), __file__, {})


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("wheel", nargs="?", type=Path)
    arguments.add_argument("--light", type=Path, help="A wheel that serves for the first front.")
    arguments.add_argument("--page", type=Path, help="Write what was measured to this page.")
    arguments.add_argument("--keep", action="store_true", help="Keep the folder.")
    given = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="first-hour-"))
    try:
        if given.light:
            (folder / "light").mkdir()
            first_front(Stranger(folder / "light"), given.light.resolve())
        me = Stranger(folder)
        first_front(me, (given.wheel or build_wheel(folder)).resolve())
        for step in STEPS:
            step(me)
        if given.page:
            write_page(given.page, me)
    finally:
        if not given.keep:
            shutil.rmtree(folder)
    cpu = sum(spent for _, _, spent in me.times[:3])
    print(f"first front after {cpu:.1f} CPU s (at most {FIRST_FRONT_SECONDS:g} wanted)")


if __name__ == "__main__":
    main()
