"""What the benchmarks of openb stand on: its trace as CSV."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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


@pytest.mark.skipif("PLACEOPT_DATA" not in os.environ, reason="needs PLACEOPT_DATA: openb")
def test_openb_is_read_whole() -> None:
    import openb_trace

    trace = openb_trace.trace()
    assert (len(trace.nodes), len(trace.pods)) == (1523, 8152)
