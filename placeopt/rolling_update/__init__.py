"""Rolling updates: pods change size and node one after another, without downtime.

Node cost, starts and disruptions pull apart; after the runtime re-orchestration paper.
"""

from placeopt.core.spec import DEFAULT_SECONDS, Method, ProblemSpec

SPEC = ProblemSpec(
    kind="rolling-update",
    instance="placeopt.rolling_update.problem:RollingUpdate",
    plan="placeopt.rolling_update.document:UpdatePlan",
    generator="placeopt.rolling_update.generator:generate",
    encoder="placeopt.rolling_update.encoder:RollingUpdateEncoder",
    seeds="placeopt.rolling_update.repack:seeds",
    model="placeopt.rolling_update.model",
    drawing="placeopt.rolling_update.views",
    summary="placeopt.rolling_update.views",
    bounds="placeopt.rolling_update.decomposition:bounds",
    gap_of="node_cost",
    preferred="placeopt.rolling_update.zones:preferred",
    auto="decomposition",
    quick="repack",
    methods=(
        Method(
            "decomposition",
            "placeopt.rolling_update.decomposition:decomposition",
            "packs, then orders the moves, with proofs (exact on small instances)",
            role="exact",
            seconds=DEFAULT_SECONDS,
        ),
        Method(
            "descheduler",
            "placeopt.rolling_update.schemes:descheduler",
            "empties nodes of low use, as the descheduler does",
            role="baseline",
        ),
        Method(
            "karpenter",
            "placeopt.rolling_update.schemes:karpenter",
            "deletes nodes or replaces them by a cheaper one, as Karpenter does",
            role="baseline",
        ),
        Method(
            "recreate",
            "placeopt.rolling_update.schemes:recreate",
            "stops all pods, then starts all where kube-scheduler would",
            role="baseline",
        ),
        Method(
            "repack",
            "placeopt.rolling_update.repack:repack",
            "closes nodes, repairs by shifts and swaps, orders the moves",
        ),
        Method(
            "rolling-update",
            "placeopt.rolling_update.schemes:rolling_update",
            "replaces pods one after another where kube-scheduler would",
            role="baseline",
        ),
    ),
)
