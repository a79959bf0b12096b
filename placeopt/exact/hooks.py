"""What a problem adds to the exact search in its Pyomo model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placeopt.core.front import Plan
from placeopt.core.problem import Problem

if TYPE_CHECKING:
    from placeopt.exact.compiled_model import Cut


#: Rows that exclude a solution of a model (model, problem, plan); none for one that may stay.
Cuts = Callable[[Any, Any, Plan], "Sequence[Cut]"]


@dataclass(frozen=True)
class Hooks:
    """Help from a model's module, which has it as ``HOOKS``.

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
