"""``placeopt import kubernetes``: real, hostile and large files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from effort import tries
from forks import forked, placeopt
from hands import within
from held_clusters import pod
from little_clusters import ended

from placeopt import api
from placeopt.kubernetes import origin
from placeopt.registry import read

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("rolling-update", "edge-cloud", "rescheduling", "temporal")
GENEROUS = ("--missing-requests", "limits", "--missing-requests", "default=100m,128Mi")

ROLLING = ("--to", "rolling-update")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: (exit code, stdout, stderr)."""

    def runner(*arguments: object) -> tuple[int, str, str]:
        code = ended(*map(str, arguments))
        return code, *capfd.readouterr()

    return runner


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """Nodes, latencies and prices."""
    texts = {
        "nodes": "name,cpu,memory,zone,region,instance_type,price,count\n"
        "near,4,8Gi,z1,us,m5.xlarge,0.2,4\nfar,8,16Gi,z2,us,m5.2xlarge,0.3,4\n",
        "latency": ",z1,z2\nz1,0.5,20\nz2,20,0.5\n",
        "prices": "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour,spot_usd_per_hour,"
        "spot_interruption\nus,m5.large,2,8,0.1,0.03,0.05\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    return {name: tmp_path / f"{name}.csv" for name in texts}


def options(target: str, tables: dict[str, Path]) -> list[object]:
    """Return what a target needs besides the manifests."""
    return (
        ["--prices", tables["prices"]]
        if target == "temporal"
        else ["--nodes", tables["nodes"], "--latency", tables["latency"]]
    )


# -- real files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("name", "services", "calls"),
    [("online-boutique", 12, 16), ("sock-shop", 14, 1), ("hotel-reservation", 17, 0)],
)
def test_real_manifests(
    run: Run,
    kubernetes_data: Path,
    tables: dict[str, Path],
    tmp_path: Path,
    target: str,
    name: str,
    services: int,
    calls: int,
) -> None:
    """Import to every problem; the instance is feasible, and the files beside it belong to it."""
    out, report = tmp_path / "shop.json", tmp_path / "import.json"
    source = kubernetes_data / "kubernetes" / f"{name}.yaml"
    files = ("-o", out, "--report", report)
    asked = ("--to", target, *options(target, tables), *GENEROUS, *files)
    code, _, err = run("import", "kubernetes", source, *asked)
    assert code == 0, err
    notes = json.loads(report.read_text(encoding="utf-8"))
    assert notes["format"] == "placeopt/import@1"
    assert (notes["counts"]["replicas"], notes["counts"]["calls"]) == (services, calls)
    problem, names = read(out), origin.read(origin.beside(out))
    names.check(problem)
    # Databases that call nobody count against their nodes.
    stay = 6 if (name, target) == ("hotel-reservation", "rescheduling") else 0
    assert len({i.name for i in names.items.values()}) == services - stay
    assert all(len(i.containers) for i in names.items.values())
    method = "repack" if target == "rolling-update" else "greedy"
    front = api.solve(problem, method, evaluations=300)
    assert front.points and not problem.evaluate(front.points[0].plan).violations


def test_calls_of_the_online_boutique(
    run: Run, kubernetes_data: Path, tables: dict[str, Path], tmp_path: Path
) -> None:
    """The 16 that its addresses name; the one address without a Service is in the report."""
    out, report = tmp_path / "x.json", tmp_path / "import.md"
    source = kubernetes_data / "kubernetes" / "online-boutique.yaml"
    more = (*options("rescheduling", tables), "-o", out, "--report", report)
    run("import", "kubernetes", source, "--to", "rescheduling", *more)
    listed = json.loads(out.read_text(encoding="utf-8"))["services"]
    services = {s["name"]: s.get("calls", [[]])[0] for s in listed}
    assert len(services) == 12 and sum(map(len, services.values())) == 16
    assert services["cartservice"] == ["redis-cart"] and len(services["frontend"]) == 7
    assert services["loadgenerator"] == ["frontend"]
    told = report.read_text(encoding="utf-8")
    assert r"SHOPPING\_ASSISTANT\_SERVICE\_ADDR" in told, "Markdown shows it without the strokes"


def test_all_outside_files_import_or_are_refused_with_a_line(
    run: Run, kubernetes_data: Path, tables: dict[str, Path]
) -> None:
    """Each by the command that is made for it."""
    asked = (*ROLLING, "--nodes", tables["nodes"], *GENEROUS)
    folders = [kubernetes_data / name for name in ("kubernetes", "karmada")]
    seen = {p: run("import", "kubernetes", p, *asked) for f in folders for p in sorted(f.iterdir())}
    models = sorted((kubernetes_data / "mubench").glob("*.json"))
    seen |= {path: run("import", "mubench", path) for path in models}
    for path, (code, out, err) in seen.items():
        if code == 0:
            assert json.loads(out)
        else:
            assert code == 2 and err.startswith(f"error: {path}: line "), (path, err)
            assert err.count("\n") == 1, (path, err)
    good = {path.name for path, (code, *_) in seen.items() if code == 0}
    models_read = {name for name in good if name.startswith("workmodel")}
    shops = ("online-boutique", "sock-shop", "hotel-reservation", "nginx-deployment")
    assert good - models_read == {f"{name}.yaml" for name in shops} and len(models_read) == 5


def test_stdin_and_karmada_together(kubernetes_data: Path, tables: dict[str, Path]) -> None:
    """`helm template | placeopt import kubernetes -`, in a process of its own."""
    text = (kubernetes_data / "karmada" / "nginx-deployment.yaml").read_bytes()
    policy = kubernetes_data / "karmada" / "nginx-propagationpolicy.yaml"
    words = ["import", "kubernetes", "-", policy, *ROLLING, "--nodes", tables["nodes"]]
    done = placeopt(*words, *GENEROUS, stdin=text)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["applications"][0]["microservices"]) == 2
    assert "PropagationPolicy" in done.stderr and "nginx-propagation" in done.stderr


# -- hostile files ---------------------------------------------------------------------------------

SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      tolerations: [{key: a, operator: Exists}]
      volumes: [{name: v, emptyDir: {medium: Memory}}]
      initContainers: [{name: i, resources: {requests: {cpu: 1m, memory: 1Mi}}}]
      containers:
      - name: main
        env: [{name: DB_ADDR, value: 'db:5432'}]
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 1Gi}}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/os: linux, topology.kubernetes.io/zone: z1}}
spec: {taints: [{key: a, effect: NoSchedule}]}
status:
  allocatable: {cpu: '4', memory: 8Gi, pods: '110'}
  conditions: [{type: Ready, status: 'True'}]
"""
EVIL: list[Any] = [
    None, True, -1, 0, 1.5, 10**30, "", " ", "x" * 3000, "<script>alert(1)</script>",
    "\u202e\u0007web", "web\u0000", "../../etc/passwd", "1e999999999", "-5", "NaN", [], {}, [[]],
    [None], {"a": {"b": {}}}, {"<img src=x>": "y"}, "$(touch /tmp/pwned)", "`id`", "${HOME}",
    "=cmd()", "é" * 70, "100m100m", ["x"] * 50,
]  # fmt: skip


def spots(value: Any, steps: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the steps to everything below a value."""
    found = [steps] if steps else []
    listed = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else listed:
        found += spots(inner, (*steps, key))
    return found


def check_outcome(code: int, out: str, err: str, path: Path) -> None:
    """A refusal in one line with file and line, an infeasible or a valid instance; no trace."""
    assert code in (0, 2, 3), err
    assert not any(odd in err for odd in ("Traceback", "\x07", "\x1b", "\u202e"))
    if code == 2:
        assert out == "" and err.count("\n") == 1 and len(err) < 2000, err
        assert err.startswith(f"error: {path}") and "line " in err, err
    if code == 0:
        assert "<script>" not in out and json.loads(out)
    assert not Path("/tmp/pwned").exists()


@pytest.mark.parametrize("target", TARGETS)
def test_values_out_of_place(
    run: Run, tables: dict[str, Path], tmp_path: Path, target: str
) -> None:
    """Every value of a manifest replaced by something else, many times for each problem."""
    import yaml

    documents = list(yaml.safe_load_all(SHOP))
    places = [(d, steps) for d, document in enumerate(documents) for steps in spots(document)]
    rng = np.random.default_rng(TARGETS.index(target))
    codes = []
    for round_ in range(tries(80, 150)):
        mutated = json.loads(json.dumps(documents))
        d, steps = places[int(rng.integers(len(places)))]
        holder = mutated[d]
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = EVIL[int(rng.integers(len(EVIL)))]
        path = tmp_path / f"m{round_}.{'yaml' if round_ % 2 else 'json'}"
        text = yaml.safe_dump_all(mutated, allow_unicode=True)
        if round_ % 2 == 0:
            text = json.dumps({"kind": "List", "items": mutated}, indent=1)
        path.write_text(text, encoding="utf-8")
        more = ["--prices", tables["prices"]] if target == "temporal" else []
        with within(0, 5):
            code, out, err = run("import", "kubernetes", path, "--to", target, *more)
        check_outcome(code, out, err, path)
        codes.append(code)
    assert min(codes.count(2), codes.count(0)) > len(codes) // 10, codes


def test_texts_cut_swapped_and_repeated(run: Run, tmp_path: Path) -> None:
    """Characters of a manifest deleted, doubled, replaced; lines moved: two hundred files."""
    rng, codes = np.random.default_rng(8), []
    for k in range(200):
        text = SHOP
        for _ in range(int(rng.integers(1, 4))):
            at, kind = int(rng.integers(len(text))), int(rng.integers(5))
            if kind == 0:
                text = text[:at] + text[at + int(rng.integers(1, 30)) :]
            elif kind == 1:
                odd = list("{}[]:,-&*!|>'\"%@`#\t\\\x00\x1b\x85\u2028\ufeff")
                text = text[:at] + str(rng.choice(odd)) + text[at:]
            elif kind == 2:
                text = text[:at]
            elif kind == 3:
                lines = text.split("\n")
                i, j = rng.integers(len(lines), size=2)
                lines[i], lines[j] = lines[j], lines[i]
                text = "\n".join(lines)
            else:
                text = text[:at] + text[max(0, at - 40) :]
        path = tmp_path / f"t{k}.yaml"
        path.write_text(text, encoding="utf-8")
        code, out, err = run("import", "kubernetes", path, *ROLLING)
        check_outcome(code, out, err, path)
        codes.append(code)
    assert codes.count(2) > 100


TOLERANT = '{"kind": "Pod", "metadata": {"name": "x"}, "spec": {"tolerations": %s}}'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no workloads or pods"),
        ("# nothing\n", "no workloads or pods"),
        ("--- \n---\n", "no workloads or pods"),
        ("just text", "not an object of Kubernetes"),
        ("[1, 2]", "not an object of Kubernetes"),
        ("kind: 5", "where a text is expected"),
        (SHOP.replace("replicas: 2", "replicas: 1000001"), "1000001 is not legal"),
        (SHOP.replace("replicas: 2", "replicas: 999999"), "more than 50,000 replicas"),
        (TOLERANT % ("[" * 700 + "]" * 700), ""),
        (SHOP.replace("cpu: 100m", "cpu: 1e999999999"), "too large"),
        (SHOP.replace("cpu: 100m", "cpu: 100m\n, cpu: 1"), "twice"),
        (SHOP.replace("cpu: 100m", "cpu: -100m"), "negative"),
        (SHOP.replace("name: web\n", "name: <script>alert(1)</script>\n"), "no name of Kubernetes"),
        (SHOP.replace("name: web\n", "name: wéb\n"), "no name of Kubernetes"),
        (SHOP.replace("labels: {app: web}\n", "labels: {'<b>': web}\n", 1), "no key of a label"),
        (SHOP.replace("{app: web}", "{app: 1}", 1), "no value of a label"),
        (SHOP.replace("allocatable:", "capacity:"), "without allocatable"),
        (SHOP.replace("Exists", "Exists, effect: 5"), "where a text is expected"),
        ('{"kind": "List",\n"items": [' * 8 + "]}" * 8, "lists within lists"),
    ],
)
def test_what_is_wrong_is_said(run: Run, tmp_path: Path, text: str, says: str) -> None:
    """With file and line, exit code 2."""
    path = tmp_path / "f.yaml"
    path.write_text(text, encoding="utf-8")
    code, out, err = run("import", "kubernetes", path, *ROLLING)
    assert code == 2 and says in err and out == "" and err.startswith(f"error: {path}: line ")


def test_a_bomb_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Ten to the eleventh values, refused in little time and memory."""
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + k)}: &{chr(98 + k)} [{','.join(['*' + chr(97 + k)] * 10)}]\n" for k in range(10)
    )
    (tmp_path / "bomb.yaml").write_text(bomb, encoding="utf-8")
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2); "
        "from placeopt.cli import main; main(sys.argv[1:])"
    )
    words = ["import", "kubernetes", tmp_path / "bomb.yaml", *ROLLING]
    done = forked(limited, *words)
    assert done.returncode == 2 and "aliases expand" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to", "temporla"),
        (*ROLLING, "--missing-requests", "zero"),
        (*ROLLING, "--empty-dir", "lose"),
        (*ROLLING, "--cordoned", "keep"),
        (*ROLLING, "--survive", "node"),
        (*ROLLING, "--overlay", "x", "--prices", "none.csv"),
        (*ROLLING, "-o", "/nonexistent/x.json"),
        (*ROLLING, "--nodes", "/nonexistent.csv"),
        ("--to", "temporal"),
        ("--to", "rescheduling", "--execution", "/nonexistent.csv"),
        (*ROLLING, "--drain", "n9"),
        ("--to", "temporal", "--slot-hours", "0"),
    ],
)
def test_options_that_are_wrong(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """One line, exit code 2."""
    path = tmp_path / "f.yaml"
    path.write_text(SHOP, encoding="utf-8")
    code, out, err = run("import", "kubernetes", path, *arguments)
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1


# -- size ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated cluster of 200 nodes and 3,000 pods, as kubectl prints it."""
    monkey = pytest.MonkeyPatch()
    monkey.syspath_prepend(str(ROOT / "benchmarks" / "kubernetes"))
    module = importlib.import_module("make_cluster")
    monkey.undo()
    folder = tmp_path_factory.mktemp("large")
    (folder / "cluster.json").write_text(json.dumps(module.cluster(200, 3000, 2), indent=4))
    (folder / "prices.json").write_text(json.dumps(module.prices()), encoding="utf-8")
    return folder


def test_a_large_cluster(run: Run, large: Path, tmp_path: Path) -> None:
    """Imports in little time, and gets cheaper by plans that the referee replays."""
    out, words = tmp_path / "large.json", [*ROLLING, "--prices", large / "prices.json"]
    with within(0, 6):  # measured: 1.5 s
        code, _, err = run("import", "kubernetes", large / "cluster.json", *words, "-o", out)
    assert code == 0, err
    problem = read(out)
    front = api.solve(problem, "repack", seconds=6, seed=1)
    best = min(front.points, key=lambda p: p.values[0])
    judged = problem.evaluate(best.plan)
    assert not judged.violations and judged.values == best.values
    assert best.values[0] < 0.9 * problem.initial_cost and best.values[2] == 0
    names = origin.read(origin.beside(out))
    for step in best.plan["steps"]:
        assert names.item(step["microservice"], step["application"]).pod == step["microservice"]


def test_tables_and_pins_name_every_fault(
    run: Run, tables: dict[str, Path], tmp_path: Path
) -> None:
    """Lines of one table, two tables, names that nothing has: each in one message."""
    cluster, out = tmp_path / "cluster.json", tmp_path / "out.json"
    cluster.write_text(json.dumps(pod("web-1", "near-1")), encoding="utf-8")
    asked = ["import", "kubernetes", cluster, *ROLLING, "-o", out, *GENEROUS]
    given = ["--nodes", tables["nodes"], "--prices", tables["prices"]]
    code, _, said = run(*asked, *given, "--pin", "Pod/no", "--pin", "Deployment/nor")
    assert code == 2 and "--pin Pod/no:" in said and "--pin Deployment/nor:" in said
    with tables["nodes"].open("a", encoding="utf-8") as file:
        file.write("Bad,4,8Gi,,,,,\nshort,4\nother,four,8Gi,,,,,\n")
    with tables["prices"].open("a", encoding="utf-8") as file:
        file.write("us,m5.large,2,8,much,,\n")
    code, _, said = run(*asked, *given)
    assert code == 2 and not out.exists()
    for part in ("line 4", "'Bad'", "line 5", "2 cells", "line 6", "'four'", "line 3", "'much'"):
        assert part in said, part
    tables["prices"].write_text("place,1,2,3,4,5,6,7,8\n", encoding="utf-8")
    code, _, said = run(*asked, *given)
    assert code == 2 and "no column 'location', 'size'; and column 'place', '1'" in said
    assert len(said) < 1500
