"""Write the bundled instances, byte for byte as they are committed.

    python benchmarks/make_instances.py [FOLDER]

FOLDER is ``instances`` unless given. The aws instances have the prices and latencies of Tables III
and IV of N. Di Cicco et al., CNSM 2024, and requests drawn from that paper's distributions with
seed 2024; ``toy`` is written by hand. The rescheduling instance has the testbed of the REACH paper
and its Chain application, placed at random with the same seed; the rolling-update instance has the
10 applications of 5 microservices on 16 nodes of M. Zambianco et al., ICIN 2024; the multi-cluster
instance has 100 requests drawn from the distributions of J. Santos et al., FGCS 2025, at a rate of
20, over four clusters. The edge-cloud instances are 50 applications on the basic topology of P.
Soumplis et al., SN Computer Science 2024, and a corner of it that solvers can prove.
"""

from __future__ import annotations

import sys
from pathlib import Path

from placeopt.core.files.documents import write_json
from placeopt.edge_cloud.generator import TOPOLOGIES
from placeopt.edge_cloud.generator import generate as generate_edge_cloud
from placeopt.multi_cluster.generator import generate as generate_multi_cluster
from placeopt.registry import from_document
from placeopt.rescheduling.generator import generate as generate_rescheduling
from placeopt.rolling_update.generator import generate as generate_rolling_update
from placeopt.temporal.generator import generate

SEED = 2024

TOY = {
    "problem": "temporal",
    "name": "toy",
    "horizon_slots": 6,
    "slot_hours": 1.0,
    "latency_ms": {"milan": {"milan": 2, "london": 25}, "london": {"milan": 25, "london": 3}},
    "offers": [
        {
            "location": "milan",
            "size": "large",
            "cpu_cores": 4,
            "memory_gib": 8,
            "on_demand_usd_per_hour": 0.2,
            "reserved_usd_per_hour": 0.12,
            "spot_usd_per_hour": 0.06,
            "spot_interruption": 0.15,
            "max_instances": 2,
        },
        {
            "location": "milan",
            "size": "small",
            "cpu_cores": 2,
            "memory_gib": 4,
            "on_demand_usd_per_hour": 0.11,
            "reserved_usd_per_hour": 0.07,
        },
        {
            "location": "london",
            "size": "large",
            "cpu_cores": 4,
            "memory_gib": 8,
            "on_demand_usd_per_hour": 0.16,
            "reserved_usd_per_hour": 0.1,
            "spot_usd_per_hour": 0.05,
            "spot_interruption": 0.1,
        },
    ],
    "requests": [
        {
            "name": "shop",
            "cpu_cores": 2,
            "memory_gib": 3,
            "duration_slots": 4,
            "replicas": 2,
            "origin": "milan",
        },
        {
            "name": "search",
            "cpu_cores": 1.5,
            "memory_gib": 4,
            "duration_slots": 3,
            "replicas": 1,
            "origin": "london",
        },
        {
            "name": "report",
            "cpu_cores": 4,
            "memory_gib": 6,
            "duration_slots": 2,
            "replicas": 1,
            "origin": "milan",
        },
    ],
}


def bundled() -> dict[str, dict]:
    """Return the documents by their path below the folder."""
    aws = {
        "aws-50": generate(SEED, requests=50),
        "aws-50-corrected": generate(SEED, requests=50, corrected=True),
        "aws-10": generate(SEED, requests=10),
    }
    documents = {name: document | {"name": name} for name, document in aws.items()} | {"toy": TOY}
    chain = generate_rescheduling(SEED, application="chain", replicas=3) | {"name": "chain-12"}
    repack = generate_rolling_update(SEED) | {"name": "repack-10x5"}
    return {f"temporal/{name}.json": document for name, document in documents.items()} | {
        "rescheduling/chain-12.json": chain,
        "rolling-update/repack-10x5.json": repack,
        "multi-cluster/stream-4x100.json": generate_multi_cluster(SEED) | {"name": "stream-4x100"},
        "edge-cloud/basic-50.json": generate_edge_cloud(
            SEED, applications=50, **TOPOLOGIES["basic"]
        )
        | {"name": "basic-50"},
        "edge-cloud/corner-5.json": generate_edge_cloud(
            SEED, applications=5, near=4, far=2, cloud=1, load=1.0
        )
        | {"name": "corner-5"},
    }


def main(folder: Path) -> None:
    """Validate and write every bundled instance."""
    for path, document in bundled().items():
        from_document(document)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_json(folder / path, document)


if __name__ == "__main__":
    main(
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).resolve().parents[1] / "instances"
    )
