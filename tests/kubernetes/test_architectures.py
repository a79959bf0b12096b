"""Processor architectures: machine types by name, and pods on machines that run their images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from little_clusters import (
    Json,
    bought,
    container,
    deployment,
    expression,
    imported,
    may_go,
    needs,
    node,
    node_pool,
    services,
    texts,
)

from placeopt.core.errors import DocumentError
from placeopt.kubernetes.candidates import read_candidates
from placeopt.kubernetes.machines import of_machine_type
from placeopt.kubernetes.origin import Notes

ARM = (
    "a1.xlarge", "c6g.large", "c6gd.2xlarge", "c6gn.16xlarge", "c7gn.metal", "c8g.48xlarge",
    "g5g.xlarge", "hpc7g.16xlarge", "i4g.large", "i8ge.xlarge", "im4gn.large", "is4gen.medium",
    "m6g.2xlarge", "m6gd.metal", "m7g.medium", "m8g.metal-24xl", "m8gb.large", "r6g.large",
    "r7gd.8xlarge", "t4g.nano", "t4g.small", "x2gd.xlarge", "x8g.12xlarge", "mac2.metal",
    "p6e-gb200.36xlarge",
    "t2a-standard-4", "c4a-highmem-8", "c4a-standard-8-lssd", "n4a-standard-2", "a4x-highgpu-4g",
    "Standard_D4ps_v5", "Standard_D4pds_v5", "Standard_D4plds_v5", "Standard_D2pls_v6",
    "Standard_E8ps_v5", "Standard_B2pts_v2", "Standard_B4pls_v2", "standard_d16ps_v5",
    "Standard_ND128isr_NDR_GB200_v6",
    "VM.Standard.A1.Flex", "BM.Standard.A1.160", "VM.Standard.A2.Flex",
    "ecs.g8y.large", "ecs.c6r.xlarge", "cax11", "cax41",
)  # fmt: skip
AMD = (
    "m5.large", "m5.metal", "m6a.xlarge", "m6i.large", "m7i-flex.large", "c5n.18xlarge",
    "c6in.large", "g4dn.xlarge", "g4ad.xlarge", "g5.xlarge", "g6e.2xlarge", "gr6.4xlarge",
    "r7iz.metal-16xl", "t3.nano", "t3a.medium", "u-6tb1.metal", "u7in-16tb.224xlarge",
    "x2iezn.metal", "p4d.24xlarge", "p6-b200.48xlarge", "trn1n.32xlarge", "dl1.24xlarge",
    "mac1.metal", "hpc6a.48xlarge", "i3en.large", "i4i.large", "d3en.xlarge", "z1d.large",
    "e2-standard-4", "n1-standard-1", "n2d-highcpu-8", "t2d-standard-1", "c3-standard-4",
    "c4-standard-2", "n4-custom-4-8192", "a2-ultragpu-1g", "a4-highgpu-8g", "m3-ultramem-32",
    "Standard_D4s_v5", "Standard_D4as_v5", "Standard_NP10s", "Standard_DS2_v2_Promo",
    "Standard_NC24ads_A100_v4", "Standard_M416ms_v2", "Standard_B2ts_v2", "Standard_PB6s",
    "Basic_A0", "VM.Standard.E4.Flex", "VM.GPU.A10.1", "ecs.g6.large", "cpx11", "ccx13",
)  # fmt: skip


#: Names that no provider gives.
NONE = ("", "rack-7", "big", "small.x", "kwok", "node_1", "m6g")


@pytest.mark.parametrize(
    ("kind", "arch"),
    [(k, a) for a, kinds in (("arm64", ARM), ("amd64", AMD), (None, NONE)) for k in kinds],
)
def test_architecture_by_name(kind: str, arch: str | None) -> None:
    assert of_machine_type(kind) == arch


def test_every_machine_of_a_price_list(kubernetes_data: Path) -> None:
    """All 1,367 of AWS are known; a family is arm64 or not as a whole, by its Graviton letter."""
    path = kubernetes_data / "aws_price" / "ondemand_karpenter.json"
    kinds = list(json.loads(path.read_text())["usd_per_hour"]["us-east-1"])
    found = {kind: of_machine_type(kind) for kind in kinds}
    assert None not in found.values()
    families = {kind.partition(".")[0] for kind, what in found.items() if what == "arm64"}
    assert {"a1", "c6g", "m9gd", "hpc7g", "im4gn", "r8gb", "t4g", "x2gd"} <= families
    assert not {"g4dn", "g5", "g6", "gr6", "p6-b200", "m7i-flex", "u7i-12tb"} & families
    assert len(families) == 41


# -- machines to buy -------------------------------------------------------------------------------


def candidates(folder: Path, rows: str) -> Path:
    path = folder / "cand.csv"
    head = "machine_type,cpu,memory,zone,on_demand_usd_per_hour,count,labels,architecture"
    path.write_text(f"{head}\n{rows}\n")
    return path


@pytest.mark.parametrize(
    ("row", "arch"),
    [
        ("m6g.xlarge,4,16Gi,,0.154,1,,", "arm64"),
        ("m6i.xlarge,4,16Gi,,0.154,1,,", "amd64"),
        ("t2a-standard-4,4,16Gi,,0.154,1,,", "arm64"),
        ("Standard_D4ps_v5,4,16Gi,,0.154,1,,", "arm64"),
        ("Standard_D4s_v5,4,16Gi,,0.154,1,,", "amd64"),
        ("rack,4,16Gi,,0.154,1,,", "amd64"),
        ("rack,4,16Gi,,0.154,1,,arm64", "arm64"),
        ("m6g.xlarge,4,16Gi,,0.154,1,,amd64", "amd64"),
        ("m6i.xlarge,4,16Gi,,0.154,1,,arm64", "arm64"),
        ("m6g.xlarge,4,16Gi,,0.154,1,kubernetes.io/arch=amd64,", "amd64"),
        ("rack,4,16Gi,,0.154,1,kubernetes.io/arch=arm64,arm64", "arm64"),
    ],
)
def test_the_column_wins(row: str, arch: str, tmp_path: Path) -> None:
    notes = Notes()
    (found,) = read_candidates(candidates(tmp_path, row), None, None, notes)
    assert found.meta.labels["kubernetes.io/arch"] == arch
    guessed = any("no provider names" in text for text, _ in notes.of("assumption"))
    assert guessed == (row == "rack,4,16Gi,,0.154,1,,")


@pytest.mark.parametrize(
    "row",
    [
        "m6g.xlarge,4,16Gi,,0.154,1,,arm",
        "m6g.xlarge,4,16Gi,,0.154,1,,ARM64",
        "m6g.xlarge,4,16Gi,,0.154,1,kubernetes.io/arch=amd64,arm64",
    ],
)
def test_other_architectures_are_refused(row: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"line 2.*architecture is"):
        read_candidates(candidates(tmp_path, row), None, None, Notes())


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [(["arm64"], {"m6g.large"}), (["amd64"], {"m5.large"}), ([], {"m5.large", "m6g.large"})],
)
def test_node_pools_choose_by_architecture(
    wanted: list[str], kinds: set[str], tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text(
        "location,size,cpu_cores,memory_gib,on_demand_usd_per_hour\n"
        "us-east-1,m5.large,2,8,0.096\nus-east-1,m6g.large,2,8,0.077\n"
    )
    terms = [expression("kubernetes.io/arch", "In", *wanted)] if wanted else []
    (tmp_path / "np.json").write_text(json.dumps(node_pool(*terms)))
    files = {"prices": [tmp_path / "p.csv"], "candidates": tmp_path / "np.json"}
    objects = [node("n1"), *deployment("web", ["n1"])]
    done = imported(tmp_path, objects, files=files, missing_prices="default=0.2")
    assert {n["machine_type"] for n in bought(done)} == kinds


# -- images ----------------------------------------------------------------------------------------

AMD_NODE, ARM_NODE = node("n1"), node("n2", labels={"kubernetes.io/arch": "arm64"})
SELECTS = {"nodeSelector": {"kubernetes.io/arch": "amd64"}}


def asks_for(*values: str) -> Json:
    return needs(expression("kubernetes.io/arch", "In", *values))


def unready(objects: list[Json]) -> list[Json]:
    for one in objects:
        if one["kind"] == "Pod" and one["spec"].get("nodeName") == "n2":
            one["status"]["conditions"][0]["status"] = "False"
    return objects


OTHER = deployment("api", ["n2"], [container("other")])
SAME, BOTH = deployment("api", ["n2"]), {"n1", "n2"}
#: Objects beside two nodes -> where web-7d9f-0 may go, and whether its images are named.
WHERE: dict[str, tuple[list[Json], set[str], bool]] = {
    "amd64 alone": (deployment("web", ["n1"]), {"n1"}, True),
    "arm64 alone": (deployment("web", ["n2"]), {"n2"}, True),
    "a sibling on the other": (deployment("web", ["n1", "n2"]), BOTH, False),
    "the same image elsewhere": (deployment("web", ["n1"]) + SAME, BOTH, False),
    "another image elsewhere": (deployment("web", ["n1"]) + OTHER, {"n1"}, True),
    "one of two images": (
        deployment("web", ["n1"], [container(), container("proxy")]) + SAME,
        {"n1"},
        True,
    ),
    "a pod that is not ready there": (
        unready(deployment("web", ["n1"]) + deployment("api", ["n2"])),
        {"n1"},
        True,
    ),
    "it selects amd64": (deployment("web", ["n1"], **SELECTS), {"n1"}, False),
    "it asks for either": (deployment("web", ["n1"], **asks_for("amd64", "arm64")), BOTH, False),
    "it asks for arm64": (deployment("web", ["n2"], **asks_for("arm64")), {"n2"}, False),
    "it waits, and nobody runs it": (
        deployment("web", [None]) + deployment("api", ["n1"], [container("other")]),
        BOTH,
        False,
    ),
    "it waits beside another": (
        deployment("web", [None]) + deployment("api", ["n1"]),
        {"n1"},
        True,
    ),
}
WEB = "web-7d9f-0"


@pytest.mark.parametrize("case", WHERE)
def test_pods_keep_to_what_runs_their_images(case: str, tmp_path: Path) -> None:
    objects, where, named = WHERE[case]
    done = imported(tmp_path, [AMD_NODE, ARM_NODE, *objects])
    assert may_go(done, WEB) == where
    told = [subjects for text, subjects in done.notes.of("assumption") if "not known to" in text]
    assert any("default/web" in subjects for subjects in told) == named


@pytest.mark.parametrize("case", ["amd64 alone", "arm64 alone", "another image elsewhere"])
def test_they_may_go_anywhere_if_that_is_said(case: str, tmp_path: Path) -> None:
    """Their images are named all the same."""
    done = imported(tmp_path, [AMD_NODE, ARM_NODE, *WHERE[case][0]], any_architecture=True)
    assert may_go(done, WEB) == {"n1", "n2"}
    assert "not known to run on" in texts(done, "assumption")


def test_machines_to_buy_of_another_architecture(tmp_path: Path) -> None:
    """They are there for pods that run on either; the instance without them has no word of it."""
    objects = [AMD_NODE, *deployment("web", ["n1"])]
    rows = "m6g.xlarge,4,16Gi,,0.1,2,,\nm6i.xlarge,4,16Gi,,0.2,1,,"
    files = {"candidates": candidates(tmp_path, rows)}
    done = imported(tmp_path, objects, files=files, missing_prices="default=0.3")
    assert may_go(done, WEB) == {"n1", "buy-m6i.xlarge-1"}
    said = "pods whose images are not known to run on arm64 stay off it"
    assert said in texts(done, "assumption")
    assert "node_sets" not in imported(tmp_path, objects).document


def test_other_limits_stay(tmp_path: Path) -> None:
    """A pod that may be on some nodes only is kept to those of them that run its image."""
    labels = {"pool": "a"}
    objects = [
        node("n1", labels=labels),
        node("n2", labels=labels | {"kubernetes.io/arch": "arm64"}),
        node("n3"),
        *deployment("web", ["n1"], nodeSelector=labels),
    ]
    assert may_go(imported(tmp_path, objects), WEB) == {"n1"}


def test_a_table_of_nodes_knows_its_machines(tmp_path: Path) -> None:
    table = tmp_path / "nodes.csv"
    table.write_text("name,cpu,memory,instance_type\nx,4,16Gi,m6g.xlarge\ny,4,16Gi,m5.xlarge\n")
    objects = deployment("web", [None], **SELECTS)[:1]
    done = imported(tmp_path, objects, files={"nodes": table})
    assert may_go(done, "web") == {"y"}


def test_case_from_outside(kubernetes_data: Path, tmp_path: Path) -> None:
    folder = kubernetes_data / "kubernetes_cases"
    objects: list[Any] = json.loads((folder / "arch_amd64.json").read_text())["items"]
    files = {"prices": [folder / "prices.json"], "candidates": folder / "cand_m6g.csv"}
    done = imported(tmp_path, objects, files=files)
    for name in services(done):
        assert not any(n.startswith("buy-m6g") for n in may_go(done, name))
