"""CPU seconds and memory of a million events without plans; writes speed.md.

    python benchmarks/backtest/speed.py [--events 1000000]

Pods come and go on 1,500 nodes. Memory is that of the twin beside the trace, halfway and at the
end.
"""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Benchmark, table, timed, verdict

#: CPU seconds for a million events.
AIM = 30.0


def arrays(pods: int):  # type: ignore[no-untyped-def]
    """Return a trace of as many pods on 1,500 nodes."""
    import numpy as np

    from placeopt.backtest.arrays import arrays_of
    from placeopt.backtest.trace import ClusterTrace, MachineType, TraceNode, TracePod

    rng = np.random.default_rng(1)
    begins = np.sort(rng.uniform(0, 30 * 86400, pods))
    lives = rng.exponential(15_000 * 30 * 86400 / pods, pods)
    sizes = rng.integers(1, 8, pods) * 500
    machine = MachineType(name="m", cpu_millicores=32000, memory_mib=131072, usd_per_hour=1.0)
    trace = ClusterTrace.model_construct(
        name="speed",
        seconds=30 * 86400.0,
        machines=(machine,),
        nodes=tuple(TraceNode(name=f"n{k}", machine="m") for k in range(1500)),
        pods=tuple(
            TracePod.model_construct(
                name=str(k), cpu_millicores=int(c), memory_mib=2048, from_s=b, to_s=b + w
            )
            for k, (b, w, c) in enumerate(
                zip(begins.tolist(), lives.tolist(), sizes.tolist(), strict=True)
            )
        ),
    )
    return arrays_of(trace)


def main() -> None:
    """Measure and write the page."""
    run = Benchmark(__file__, __doc__, "numpy", "numba", events=1_000_000)

    def measured() -> list[float]:
        from placeopt.backtest.engine import Twin
        from placeopt.backtest.policies import policy_of

        Twin(arrays(100), policy_of("none")).run()
        twin = Twin(arrays(run.events // 2), policy_of("none"))
        ledger, seconds = timed(twin.run)
        return [twin.ledger.events, seconds, ledger.wait_sum]

    def memory() -> list[float]:
        from placeopt.backtest.engine import Twin
        from placeopt.backtest.policies import policy_of

        seen: list[int] = []
        whole = arrays(100_000)
        tracemalloc.start()

        def look(twin: Twin) -> None:
            if twin.ledger.events in (90_000, 180_000):
                seen.append(tracemalloc.get_traced_memory()[0])

        Twin(whole, policy_of("none"), check=look).run()
        tracemalloc.stop()
        return [size / 2**20 for size in seen]

    events, seconds, _ = run.cell(f"{run.events}", measured)
    first, last = run.cell("memory", memory)
    per_million = seconds * 1e6 / events
    run.write(
        "Speed of the twin",
        "Events of the policy *none*: arrivals and ends, each arrival a filter and score over "
        "1,500 nodes. The heap is Python's heapq: it holds ends of pods that live.",
        table(
            "events | CPU s | CPU s a million | aim | MiB after 90,000 events | after 180,000",
            [
                [
                    f"{events:,}",
                    f"{seconds:.1f}",
                    f"{per_million:.1f}",
                    f"{verdict(per_million < AIM)}, {AIM:g}",
                    f"{first:.1f}",
                    f"{last:.1f}",
                ]
            ],
        ),
    )


if __name__ == "__main__":
    main()
