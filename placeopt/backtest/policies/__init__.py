"""Policies by name: ours, and those of other distributions (entry points ``placeopt.policies``)."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from placeopt.backtest.policies.base import Policy
from placeopt.backtest.room import RULES
from placeopt.core.errors import UsageError, did_you_mean, require_known
from placeopt.core.spec import load, offered

#: Our policies.
OWN = {
    "none": "placeopt.backtest.policies.base:Nothing",
    "cluster-autoscaler": "placeopt.backtest.policies.peers:ClusterAutoscaler",
    "karpenter": "placeopt.backtest.policies.peers:Karpenter",
    "high-node-utilization": "placeopt.backtest.policies.peers:HighNodeUtilization",
    "placeopt": "placeopt.backtest.policies.own:Consolidating",
}
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def names() -> list[str]:
    """Return the names of all policies."""
    return list(dict.fromkeys([*OWN, *offered("placeopt.policies")]))


def policy_of(text: str) -> Policy:
    """Return a policy from its text, such as ``placeopt:interval=24h,moves=10``.

    Raises
    ------
    UsageError
        There is no such policy or setting, or a value is not legal.
    """
    build, values = _settings(text)
    return build(**values)


def depends_on(text: str) -> dict[str, str]:
    """Return digests of what a run of a policy depends on: its code, and the files that it names.

    Raises
    ------
    UsageError
        As of `policy_of`.
    """
    from placeopt.rl.policy_file import bundled

    build, values = _settings(text)
    roots = {__name__.partition(".")[0], build.__module__.partition(".")[0]}
    results = {root: _digest(_sources(root)) for root in roots}
    for key, value in values.items():
        file = bundled().get(value, Path(value)) if isinstance(value, str) else Path()
        if file.is_file():
            results[key] = _digest([file])
    return results


def _sources(root: str) -> list[Path]:
    """Return the source files of a package, or of a module."""
    spec = find_spec(root)
    folders = (spec and spec.submodule_search_locations) or ()
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    return files or [Path(spec.origin)] if spec and spec.origin else files


def _digest(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def _settings(text: str) -> tuple[Callable[..., Policy], dict[str, Any]]:
    """Return the class of a policy, and its settings."""
    name, _, settings = text.partition(":")
    build = _class(name)
    known = {
        k: p for k, p in inspect.signature(build).parameters.items() if p.kind is p.KEYWORD_ONLY
    }
    values = {}
    for part in filter(None, settings.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key not in known:
            legal = did_you_mean(key, known) if known else "legal: none"
            raise UsageError(f"policy {name} has no setting {key!r}; {legal}")
        values[key] = _value(key, value, known[key].default)
    return build, values


def _class(name: str) -> Callable[..., Policy]:
    others = offered("placeopt.policies")
    if name not in OWN and name not in others:
        raise UsageError(f"there is no policy {name!r}; {did_you_mean(name, names())}")
    result: Callable[..., Policy] = load(OWN[name]) if name in OWN else others[name]()
    return result


def _value(key: str, text: str, default: Any) -> Any:
    """Return a value of the type of a default: a number, a time such as 24h, ``all``, a word."""
    if isinstance(default, str):
        if key == "rule":
            require_known("rule", text, RULES)
        return text
    if text == "all":
        return float("inf")
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz%")
    unit = text[len(number) :]
    try:
        value = float(number) * (0.01 if unit == "%" else _UNITS[unit] if unit else 1.0)
    except (ValueError, KeyError):
        raise UsageError(
            f"{key} is {text!r}; legal: a number, a share such as 10%, a time such as 90s, 10min, "
            "24h, 7d, or all"
        ) from None
    if not value >= 0:
        raise UsageError(f"{key} is {text!r}; legal: 0 or more")
    return value
