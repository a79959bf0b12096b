"""What a problem adds to the exact search in its Pyomo model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeopt.core.errors import UnsupportedError
from placeopt.core.fronts.values import Plan
from placeopt.core.interfaces import ModelModule
from placeopt.core.problem import Problem
from placeopt.core.spec import ProblemSpec

if TYPE_CHECKING:
    from placeopt.exact.compiled_model import Cut


#: Rows that exclude a solution of a model (model, problem, plan); none for one that may stay.
Cuts = Callable[[Any, Any, Plan], "Sequence[Cut]"]


@dataclass(frozen=True)
class Hooks:
    """Help from the module of a model (`placeopt.core.interfaces.ModelModule`), its ``HOOKS``.

    Attributes
    ----------
    extract : callable
        ``extract(model) -> plan``.
    assign : callable, optional
        ``assign(model, plan)``: give the variables the values of a plan; whether the model can.
    validate : callable, optional
        ``validate(problem, plan)``: whether a solution of the model may be called proven.
    cuts : callable, optional
        ``cuts(model, problem, plan)``: rows that exclude a solution which is no plan.
    cuts_of : callable, optional
        ``cuts_of(problem)``: the `cuts` of a problem that needs them, else None.
    size : callable, optional
        ``size(problem, **options)``: about how many coefficients the model has.
    covers : callable, optional
        ``covers(problem, **options)``: whether the model sees all plans that matter.
    lossless : bool
        What `covers` said: proofs in the model hold for the problem.
    omitted : str
        In words, the plans that a model which is not lossless leaves out.
    """

    extract: Callable[[Any], Plan]
    assign: Callable[[Any, Plan], bool] | None = None
    validate: Callable[[Problem, Plan], bool] | None = None
    cuts: Cuts | None = None
    cuts_of: Callable[[Any], Cuts | None] | None = None
    size: Callable[..., int] | None = None
    covers: Callable[..., bool] | None = None
    lossless: bool = True
    omitted: str = "some plans"


def require_model(face: Any, kind: str) -> None:
    """Raise unless something has the functions of a `ModelModule`.

    Raises
    ------
    UnsupportedError
        Names the function that is missing, and the kind of the problem.
    """
    for name in ("build", "extract"):
        if not (hasattr(face, name) and callable(getattr(face, name))):
            raise UnsupportedError(
                f"the model of {kind} has no function {name!r}; "
                "see placeopt.core.interfaces.ModelModule"
            )


def model_of(spec: ProblemSpec) -> tuple[ModelModule, Hooks]:
    """Return the model of a problem and its hooks; without any, plans are only extracted.

    Raises
    ------
    UnsupportedError
        The problem has no model, or the model lacks a function.
    """
    face: ModelModule = spec.load("model")
    require_model(face, spec.kind)
    return face, face.HOOKS if hasattr(face, "HOOKS") else Hooks(face.extract)
