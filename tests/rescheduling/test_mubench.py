"""muBench's workmodels become rescheduling instances; errors name the service and the fault."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from placeopt import cli
from placeopt.core.errors import DocumentError
from placeopt.rescheduling import mubench
from placeopt.rescheduling.problem import Rescheduling

DATA = os.environ.get("PLACEOPT_DATA")
#: file -> services, calls
PUBLISHED = {
    "workmodelA": (20, 19),
    "workmodelC-multi": (20, 19),
    "workmodel-parallel-5services": (5, 4),
    "workmodel-serial-3services": (3, 2),
    "workmodel-teastore-emulation": (6, 12),
}


def service(*groups: list[str], trials: float = 10, **more: Any) -> dict[str, Any]:
    stress = {"run": True, "range_complexity": [100, 300], "trials": trials}
    loader = {"cpu_stress": stress, "sleep_stress": {"run": False, "sleep_time": 9}}
    listed = [{"seq_len": 100, "services": list(group)} for group in groups]
    return {"external_services": listed, "internal_service": {"loader": loader}, **more}


def loader(model: Any) -> Any:
    return model["b"]["internal_service"]["loader"]


def written(folder: Path, model: Any) -> Path:
    path = folder / "workmodel.json"
    path.write_text(json.dumps(model))
    return path


def test_groups_times_and_sizes(tmp_path: Path) -> None:
    """Groups stay groups, work becomes ms, quantities become cores and GiB, empty groups vanish."""
    model = {
        "b": service([], **{"cpu-requests": "100m", "memory-requests": "256Mi"}),
        "a": service(["b", "c"], ["c"]),
        "c": service(trials=0),
    }
    problem = Rescheduling.from_document(mubench.read(written(tmp_path, model), replicas=2))
    b, a, c = problem.services
    assert (
        problem.gateway == "a"
        and a.calls == (("b", "c"), ("c",))
        and b.calls == ()
        and len(b.replicas) == 2
    )
    assert (b.cpu_cores, b.memory_gib, a.cpu_cores) == (0.1, 0.25, mubench.CORES)
    assert (
        b.execution_ms == {"cloud-a": 40.0, "edge-a": 60.0, "edge-b": 80.0}
        and c.execution_ms["cloud-a"] == 0
    )


@pytest.mark.parametrize(
    ("change", "named", "path"),
    [
        (
            lambda m: m["a"]["external_services"][0]["services"].append("x"),
            "'a' calls the unknown service 'x'",
            "a.external_services[0].services[2]",
        ),
        (
            lambda m: m["b"].pop("external_services"),
            "this field is missing",
            "b.external_services",
        ),
        (
            lambda m: m["b"].update(external_services=3),
            "3 is not legal",
            "b.external_services",
        ),
        (
            lambda m: m["a"].update(external_services=[7]),
            "7 is not legal",
            "a.external_services[0]",
        ),
        (
            lambda m: m["b"].pop("internal_service"),
            "this field is missing",
            "b.internal_service",
        ),
        (
            lambda m: m["b"].update({"cpu-requests": "many"}),
            "'many' is not legal",
            "b.cpu-requests",
        ),
        (
            lambda m: loader(m)["cpu_stress"].update(trials=-1),
            "-1 is not legal",
            "b.internal_service.loader.cpu_stress.trials",
        ),
        (
            lambda m: loader(m).update(cpu_stress=4),
            "4 is not legal",
            "b.internal_service.loader.cpu_stress",
        ),
        (
            lambda m: m.update(a=service(["b"]), b=service(["a"])),
            "every service is called by another",
            None,
        ),
    ],
)
def test_malformed_models_name_service_and_fault(
    tmp_path: Path, change: Any, named: str, path: str | None
) -> None:
    """And the file."""
    model = {"a": service(["b", "b"]), "b": service()}
    change(model)
    with pytest.raises(DocumentError) as found:
        mubench.read(written(tmp_path, model))
    assert (
        named in str(found.value)
        and found.value.path == path
        and found.value.remedy
        and found.value.file.endswith("workmodel.json")
    )


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It writes an instance that `check` accepts; a circle is an error that names the file."""
    source, target = (
        written(tmp_path, {"a": service(["b"]), "b": service(), "idle": service()}),
        tmp_path / "out.json",
    )
    with pytest.raises(SystemExit) as end:
        cli.main(["import", "mubench", str(source), "--replicas", "2", "-o", str(target)])
    assert end.value.code == 0 and "service 'idle' is not reached" in capsys.readouterr().err
    assert Rescheduling.read(target).name == "workmodel"
    circle = written(tmp_path, {"a": service(["b"]), "b": service(["c"]), "c": service(["b"])})
    with pytest.raises(SystemExit) as end:
        cli.main(["import", "mubench", str(circle)])
    said = capsys.readouterr().err
    assert end.value.code == 2 and "b -> c -> b" in said and str(circle) in said


@pytest.mark.skipif(DATA is None, reason="PLACEOPT_DATA is not set")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_examples(name: str) -> None:
    """Every example of muBench is read, with all of its calls."""
    problem = Rescheduling.from_document(
        mubench.read(Path(str(DATA)) / "mubench" / f"{name}.json", name=name)
    )
    assert (
        len(problem.services),
        sum(len(g) for s in problem.services for g in s.calls),
    ) == PUBLISHED[name]
    assert problem.initial_latency > 0
