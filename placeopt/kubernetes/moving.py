"""What the user says on which pods may move, and how such options are asked for.

This module is loaded with every command, so that it loads nothing that is large itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from placeopt.kubernetes.admission import MissingRequests
else:
    MissingRequests = Any

MOVE, PRICES, TIME = "What may move", "Prices and latencies", "Options of one problem"


@dataclass(frozen=True)
class Ask:
    """How an option is asked for on the command line.

    Parameters
    ----------
    help : str
    panel : str, optional
        Under which heading.
    name : str, optional
        Of the option, where it is another one than that of the field.
    words : sequence of str
        What is legal; of a field that is true or false, the word for each, false first.
    given : object, optional
        What the option says where nobody says it; else the default of the field.
    shown : str, optional
        What stands behind the option in the help.
    least, most : float, optional
    is_text, is_file : bool
        Whether what is given is a text, or several, or the path of a file, of which
        `options.options_of` makes the value.
    """

    help: str
    panel: str | None = None
    name: str | None = None
    words: Sequence[str] = ()
    given: Any = None
    shown: str | None = None
    least: float | None = None
    most: float | None = None
    is_text: bool = False
    is_file: bool = False


def _policy() -> MissingRequests:
    from placeopt.kubernetes.admission import MissingRequests

    return MissingRequests()


@dataclass
class MovingRules:
    """What the user said on which pods may move; `adopts` says that ReplicaSets adopt new ones."""

    policy: Annotated[
        MissingRequests,
        Ask(
            "What containers without requests need: error (default), limits (as their limits), or "
            "default=100m,128Mi. Repeatable: the first that says something counts.",
            name="missing_requests",
            words=("error", "limits", "default="),
            shown="POLICY",
            is_text=True,
        ),
    ] = field(default_factory=_policy)
    namespaces: Annotated[
        Sequence[str],
        Ask("Namespace to plan (default: all). Repeatable.", MOVE, "namespace"),
    ] = ()
    fixed_namespaces: Annotated[
        Sequence[str],
        Ask("Namespace whose pods stay (default: kube-system). Repeatable.", MOVE, "pin_namespace"),
    ] = ("kube-system",)
    move_empty_dir: Annotated[
        bool,
        Ask("Pods with an emptyDir on disk: pin or move.", MOVE, "empty_dir", ("pin", "move")),
    ] = False
    pins: Annotated[
        Sequence[tuple[str, str]],
        Ask(
            "Workload or pod that stays. Repeatable.", MOVE, "pin", shown="KIND/NAME", is_text=True
        ),
    ] = ()
    expendable: Annotated[
        int | None,
        Ask(
            "Pods of a lower priority take room but keep no node in use, such as those of an "
            "overprovisioner. The cluster-autoscaler uses -10.",
            MOVE,
            shown="PRIORITY",
        ),
    ] = None
    adopts: bool = False

    def plans(self, namespace: str) -> bool:
        """Return whether a namespace is planned."""
        return not self.namespaces or namespace in self.namespaces

    def is_fixed(self, kind: str, name: str) -> bool:
        """Return whether ``--pin KIND/NAME`` names a workload or a pod."""
        return (kind.lower(), name) in {(k.lower(), n) for k, n in self.pins}
