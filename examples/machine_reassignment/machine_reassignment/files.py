"""The challenge's files: a model and an assignment become an instance, a plan an assignment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from machine_reassignment.instance import MachineReassignment
from placeopt.plugins import AnyPath, DocumentError, read_text


class _Numbers:
    """The whole numbers of a file, one after another."""

    def __init__(self, path: AnyPath):
        self.file, self.place = str(path), 0
        self.words = read_text(path, "text").split()

    def many(self, count: int, what: str) -> list[int]:
        """Return the next numbers.

        Raises
        ------
        DocumentError
            There are fewer, or one is not a whole number of at least 0.
        """
        words = self.words[self.place : self.place + count]
        if len(words) < count:
            at = f"ends after {len(self.words)} numbers, in {what}"
            raise DocumentError(f"the file {at}", file=self.file, remedy="give the whole file")
        for k, word in enumerate(words):
            if not (word.isascii() and word.isdigit() and len(word) < 19):
                raise DocumentError(
                    f"number {self.place + k + 1} is {word[:20]!r}, in {what}",
                    file=self.file,
                    remedy="give a whole number of at least 0",
                )
        self.place += count
        return list(map(int, words))

    def one(self, what: str) -> int:
        """Return the next number."""
        return self.many(1, what)[0]

    def end(self) -> None:
        """Raise unless all numbers were read."""
        left = len(self.words) - self.place
        if left:
            raise DocumentError(
                f"{left} numbers stand after the last one",
                file=self.file,
                remedy="give a file of the challenge; check the counts in it",
            )


def read(model: AnyPath, assignment: AnyPath, name: str | None = None) -> MachineReassignment:
    """Return the instance of a model and of the assignment that runs now.

    Parameters
    ----------
    name : str, optional
        Name of the instance; that of the model's file without ``model_`` by default.

    Raises
    ------
    DocumentError
        Names the file, the number and what is legal.
    """
    document = _model(_Numbers(model))
    machines = _Numbers(assignment)
    for process in document["processes"]:
        process["machine"] = machines.one("the assignment")
    machines.end()
    document["name"] = name or Path(model).stem.removeprefix("model_") or "roadef"
    try:
        return MachineReassignment.from_document(document)
    except DocumentError as error:
        raise error.in_file(str(model)) from None


def _model(n: _Numbers) -> dict[str, Any]:
    """Return the document of a model file, whose processes have no machine yet."""
    resources = [
        {"transient": bool(n.one("the resources")), "load_cost": n.one("the resources")}
        for _ in range(n.one("the number of resources"))
    ]
    width, count = len(resources), n.one("the number of machines")
    machines = [
        {
            "neighbourhood": n.one(f"machine {m}"),
            "location": n.one(f"machine {m}"),
            "capacity": n.many(width, f"machine {m}"),
            "safety_capacity": n.many(width, f"machine {m}"),
            "move_costs": n.many(count, f"machine {m}"),
        }
        for m in range(count)
    ]
    services = []
    for s in range(n.one("the number of services")):
        spread, depends = n.many(2, f"service {s}")
        services.append({"spread": spread, "depends_on": n.many(depends, f"service {s}")})
    processes = []
    for p in range(n.one("the number of processes")):
        service, *needs, cost = n.many(width + 2, f"process {p}")
        processes.append({"service": service, "requirements": needs, "move_cost": cost})
    balances = []
    for _ in range(n.one("the number of balances")):
        one, other, target, cost = n.many(4, "the balances")
        balances.append({"resource": one, "other": other, "target": target, "cost": cost})
    weights = dict(zip(("process", "service", "machine"), n.many(3, "the weights"), strict=True))
    n.end()
    return {
        "problem": "machine-reassignment",
        "resources": resources,
        "machines": machines,
        "services": services,
        "processes": processes,
        "balances": balances,
        "move_weights": weights,
    }


def commands(app: Any, imports: Any, exports: Any) -> None:
    """Add ``placeopt import roadef-2012`` and ``placeopt export roadef-2012``."""

    from placeopt import Front
    from placeopt.plugins import write_parts

    @imports.command("roadef-2012")
    def read_challenge(
        model: Annotated[Path, typer.Argument(help="The challenge's model file.")],
        assignment: Annotated[Path, typer.Argument(help="The assignment that runs now.")],
        output: Annotated[Path, typer.Option("-o", "--output", help="The instance.")],
    ) -> None:
        """Read an instance of the ROADEF/EURO challenge 2012, machine reassignment."""
        read(model, assignment).write(output)

    @exports.command("roadef-2012")
    def write_assignment(
        front: Annotated[Path, typer.Argument(help="A front of machine reassignment.")],
        output: Annotated[Path, typer.Option("-o", "--output", help="The assignment.")],
    ) -> None:
        """Write the plan of least cost as an assignment of the challenge."""
        best = min(Front.read(front).points, key=lambda point: sum(point.values))
        words = " ".join(map(str, best.plan["machines"]))
        write_parts(output, [f"{words}\n".encode()])
