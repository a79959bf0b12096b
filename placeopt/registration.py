"""`placeopt.register`: a problem of a program or a notebook, which is no distribution."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

from pydantic import BaseModel

from placeopt import registry
from placeopt.core.errors import UnsupportedError, UsageError, did_you_mean
from placeopt.core.problem import Problem
from placeopt.core.spec import ADDED, Entry, Method, ProblemSpec, load

#: Members that are text or records, and those of the others that are no functions.
_PLAIN = ("kind", "auto", "auto_alone", "quick", "gap_of", "methods")
_NO_FUNCTIONS = ("instance", "plan", "encodings", "episodes", "model", "drawing", "summary")
#: Where a program's own names stand. Workers have other programs.
_PROGRAM = "__main__"


def register(spec: ProblemSpec) -> None:
    """Add a problem of your own: all methods, environments and sweeps of this program serve it.

    An installed distribution with an entry point ``placeopt.problems`` needs no call, and the
    command line finds it too. A notebook is none. There, members of the spec are the classes and
    functions themselves, or texts such as ``"__main__:Lamps"``; workers are sent what they need.
    The class gets the spec as its `spec`. To register a kind again replaces it.

    Parameters
    ----------
    spec : placeopt.core.spec.ProblemSpec

    Raises
    ------
    UsageError
        Names the member that cannot be loaded or is not what it has to be; or the kind is that of
        an installed problem.

    Examples
    --------
    >>> placeopt.register(ProblemSpec(                                       # doctest: +SKIP
    ...     kind="lamps", instance=Lamps, generator=generate, encoder=LampEncoder))
    >>> placeopt.solve(Lamps.generate(seed=1), "moead")                      # doctest: +SKIP
    """
    if not isinstance(spec, ProblemSpec):
        raise UsageError(f"a problem is registered by a ProblemSpec; this is {spec!r:.80}")
    if not isinstance(spec.kind, str) or not spec.kind:
        raise UsageError(f"kind is {spec.kind!r}; give a name such as 'lamps'")
    if spec.kind in registry.installed():
        raise UsageError(
            f"{spec.kind!r} is a problem that is installed; give yours a kind of its own"
        )
    whole = _found(spec)
    _check(whole)
    load(whole.instance).spec = whole
    ADDED.pop(whole.kind, None)  # the latest stands last
    ADDED[whole.kind] = whole
    if "gymnasium" in sys.modules:
        from placeopt import environments

        environments.register()


def _found(spec: ProblemSpec) -> ProblemSpec:
    """Return a spec whose members of this program are objects, as no worker finds them by name."""
    own: dict[str, Any] = {}
    for member in fields(spec):
        entry = vars(spec)[member.name]
        if isinstance(entry, str) and entry.partition(":")[0] == _PROGRAM:
            own[member.name] = _object(spec.kind, member.name, entry)
        if own.get(member.name, entry) is load(_PROGRAM):
            own[member.name] = SimpleNamespace(**vars(load(_PROGRAM)))
    return replace(spec, **own)


def _object(kind: str, member: str, entry: Entry) -> Any:
    """Return what an entry stands for."""
    module, _, name = entry.partition(":") if isinstance(entry, str) else ("", "", "")
    try:
        return load(entry)
    except (ImportError, ValueError) as error:
        reason = str(error)
    except AttributeError:
        reason = f"{module} has no {name!r}; {did_you_mean(name, vars(load(module)))}"
    raise UsageError(f"the {member} of {kind} is {entry!r}, which cannot be loaded: {reason}")


def _check(spec: ProblemSpec) -> None:
    """Raise for a member that is not what it has to be."""
    objects = {
        name: _object(spec.kind, name, entry)
        for name, entry in vars(spec).items()
        if entry is not None and name not in _PLAIN
    }
    for name, result in objects.items():
        if name not in _NO_FUNCTIONS and not callable(result):
            raise _wrong(spec, name, result, "give a function")
    instance = objects["instance"]
    if not (isinstance(instance, type) and issubclass(instance, Problem)):
        raise _wrong(spec, "instance", instance, "give a subclass of placeopt.core.problem.Problem")
    kinds = get_args(instance.model_fields["problem"].annotation)
    if kinds and spec.kind not in kinds:
        raise UsageError(
            f"the kind is {spec.kind!r}, but field 'problem' of {instance.__name__} is "
            f"{' or '.join(map(repr, kinds))}; let both be the same"
        )
    plan = objects.get("plan")
    if plan is not None and not (isinstance(plan, type) and issubclass(plan, BaseModel)):
        raise _wrong(spec, "plan", plan, "give a pydantic class, such as a Record")
    if "model" in objects:
        from placeopt.exact.goals import require_model  # it imports Pyomo

        try:
            require_model(objects["model"], spec.kind)
        except UnsupportedError as error:
            raise UsageError(str(error)) from None
    if not all(isinstance(method, Method) for method in spec.methods):
        raise _wrong(spec, "methods", spec.methods, "give a tuple of Method records")


def _wrong(spec: ProblemSpec, member: str, found: Any, remedy: str) -> UsageError:
    shown = found.__name__ if isinstance(found, (type, ModuleType)) else f"{found!r:.60}"
    return UsageError(f"the {member} of {spec.kind} is {shown}; {remedy}")
