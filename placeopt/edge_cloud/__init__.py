"""Edge-cloud placement: applications of chained microservices on layered nodes.

Cost and latency pull apart; after the multi-agent rollout paper (SN Computer Science, 2024).
"""

from placeopt.core.spec import Method, ProblemSpec

SPEC = ProblemSpec(
    kind="edge-cloud",
    instance="placeopt.edge_cloud.problem:EdgeCloud",
    plan="placeopt.edge_cloud.problem:EdgeCloudPlan",
    generator="placeopt.edge_cloud.generator:generate",
    encoder="placeopt.edge_cloud.encoder:EdgeCloudEncoder",
    seeds="placeopt.edge_cloud.search:seeds",
    sequence="placeopt.edge_cloud.sequence:build",
    model="placeopt.edge_cloud.model",
    drawing="placeopt.edge_cloud.views",
    summary="placeopt.edge_cloud.views",
    bounds="placeopt.edge_cloud.bounds:bounds",
    auto=(("rollout", 0.25), ("lns", 0.45), ("moead", 1.0)),
    auto_alone="lns",
    methods=(
        Method(
            "bound",
            "placeopt.edge_cloud.bounds:bound",
            "proven lower bounds, and plans built from their prices",
            role="bound",
        ),
        Method(
            "greedy",
            "placeopt.edge_cloud.search:greedy",
            "one plan per weighting, or improving moves; takes milliseconds",
        ),
        Method(
            "lns",
            "placeopt.edge_cloud.search:lns",
            "large neighbourhood search guided by prices, with proven bounds",
        ),
    ),
)
