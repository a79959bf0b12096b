"""Multi-cluster placement: a stream of deployments over federated clusters.

Latency, cost, inequality and rejections pull apart; after HephaestusForge (FGCS 2025).
"""

from placeopt.core.spec import DEFAULT_SECONDS, Method, ProblemSpec

SPEC = ProblemSpec(
    kind="multi-cluster",
    instance="placeopt.multi_cluster.instance:MultiCluster",
    plan="placeopt.multi_cluster.document:MultiClusterPlan",
    generator="placeopt.multi_cluster.generator:generate",
    encoder="placeopt.multi_cluster.encoder:MultiClusterEncoder",
    seeds="placeopt.multi_cluster.heuristics:seeds",
    sequence="placeopt.multi_cluster.sequence:MultiClusterSequence",
    episodes="placeopt.multi_cluster.environment:EPISODES",
    drawing="placeopt.multi_cluster.drawing",
    summary="placeopt.multi_cluster.summary",
    certify="placeopt.multi_cluster.bounds:certify",
    auto="placeopt.multi_cluster.placement_search:chosen",
    methods=(
        Method(
            "binpack",
            "placeopt.multi_cluster.heuristics:binpack",
            "all replicas where most cpu is in use",
        ),
        Method(
            "cpu-greedy",
            "placeopt.multi_cluster.heuristics:cpu_greedy",
            "all replicas where least cpu is in use",
        ),
        Method(
            "greedy",
            "placeopt.multi_cluster.heuristics:greedy",
            "by weights, or move by move: milliseconds",
        ),
        Method(
            "hindsight",
            "placeopt.multi_cluster.hindsight:hindsight",
            "what one who knew the trace could earn; proven where small",
            seconds=DEFAULT_SECONDS,
            kept="the plan of each strategy",
        ),
        Method(
            "karmada-divided",
            "placeopt.multi_cluster.heuristics:karmada_divided",
            "replicas divided by what clusters can still take: Karmada",
        ),
        Method(
            "karmada-greedy",
            "placeopt.multi_cluster.heuristics:karmada_greedy",
            "all replicas where the most would fit: Karmada",
        ),
        Method(
            "latency-greedy",
            "placeopt.multi_cluster.heuristics:latency_greedy",
            "where latency is least, or allowed",
        ),
        Method(
            "myopic",
            "placeopt.multi_cluster.heuristics:myopic",
            "the highest reward now, request after request, by weights",
        ),
        Method(
            "placement-search",
            "placeopt.multi_cluster.placement_search:run",
            "single decisions changed under weights, any division: compiled",
            kept="the archive",
        ),
    ),
)
