"""Rolling updates: pods change size and node one after another, without downtime.

Node cost, starts and disruptions pull apart; after the runtime re-orchestration paper.
"""

from placeopt.core.spec import DEFAULT_SECONDS, Method, ProblemSpec

SPEC = ProblemSpec(
    kind="rolling-update",
    instance="placeopt.rolling_update.instance:RollingUpdate",
    plan="placeopt.rolling_update.document:UpdatePlan",
    generator="placeopt.rolling_update.generator:generate",
    encoder="placeopt.rolling_update.encoder:RollingUpdateEncoder",
    seeds="placeopt.rolling_update.repack:seeds",
    sequence="placeopt.rolling_update.sequence:RollingUpdateSequence",
    model="placeopt.rolling_update.model",
    drawing="placeopt.rolling_update.drawing",
    summary="placeopt.rolling_update.summary",
    certify="placeopt.rolling_update.decomposition:certify",
    auto="decomposition",
    quick="repack",
    methods=(
        Method(
            "decomposition",
            "placeopt.rolling_update.decomposition:decomposition",
            "packing, then order, with proofs; exact where small",
            seconds=DEFAULT_SECONDS,
            kept="descents, orders, points, and all that was proven",
        ),
        Method(
            "descheduler",
            "placeopt.rolling_update.consolidators:descheduler",
            "empty nodes of low use, as the descheduler does",
        ),
        Method(
            "karpenter",
            "placeopt.rolling_update.consolidators:karpenter",
            "delete nodes, or replace them by a cheaper one: Karpenter",
        ),
        Method(
            "recreate",
            "placeopt.rolling_update.baselines:recreate",
            "stop all, then start all where Kubernetes would",
        ),
        Method(
            "repack",
            "placeopt.rolling_update.repack:repack",
            "close nodes, repair by shifts and swaps, order the moves",
            kept="descents and orders",
        ),
        Method(
            "rolling-update",
            "placeopt.rolling_update.baselines:rolling_update",
            "replace each in turn where Kubernetes would",
        ),
        Method(
            "two-phase",
            "placeopt.rolling_update.baselines:two_phase",
            "the re-orchestration paper's allocation and ordering",
        ),
    ),
)
