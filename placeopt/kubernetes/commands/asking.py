"""Options of the command line, made of the fields of `placeopt.kubernetes.options`."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from typer import Option

from placeopt.cli.completion import beginning, words
from placeopt.cli.screen import split_pair
from placeopt.core.errors import UsageError
from placeopt.kubernetes.moving import Ask, MovingRules
from placeopt.kubernetes.options import ImportOptions

if TYPE_CHECKING:
    from placeopt.core.errors import Faults


def import_targets(incomplete: str) -> list[str]:
    """Return the problems that a cluster becomes an instance of."""
    from placeopt.kubernetes.importing import TARGETS

    return beginning(incomplete, TARGETS)


def export_formats(incomplete: str) -> list[str]:
    """Return what a plan becomes, for any problem."""
    from placeopt.kubernetes.export import FORMATS

    forms = dict.fromkeys(form for forms in FORMATS.values() for form in forms)
    return beginning(incomplete, forms)


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
