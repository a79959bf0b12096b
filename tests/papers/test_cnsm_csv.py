"""The CNSM paper's CSV files: read as published, refused by file and line where wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from placeopt_papers import cnsm_csv

from placeopt import cli
from placeopt.core.errors import DocumentError
from placeopt.core.files.documents import read_json
from placeopt.registry import from_document
from placeopt.temporal.generator import latencies, offers

FILES = {
    "requests": "cpu,ram,duration,location,replicas\n4,14,20,a,6\n1,16.5,31,b,3\n",
    "prices": "DataCenter,Instance,On-Demand,Reserved,Spot,vCPU,RAM,InterruptFrequency\n"
    "a,big,0.3,0.2,0.1,8,32.0,15\nb,big,,0.2,,8,32,\n",
    "latency": "DataCenter,a,b\na,2.5,30\nb,31,4\n",
}


def written(folder: Path, **changes: str) -> dict[str, Path]:
    paths = {name: folder / f"{name}.csv" for name in FILES}
    for name, text in (FILES | changes).items():
        paths[name].write_text(text, encoding="utf-8")
    return paths


def test_the_three_files_make_an_instance(tmp_path: Path) -> None:
    """Rows are origins; an empty price is not offered; per cent become shares."""
    document = cnsm_csv.read(**written(tmp_path), name="mine", horizon_slots=50, slot_hours=0.5)
    assert (document["name"], document["horizon_slots"], document["slot_hours"]) == (
        "mine",
        50,
        0.5,
    )
    assert document["latency_ms"] == {"a": {"a": 2.5, "b": 30}, "b": {"a": 31, "b": 4}}
    assert document["offers"][0]["spot_interruption"] == 0.15
    assert document["offers"][1] == {
        "location": "b",
        "size": "big",
        "cpu_cores": 8,
        "memory_gib": 32,
        "reserved_usd_per_hour": 0.2,
    }
    assert document["requests"][1] == {
        "name": "r2",
        "cpu_cores": 1,
        "memory_gib": 16.5,
        "duration_slots": 31,
        "replicas": 3,
        "origin": "b",
    }
    assert from_document(document).to_document() == document


def test_names_and_blank_lines_are_welcome(tmp_path: Path) -> None:
    """A name column, a byte order mark, spaces, empty lines at the end."""
    requests = "\ufeffname, cpu,ram,duration,location,replicas\nshop, 4,14,20,a,6\n\n"
    assert cnsm_csv.read(**written(tmp_path, requests=requests))["requests"][0]["name"] == "shop"


def test_the_paper_s_own_files() -> None:
    """50 requests, 175 replicas; the tables are those that are bundled."""
    if "PLACEOPT_DATA" not in os.environ:
        pytest.skip("PLACEOPT_DATA is not set")
    folder = Path(os.environ["PLACEOPT_DATA"]) / "cnsm2024"
    document = cnsm_csv.read(
        folder / "Services.csv", folder / "AWS_EC2_Pricing.csv", folder / "AWS_EC2_Latency.csv"
    )
    problem: Any = from_document(document)
    assert (
        len(problem.requests),
        sum(r.replicas for r in problem.requests),
        problem.infeasibility(),
    ) == (50, 175, ())
    assert document["latency_ms"] == latencies()
    assert [o | {"max_instances": None} for o in document["offers"]] == offers()


@pytest.mark.parametrize(
    ("file", "line", "new", "said"),
    [
        (
            "requests",
            3,
            "1,16,31,z,3",
            "line 3: unknown location 'z'; the latency file names the locations; legal: a, b",
        ),
        ("requests", 3, "1,16,31,b", "line 3: 4 cells; give 5, one per column of the header"),
        ("requests", 3, "1,16,31.5,b,3", "line 3: duration is '31.5'; legal: a whole number"),
        ("requests", 3, "1,16,31,b,0", "line 3: replicas is 0; legal: a whole number, 1 or more"),
        ("requests", 3, "-1,16,31,b,3", "line 3: cpu is -1; legal: a number, 0 or more"),
        ("requests", 3, "nan,16,31,b,3", "line 3: cpu is nan; legal: a number, 0 or more"),
        ("requests", 3, "0,16,31,b,3", "line 3: cpu is 0; legal: a number above 0"),
        ("requests", 3, ",16,31,b,3", "line 3: cpu is empty; fill it in"),
        (
            "requests",
            1,
            "cpu,ram,length,location,replicas",
            "line 1: no column 'duration'; the header has: cpu, ram, length, location, replicas",
        ),
        (
            "requests",
            1,
            "cpu,ram,duration,location,replicas,nmae",
            "line 1: unknown column 'nmae'; did you mean 'name'?",
        ),
        (
            "requests",
            1,
            "cpu,cpu,ram,duration,location,replicas",
            "line 1: column 'cpu' stands twice; keep one of the two",
        ),
        ("prices", 3, "c,big,1,1,1,8,32,5", "line 3: unknown location 'c'"),
        (
            "prices",
            3,
            "a,big,1,1,1,8,32,5",
            "line 3: offer 'a big' stands on line 2 already; keep one of the two",
        ),
        (
            "prices",
            3,
            "b,big,,,,8,32,5",
            "line 3: the offer has no price; fill in On-Demand, Reserved or Spot",
        ),
        ("prices", 3, "b,big,1,1,1,8,32,", "line 3: InterruptFrequency is empty; fill it in"),
        (
            "prices",
            3,
            "b,big,1,1,1,8,32,150",
            "line 3: InterruptFrequency is 150; legal: a number, 0 to 100",
        ),
        ("prices", 3, "b,big,1,one,1,8,32,5", "line 3: Reserved is 'one'; legal: a number"),
        (
            "prices",
            3,
            "b,big,inf,1,1,8,32,5",
            "line 3: On-Demand is inf; legal: a number, 0 or more",
        ),
        ("latency", 3, "b,31,", "line 3: b is empty; fill it in"),
        (
            "latency",
            3,
            "a,31,4",
            "line 3: origin 'a' stands on line 2 already; keep one of the two",
        ),
        ("latency", 1, "Centre,a,b", "line 1: no column 'DataCenter'"),
        ("latency", 2, 'a,"2.5,30', "not CSV: unexpected end of data; separate cells by commas"),
    ],
)
def test_what_is_wrong_is_told_by_file_and_line(
    tmp_path: Path, file: str, line: int, new: str, said: str
) -> None:
    """With the value and what is legal."""
    lines = FILES[file].splitlines()
    lines[line - 1] = new
    paths = written(tmp_path, **{file: "\n".join(lines)})
    with pytest.raises(DocumentError) as caught:
        cnsm_csv.read(**paths)
    assert str(caught.value).startswith(f"{paths[file]}: {said}")


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    """Missing, empty, without rows, not UTF-8."""
    paths = written(tmp_path, requests="")
    for said in (
        "no column 'cpu'; the header has: nothing",
        "no rows below the header",
        "byte 0 is not UTF-8",
        "No such file",
    ):
        with pytest.raises(DocumentError, match=said) as caught:
            cnsm_csv.read(**paths)
        assert caught.value.file == str(paths["requests"])
        if said.startswith("no column"):
            paths["requests"].write_text(FILES["requests"].splitlines()[0])
        elif said.startswith("no rows"):
            paths["requests"].write_bytes(b"\xff\xfe")
        else:
            paths["requests"].unlink(missing_ok=True)


def test_import_of_the_paper_s_csv_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Into an instance; what is wrong is told by file and line."""
    (tmp_path / "r.csv").write_text("cpu,ram,duration,location,replicas\n4,14,20,a,6\n")
    (tmp_path / "p.csv").write_text(
        "DataCenter,Instance,On-Demand,Reserved,Spot,vCPU,RAM,InterruptFrequency\na,big,0.3,0.2,0.1,8,32.0,15\n"
    )
    (tmp_path / "l.csv").write_text("DataCenter,a\na,2.5\n")
    files = (
        "--requests",
        tmp_path / "r.csv",
        "--prices",
        tmp_path / "p.csv",
        "--latency",
        tmp_path / "l.csv",
    )

    def here(*arguments: object, code: int = 0) -> str:
        with pytest.raises(SystemExit) as end:
            cli.main([str(argument) for argument in arguments])
        assert (end.value.code or 0) == code
        return capfd.readouterr().err

    here("import", "cnsm-csv", *files, "--name", "mine", "--horizon", 50, "-o", tmp_path / "x.json")
    assert read_json(tmp_path / "x.json")["horizon_slots"] == 50
    here("check", tmp_path / "x.json")
    (tmp_path / "r.csv").write_text("cpu,ram,duration,location,replicas\n4,14,20,z,6\n")
    assert here("import", "cnsm-csv", *files, code=2).startswith(
        f"error: {tmp_path / 'r.csv'}: line 2: unknown location 'z'"
    )
    assert "horizon_slots: 0 is not legal" in here(
        "import", "cnsm-csv", *files[:1], _good(tmp_path), *files[2:], "--horizon", 0, code=2
    )


def _good(folder: Path) -> Path:
    (folder / "good.csv").write_text("cpu,ram,duration,location,replicas\n4,14,20,a,6\n")
    return folder / "good.csv"
