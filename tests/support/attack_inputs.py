"""Attacks on the command line: seeded mutations of every file type, odd options, and a judge.

`ROWS` maps a row of the table of attacks to a function ``row(rng, folder)`` that writes files and
returns the arguments of one command. A new row is one function in `ROWS`.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from placeopt import cli
from placeopt.core.files.arrays import Arrays, read_arrays, write_arrays
from placeopt.core.parameters import parameters as declared
from placeopt.registry import methods, problem_class, specs
from placeopt.rl import policy_file

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
#: CPU seconds that one command may take.
LONGEST = 10
#: Sizes of the instances that are mutated: commands on them take milliseconds.
SIZES: dict[str, dict[str, int]] = {
    "temporal": {"requests": 3},
    "edge-cloud": {"applications": 3},
    "rolling-update": {"applications": 2},
    "rescheduling": {},
    "multi-cluster": {"requests": 6},
}
#: What takes the place of a value: other types, extremes that are legal, extremes that are not.
VALUES: tuple[Any, ...] = (
    *(None, True, [], {}, [1], {"x": 1}, "", "text", "x" * 300, "\u202e\U0001f600", "../../x"),
    *(0, 1, 2, -1, 10**6, 10**9, 10**30, 0.5, 0.1 + 0.2, 1 / 3, 1e-9, 5e-324, 1e9, 1e300, -0.5),
)
#: Numbers that are legal in most places.
LEGAL: dict[type, tuple[Any, ...]] = {
    int: (0, 1, 2, 7, 1000, 10**6),
    float: (0.0, 1e-9, 5e-324, 0.1 + 0.2, 1 / 3, 1.0, 1000.5, 1e6 + 1 / 3, 1e9, 999999999.9999999),
}
Arguments = list[str]
Row = Callable[[np.random.Generator, Path], Arguments]


# -- mutations -------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value below `value`."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def mutated(document: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a JSON document with one to three changes."""
    changed = copy.deepcopy(document)
    for _ in range(rng.integers(1, 4)):
        known = list(places(changed))
        if known:
            _change(changed, known, rng)
    return changed


def stretched(document: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a JSON document with a quarter of its numbers at most extreme but legal."""
    changed = copy.deepcopy(document)
    for *path, key in places(document):
        holder = changed
        for step in path:
            holder = holder[step]
        value = holder[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.25:
            legal = LEGAL[type(value)]
            holder[key] = legal[rng.integers(len(legal))]
    return changed


def _change(document: Any, known: list[tuple[Any, ...]], rng: np.random.Generator) -> None:
    """Change one place: another value, a value from elsewhere, one less, one more, one twice."""
    *path, key = known[rng.integers(len(known))]
    holder = document
    for step in path:
        holder = holder[step]
    change = rng.integers(6)
    if change <= 1:
        holder[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    elif change == 2:
        elsewhere = document
        for step in known[rng.integers(len(known))]:
            elsewhere = elsewhere[step]
        holder[key] = copy.deepcopy(elsewhere)
    elif change == 3:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(int(rng.integers(len(holder) + 1)), copy.deepcopy(holder[key]))
    elif change == 4:
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder["bogus"] = copy.deepcopy(holder[key])


def mangled(content: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes that were cut, flipped, repeated, or had others put among them."""
    for _ in range(rng.integers(1, 4)):
        low, high = sorted(rng.integers(0, len(content) + 1, size=2).tolist())
        high = min(high, low + 40)
        noise = rng.integers(0, 256, size=rng.integers(1, 9), dtype=np.uint8).tobytes()
        digits = b"-0.1e9:[]{}\"',\n\t #&*!|>%@"
        noise = bytes([digits[rng.integers(len(digits))]]) if rng.random() < 0.6 else noise
        content = (
            content[:low],
            content[:low] + content[high:],
            content[:low] + noise + content[low:],
            content[:low] + noise + content[low + len(noise) :],
            content[:high] + content[low:],
        )[rng.integers(5)]
    return content


def write(folder: Path, name: str, content: Any) -> str:
    """Write bytes, or a document as JSON, NaN and infinities included; return the path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return str(path)


def spoilt(document: Any, rng: np.random.Generator) -> Any:
    """Return a document with changes, or its bytes mangled."""
    kind = rng.random()
    if kind < 0.1:
        return mangled(json.dumps(document).encode(), rng)
    return stretched(document, rng) if kind < 0.4 else mutated(document, rng)


# -- what is mutated -------------------------------------------------------------------------------


@cache
def instance(kind: str) -> Any:
    """Return the document of a small instance."""
    return problem_class(kind).generate(1, **SIZES[kind]).to_document()


@cache
def front(kind: str) -> Any:
    """Return the document of a front of `instance`, of at most four points."""
    from placeopt import api, registry

    problem = registry.from_document(instance(kind))
    return api.solve(problem, "nsga2", evaluations=100).subset(4).to_document()


@cache
def exported(kind: str) -> Any:
    """Return the document of exported steps."""
    from placeopt import registry
    from placeopt.kubernetes.export import export

    problem = registry.from_document(instance(kind))
    plan = copy.deepcopy(front(kind)["points"][0]["plan"])
    return json.loads(export(problem, plan, None, form="json", namespace="default"))


def instances(kind: str, rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with an instance file."""
    path = write(folder, "x.json", spoilt(instance(kind), rng))
    if rng.random() < 0.5:
        return ["check", path]
    method = ("auto", "nsga2", "moead", "rollout")[rng.integers(4)]
    evaluations = [] if method == "auto" else ["--evaluations", "60"]
    return ["solve", path, "--method", method, "--time-limit", "2", *evaluations]


def fronts(kind: str, rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with a front file, or with a good front of a changed instance."""
    good = write(folder, "x.json", instance(kind))
    bad = write(folder, "f.json", spoilt(front(kind), rng))
    if rng.random() < 0.1:
        bad, good = (
            write(folder, "f.json", front(kind)),
            write(folder, "x.json", mutated(instance(kind), rng)),
        )
    out = str(folder / "out.html")
    commands = (
        ["evaluate", good, bad],
        ["solve", good, "--method", "nsga2", "--evaluations", "60", "--start", bad],
        ["report", bad, "--instance", good, "-o", out],
        ["report", bad, "-o", out],
        ["plot", bad, "--instance", good, "-o", out],
        ["plot", bad, "--point", "0", "--instance", good, "-o", out],
        ["pick", bad],
        ["merge", bad, bad],
        ["compare", bad, "--json"],
        ["export", "kubernetes", bad, "--instance", good],
    )
    return commands[rng.integers(len(commands))]


def plans(kind: str, rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with a plan file."""
    good = write(folder, "x.json", instance(kind))
    chosen = front(kind)["points"][rng.integers(len(front(kind)["points"]))]["plan"]
    bad = write(folder, "plan.json", spoilt(chosen, rng))
    if rng.random() < 0.5:
        return ["evaluate", good, bad]
    return ["export", "kubernetes", bad, "--instance", good]


def steps(kind: str, rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with exported steps."""
    good = write(folder, "x.json", instance(kind))
    bad = write(folder, "steps.json", spoilt(exported(kind), rng))
    if rng.random() < 0.5:
        return ["evaluate", good, bad]
    return ["export", "kubernetes", bad, "--instance", good]


def policies(rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with a policy file: its bytes, its header or its arrays."""
    source = policy_file.bundled()["multi-cluster-fixed-rate5"]
    target = folder / "p.npz"
    if rng.random() < 0.3:
        target.write_bytes(mangled(source.read_bytes(), rng))
    else:
        stored = read_arrays(source, "policy", policy_file.MAX_BYTES)
        header, arrays = stored.header, dict(stored.arrays)
        if rng.random() < 0.3:
            key = sorted(arrays)[rng.integers(len(arrays))]
            value = (np.nan, np.inf, 1e38, 0.0)[rng.integers(4)]
            odd = (arrays[key][:-1], arrays[key].astype(np.int32), np.full_like(arrays[key], value))
            arrays[key] = odd[rng.integers(3)]
        else:
            header = mutated(dict(header), rng)
        write_arrays(target, Arrays(header if isinstance(header, dict) else {}, arrays))
    if rng.random() < 0.5:
        return ["rollout", str(target), "--env", "requests=5"]
    good = write(folder, "x.json", instance("multi-cluster"))
    return ["solve", good, "--method", "policy", "--policy", str(target)]


def manifests(rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with YAML manifests, or with a table beside them."""
    texts = {name: (DATA / name).read_bytes() for name in ("shop.yaml", "nodes.csv", "latency.csv")}
    chosen = ("shop.yaml", "shop.yaml", "nodes.csv", "latency.csv")[rng.integers(4)]
    texts[chosen] = mangled(texts[chosen], rng)
    shop, nodes, latency = (write(folder, name, text) for name, text in texts.items())
    to = ("rolling-update", "edge-cloud", "rescheduling")[rng.integers(3)]
    return ["import", "kubernetes", shop, "--nodes", nodes, "--latency", latency, "--to", to]


def prices(rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with tables of prices."""
    good = (DATA / "prices.csv").read_bytes()
    table = {"usd_per_hour": {"us-east-1": {"m5.large": 0.096, "t3.nano": 0.0052}}}
    name, bad = (
        ("p.csv", mangled(good, rng))
        if rng.random() < 0.5
        else (
            "p.json",
            spoilt(table, rng),
        )
    )
    return ["import", "prices", write(folder, name, bad)]


def workmodels(rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with a muBench workmodel."""
    service = {
        "external_services": [{"seq_len": 1, "services": ["s1"]}],
        "internal_service": {"loader": {"cpu_stress": {"run": True, "trials": 5}}},
    }
    model = {"s0": service, "s1": service | {"external_services": []}}
    return ["import", "mubench", write(folder, "w.json", spoilt(model, rng))]


def options(rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with values of options that are texts, or numbers out of range."""
    toy, good = (write(folder, name, of("temporal")) for name, of in _TOY)
    texts = ("", "0", "-1", "1e9", "nan", "inf", "abc", "1,2", "a=1", "=", "\u0661", "9" * 400)
    value = texts[rng.integers(len(texts))]
    quick = ["--method", "nsga2", "--evaluations", "60"]
    commands = (
        *(["solve", toy, *quick, f"--{o}={value}"] for o in ("points", "objectives", "param")),
        *(["pick", good, f"--{o}={value}"] for o in ("lex", "budget")),
        ["compare", good, f"--reference={value}"],
        *([c, good, f"--point={value}", "-o", f"{folder}/o.html"] for c in ("plot", "report")),
        ["generate", "temporal", f"--size={value}"],
        ["generate", "temporal", f"--name={value}"],
        ["generate", "--", value],
        ["schema", "--", value],
    )
    return commands[rng.integers(len(commands))]


#: Values of parameters: zeros, negatives, other types, numbers far out of range.
HOSTILE = ("0", "-1", "1e9", "1.5", "abc", "nan", "inf", "", "true", "[1]", "9" * 40, "\u0661", "1")


@cache
def _parameters() -> list[tuple[str, str, str]]:
    """Return (kind, method, parameter) of every parameter that a method declares."""
    return [
        (kind, name, parameter.name)
        for name, entry in methods().items()
        for kind in entry.problems
        if kind in SIZES
        for parameter in declared(entry.load(kind))
    ]


def parameters(rng: np.random.Generator, folder: Path) -> Arguments:
    """Attack with values of a method's parameters."""
    kind, method, name = _parameters()[rng.integers(len(_parameters()))]
    file = write(folder, "x.json", instance(kind))
    value = HOSTILE[rng.integers(len(HOSTILE))]
    limits = ["--evaluations", "60", "--time-limit", "2"]
    return ["solve", file, "--method", method, *limits, "--param", f"{name}={value}"]


_TOY = (("x.json", instance), ("f.json", front))

#: Rows of the table of attacks.
ROWS: dict[str, Row] = {
    **{f"instance, {kind}": partial(instances, kind) for kind in specs()},
    **{f"front, {kind}": partial(fronts, kind) for kind in specs()},
    **{f"plan, {kind}": partial(plans, kind) for kind in specs()},
    **{f"steps, {kind}": partial(steps, kind) for kind in ("rolling-update", "rescheduling")},
    "policy": policies,
    "manifests and tables": manifests,
    "prices": prices,
    "workmodel": workmodels,
    "options": options,
    "parameters": parameters,
}


# -- the judge -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What came of a command: ``refused``, ``answered``, or what is wrong."""

    verdict: str
    detail: str = ""

    @property
    def failed(self) -> bool:
        """Whether this must not happen."""
        return self.verdict not in ("refused", "answered")


def outcome(arguments: Arguments) -> Outcome:
    """Run a command in this process and judge it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    begun, code = time.process_time(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _alarm():
        try:
            cli.main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException as error:
            where = error.__traceback__
            while where is not None and where.tb_next is not None:
                where = where.tb_next
            at = "" if where is None else f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}"
            return Outcome("traceback", f"{type(error).__name__}: {error} at {at}"[:300])
    return judged(code, *(_text(stream) for stream in (out, err)), time.process_time() - begun)


def judged(code: int, out: str, err: str, seconds: float) -> Outcome:
    """Judge what a command printed and how it ended."""
    if "Traceback" in err:
        return Outcome("traceback", err[-300:])
    if seconds > LONGEST:
        return Outcome("too slow", f"{seconds:.0f} s")
    if code in (0, 3):
        return Outcome("answered")
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    if code == 2 and len(errors) == 1 and len(errors[0]) < 1500:
        return Outcome("refused", errors[0])
    return Outcome(f"exit code {code}", err[-300:])


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Raise in the main thread when a command works twice as long as it may."""

    def ring(_number: int, _frame: object) -> None:
        raise TimeoutError(f"more than {2 * LONGEST} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, 2 * LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
