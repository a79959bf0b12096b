"""What the benchmarks of openb stand on: its trace as CSV, and the scores of GPU schedulers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from placeopt.backtest.readers import read

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "backtest"))

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"


def test_openb_is_written_as_csv(tmp_path: Path) -> None:
    import openb_trace

    nodes = "sn,cpu_milli,memory_mib,gpu,model\nb,32000,8192,0,\na,8000,8192,1,T4\n"
    (tmp_path / openb_trace.NODES).write_text(nodes)
    pods = "p,100,64,1,500,T4|P100,0,60\nq,100,64,0,0,,5,9\nr,100,64,2,1000,,5,9\n"
    (tmp_path / openb_trace.PODS).write_text(PODS + pods)
    openb_trace.write(tmp_path, tmp_path / "csv")
    trace = read(tmp_path / "csv")
    assert [m.name for m in trace.machines] == ["cpu-0-32-8", "T4-1-8-8"]
    assert [m.usd_per_hour for m in trace.machines] == [1.152, 0.662]
    assert [(p.gpus, p.gpu_share, p.gpu_models) for p in trace.pods] == [
        (1, 500, ("T4", "P100")),
        (0, 1000, ()),
        (2, 1000, ()),
    ]


@pytest.mark.parametrize(
    "rule", ["random", "dotprod", "cluster", "packing", "bestfit", "fgd", "tight"]
)
def test_gpu_scores_fill_no_gpu_over_its_size(rule: str) -> None:
    import gpu_scores
    import numpy as np
    from little_traces import SMALL, node, pod, trace

    from placeopt.backtest.arrays import arrays_of

    machines: list[Any] = [{**SMALL, "gpus": 2}, {**SMALL, "name": "big", "gpus": 16}]
    pods = [pod("p0", 100, 0, gpus=1, gpu_share=300), pod("p1", 100, 0, gpus=1, gpu_share=700)]
    pods += [pod("p2", 100, 0, gpus=2), pod("p3", 100, 0), pod("p4", 100, 0, gpus=16)]
    arrays = arrays_of(trace([node("a"), node("b"), node("c", machine="big")], pods, machines))
    room = arrays.room()
    kinds = gpu_scores.typical(arrays.need, arrays.of_class, len(room.state))
    came, held = gpu_scores.fill(rule, room, arrays.need, arrays.of_class, kinds, 1, 1.3)
    assert (room.gpu >= 0).all() and (room.cpu >= 0).all()
    assert held[-1] <= 1 and (held <= came + 1e-9).all() and (np.diff(held) >= 0).all()
    assert held[-1] == pytest.approx(1 - room.gpu.sum() / (1000 * room.gpus.sum()))


@pytest.mark.skipif("PLACEOPT_DATA" not in os.environ, reason="needs PLACEOPT_DATA: openb")
def test_openb_is_read_whole() -> None:
    import openb_trace

    trace = openb_trace.trace()
    assert (len(trace.nodes), len(trace.pods)) == (1523, 8152)
