"""Rescheduling: replicas move between cloud and edge so that requests are answered sooner.

Latency and moves pull apart; after REACH.
"""

from placeopt.core.spec import Method, ProblemSpec

SPEC = ProblemSpec(
    kind="rescheduling",
    instance="placeopt.rescheduling.problem:Rescheduling",
    plan="placeopt.rescheduling.problem:ReschedulingPlan",
    generator="placeopt.rescheduling.generator:generate",
    encoder="placeopt.rescheduling.encoder:ReschedulingEncoder",
    seeds="placeopt.rescheduling.search:seeds",
    episodes="placeopt.rescheduling.episodes:EPISODES",
    model="placeopt.rescheduling.model",
    drawing="placeopt.rescheduling.views",
    summary="placeopt.rescheduling.views",
    bounds="placeopt.rescheduling.bounds:bounds",
    gap_of="latency_ms",
    auto=(("block-search", 0.5), ("moead", 1.0)),
    quick="block-search",
    methods=(
        Method(
            "block-search",
            "placeopt.rescheduling.search:block_search",
            "moves groups of services between edge and cloud, then descends",
        ),
        Method(
            "cloud-first",
            "placeopt.rescheduling.search:cloud_first",
            "every replica on the node where it runs fastest",
            role="baseline",
        ),
        Method(
            "greedy",
            "placeopt.rescheduling.search:greedy",
            "one plan per weighting, or improving moves; takes milliseconds",
        ),
        Method(
            "kubernetes",
            "placeopt.rescheduling.search:kubernetes",
            "every replica on the node least in use",
            role="baseline",
        ),
        Method(
            "latency-greedy",
            "placeopt.rescheduling.search:latency_greedy",
            "every replica on the node nearest to its users",
            role="baseline",
        ),
    ),
)
