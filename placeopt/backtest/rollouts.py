"""Rollouts in a trace: pods of a revision follow those of the one before, as the strategy says.

The trace has when new pods came and old ones ended. Where a new pod is ready later than it was
then, the old one stays longer, and the next new one comes later. At most `max_unavailable` old pods
have ended before as many new ones are ready; at most `max_surge` new ones are made before as many
old ones have ended. Where the trace had more at that time, as many as it had.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from placeopt.backtest.trace import ClusterTrace, RolloutStrategy, TracePod


@dataclass
class Rollouts:
    """The rollouts of a trace, and how far each is.

    Attributes
    ----------
    makes, ends : dict of int to (int, int)
        A new pod -> its rollout, and the old pods that have to have ended before it is made; an old
        pod -> its rollout, and the new pods that have to be ready before it ends.
    ended, ready : list of int
        Per rollout: old pods that have ended, new pods that are ready, or gone.
    to_come, to_end : list of list of int
        Per rollout: pods that are held back.
    """

    makes: dict[int, tuple[int, int]]
    ends: dict[int, tuple[int, int]]
    ended: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    to_come: list[list[int]] = field(default_factory=list)
    to_end: list[list[int]] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def may_come(self, p: int) -> bool:
        """Whether a pod may be made now; otherwise it is held back."""
        rollout, need = self.makes.get(p, (-1, 0))
        if rollout < 0 or self.ended[rollout] >= need:
            return True
        self.to_come[rollout].append(p)
        return False

    def may_end(self, p: int) -> bool:
        """Whether a pod may end now; otherwise it is held back."""
        rollout, need = self.ends.get(p, (-1, 0))
        if rollout < 0 or self.ready[rollout] >= need:
            return True
        if p not in self.to_end[rollout]:
            self.to_end[rollout].append(p)
        return False

    def note_ready(self, p: int) -> list[int]:
        """Note that a new pod is ready, or gone for good; return old ones that may end now."""
        rollout, _ = self.makes.get(p, (-1, 0))
        if rollout < 0 or p in self._seen:
            return []
        self._seen.add(p)
        self.ready[rollout] += 1
        if p in self.to_come[rollout]:
            self.to_come[rollout].remove(p)
        return self._released(self.to_end[rollout], self.ends, self.ready[rollout])

    def note_ended(self, p: int) -> list[int]:
        """Note that an old pod has ended; return new ones that may be made now."""
        rollout, _ = self.ends.get(p, (-1, 0))
        if rollout < 0:
            return []
        self.ended[rollout] += 1
        return self._released(self.to_come[rollout], self.makes, self.ended[rollout])

    @staticmethod
    def _released(held: list[int], needs: dict[int, tuple[int, int]], count: int) -> list[int]:
        free = [p for p in held if needs[p][1] <= count]
        held[:] = [p for p in held if needs[p][1] > count]
        return free


def rollouts_of(trace: ClusterTrace) -> Rollouts:
    """Return the rollouts of a trace, all of them ahead."""
    found = Rollouts({}, {})
    revisions: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for k, pod in enumerate(trace.pods):
        if pod.workload in trace.rollouts and pod.revision is not None:
            revisions[pod.workload][pod.revision].append(k)
    for workload, by_revision in revisions.items():
        strategy = trace.rollouts[workload]
        for before, after in pairwise(by_revision.values()):
            _add(found, trace.pods, before, after, strategy, trace.pod_start_s)
    return found


def _add(
    found: Rollouts,
    pods: tuple[TracePod, ...],
    before: list[int],
    after: list[int],
    strategy: RolloutStrategy,
    start: float,
) -> None:
    """Add the rollout from the pods of a revision to those of the next one."""
    begin = pods[after[0]].from_s
    old = [p for p in before if (to := pods[p].to_s) is not None and to >= begin]
    old.sort(key=lambda p: pods[p].to_s or 0.0)
    ends = [pods[p].to_s or 0.0 for p in old]
    new = [p for p in after if ends and pods[p].from_s <= ends[-1]]
    comes = [pods[p].from_s for p in new]
    number = len(found.ended)
    for k, p in enumerate(new):
        need = min(max(0, k + 1 - strategy.max_surge), bisect_right(ends, comes[k]))
        found.makes[p] = number, need
    for k, p in enumerate(old):
        was_ready = bisect_left(comes, ends[k] - start)
        found.ends[p] = number, min(max(0, k + 1 - strategy.max_unavailable), was_ready)
    found.ended.append(0)
    found.ready.append(0)
    found.to_come.append([])
    found.to_end.append([])
