"""Linear algebra uses one thread while a run works, and as many as before after it."""

from __future__ import annotations

import scipy.linalg  # noqa: F401  # loads its library before a run does
from threadpoolctl import threadpool_info, threadpool_limits

import placeopt
from placeopt.core.budget import Progress


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_a_run_has_one_thread_of_linear_algebra() -> None:
    seen: list[set[int]] = []

    def look(progress: Progress) -> None:
        seen.append(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        placeopt.solve("toy", "nsga2", evaluations=2000, on_progress=look)
        assert blas_threads() == {2}
    assert seen and all(threads == {1} for threads in seen)
