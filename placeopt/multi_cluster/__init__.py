"""Multi-cluster placement: a stream of deployments over federated clusters.

Latency, cost, inequality and rejections pull apart; after HephaestusForge (FGCS 2025).
"""

from placeopt.core.spec import Method, ProblemSpec

SPEC = ProblemSpec(
    kind="multi-cluster",
    instance="placeopt.multi_cluster.problem:MultiCluster",
    plan="placeopt.multi_cluster.problem:MultiClusterPlan",
    generator="placeopt.multi_cluster.generator:generate",
    encoder="placeopt.multi_cluster.encoder:MultiClusterEncoder",
    seeds="placeopt.multi_cluster.search:seeds",
    sequence="placeopt.multi_cluster.episodes.sequence:MultiClusterSequence",
    episodes="placeopt.multi_cluster.episodes:EPISODES",
    drawing="placeopt.multi_cluster.views",
    summary="placeopt.multi_cluster.views",
    bounds="placeopt.multi_cluster.bounds:bounds",
    gap_of="cost",
    auto="placement-search",
    methods=(
        Method(
            "binpack",
            "placeopt.multi_cluster.search:binpack",
            "all replicas in the cluster with the most cpu in use",
            role="baseline",
        ),
        Method(
            "cpu-greedy",
            "placeopt.multi_cluster.search:cpu_greedy",
            "all replicas in the cluster with the least cpu in use",
            role="baseline",
        ),
        Method(
            "greedy",
            "placeopt.multi_cluster.search:greedy",
            "one plan per weighting, or improving moves; takes milliseconds",
        ),
        Method(
            "karmada-divided",
            "placeopt.multi_cluster.search:karmada_divided",
            "replicas divided in proportion to free room, as Karmada does",
            role="baseline",
        ),
        Method(
            "karmada-greedy",
            "placeopt.multi_cluster.search:karmada_greedy",
            "all replicas in the cluster with the most room, as Karmada does",
            role="baseline",
        ),
        Method(
            "latency-greedy",
            "placeopt.multi_cluster.search:latency_greedy",
            "all replicas in the cluster with the least latency",
            role="baseline",
        ),
        Method(
            "myopic",
            "placeopt.multi_cluster.search:myopic",
            "the highest reward for each request, without regard to later ones",
            role="baseline",
        ),
        Method(
            "placement-search",
            "placeopt.multi_cluster.search.placement:run",
            "simulated annealing over arbitrary divisions of replicas",
            kept="the archive",
        ),
    ),
)
