"""What the user of an import says where the files do not: once, for Python and the command line.

Each field that has an `Ask` is an option of ``placeopt import kubernetes``; `commands.asking` makes
them. This module is loaded with every command, so that it loads nothing that is large itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from placeopt.kubernetes.moving import MOVE, PRICES, TIME, Ask, MovingRules

if TYPE_CHECKING:
    from placeopt.kubernetes.given import Commitment, NewRequests
else:  # types of what is read when it is asked for
    Commitment = NewRequests = Any


def _no_requests() -> NewRequests:
    from placeopt.kubernetes.given import NewRequests

    return NewRequests()


@dataclass
class ImportOptions:
    """What the user says where the files do not."""

    name: Annotated[str, Ask("Name of the instance (default: that of the output).")] = "cluster"
    rules: MovingRules = field(default_factory=MovingRules)
    drain_cordoned: Annotated[
        bool,
        Ask("Cordoned nodes: leave-out or drain.", MOVE, "cordoned", ("leave-out", "drain")),
    ] = False
    drain: Annotated[
        tuple[str, ...], Ask("Node that must be empty at the end. Repeatable.", MOVE)
    ] = ()
    #: The node that alone is to be given up: the others cost nothing, and none is bought.
    only: str = ""
    any_architecture: Annotated[
        bool,
        Ask(
            "rolling-update: known (pods stay on architectures that their images are known to run "
            "on) or any.",
            MOVE,
            "architectures",
            ("known", "any"),
        ),
    ] = False
    leave_out: Annotated[
        bool,
        Ask(
            "Replicas that no node has room for: error or leave-out.",
            name="unplaceable",
            words=("error", "leave-out"),
        ),
    ] = False
    headroom: Annotated[
        float,
        Ask(
            "rolling-update: share of every node's cpu and memory to keep free, such as 0.1.",
            MOVE,
            least=0,
            most=0.9,
        ),
    ] = 0.0
    spread: Annotated[
        tuple[str, ...],
        Ask(
            "rolling-update: spread the replicas of every workload over nodes or zones. "
            "Repeatable.",
            MOVE,
            words=("node", "zone"),
            shown="node|zone",
        ),
    ] = ()
    max_share: Annotated[
        float,
        Ask(
            "rolling-update: maximum share of a workload's replicas on one node, such as 0.5.",
            MOVE,
            least=0.01,
            most=1,
        ),
    ] = 1.0
    max_spot_share: Annotated[
        float,
        Ask(
            "rolling-update: maximum share of the nodes in use that are spot nodes of one machine "
            "type, such as 0.3, where a plan adds one. One is always legal.",
            MOVE,
            least=0.01,
            most=1,
        ),
    ] = 1.0
    survive: Annotated[
        tuple[str, ...],
        Ask(
            "rolling-update: survive the loss of any one node. replicas: workloads with several "
            "replicas keep enough of them (one more goal). room: its pods fit on the other nodes "
            "in use. Repeatable.",
            MOVE,
            words=("replicas", "room"),
            shown="replicas|room",
        ),
    ] = ()
    new_requests: Annotated[
        NewRequests,
        Ask(
            "New requests of workloads: manifests, VerticalPodAutoscalers or CSV.",
            MOVE,
            is_file=True,
        ),
    ] = field(default_factory=_no_requests)
    missing_prices: Annotated[
        str,
        Ask(
            "Nodes without a price: error or default=0.10.",
            PRICES,
            words=("error", "default="),
            given="error",
        ),
    ] = "error"
    commitments: Annotated[
        tuple[Commitment, ...],
        Ask(
            "rolling-update: CSV of nodes that are paid for in any case: machine_type, nodes or "
            "share, region.",
            PRICES,
            is_file=True,
        ),
    ] = ()
    region: Annotated[str | None, Ask("Region of nodes without a region label.", PRICES)] = None
    max_latency_ms: Annotated[float | None, Ask("Latency limit of all calls.", PRICES, least=0)] = (
        None
    )
    source: Annotated[str | None, Ask("edge-cloud: node that the data come from.", TIME)] = None
    network_cost: Annotated[float, Ask("edge-cloud: cost per unit of data.", TIME, least=0)] = 0.0
    gateway: Annotated[str | None, Ask("rescheduling: service that users call.", TIME)] = None
    execution: Annotated[
        tuple[float, dict[tuple[str, str], float]],
        Ask(
            "rescheduling: execution time of a service in ms, or CSV: service, kind, ms.",
            TIME,
            given="10",
            shown="MS|CSV",
            is_text=True,
        ),
    ] = (10.0, {})  # ms of any service; (service, kind) -> ms
    user_latency_ms: Annotated[
        float | None, Ask("rescheduling: latency from users to a node, in ms.", TIME, least=0)
    ] = None
    parallel_calls: Annotated[
        bool, Ask("rescheduling: a service makes its calls in parallel.", TIME)
    ] = False
    horizon: Annotated[int, Ask("temporal: number of slots.", TIME, least=1)] = 24
    slot_hours: Annotated[float, Ask("temporal: hours per slot.", TIME)] = 1.0
    duration: Annotated[
        int | None, Ask("temporal: slots that a workload runs (default: all).", TIME, least=1)
    ] = None
    origin: Annotated[str | None, Ask("temporal: place that requests come from.", TIME)] = None
