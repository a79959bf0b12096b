"""Public functions: an argument of another type is named, whatever it broke inside."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from types import SimpleNamespace, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from placeopt.core.errors import PlaceoptError, UsageError, did_you_mean, shown

P = ParamSpec("P")
R = TypeVar("R")

#: Annotations that an array may stand for.
_OF_NUMBERS = re.compile(r"\b(float|int|bool|Any|ArrayLike|ndarray)\b")
#: The annotation of keywords that a TypedDict declares.
_UNPACKED = re.compile(r"Unpack\[(\w+)\]")
#: What an argument of another type raises inside a function.
_BROKEN = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function name the argument that is not of its declared type.

    Nothing is checked beforehand, which costs nothing and lets through whatever works. Where the
    function fails by an error that is not ours, the arguments are compared with their annotations:
    the first that differs is named by a UsageError. Where none does, the error is a mistake of
    placeopt's or of a caller's own code, and stays.

    Examples
    --------
    >>> @public
    ... def half(count: int) -> float:
    ...     return count / 2
    >>> half("three")
    Traceback (most recent call last):
    placeopt.core.errors.UsageError: count is 'three'; half() wants int
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except PlaceoptError:
            raise
        except _BROKEN as error:
            _require_known(function, kwargs)
            for name, value, wanted in _mistyped(function, args, kwargs):
                raise UsageError(
                    f"{name} is {shown(value)}; {function.__name__}() wants {wanted}"
                ) from error
            raise

    return call


def _require_known(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """Raise where a function has no argument of a name."""
    parameters = inspect.signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return
    for name in kwargs.keys() - parameters.keys():
        legal = [one for one in parameters if one != "self"]
        raise UsageError(
            f"{function.__name__}() has no argument {name!r}; {did_you_mean(name, legal)}"
        )


def _mistyped(
    function: Callable[..., Any], args: Any, kwargs: Any
) -> Iterator[tuple[str, Any, str]]:
    """Yield name, value and annotation of every argument of another type."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:  # Python's own words say what is missing or unknown
        return
    scope = function.__globals__
    for name, value in bound.arguments.items():
        annotation = function.__annotations__.get(name)
        if not isinstance(annotation, str):
            continue
        if unpacked := _UNPACKED.fullmatch(annotation):
            yield from _mistyped_keywords(scope[unpacked[1]], value)
        elif not _fits(value, annotation, scope):
            yield name, value, annotation


def _mistyped_keywords(declared: Any, given: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """The same of keywords that a TypedDict declares."""
    scope = vars(sys.modules[declared.__module__])
    for name in declared.__annotations__.keys() & given.keys():
        annotation = declared.__annotations__[name].__forward_arg__
        if not _fits(given[name], annotation, scope):
            yield name, given[name], annotation


def _fits(value: Any, annotation: str, scope: dict[str, Any]) -> bool:
    """Whether a value is of the type that an annotation names, as far as it can be known."""
    if isinstance(value, np.ndarray) and not _OF_NUMBERS.search(annotation):
        return False
    holder = SimpleNamespace(__annotations__={"hint": annotation})
    try:
        hint = get_type_hints(holder, scope)["hint"]
    except (NameError, AttributeError, TypeError):  # a name for readers alone
        return True
    return any(_is_a(value, one) for one in _alternatives(hint))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, or can be taken for one: a list for a tuple, but no text."""
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

    if hint is Any:
        return True
    if isinstance(hint, type) and hint not in (int, float, str, bool):
        return isinstance(value, hint)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    is_text = isinstance(value, (str, bytes))
    config = ConfigDict(arbitrary_types_allowed=True, strict=is_text)
    try:
        TypeAdapter(hint, config=config).validate_python(value)
    except ValidationError:
        return False
    except PydanticUserError:  # pydantic does not know such types
        return True
    return True
