"""Temporal placement: requests start in time slots on leased machines of several clouds.

Latency, cost and interruption pull apart; after the CNSM 2024 paper.
"""

from placeopt.core.spec import DEFAULT_SECONDS, Method, ProblemSpec

SPEC = ProblemSpec(
    kind="temporal",
    instance="placeopt.temporal.problem:Temporal",
    plan="placeopt.temporal.problem:TemporalPlan",
    generator="placeopt.temporal.generator:generate",
    encoder="placeopt.temporal.encoder:TemporalEncoder",
    seeds="placeopt.temporal.search:seeds",
    vectors_at="placeopt.temporal.search:vectors_at",
    model="placeopt.temporal.model",
    drawing="placeopt.temporal.views",
    summary="placeopt.temporal.views",
    bounds="placeopt.temporal.exact.bounds:bounds",
    gap_of="cost_usd",
    auto="placeopt.temporal.search.division:method_for",
    methods=(
        Method(
            "bin-plans",
            "placeopt.temporal.exact.bin_plans:bin_plans",
            "exact front by enumeration of what can share a machine (to 10 requests)",
            role="exact",
            seconds=DEFAULT_SECONDS,
        ),
        Method(
            "bound",
            "placeopt.temporal.exact.bounds:bound",
            "proven lower bounds, and plans built from their prices",
            role="bound",
        ),
        Method(
            "retime",
            "placeopt.temporal.search.retime:run",
            "cheaper starts and machines for the plans of a start front",
            kept="the archive",
        ),
        Method(
            "sharded",
            "placeopt.temporal.search.sharded:run",
            "splits an instance of thousands of requests, searches the parts, combines them",
            parallel=True,
            kept="parts that have ended",
        ),
        Method(
            "greedy",
            "placeopt.temporal.search:greedy",
            "one plan per weighting, or improving moves; takes milliseconds",
        ),
    ),
)
