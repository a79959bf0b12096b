"""What the user of an import says where the files do not: once, for Python and the command line.

Each field that has an `Ask` is an option of ``placeopt import kubernetes``: `asks` makes them,
`options_of` reads them. This module is loaded with every command, so that it loads nothing that is
large itself.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from typer import Option

from placeopt.cli.completion import words
from placeopt.cli.screen import split_pair
from placeopt.core.errors import Faults, UsageError
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


# -- options of the command line -------------------------------------------------------------------

_PINNED = "KIND/NAME such as Deployment/cart or Pod/cart-1"


def asks(*only: str, **instead: Ask) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of an import, behind its own; it gets them as ``**given``.

    Parameters
    ----------
    only : str
        Fields that the command asks for; all where there is none.
    instead : Ask
        How fields are asked for here.
    """

    def made(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters.values()
        listed = [p for p in own if p.kind is not p.VAR_KEYWORD]
        for _, name, kind, ask in _asked():
            if not only or name in only:
                listed.append(_parameter(name, kind, instead.get(name, ask)))
        function.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
        function.__annotations__ = {p.name: p.annotation for p in listed}
        return function

    return made


def options_of(given: Mapping[str, Any], faults: Faults, **more: Any) -> ImportOptions:
    """Return the options that a command was given; what is wrong in files is gathered.

    Raises
    ------
    UsageError
        One is not legal.
    """
    values: dict[type, dict[str, Any]] = {ImportOptions: dict(more), MovingRules: {}}
    for owner, name, _, ask in _asked():
        value = given.get(ask.name or name)
        if value is None or (ask.is_file and not value):
            continue
        if owner is ImportOptions and name in more:
            continue
        with faults.gather():
            option = f"--{(ask.name or name).replace('_', '-')}"
            made = _read(name, value) if ask.is_text or ask.is_file else _word(option, ask, value)
            values[owner][name] = made
    return ImportOptions(rules=MovingRules(**values[MovingRules]), **values[ImportOptions])


def _read(name: str, value: Any) -> Any:
    """Return what a field holds for a text, or the path of a file."""
    from placeopt.kubernetes.admission import MissingRequests
    from placeopt.kubernetes.given import execution_times, read_commitments, read_new_requests

    readers: dict[str, Callable[[Any], Any]] = {
        "policy": MissingRequests.parse,
        "pins": lambda texts: [split_pair(text, "/", "--pin", _PINNED) for text in texts],
        "new_requests": read_new_requests,
        "commitments": lambda path: tuple(read_commitments(path)),
        "execution": execution_times,
    }
    return readers[name](value)


def _word(option: str, ask: Ask, value: Any) -> Any:
    """Return what a field holds for words; raise where they are not legal."""
    if ask.words and not any(word.endswith("=") for word in ask.words):
        for word in value if isinstance(value, list) else [value]:
            if word not in ask.words:
                raise UsageError(f"{option} {word!r}; legal: {', '.join(ask.words)}")
        if not isinstance(value, list):
            return value == ask.words[1]
    return tuple(value) if isinstance(value, list) else value


def _asked() -> Iterator[tuple[type, str, Any, Ask]]:
    """Yield (class, field, type, how it is asked for) of what a user may say."""
    for owner in (MovingRules, ImportOptions):
        hints = get_type_hints(owner, include_extras=True)
        for one in fields(owner):
            if get_origin(hints[one.name]) is Annotated:
                kind, ask = get_args(hints[one.name])
                yield owner, one.name, kind, _with_default(ask, one)


def _with_default(ask: Ask, one: Field[Any]) -> Ask:
    plain = isinstance(one.default, (int, float, str)) and ask.given is None
    return replace(ask, given=one.default) if plain else ask


def _parameter(name: str, kind: Any, ask: Ask) -> inspect.Parameter:
    """Return the parameter of a command for a field."""
    default: Any = ask.given
    if ask.is_file:
        kind = Path | None
    elif kind is bool and ask.words:
        kind, default = str, ask.words[bool(default)]
    elif ask.is_text and default is not None:
        kind = str
    elif get_origin(kind) not in (None, types.UnionType) or ask.is_text:
        kind = list[str] | None
    elif name == "name":
        kind, default = str | None, None
    option = Option(
        metavar=ask.shown,
        help=ask.help,
        min=ask.least,
        max=ask.most,
        autocompletion=words(*ask.words) if ask.words else None,
        rich_help_panel=ask.panel,
    )
    return inspect.Parameter(
        ask.name or name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option],
    )
