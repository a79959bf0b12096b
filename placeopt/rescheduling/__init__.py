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
    sequence="placeopt.rescheduling.sequence:ReschedulingSequence",
    episodes="placeopt.rescheduling.environment:EPISODES",
    model="placeopt.rescheduling.model",
    drawing="placeopt.rescheduling.drawing",
    summary="placeopt.rescheduling.summary",
    certify="placeopt.rescheduling.bounds:certify",
    auto=(("block-search", 0.5), ("moead", 1.0)),
    quick="block-search",
    methods=(
        Method(
            "block-search",
            "placeopt.rescheduling.heuristics:block_search",
            "blocks of services across the continuum, then descent",
            kept="descents",
        ),
        Method(
            "cloud-first",
            "placeopt.rescheduling.heuristics:cloud_first",
            "every replica anew where it runs fastest",
        ),
        Method(
            "greedy",
            "placeopt.rescheduling.heuristics:greedy",
            "by weights, or move by move: milliseconds",
        ),
        Method(
            "kubernetes",
            "placeopt.rescheduling.heuristics:kubernetes",
            "every replica anew on the node least in use",
        ),
        Method(
            "latency-greedy",
            "placeopt.rescheduling.heuristics:latency_greedy",
            "every replica anew where users are nearest",
        ),
    ),
)
