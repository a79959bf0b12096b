"""What the user of an import says where the files do not."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.kubernetes.calls import Key
from placeopt.kubernetes.commitments import Commitment
from placeopt.kubernetes.new_requests import NewRequests
from placeopt.kubernetes.replicas import MovingRules


@dataclass
class ImportOptions:
    """What the user says where the files do not.

    Parameters
    ----------
    name : str
        Of the instance.
    rules : MovingRules
        What may move, and what is assumed of missing requests.
    missing_prices : str
        ``error``, or ``default=USD``.
    any_architecture : bool
        Whether pods of rolling updates may go to architectures on which their images are not known
        to run.
    commitments : tuple of Commitment
        What of the nodes of a rolling update is paid for already.
    region : str, optional
        Of nodes and prices that name none.
    drain, drain_cordoned :
        Nodes to empty.
    leave_out : bool
        Whether replicas that no node has room for are left out; else they are an error.
    headroom : float
        Share of every node's room that rolling updates keep free.
    spread : tuple of str
        ``node`` or ``zone``, over which rolling updates spread every workload.
    max_share : float
        Largest share of a workload's replicas on one node, in rolling updates.
    max_spot_share : float
        Largest share of the nodes in use that spot nodes of one machine type may be where a rolling
        update newly uses one of them.
    survive : tuple of str
        What rolling updates keep when a node is lost: ``replicas``, or ``room`` for each pod.
    max_latency_ms : float, optional
        Limit of every call for which no AppGroup has one.
    new_requests : NewRequests
        What workloads shall ask for.
    replicas : dict of Key to int
        How many replicas running Deployments shall have, in rolling updates.
    source, gateway, origin : str, optional
        A node (edge-cloud), a service (rescheduling), a place (temporal).
    network_cost, data : float
        Of edge-cloud: per unit of data, and the data of a microservice.
    execution_ms : float
        Of rescheduling: time of a service on any machine, unless `execution` says otherwise:
        (service, kind) -> ms.
    user_latency_ms : float, optional
    parallel_calls : bool
    horizon, slot_hours, duration : temporal
    """

    name: str = "cluster"
    rules: MovingRules = field(default_factory=MovingRules)
    missing_prices: str = "error"
    commitments: tuple[Commitment, ...] = ()
    any_architecture: bool = False
    region: str | None = None
    drain: tuple[str, ...] = ()
    drain_cordoned: bool = False
    leave_out: bool = False
    headroom: float = 0.0
    spread: tuple[str, ...] = ()
    max_share: float = 1.0
    max_spot_share: float = 1.0
    survive: tuple[str, ...] = ()
    max_latency_ms: float | None = None
    new_requests: NewRequests = field(default_factory=NewRequests)
    replicas: dict[Key, int] = field(default_factory=dict)
    source: str | None = None
    gateway: str | None = None
    origin: str | None = None
    network_cost: float = 0.0
    data: float = 1.0
    execution_ms: float = 10.0
    execution: dict[tuple[str, str], float] = field(default_factory=dict)
    user_latency_ms: float | None = None
    parallel_calls: bool = False
    horizon: int = 24
    slot_hours: float = 1.0
    duration: int | None = None
