"""What an import says beside the instance: the origin file, and notes.

The origin says what the names of an instance are in the cluster. It lets a plan become `kubectl`
commands. Notes are for the report; faults of several files are gathered and told at once.

An instance document allows no field that its problem does not know, so the names of the cluster
stand in a file beside it: ``shop.json`` has ``shop.origin.json``::

    {"format": "placeopt/origin@1",
     "instance": {"problem": "rolling-update", "name": "shop", "sha256": "..."},
     "items": {"shop/cart-7d9f-x2v": {"namespace": "shop", "kind": "Deployment", "name": "cart",
                                      "pod": "cart-7d9f-x2v", "node": "n1",
                                      "containers": [{"name": "server", "cpu_millicores": 200,
                                                      "memory_bytes": 67108864}],
                                      "labels": {"app": "cart"}, "replicas": []}},
     "nodes": {"n1": {"kind": "Node", "labels": {"topology.kubernetes.io/zone": "z1"},
                      "virtual": false}}}

Keys of ``items`` by problem:

================  ================================================================================
rolling-update    ``application/microservice``: one running pod; ``pod`` and ``node`` are its own
edge-cloud        ``application/microservice``: one replica; ``pod`` and ``node`` are null
                  where it is not running yet
rescheduling      ``service``: a workload; ``replicas`` lists its pods as
                  ``{"pod": ..., "node": ...}``, in the order of the instance
temporal          ``request``: a workload; ``pod`` and ``node`` are null
================  ================================================================================

``name`` and ``kind`` are those of the workload that owns the pods: a Deployment, not its
ReplicaSet; the pod itself where nothing owns it. ``labels`` are those of the pods. A node is
``virtual`` where the importer made it up: nothing can run there.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field

from placeopt.core.errors import DocumentError, Faults, did_you_mean
from placeopt.core.files.documents import read_json, validate, what_is, write_json
from placeopt.core.files.paths import AnyPath
from placeopt.core.problem import Problem, Record

FORMAT: Literal["placeopt/origin@1"] = "placeopt/origin@1"


class OriginContainer(Record):
    """A container of a pod and its requests now; None where it has none of its own."""

    name: str
    cpu_millicores: int | None = None
    memory_bytes: int | None = None
    new_cpu_millicores: int | None = None
    """What it shall ask for. Absent or null: as now."""
    new_memory_bytes: int | None = None
    resized: bool = False
    """Whether it asks for another amount than its template: copies ask for that of now."""
    sidecar: bool = False
    """Whether it is an init container that runs beside the others."""


class OriginReplica(Record):
    """One pod of a workload; None where it is not running yet."""

    pod: str | None = None
    node: str | None = None


class OriginItem(Record):
    """What a microservice, service or request of the instance is in the cluster."""

    namespace: str
    kind: str
    name: str
    pod: str | None = None
    node: str | None = None
    containers: tuple[OriginContainer, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    replicas: tuple[OriginReplica, ...] = ()
    uid: str | None = None
    """Identity of the pod. Absent or null: not in the files."""


class NodeOrigin(Record):
    """What a node of the instance is: a machine (Node), a member cluster of Karmada (Cluster).

    `virtual`: the importer made it up.
    """

    kind: str = "Node"
    labels: dict[str, str] = Field(default_factory=dict)
    virtual: bool = False
    uid: str | None = None
    """Identity of the machine. Absent or null: not in the files."""
    taints: tuple[str, ...] | None = None
    """``key=value:effect`` of those that keep pods away, sorted. Absent or null: not known."""
    absent: bool = False
    """Whether it is not in the cluster yet: to be bought, or made."""
    pool_asked: bool = False
    """Whether pods that may run there ask for its NodePool of Karpenter by name."""
    price: float | None = None
    """Price of the whole node, in the unit of the prices. Absent or null: not known."""
    paid: float = 0.0
    """Share of the price that a commitment covers, 0 to 1: the instance has the rest."""
    interruptions: float | None = None
    """How often a spot node is taken away in a month. Absent or null: not known, or no spot."""


class OriginBudget(Record):
    """A PodDisruptionBudget: what stops of a plan may break."""

    namespace: str
    name: str
    allowed: int
    """How many of its pods may be missing besides those that are missing now."""
    items: tuple[str, ...] = ()
    """What it is about: keys of `items`."""


class OriginNote(Record):
    """A note of the import: what was assumed, pinned, left out, or cannot be said."""

    topic: str
    text: str
    count: int
    """How many it is about."""
    subjects: tuple[str, ...] = ()
    """Some of them."""


class InstanceRef(Record):
    """The instance that this file stands beside."""

    problem: str
    """Kind of the problem."""
    name: str
    """Name of the instance."""
    sha256: str
    """SHA-256 of the instance's document: which instance it was."""


class Origin(Record):
    """The contents of an origin file.

    Examples
    --------
    >>> item = OriginItem(namespace="shop", kind="Deployment", name="cart", pod="cart-1", node="n1")
    >>> known = InstanceRef(problem="rolling-update", name="x", sha256="")
    >>> origin = Origin(instance=known, items={"shop/cart-1": item})
    >>> origin.item("cart-1", "shop").name
    'cart'
    """

    format: Literal["placeopt/origin@1"] = FORMAT
    instance: InstanceRef
    items: dict[str, OriginItem] = Field(default_factory=dict)
    nodes: dict[str, NodeOrigin] = Field(default_factory=dict)
    budgets: tuple[OriginBudget, ...] = ()
    """PodDisruptionBudgets of the cluster."""
    files: tuple[str, ...] = ()
    """Files of the cluster that were imported. Empty: read from stdin, or not all that counts."""
    digests: tuple[str, ...] = ()
    """SHA-256 of each of `files`. Empty: not known."""
    cluster: str | None = None
    """Identity of the cluster: that of the namespace kube-system. Absent or null: not known."""
    price_unit: str | None = None
    """Unit of the prices, such as USD/h. Absent or null: not known."""
    notes: tuple[OriginNote, ...] = ()
    """What the import assumed, pinned, left out, and could not say."""

    def item(self, name: str, application: str | None = None) -> OriginItem:
        """Return what a microservice of `application`, or a service or request, is in the cluster.

        Raises
        ------
        DocumentError
            The file does not name it.
        """
        wanted = key(name, application)
        if wanted not in self.items:
            raise DocumentError(
                f"no origin of {wanted!r}",
                path="items",
                remedy=did_you_mean(wanted, list(self.items)[:50]),
            )
        return self.items[wanted]

    def check(self, problem: Problem, file: str | None = None) -> None:
        """Raise unless this origin belongs to `problem`.

        Raises
        ------
        DocumentError
            It was written beside another instance.
        """
        own = problem.instance_name
        if own.sha256 != self.instance.sha256:
            one, other = (f"{name.name!r} ({name.sha256[:12]})" for name in (self.instance, own))
            text = f"this origin belongs to {one}, not to {other}"
            raise DocumentError(
                text,
                file=file,
                path="instance",
                remedy="import again, or give the origin file of this instance",
            )


def digest(path: AnyPath) -> str:
    """Return the SHA-256 of a file, empty where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def key(name: str, application: str | None = None) -> str:
    """Return the key of ``items``.

    Examples
    --------
    >>> key("cart-1", "shop"), key("cart")
    ('shop/cart-1', 'cart')
    """
    return name if application is None else f"{application}/{name}"


def beside(instance: AnyPath) -> Path:
    """Return where the origin of an instance file stands.

    Examples
    --------
    >>> beside("out/shop.json").name
    'shop.origin.json'
    """
    path = Path(instance)
    return path.with_name((path.name.removesuffix(".json") or path.name) + ".origin.json")


def read(path: AnyPath) -> Origin:
    """Read an origin file.

    Raises
    ------
    DocumentError
        Names the file, the JSON path and what is legal.
    """
    document = read_json(path)
    what = what_is(document)
    if what not in (None, "an origin"):
        raise DocumentError(
            f"this is {what}, not an origin",
            file=str(path),
            remedy="`placeopt import kubernetes` writes it beside the instance",
        )
    origin: Origin = validate(Origin, document, file=str(path))
    return origin


def write(path: AnyPath, origin: Origin) -> None:
    """Write an origin file, atomically."""
    write_json(path, origin.model_dump(mode="json"))


# -- notes -----------------------------------------------------------------------------------------

T = TypeVar("T")

#: Topic -> heading, in the order in which a reader wants them.
TOPICS = {
    "assumption": "Assumed",
    "pinned": "Stays where it is",
    "capacity": "Counted against its node, not moved",
    "left-out": "Left out",
    "kept": "Constraints that the instance keeps",
    "not-expressed": "What the model cannot say",
    "ignored": "Not read",
}
#: Subjects of one note that are listed.
MAX_SUBJECTS = 1000


@dataclass
class Notes:
    """Notes of an import, gathered while it runs."""

    files: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    found: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def add(self, topic: str, text: str, subject: str | None = None) -> None:
        """Note `text` under a topic of `TOPICS`, about `subject`."""
        assert topic in TOPICS
        subjects = self.found.setdefault((topic, text), {})
        if subject is not None:
            subjects[subject] = None

    def leave_out(self, text: str, subject: str) -> None:
        """Note that `subject`, of which an assumption was noted, is left out after all."""
        for key in [k for k, own in self.found.items() if k[0] == "assumption" and subject in own]:
            del self.found[key][subject]
            if not self.found[key]:
                del self.found[key]
        self.add("left-out", text, subject)

    def read(self, file: str, kinds: Counter[str]) -> None:
        """Note a file and what it holds."""
        self.files.append({"file": file, "objects": dict(sorted(kinds.items()))})

    def taken(self, stage: tuple[T, Notes]) -> T:
        """Add the notes of a stage behind these; return its value."""
        value, others = stage
        self.files += others.files
        for key, subjects in others.found.items():
            self.found.setdefault(key, {}).update(subjects)
        return value

    def of(self, topic: str) -> list[tuple[str, list[str]]]:
        """Return (text, subjects) of the notes of a topic."""
        return [(text, list(subjects)) for (t, text), subjects in self.found.items() if t == topic]

    def document(self, problem: str) -> dict[str, Any]:
        """Return the report as a JSON document."""
        notes = [
            {
                "topic": topic,
                "text": text,
                "count": max(1, len(subjects)),
                "subjects": subjects[:MAX_SUBJECTS],
            }
            for topic in TOPICS
            for text, subjects in self.of(topic)
        ]
        return {
            "format": "placeopt/import@1",
            "problem": problem,
            "files": self.files,
            "counts": self.counts,
            "notes": notes,
        }

    def markdown(self, problem: str) -> str:
        """Return the report as markdown; texts of the files are never markup."""
        from placeopt.plot.blocks import Block, Bullets, Sentence, markdown

        blocks: list[Block] = []
        for entry in self.files:
            kinds = ", ".join(f"{count} {kind}" for kind, count in entry["objects"].items())
            blocks.append(Sentence(f"{entry['file']}: {kinds or 'nothing'}"))
        blocks.append(Sentence(", ".join(f"{count} {what}" for what, count in self.counts.items())))
        for topic, heading in TOPICS.items():
            if rows := self.of(topic):
                told = [f"{text}: {_some(own, 50)}" if own else text for text, own in rows]
                blocks.append(Bullets(heading, told))
        return markdown(blocks, f"Import to {problem}")

    def summary(self) -> list[str]:
        """Return a few lines for the terminal: every note once, with its first subjects."""
        lines = [", ".join(f"{n} {what}" for what, n in self.counts.items())]
        for topic, heading in TOPICS.items():
            for text, subjects in self.of(topic):
                about = f" ({_some(subjects, 3)})" if subjects else ""
                lines.append(f"{heading.lower()}: {text}{about}")
        return [line for line in lines if line]


# -- who notes, and who keeps it -------------------------------------------------------------------

_KEPT_BY: ContextVar[Notes | None] = ContextVar("kept by", default=None)


def note(topic: str, text: str, subject: str | None = None) -> None:
    """Note something of an import, as `warnings.warn` warns: who records keeps it, else nobody."""
    kept_by = _KEPT_BY.get()
    if kept_by is not None:
        kept_by.add(topic, text, subject)


def note_file(file: str, kinds: Counter[str]) -> None:
    """Note a file that was read, and how many objects of each kind it holds."""
    kept_by = _KEPT_BY.get()
    if kept_by is not None:
        kept_by.read(file, kinds)


@contextlib.contextmanager
def recorded() -> Iterator[Notes]:
    """Keep what is noted within, and give it to nobody else."""
    notes = Notes()
    token = _KEPT_BY.set(notes)
    try:
        yield notes
    finally:
        _KEPT_BY.reset(token)


def _some(subjects: Sequence[str], maximum: int) -> str:
    more = f" and {len(subjects) - maximum} more" if len(subjects) > maximum else ""
    return ", ".join(subjects[:maximum]) + more


# -- faults ----------------------------------------------------------------------------------------

_GATHERED_BY: ContextVar[Faults | None] = ContextVar("gathered by", default=None)


@contextlib.contextmanager
def gathering(faults: Faults) -> Iterator[None]:
    """Gather in `faults` what `tolerated` meets within."""
    token = _GATHERED_BY.set(faults)
    try:
        yield
    finally:
        _GATHERED_BY.reset(token)


class _Tolerated:
    """What `tolerated` returns: it is entered for every object, and has to be quick."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        faults = _GATHERED_BY.get()
        if faults is None or not isinstance(error, DocumentError):
            return False
        with faults.gather():
            raise error
        return True


_TOLERATED = _Tolerated()


def tolerated() -> _Tolerated:
    """Go on after a fault that is raised within, where faults are gathered; else let it pass."""
    return _TOLERATED


def check_faults() -> None:
    """Raise what was gathered until now, if anything was.

    Raises
    ------
    DocumentError
    """
    faults = _GATHERED_BY.get()
    if faults is not None:
        faults.check()
