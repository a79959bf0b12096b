"""Rescheduling: replicas move between cloud and edge so that requests are answered sooner.

Latency and moves pull apart; after REACH.
"""

from placeopt.core.spec import Method, ProblemSpec

SPEC = ProblemSpec(
    kind="rescheduling",
    instance="placeopt.rescheduling.instance:Rescheduling",
    plan="placeopt.rescheduling.instance:ReschedulingPlan",
    generator="placeopt.rescheduling.generator:generate",
    encoder="placeopt.rescheduling.encoder:ReschedulingEncoder",
    seeds="placeopt.rescheduling.heuristics:seeds",
    sequence="placeopt.core.encoder_sequence:EncoderSequence",
    episodes="placeopt.rescheduling.environment:EPISODES",
    model="placeopt.rescheduling.model",
    drawing="placeopt.rescheduling.drawing",
    summary="placeopt.rescheduling.summary",
    bounds="placeopt.rescheduling.bounds:bounds",
    gap_of="latency_ms",
    auto=(("block-search", 0.5), ("moead", 1.0)),
    quick="block-search",
    methods=(
        Method(
            "block-search",
            "placeopt.rescheduling.heuristics:block_search",
            "moves groups of services between edge and cloud, then descends",
        ),
        Method(
            "cloud-first",
            "placeopt.rescheduling.heuristics:cloud_first",
            "every replica on the node where it runs fastest",
            role="baseline",
        ),
        Method(
            "greedy",
            "placeopt.rescheduling.heuristics:greedy",
            "one plan per weighting, or improving moves; takes milliseconds",
        ),
        Method(
            "kubernetes",
            "placeopt.rescheduling.heuristics:kubernetes",
            "every replica on the node least in use",
            role="baseline",
        ),
        Method(
            "latency-greedy",
            "placeopt.rescheduling.heuristics:latency_greedy",
            "every replica on the node nearest to its users",
            role="baseline",
        ),
    ),
)
