"""The parameters of methods: declared in their signatures, listed, and checked before a run.

A method declares each as a keyword-only argument with a type, legal values and a line of help:

>>> from typing import Annotated
>>> from pydantic import Field
>>> def run(task, *, width: Annotated[int, Field(ge=1, description="Plans kept.")] = 8): ...
>>> parameters(run)
(Parameter(name='width', type='int', default=8, legal='at least 1', help='Plans kept.'),)
>>> checked(run, "beam", {"width": "3"})
{'width': 3}
"""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from placeopt.core.errors import UsageError, did_you_mean, shown

#: What a run takes whatever its method is.
RUN: tuple[str, ...] = ("objectives", "evaluations", "seconds", "seed", "jobs", "scheduler")
RUN += ("run_dir", "start", "certify", "reference")
#: Attribute of a pydantic bound -> the words for it.
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a method, in words.

    Attributes
    ----------
    name : str
    type : str
        Such as ``int`` or ``float | none``.
    default : Any
    legal : str
        The legal values; empty where the type says it all.
    help : str
        One line.
    """

    name: str
    type: str
    default: Any
    legal: str
    help: str


def parameters(run: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters that a method declares, in their order."""
    from pydantic.fields import FieldInfo

    hints, results = get_type_hints(run, include_extras=True), []
    for name, argument in inspect.signature(run).parameters.items():
        if argument.kind is argument.KEYWORD_ONLY:
            field = FieldInfo.from_annotation(hints.get(name, Any))
            words = _type_words(field.annotation), argument.default, _legal(field)
            results.append(Parameter(name, *words, field.description or ""))
    return tuple(results)


def checked(run: Callable[..., Any], method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given parameters, converted to their declared types; the text "none" is None.

    A method that takes ``**options`` hands the rest on; it checks them itself.

    Raises
    ------
    UsageError
        Names the parameter, its value, and what is legal.
    """
    declared, hands_on = _declared(run)
    results = {}
    for name, value in given.items():
        if name not in declared:
            if not hands_on:
                raise UsageError(_unknown(method, name, list(declared)))
            results[name] = value
        else:
            results[name] = _converted(method, run, declared[name], value)
    return results


@cache
def _declared(run: Callable[..., Any]) -> tuple[dict[str, Parameter], bool]:
    """Return the parameters of a method by name, and whether it hands others on."""
    arguments = inspect.signature(run).parameters.values()
    hands_on = any(argument.kind is argument.VAR_KEYWORD for argument in arguments)
    return {p.name: p for p in parameters(run)}, hands_on


@cache
def _validator(run: Callable[..., Any], name: str) -> Any:
    """Return the pydantic adapter of a parameter; to build one takes a millisecond."""
    from pydantic import ConfigDict, TypeAdapter

    hint = get_type_hints(run, include_extras=True).get(name, Any)
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def _unknown(method: str, name: str, legal: list[str]) -> str:
    close = difflib.get_close_matches(name, [*legal, *RUN], n=1)
    if close and close[0] in RUN:
        return (
            f"method {method!r} has no parameter {name!r}; did you mean {close[0]!r}, which every "
            "run takes?"
        )
    if not legal:
        return f"method {method!r} has no parameter {name!r}; it has none"
    return f"method {method!r} has no parameter {name!r}; {did_you_mean(name, legal)}"


def require_options(given: Iterable[str], legal: Collection[str], what: str) -> None:
    """Raise unless the names of all given options are legal.

    Raises
    ------
    UsageError
        Names the first that `what` does not have, and those that it has.
    """
    for name in given:
        if name not in legal:
            near = did_you_mean(name, legal) if legal else "there are none"
            raise UsageError(f"unknown option {name!r} of {what}; {near}")


def _converted(method: str, run: Callable[..., Any], parameter: Parameter, value: Any) -> Any:
    from pydantic import ValidationError

    if isinstance(value, str) and value == "none" and "none" in parameter.type.split(" | "):
        return None
    if isinstance(value, (bool, int, float)) and "text" in parameter.type.split(" | "):
        value = json.dumps(value)  # a command line has read a number where a text is meant
    try:
        return _validator(run, parameter.name).validate_python(value)
    except ValidationError as error:
        legal = parameter.legal or f"a value of type {parameter.type}"
        reason = error.errors(include_url=False)[0]["msg"].lower()
        raise UsageError(
            f"{parameter.name} of {method} is {shown(value)} ({reason}); legal: {legal}"
        ) from None


def _type_words(hint: Any) -> str:
    bare = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    if get_origin(bare) in (Union, UnionType):
        return " | ".join(dict.fromkeys(_type_words(one) for one in get_args(bare)))
    if get_origin(bare) is Literal or bare in (str, Path):
        return "text"
    if bare is NoneType:
        return "none"
    if get_args(bare):
        return str(bare).replace("collections.abc.", "").replace("typing.", "")
    return bare.__name__ if isinstance(bare, type) else str(bare).replace("typing.", "")


def _legal(field: Any) -> str:
    """Return the legal values of a `pydantic.fields.FieldInfo` in words."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(map(str, get_args(field.annotation)))
    said = [
        f"{words} {getattr(bound, sign)}"
        for bound in field.metadata
        for sign, words in _BOUNDS.items()
        if hasattr(bound, sign)
    ]
    return ", ".join(said)
