"""Values as they stand in objects: quantities, labels, selectors, rules about nodes and pods.

A quantity is a decimal number with an optional exponent, or with one suffix: n u m k M G T P E
(powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024). ``K``, which the API refuses, is read as
``k``, as the Python client of Kubernetes does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import msgspec
from pydantic import BeforeValidator

from placeopt.core.errors import DocumentError
from placeopt.core.files.tables import CellError, cell, number
from placeopt.kubernetes.files import LABEL, LABEL_KEY, NAME, WrongError, shown

#: Milli-CPU and bytes; None where nothing is said.
Amounts = tuple[int | None, int | None]
#: A number of replicas, or the like.
Count = Annotated[int, msgspec.Meta(ge=0, le=10**6)]
#: A name of an object; empty for none.
Name = Annotated[str, msgspec.Meta(pattern=rf"^({NAME.pattern})?\Z")]

# -- quantities ------------------------------------------------------------------------------------

_FORM = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,9}))?"
    r"(Ki|Mi|Gi|Ti|Pi|Ei|[numkKMGTPE])?",
    re.ASCII,
)
_LARGE = "KMGTPE"
_FACTOR = {
    **{suffix: Fraction(1000) ** -k for k, suffix in enumerate(("", "m", "u", "n"))},
    **{suffix: Fraction(1000) ** k for k, suffix in enumerate(_LARGE, start=1)},
    **{f"{suffix}i": Fraction(1024) ** k for k, suffix in enumerate(_LARGE, start=1)},
    "k": Fraction(1000),
}
#: Longer texts and larger exponents are refused before they are computed.
MAX_CHARACTERS, MAX_EXPONENT = 64, 40
#: The largest amount that Kubernetes holds.
LARGEST = 2**63 - 1
MIB = 2**20


def parse(value: Any) -> Fraction:
    """Return a quantity as an exact fraction of its base unit (cores, bytes).

    Raises
    ------
    DocumentError
        It is not a quantity.

    Examples
    --------
    >>> parse("1.5Gi"), parse("644245094400m"), parse(0.1)
    (Fraction(1610612736, 1), Fraction(3221225472, 5), Fraction(1, 10))
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _fault(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise _too_large(value.bit_length() * 3 // 10)
    text = value if isinstance(value, str) else repr(value)
    if len(text) > MAX_CHARACTERS:
        raise DocumentError(
            f"{text[:20]!r}... is no quantity",
            remedy=f"legal: at most {MAX_CHARACTERS} characters, such as 100m or 128Mi",
        )
    return _parse(text)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    read = _FORM.fullmatch(text)
    if read is None:
        raise _fault(text)
    number, exponent, suffix = read[1], int(read[2] or 0), read[3] or ""
    if abs(exponent) > MAX_EXPONENT:
        raise _too_large(exponent) if exponent > 0 else _fault(text)
    amount = Fraction(number) * Fraction(10) ** exponent * _FACTOR[suffix]
    if abs(amount) > LARGEST:
        raise _too_large(len(str(math.floor(abs(amount)))))
    return amount


def _fault(value: Any) -> DocumentError:
    remedy = "legal: a number with a suffix of Kubernetes, such as 100m, 0.5, 128Mi or 1.5Gi"
    return DocumentError(f"{str(value)[:60]!r} is no quantity", remedy=remedy)


def _too_large(digits: int) -> DocumentError:
    return DocumentError(
        f"a quantity of about {digits} digits is too large", remedy="legal: up to 2^63 - 1"
    )


def _whole(value: Any, per_unit: int, capacity: bool) -> int:
    if type(value) is str:  # a cluster says the same few quantities thousands of times
        return _whole_text(value, per_unit, capacity)
    return _rounded(value, per_unit, capacity)


@lru_cache(maxsize=4096)
def _whole_text(text: str, per_unit: int, capacity: bool) -> int:
    return _rounded(text, per_unit, capacity)


def _rounded(value: Any, per_unit: int, capacity: bool) -> int:
    amount = parse(value)
    if amount < 0:
        raise DocumentError(
            f"{str(value)[:60]!r} is negative", remedy="legal: an amount of at least 0"
        )
    return math.floor(amount * per_unit) if capacity else math.ceil(amount * per_unit)


def millicores(value: Any, *, capacity: bool = False) -> int:
    """Return whole milli-CPU: a request is rounded up, a capacity down.

    Examples
    --------
    >>> millicores("100m"), millicores("0.5"), millicores("1n"), millicores("1n", capacity=True)
    (100, 500, 1, 0)
    """
    return _whole(value, 1000, capacity)


def whole_bytes(value: Any, *, capacity: bool = False) -> int:
    """Return whole bytes: a request is rounded up, a capacity down.

    Examples
    --------
    >>> whole_bytes("500Mi"), whole_bytes("129e6"), whole_bytes("644245094400m")
    (524288000, 129000000, 644245095)
    """
    return _whole(value, 1, capacity)


def mebibytes(amount: int, *, capacity: bool = False) -> int:
    """Return bytes as whole MiB: a request is rounded up, a capacity down.

    Examples
    --------
    >>> mebibytes(524288000), mebibytes(129000000), mebibytes(129000000, capacity=True)
    (500, 124, 123)
    """
    return amount // MIB if capacity else -(-amount // MIB)


# -- structs ---------------------------------------------------------------------------------------


class Fixed(msgspec.Struct, rename="camel", gc=False, frozen=True):
    """A value that does not change, and that stands for itself as a key."""


def form(fields: Mapping[str, Any]) -> Any:
    """Return a struct of some fields.

    Parameters
    ----------
    fields : mapping
        What each field is: a type; a mapping of the fields inside, or of ``*`` to what every key
        is; a list of one of these. A field that is absent is empty; None where its type has no
        empty value.
    """
    made: list[Any] = []
    for key, kind in fields.items():
        own, many = _inside(kind), isinstance(kind, dict) and "*" in kind
        if isinstance(kind, list) or many:
            made.append((key, own, {} if many else ()))
        elif own is Name:
            made.append((key, own, ""))
        elif own in (Any, int) or not isinstance(own, type):
            made.append((key, own if own is Any else own | None, None))
        elif issubclass(own, msgspec.Struct) and not own.__struct_config__.frozen:
            made.append((key, own, msgspec.field(default_factory=own)))
        else:
            made.append((key, own, own()))
    return msgspec.defstruct("form", made, frozen=True, gc=False)


def _inside(kind: Any) -> Any:
    """Return the type of a field of a form."""
    if isinstance(kind, list):
        return tuple.__class_getitem__((_inside(kind[0]), ...))
    if isinstance(kind, dict):
        every = kind.get("*")
        return form(kind) if every is None else dict.__class_getitem__((str, _inside(every)))
    return kind


# -- labels and quantities -------------------------------------------------------------------------


def mapping(value: object) -> dict[str, Any]:
    """Return the keys of a mapping that say something."""
    if not isinstance(value, dict):
        raise WrongError(f"{shown(value)} where a mapping is expected", "give a mapping")
    if None in value.values():
        return {key: own for key, own in value.items() if own is not None}
    return value


def _interned(make: Any, *args: Any) -> Any:
    """Return what `make` makes, once for the same values; these may be lists, which it refuses."""
    try:
        return make(*args)
    except TypeError:
        return make.__wrapped__(*args)


class Labels(dict[str, str]):
    """Labels, checked to be what Kubernetes allows. Read only."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    @classmethod
    def read(cls, value: object) -> Labels:
        """Return the labels of plain values; the same ones for the same values."""
        result: Labels = _interned(_labels, tuple(mapping(value).items()))
        return result


@lru_cache(maxsize=2**16)
def _labels(items: tuple[tuple[str, Any], ...]) -> Labels:
    for key, value in items:
        if not isinstance(value, str) or not LABEL.fullmatch(value):
            legal = "legal: letters, digits, -, _ and ., up to 63; numbers in quotes"
            raise WrongError(f"{shown(value)} is no value of a label", legal, key)
        if not LABEL_KEY.fullmatch(key):
            legal = "legal: such as app or example.org/app"
            raise WrongError(f"{shown(key)} is no key of a label", legal, key)
    return Labels(items)


class Annotations(dict[str, Any]):
    """Annotations but for that in which kubectl keeps the whole object."""

    @classmethod
    def read(cls, value: object) -> Annotations:
        """Return the annotations of plain values."""
        result = cls(mapping(value))
        result.pop("kubectl.kubernetes.io/last-applied-configuration", None)
        return result


class Quantities(dict[str, Fraction]):
    """Amounts of resources by their names, exactly. Read only."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    @classmethod
    def read(cls, value: object) -> Quantities:
        """Return the amounts of plain values."""
        listed = mapping(value)
        for key, own in listed.items():
            _checked(own, key, whole_bytes)
        return cls((key, parse(own)) for key, own in listed.items())


class Asked:
    """What is asked of resources: milli-CPU and bytes, None for nothing, and `further` ones.

    The latter are ephemeral storage and huge pages in MiB, others in units.
    """

    __slots__ = ("amounts", "further")
    down: ClassVar = False

    def __init__(self, amounts: Amounts = (None, None), further: Mapping[str, int] | None = None):
        self.amounts, self.further = amounts, further or {}

    def __eq__(self, other: object) -> bool:
        own = (self.amounts, self.further)
        return isinstance(other, Asked) and own == (other.amounts, other.further)

    def __hash__(self) -> int:
        return hash((self.amounts, frozenset(self.further.items())))

    @classmethod
    def read(cls, value: object) -> Any:
        """Return the amounts of plain values; the same object for the same values."""
        return _interned(_asked, cls, tuple(mapping(value).items()))


class Allocatable(Asked):
    """What a machine has to give: amounts are rounded down."""

    __slots__ = ()
    down: ClassVar = True


NOTHING = Asked()


@lru_cache(maxsize=2**14, typed=True)
def _asked(cls: type[Asked], items: tuple[tuple[str, Any], ...]) -> Asked:
    down, said, further = cls.down, dict(items), dict[str, int]()
    cpu = _checked(said.pop("cpu", None), "cpu", millicores, down)
    memory = _checked(said.pop("memory", None), "memory", whole_bytes, down)
    for key, value in said.items():
        if key == "ephemeral-storage" or key.startswith("hugepages-"):
            amount = _checked(value, key, whole_bytes, down)
            further[key] = min(10**9, mebibytes(amount or 0, capacity=down))
        elif LABEL_KEY.fullmatch(key):
            milli = _checked(value, key, millicores, down) or 0
            further[key] = min(10**9, milli // 1000 if down else -(-milli // 1000))
    return cls((cpu, memory), further)


def _checked(value: Any, key: str, convert: Any, down: bool = False) -> int | None:
    try:
        return None if value is None else int(convert(value, capacity=down))
    except DocumentError as error:
        raise WrongError(error.problem, error.remedy or "", key) from None


# -- selectors and rules ---------------------------------------------------------------------------

_NUMBER = re.compile(r"-?[0-9]{1,20}")


class Requirement(Fixed, frozen=True):
    """What is required of the label of a key: of selectors, node affinity, NodePools."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    min_values: int | None = None

    def __post_init__(self) -> None:
        numbers = self.operator in ("Gt", "Lt") and len(self.values) == 1
        if not numbers and self.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            raise WrongError(
                f"the operator {self.operator[:40]!r} of {self.key[:60]!r} is not legal",
                "legal: In, NotIn, Exists, DoesNotExist, Gt, Lt",
            )

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet it."""
        value, operator = labels.get(self.key), self.operator
        if operator in ("In", "NotIn"):
            return (value is not None and value in self.values) == (operator == "In")
        if operator in ("Exists", "DoesNotExist"):
            return (value is not None) == (operator == "Exists")
        if value is None or not all(map(_NUMBER.fullmatch, (value, self.values[0]))):
            return False
        limit = int(self.values[0])
        return int(value) > limit if operator == "Gt" else int(value) < limit


class Selector(Fixed, frozen=True):
    """A selector of labels."""

    match_labels: Labels = Labels()
    match_expressions: tuple[Requirement, ...] = ()

    @property
    def words(self) -> str:
        """The selector in short."""
        words = [f"{k}={v}" for k, v in self.match_labels.items()]
        for e in self.match_expressions:
            words.append(f"{e.key} {e.operator} {','.join(e.values)}".strip())
        return ";".join(words) or "any"


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector holds for `labels`; an absent one holds for none."""
    if selector is None:
        return False
    return selector.match_labels.items() <= labels.items() and all(
        term.holds(labels) for term in selector.match_expressions
    )


class NodeTerm(Fixed, frozen=True):
    """A term of a node selector."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()

    def holds(self, name: str, labels: Mapping[str, str], *, anywhere: bool = False) -> bool:
        """Return whether it holds for a node; `anywhere` passes over its fields."""
        if not self.match_expressions and not self.match_fields:
            return False
        return all(e.holds(labels) for e in self.match_expressions) and all(
            anywhere or f.holds({"metadata.name": name}) for f in self.match_fields
        )


class NodeSelector(Fixed, frozen=True):
    """Nodes that one of some terms holds for; all nodes where there is no term."""

    terms: tuple[NodeTerm, ...] = msgspec.field(name="nodeSelectorTerms", default=())

    def holds(self, name: str, labels: Mapping[str, str], *, anywhere: bool = False) -> bool:
        """Return whether it holds for a node."""
        held = (term.holds(name, labels, anywhere=anywhere) for term in self.terms)
        return not self.terms or any(held)

    @property
    def requirements(self) -> Iterator[Requirement]:
        """What its terms require of labels."""
        return (e for term in self.terms for e in term.match_expressions)


class Term(Fixed, frozen=True):
    """Which pods a rule is about, and over which domains of nodes it counts."""

    topology_key: str = ""
    label_selector: Selector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class Spread(Term, frozen=True):
    """A topology spread constraint."""

    max_skew: Count = 1
    min_domains: Count | None = None
    when_unsatisfiable: str = "DoNotSchedule"
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"

    @property
    def is_required(self) -> bool:
        """Whether a pod waits rather than break it."""
        return self.when_unsatisfiable == "DoNotSchedule"


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


_WEIGHTED: Any = tuple.__class_getitem__((form({"podAffinityTerm": Term}), ...))


class PodAffinity(Fixed, frozen=True):
    """Rules towards other pods."""

    required: tuple[Term, ...] = msgspec.field(name=_REQUIRED, default=())
    weighted: _WEIGHTED = msgspec.field(name=_PREFERRED, default=())

    @property
    def preferred(self) -> list[Term]:
        """The terms that are kept where it costs nothing."""
        return [one.podAffinityTerm for one in self.weighted]


class NodeAffinity(Fixed, frozen=True):
    """Rules towards nodes."""

    required: NodeSelector = msgspec.field(name=_REQUIRED, default=NodeSelector())
    preferred: Any = msgspec.field(name=_PREFERRED, default=None)


class Affinity(Fixed, frozen=True):
    """What a pod says of nodes and of other pods."""

    nodes: NodeAffinity = msgspec.field(name="nodeAffinity", default=NodeAffinity())
    pods: PodAffinity = msgspec.field(name="podAffinity", default=PodAffinity())
    anti: PodAffinity = msgspec.field(name="podAntiAffinity", default=PodAffinity())


class Toleration(Fixed, frozen=True):
    """A taint that a pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def is_about(self, taint: tuple[str, str, str]) -> bool:
        """Return whether it tolerates a taint (key, value, effect)."""
        key, value, effect = taint
        return (
            self.effect in ("", effect)
            and (self.key == key or (not self.key and self.operator == "Exists"))
            and (self.operator == "Exists" or self.value == value)
        )


# -- cells of tables -------------------------------------------------------------------------------

_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def _quantity(convert: Callable[..., int], *, capacity: bool = False) -> BeforeValidator:
    def read(text: str, column: str) -> int:
        try:
            return convert(text, capacity=capacity)
        except DocumentError as error:
            raise CellError(f"{column}: {error.problem}", error.remedy or "") from None

    return cell(read)


def _word(text: str, column: str) -> str:
    if not LABEL.fullmatch(text):
        raise CellError(
            f"{column} is {text[:60]!a}", "legal: letters, digits, -, _ and ., up to 63"
        )
    return text


def _parts(text: str) -> list[str]:
    return [part for part in map(str.strip, text.split(";")) if part]


def _some_labels(text: str, column: str) -> dict[str, str]:
    results = {}
    for part in _parts(text):
        key, _, value = part.partition("=")
        if not LABEL_KEY.fullmatch(key) or not LABEL.fullmatch(value):
            raise CellError(
                f"{part[:60]!a} is no label", "legal: key=value, several separated by ;"
            )
        results[key] = value
    return results


def _taints(text: str, column: str) -> tuple[tuple[str, str, str], ...]:
    """Read ``key=value:Effect`` or ``key:Effect``, as ``kubectl taint`` does."""
    results = []
    for part in _parts(text):
        pair, _, effect = part.rpartition(":")
        key, _, value = pair.partition("=")
        if effect not in _EFFECTS or not LABEL_KEY.fullmatch(key) or not LABEL.fullmatch(value):
            raise CellError(
                f"{part[:60]!a} is no taint", f"legal: key=value:EFFECT of {', '.join(_EFFECTS)}"
            )
        results.append((key, value, effect))
    return tuple(results)


def _resources(text: str, column: str) -> dict[str, int]:
    """Read ``nvidia.com/gpu=1``: further resources in whole units."""
    results = {}
    for part in _parts(text):
        key, _, amount = part.partition("=")
        if not LABEL_KEY.fullmatch(key) or not amount.isascii() or not amount.isdigit():
            raise CellError(
                f"{part[:60]!a} is no resource", "legal: name=units such as nvidia.com/gpu=1"
            )
        results[key] = min(int(amount), 10**9)
    return results


#: A name, such as that of a place or a machine type.
Word = Annotated[str, cell(_word)]
Price = Annotated[Decimal, number("1e6")]
#: What is asked for, in milli-CPU and bytes, rounded up; what a machine has is rounded down.
Cpu = Annotated[int, _quantity(millicores)]
Memory = Annotated[int, _quantity(whole_bytes)]
CpuRoom = Annotated[int, _quantity(millicores, capacity=True)]
MemoryRoom = Annotated[int, _quantity(whole_bytes, capacity=True)]
LabelCell = Annotated[dict[str, str], cell(_some_labels)]
TaintCell = Annotated[tuple[tuple[str, str, str], ...], cell(_taints)]
ResourceCell = Annotated[dict[str, int], cell(_resources)]
