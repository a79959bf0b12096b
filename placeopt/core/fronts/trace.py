"""Traces: what a run had found after how many seconds and evaluations.

Samples are taken whenever evaluations and reports together have grown by a quarter, so that the
same seed and budget give the same samples, apart from the seconds. What a sample holds is measured
when the run is over: only then is the reference point of the hypervolume known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from placeopt.core.fronts.dominance import hypervolume, minimal, nondominated
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Plan, Trace


@dataclass(frozen=True)
class RunSnapshot:
    """What a run has found so far; its members are called only when somebody looks.

    Attributes
    ----------
    values : callable or None
        Returns the values of feasible plans, shape (plans, objectives). None: the plans have to be
        judged.
    plan : callable or None
        Returns the plan of a row of `values`, by its number. None: there are no plans yet.
    count : int
        Plans, where `values` is None.
    bounds : callable or None
        Returns a proven bound set, shape (bounds, objectives).
    update : callable or None
        Called before a look that is due after the same evaluations in every run; other looks, such
        as those of a progress bar, come by the clock and must change nothing.
    names : tuple of str or None
        Objectives that the columns of `values` and `bounds` are; those of the task by default.
    minimal : bool
        No row of `values` dominates another.
    best : callable or None
        Returns the best value of each objective, shape (objectives,); the least by default.
    """

    values: Callable[[], np.ndarray] | None = None
    plan: Callable[[int], Plan] | None = None
    count: int = 0
    bounds: Callable[[], np.ndarray] | None = None
    update: Callable[[], None] | None = None
    names: tuple[str, ...] | None = None
    minimal: bool = False
    best: Callable[[], np.ndarray] | None = None

    def best_and_count(self) -> tuple[tuple[float, ...], int]:
        """Return the best value of each objective, if known, and how many plans there are."""
        if self.values is None:
            return (), self.count
        values = self.values()
        if not len(values):
            return (), 0
        best = values.min(axis=0) if self.best is None else self.best()
        return tuple(best.tolist()), len(values)

    @classmethod
    def of_plans(
        cls, plans: Sequence[Plan], bounds: Callable[[], np.ndarray] | None = None
    ) -> RunSnapshot:
        """Return what a list of plans says, feasible or not."""
        return cls(plan=plans.__getitem__, count=len(plans), bounds=bounds)


#: Points of a front that is shown before a run is over.
MAX_SHOWN = 100


class Watch:
    """Somebody who looks at fronts while they grow.

    Parameters
    ----------
    take : callable
        Called with each `Front`.
    every : float
        Seconds between two looks, at least; and never less than a look takes.
    other : Watch, optional
        Another one, who looks at the same run.
    """

    def __init__(
        self, take: Callable[[Front], None], every: float = 1.0, other: Watch | None = None
    ):
        self._take, self._every, self._other, self._next = take, every, other, -math.inf

    def look(self, build: Callable[[], Front]) -> None:
        """Build a front and take it, if it is time for one."""
        if self._other is not None:
            self._other.look(build)
        began = time.perf_counter()
        if began >= self._next:
            self._take(build())
            ended = time.perf_counter()
            self._next = ended + max(self._every, ended - began)


#: Growth of evaluations and reports from sample to sample: 50,000 evaluations make about 45
#: samples; 1.15 costs half as much again.
_GROWTH = 1.25
#: Samples of a trace; when there are more, every second one is dropped and the growth squared.
MAX_SAMPLES = 100
#: Significant digits of a trace.
_DIGITS = 12

#: ``judge(plan)``: the values of a feasible plan, None of another.
Judge = Callable[[Plan], Sequence[float] | None]
#: ``on_sample(interim, numbers, values)``: the plans that no other dominates.
OnSample = Callable[[RunSnapshot, np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class _Sample:
    seconds: float
    evaluations: int
    values: np.ndarray  # (points, objectives)
    bounds: np.ndarray  # (bounds, objectives)


class Recorder:
    """Takes samples of a run, of all its stages.

    Parameters
    ----------
    names : sequence of str
        The objectives of the run, in the order of all values.
    signs : ndarray, shape (objectives,)
        -1 for maximised objectives, else 1.
    judge : callable, optional
        Judges plans that come without values; without it they are left out.
    on_sample : callable, optional
        Called at every sample.
    most : ndarray, shape (objectives,), optional
        Largest values allowed; what is above is left out.
    """

    def __init__(
        self,
        names: Sequence[str],
        signs: np.ndarray,
        judge: Judge | None = None,
        on_sample: OnSample | None = None,
        most: np.ndarray | None = None,
    ):
        self._names, self._signs = tuple(names), signs
        self._judge, self._on_sample, self._most = judge, on_sample, most
        self._samples: list[_Sample] = []
        self._growth, self._next, self._reports = _GROWTH, 0, 0
        self._source: RunSnapshot | None = None
        self._before = np.empty((0, len(self._names)))

    def see(self, seconds: float, evaluations: int, interim: RunSnapshot) -> None:
        """Take a sample, if it is time for one."""
        self._reports += 1
        tick = evaluations + self._reports
        if tick < self._next:
            return
        self._next = max(tick + 1, math.ceil(tick * self._growth))
        if interim.update is not None:
            interim.update()
        rows, numbers = self._rows(interim)
        if rows is None:
            return
        everything = np.ones(len(rows), dtype=bool)
        kept = everything if interim.minimal else nondominated(rows * self._signs)
        bounds = self._columns(interim, interim.bounds)
        none = np.empty((0, len(self._names)))
        if interim is not self._source:  # a method may begin where another has ended
            self._source = interim
            self._before = self._samples[-1].values if self._samples else none
        result = rows[kept]
        if len(self._before):
            result = minimal(np.concatenate((self._before, result)) * self._signs) * self._signs
        sample = _Sample(seconds, evaluations, result, none if bounds is None else bounds)
        self._samples.append(sample)
        if len(self._samples) > MAX_SAMPLES:
            self._samples = self._samples[1::2]
            self._growth **= 2
        if self._on_sample is not None:
            self._on_sample(interim, numbers[kept], rows[kept])

    def _rows(self, interim: RunSnapshot) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the values of feasible plans and the plans' numbers, None where not known."""
        values = self._columns(interim, interim.values)
        if values is not None:
            if self._most is None:
                return values, np.arange(len(values))
            numbers = np.flatnonzero((values <= self._most).all(axis=1))
            return values[numbers], numbers
        if self._judge is None or interim.plan is None:
            return None, np.empty(0, dtype=np.int64)
        judged = [(k, self._judge(interim.plan(k))) for k in range(interim.count)]
        feasible = [(k, row) for k, row in judged if row is not None]
        rows = np.array([row for _, row in feasible], dtype=float)
        numbers = np.array([k for k, _ in feasible], dtype=np.int64)
        return rows.reshape(-1, len(self._names)), numbers

    def _columns(
        self, interim: RunSnapshot, values: Callable[[], np.ndarray] | None
    ) -> np.ndarray | None:
        """Return values in the run's own objectives, None where some are missing."""
        if values is None:
            return None
        names = interim.names or self._names
        if not set(self._names) <= set(names):
            return None
        return np.asarray(values(), dtype=float)[:, [names.index(name) for name in self._names]]

    def traced(
        self,
        front: Front,
        seconds: float,
        evaluations: int,
        reference: Sequence[float] | None = None,
        after: tuple[float, int] = (0.0, 0),
    ) -> Front:
        """Return the front of a run, or of a stage of it, whose first run has the trace until now.

        Parameters
        ----------
        front : Front
            Without points it stays as it is.
        seconds, evaluations : float, int
            That the run, or the stage, took.
        reference : sequence of float, optional
            For the hypervolumes; that of the front by default.
        after : tuple of float and int
            Seconds and evaluations of the run before the stage.
        """
        if not front.points or not front.runs:
            return front
        corner = front.reference().tolist() if reference is None else list(reference)
        bounds = np.array(front.bounds).reshape(-1, len(self._names))
        last = _Sample(seconds, evaluations, front.values, bounds)
        samples = [s for s in self._since(*after) if len(s.values)]
        if evaluations == 0:  # of a method that counts none
            samples = [s for s in samples if s.seconds < seconds]
        else:
            samples = [s for s in samples if s.evaluations < evaluations]
        trace = _SampledTrace.of([*samples, last], self._signs, corner)
        return replace(front, runs=(replace(front.runs[0], trace=trace), *front.runs[1:]))

    def _since(self, seconds: float, evaluations: int) -> list[_Sample]:
        """Return the samples that were taken after a time, and count from there."""
        return [
            replace(s, seconds=s.seconds - seconds, evaluations=s.evaluations - evaluations)
            for s in self._samples
            if s.seconds >= seconds
        ]


class _SampledTrace(Trace):
    """A trace that still has its samples, so that another reference point can measure them."""

    samples: Sequence[_Sample]
    signs: np.ndarray

    @classmethod
    def of(
        cls, samples: Sequence[_Sample], signs: np.ndarray, reference: Sequence[float]
    ) -> _SampledTrace:
        """Return the trace of samples, measured within a reference point."""
        trace = cls(
            reference=tuple(reference),
            seconds=tuple(round(s.seconds, 4) for s in samples),
            evaluations=tuple(s.evaluations for s in samples),
            points=tuple(len(s.values) for s in samples),
            ideal=tuple(_ideal(s.values, signs) for s in samples),
            hypervolume=tuple(_volume(s.values * signs, signs, reference) for s in samples),
            bound=tuple(_attainable(s.bounds, signs, reference) for s in samples),
        )
        object.__setattr__(trace, "samples", samples)
        object.__setattr__(trace, "signs", signs)
        return trace


def with_plain_traces(front: Front, reference: Sequence[float] | None = None) -> Front:
    """Return a front whose traces hold no samples and are measured within one reference point.

    It is that of the front by default. Traces that were read from a file keep their own.
    """
    corner: tuple[float, ...] = ()
    if front.points:
        corner = tuple(front.reference().tolist() if reference is None else reference)

    def plain(trace: Trace | None) -> Trace | None:
        if not isinstance(trace, _SampledTrace):
            return trace
        if not corner:
            return None
        if trace.reference != corner:
            trace = _SampledTrace.of(trace.samples, trace.signs, corner)
        return Trace(**{field.name: getattr(trace, field.name) for field in fields(Trace)})

    return replace(front, runs=tuple(replace(r, trace=plain(r.trace)) for r in front.runs))


def _ideal(values: np.ndarray, signs: np.ndarray) -> tuple[float, ...]:
    """Return the best value of each objective, of values (points, objectives)."""
    best = (values * signs).min(axis=0) * signs + 0.0
    return tuple(_short(value) for value in best.tolist())


def _volume(values: np.ndarray, signs: np.ndarray, reference: Sequence[float]) -> float:
    """Return the hypervolume of minimised values within a reference point in its own senses."""
    return _short(hypervolume(values, (np.array(reference) * signs).tolist()))


def _attainable(bounds: np.ndarray, signs: np.ndarray, reference: Sequence[float]) -> float | None:
    """Return the hypervolume that no plans can exceed, None where none is proven."""
    signed = bounds * signs
    signed = signed[~np.isposinf(signed).any(axis=1)]  # these lie below no feasible vector
    if not len(signed) or not np.isfinite(signed).all():
        return None
    return _volume(minimal(signed), signs, reference)


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
